"""Keras models from architectures, and the properties of models that programs need.

The size of a model is known before memory is allocated for it.
"""

from __future__ import annotations

import copy
import math
import os
import random
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import keras
import numpy as np

from cerebro_trainer.errors import CONFIG_EXCEPTIONS, ConfigError, summary
from cerebro_trainer.models import (
    architectures,
    dtype_policy,
    keras_hub_support,
    normalization,
)
from cerebro_trainer.models.layer_arguments import ArchitectureError, Json, Node
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.wire.frames import Array, Arrays

FLOAT_BYTES = 4
BYTES_PER_PARAMETER = 16
"""A float32 weight, its gradient, and two optimizer slots (Adam)."""
MAX_CACHED_BYTES = 64 * 2**20
"""Larger initial weights are drawn again each time."""


def prepare(architecture: Json, policy: str | None) -> Node:
    """Rewrite an architecture as safe Keras 3 JSON.

    Args:
        policy: dtype policy of all layers; None keeps those of the architecture.
    """
    try:
        node = architectures.rewrite(architecture)
    except ArchitectureError as error:
        raise ConfigError(error.message, sqlstate=error.sqlstate, hint=error.hint) from error
    return node if policy is None else dtype_policy.apply_policy(node, policy)


def check_size(parameters: int) -> None:
    """Raise ConfigError if a model with that many parameters does not fit into the memory."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = memory // BYTES_PER_PARAMETER
    if parameters > limit:
        raise ConfigError(
            f"the model has {count_nouns(parameters, 'parameter')}; this machine's memory allows "
            f"{limit} ({BYTES_PER_PARAMETER} bytes each for weight, gradient and optimizer)",
            sqlstate="53200",
        )


def build(node: Node) -> keras.Model:
    """Build the model of a prepared architecture with zeros as the values of its variables.

    Drawing initial weights would take most of the time for a small model, and most states come from
    elsewhere.
    """

    def build_with_zeros() -> keras.Model:
        # At the end of the scope Keras initializes the variables that were created in it.
        with keras.StatelessScope():
            model = _build(node)
            for variable in model.variables:
                variable._initializer = _make_zeros
        return model

    return call_keras(build_with_zeros)


def outline(node: Node, seed: int | None = None) -> keras.Model:
    """Build the model of a prepared architecture without values, with initializers only.

    Args:
        seed: the initializers would give the values of `build_seeded` with this seed.
    """
    if seed is not None:
        _seed(seed)

    def build_without_values() -> keras.Model:
        with keras.StatelessScope(initialize_variables=False):
            return _build(node)

    # In another thread, because Keras collects such variables per thread to initialize them later.
    with ThreadPoolExecutor(1) as thread:
        return call_keras(thread.submit(build_without_values).result)


def compute_initial_value(variable: Any) -> Array:
    """Return the value that the initializer of a variable gives."""
    value = variable._initializer(variable._shape, dtype=variable._dtype)
    return np.asarray(keras.ops.convert_to_numpy(value))


def initialize_with_zeros(variable: Any) -> None:
    """Initialize a variable without a value with zeros."""
    variable._initializer = _make_zeros
    variable._deferred_initialize()


def build_seeded(node: Node, seed: int) -> keras.Model:
    """Build the model with the initial weights and generator states of a seed.

    Keras draws the seeds of all of them from Python's generator. `keras.utils.set_random_seed`
    would give the same values. But it also seeds TensorFlow, which then discards all traced
    functions, so that the next step of a program would take as long as the first one.
    """
    _seed(seed)
    return call_keras(_build, node)


class InitialWeights:
    """The initial weights of a model by seed.

    Keras takes some tens of milliseconds to draw them for a small model, as long as an epoch of a
    small group. The models of groups share one seed, so the weights are cached when a seed is used
    a second time.

    Args:
        read_value: returns the value of a variable.
    """

    def __init__(self, node: Node, read_value: Callable[[Any], Array]) -> None:
        self._node = node
        self._read_value = read_value
        self._last_seed: int | None = None
        self._cached_weights: Arrays | None = None

    def draw(self, seed: int) -> list[Array]:
        """Return new arrays in the order of the model's variables."""
        is_repeated = seed == self._last_seed
        if is_repeated and self._cached_weights is not None:
            return [array.copy() for array in self._cached_weights]
        with keras.device("cpu"):  # PyTorch draws other numbers on a GPU
            model = build_seeded(self._node, seed)
            weights = [self._read_value(variable) for variable in model.variables]
        self._last_seed = seed
        self._cached_weights = None
        if is_repeated and sum(array.nbytes for array in weights) <= MAX_CACHED_BYTES:
            self._cached_weights = [array.copy() for array in weights]
        return weights


