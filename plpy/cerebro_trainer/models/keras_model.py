"""From an architecture to a Keras model, with its size known before any memory is taken for it."""

from __future__ import annotations

import copy
import math
import os
import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import keras
import numpy as np
import numpy.typing as npt

from cerebro_trainer.errors import CONFIG_EXCEPTIONS, ConfigError, summary
from cerebro_trainer.models import architectures, dtype_policy, keras_hub_support
from cerebro_trainer.models.layer_arguments import ArchitectureError, Json, Node

T = TypeVar("T")

FLOAT_BYTES = 4
BYTES_PER_PARAMETER = 16
"""A float32 weight, its gradient, and two optimizer slots (Adam)."""


def prepare(architecture: Json, policy: str | None) -> Node:
    """The architecture as safe Keras 3 JSON.

    `policy` is the dtype policy of its layers; None leaves them as they are.
    """
    try:
        node = architectures.rewrite(architecture)
    except ArchitectureError as error:
        raise ConfigError(error.message, sqlstate=error.sqlstate, hint=error.hint) from error
    return node if policy is None else dtype_policy.with_policy(node, policy)


def check_size(parameters: int) -> None:
    """Raises ConfigError where a model of so many parameters does not fit into this machine's
    memory.
    """
    limit = _memory_bytes() // BYTES_PER_PARAMETER
    if parameters > limit:
        raise ConfigError(
            f"the model has {parameters} parameters; this machine's memory allows {limit} "
            f"({BYTES_PER_PARAMETER} bytes each for weight, gradient and optimizer)",
            sqlstate="53200",
        )


def build(node: Node) -> keras.Model:
    """The model of a prepared architecture; its variables are zero until a state is read into them.

    To draw weights costs a small model more than all else of it, and most states come from
    elsewhere.
    """

    def empty() -> keras.Model:
        # Where the scope ends Keras initialises what was made in it.
        with keras.StatelessScope():
            model = _build(node)
            for variable in model.variables:
                variable._initializer = _zeros
        return model

    return guarded(empty)


def outline(node: Node, seed: int | None = None) -> keras.Model:
    """The model of a prepared architecture; its variables have shapes but no values, only what
    would give them.

    With a `seed` that would be the values of `build_seeded`.
    """
    if seed is not None:
        _seed(seed)
    return without_values(lambda: _build(node))


def without_values(make: Callable[[], T]) -> T:
    """What Keras makes where variables get no values.

    In a thread of its own, because Keras remembers such variables per thread to initialise them
    later.
    """

    def made() -> T:
        with keras.StatelessScope(initialize_variables=False):
            return make()

    with ThreadPoolExecutor(1) as thread:
        found: T = guarded(lambda: thread.submit(made).result())
        return found


def initial_value(variable: Any) -> npt.NDArray[Any]:
    """The value that a variable without one would get."""
    return np.asarray(
        keras.ops.convert_to_numpy(variable._initializer(variable._shape, dtype=variable._dtype))
    )


def make_zero(variable: Any) -> None:
    """Give a variable without a value zeros."""
    variable._initializer = _zeros
    variable._deferred_initialize()


def build_seeded(node: Node, seed: int) -> keras.Model:
    """The model with the initial weights and generator states that `seed` gives.

    Keras draws the seeds of all of them from Python's generator. `keras.utils.set_random_seed`
    would give the same, but it also tells TensorFlow, which then drops what it has made of every
    function that was called: the next step of a program would take as long as the first.
    """
    _seed(seed)
    return guarded(lambda: _build(node))


def output_names(model: keras.Model) -> list[str]:
    """The names that losses and metrics may be given by; a Sequential's output is named as its last
    layer.
    """
    return (
        [model.layers[-1].name] if isinstance(model, keras.Sequential) else list(model.output_names)
    )


def vocabularies(model: keras.Model) -> tuple[int | None, ...]:
    """How many tokens each input may hold; None for one that is not embedded directly."""
    sizes: dict[int, int] = {}
    for layer in model.layers:
        embedded = _embedded(layer)
        for node in layer._inbound_nodes if any(embedded) else ():
            for tensor, size in zip(node.input_tensors, embedded, strict=False):
                if size is not None:
                    sizes[id(tensor)] = min(size, sizes.get(id(tensor), size))
    return tuple(sizes.get(id(tensor)) for tensor in model.inputs)


def _embedded(layer: Any) -> tuple[int | None, ...]:
    """How many tokens what a layer is called with may hold, for a model's layers where they stand
    in it.
    """
    if isinstance(layer, keras.Model):
        return vocabularies(layer)
    embedding = getattr(layer, "token_embedding", layer)  # what TokenAndPositionEmbedding has
    return (embedding.input_dim,) if isinstance(embedding, keras.layers.Embedding) else ()


def widest(model: keras.Model) -> int:
    """Bytes that the largest tensor between its layers has for a row; as good as endless where a
    shape is not known.
    """
    found = 1
    for layer in getattr(model, "operations", model.layers):
        if isinstance(layer, keras.Model):
            found = max(found, widest(layer))
        for node in layer._inbound_nodes:
            for tensor in node.output_tensors:
                sizes = tensor.shape[1:]
                found = max(found, sys.maxsize if None in sizes else FLOAT_BYTES * math.prod(sizes))
    return found


def convolves(model: keras.Model) -> bool:
    """Whether there is a convolution anywhere in it."""
    return any("Conv" in type(layer).__name__ for layer in model._flatten_layers())


def guarded(make: Callable[[], Any]) -> Any:
    """Call Keras with something a user wrote; what it objects to becomes a ConfigError."""
    try:
        return make()
    except MemoryError as error:
        raise ConfigError("the model does not fit into memory", sqlstate="53200") from error
    except CONFIG_EXCEPTIONS as error:
        raise ConfigError(f"Keras refuses the model: {summary(error)}") from error


def _seed(seed: int) -> None:
    random.seed(seed % 2**32)
    np.random.seed(seed % 2**32)


def _zeros(shape: tuple[int, ...], dtype: str) -> npt.NDArray[Any]:
    return np.zeros(shape, np.dtype(dtype))


def _build(node: Node) -> keras.Model:
    keras_hub_support.provide(node)
    # A copy, because Keras takes configs apart while it reads them.
    model = keras.saving.deserialize_keras_object(copy.deepcopy(node), safe_mode=True)
    if not isinstance(model, keras.Model) or not model.built or not model.inputs:
        raise ConfigError("the architecture does not say the shape of its input")
    _freeze(model)
    return model


def _freeze(model: keras.Model) -> None:
    """Freeze all parts of what is frozen: Keras trains those that a layer makes when it is built,
    as attention does.
    """
    for layer in model._flatten_layers():
        if not layer.trainable:
            for part in layer._flatten_layers(
                include_self=False
            ):  # TensorFlow takes no value that is there already
                part.trainable = False


def parameters_of(node: Node) -> int:
    """How many numbers its variables have."""
    return int(outline(node).count_params())


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