def list_output_names(model: keras.Model) -> list[str]:
    """Return the names that losses and metrics may use for the outputs."""
    if isinstance(model, keras.Sequential):
        return [model.layers[-1].name]
    return list(model.output_names)


def find_vocabulary_sizes(model: keras.Model) -> tuple[int | None, ...]:
    """Return the number of tokens that each input may contain.

    The number is None for an input that is not connected to an Embedding directly.
    """
    sizes: dict[int, int] = {}
    for layer in model.layers:
        layer_sizes = _find_token_limits(layer)
        if not any(layer_sizes):
            continue
        for node in layer._inbound_nodes:
            for tensor, size in zip(node.input_tensors, layer_sizes, strict=False):
                if size is not None:
                    sizes[id(tensor)] = min(size, sizes.get(id(tensor), size))
    return tuple(sizes.get(id(tensor)) for tensor in model.inputs)


def _find_token_limits(layer: Any) -> tuple[int | None, ...]:
    """Return the number of tokens that each input of a layer or nested model may contain."""
    if isinstance(layer, keras.Model):
        return find_vocabulary_sizes(layer)
    embedding = getattr(layer, "token_embedding", layer)  # of a TokenAndPositionEmbedding
    return (embedding.input_dim,) if isinstance(embedding, keras.layers.Embedding) else ()


def find_largest_tensor(model: keras.Model) -> int:
    """Return the bytes per row of the largest tensor between layers.

    A tensor of unknown shape counts as sys.maxsize.
    """
    largest = 1
    for layer in getattr(model, "operations", model.layers):
        if isinstance(layer, keras.Model):
            largest = max(largest, find_largest_tensor(layer))
        for node in layer._inbound_nodes:
            for tensor in node.output_tensors:
                sizes = tensor.shape[1:]
                nbytes = sys.maxsize if None in sizes else FLOAT_BYTES * math.prod(sizes)
                largest = max(largest, nbytes)
    return largest


def has_convolution(model: keras.Model) -> bool:
    """Return whether the model, or a model in it, has a convolutional layer."""
    return any("Conv" in type(layer).__name__ for layer in model._flatten_layers())


def call_keras(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function that passes a user's settings to Keras; turn its errors into ConfigError."""
    try:
        return function(*arguments)
    except MemoryError as error:
        raise ConfigError("the model does not fit into memory", sqlstate="53200") from error
    except CONFIG_EXCEPTIONS as error:
        raise ConfigError(f"Keras refuses the model: {summary(error)}") from error


def unwrap_single(tensors: Sequence[Any]) -> Any:
    """Return a single tensor without its list: Keras distinguishes both as inputs and outputs."""
    return tensors[0] if len(tensors) == 1 else list(tensors)


def count_parameters(node: Node) -> int:
    """Return the number of parameters of a prepared architecture."""
    return int(outline(node).count_params())


def _seed(seed: int) -> None:
    random.seed(seed % 2**32)
    np.random.seed(seed % 2**32)


def _make_zeros(shape: tuple[int, ...], dtype: str) -> Array:
    return np.zeros(shape, np.dtype(dtype))


def _build(node: Node) -> keras.Model:
    keras_hub_support.import_if_needed(node)
    normalization.install()
    # A copy, because Keras changes configs while it reads them.
    model = keras.saving.deserialize_keras_object(copy.deepcopy(node), safe_mode=True)
    if not isinstance(model, keras.Model) or not model.built or not model.inputs:
        raise ConfigError("the architecture does not say the shape of its input")
    _freeze_parts(model)
    return model


def _freeze_parts(model: keras.Model) -> None:
    """Freeze all parts of frozen layers.

    Keras trains parts that a layer creates when it is built, such as those of attention.
    """
    for layer in model._flatten_layers():
        if not layer.trainable:
            # TensorFlow does not accept an assignment of the same value to the layer itself.
            for part in layer._flatten_layers(include_self=False):
                part.trainable = False
