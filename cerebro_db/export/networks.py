"""Build a Keras model from a stored one.

Its architecture may be a stranger's. Before Keras builds it in its safe mode, it is therefore
rewritten with listed classes only, as by the trainer, and its weights are counted.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cerebro_db.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidParameter,
    InvalidText,
    find_error_class,
)
from cerebro_db.export import temperature
from cerebro_db.export.architecture import allowlist, architectures
from cerebro_db.export.architecture.layer_arguments import ArchitectureError
from cerebro_db.export.stored_models import StoredModel
from cerebro_db.export.target_scale import KEY, add_scale
from cerebro_db.export.trees.stored_trees import check_network
from cerebro_db.nouns import count_nouns
from cerebro_db.optional_imports import import_keras

T = TypeVar("T")
Shape = tuple[int, ...]
LAYERS = {"keras", "keras.layers", *allowlist.OPERATIONS, *allowlist.HUB}
"""Modules of layers and models in a rewritten architecture."""


def build_network(stored: StoredModel) -> Any:
    """Return the Keras model with its weights; it predicts as the database does.

    Raises:
        InvalidText: the architecture is not JSON.
        FeatureNotSupported: it is that of boosted trees, has a class that is not listed, or this
            Keras cannot build it.
        InvalidParameter: it is larger than an architecture may be.
        DatatypeMismatch: the weights are not those of the architecture.
    """
    check_network(stored)
    node = make_exported_architecture(stored)
    weights = _shape_weights(stored, measure_weights(node))
    model = _build(lambda keras: _deserialize(keras, node))
    model.set_weights(weights)
    finalize_layers(model)
    return model


def make_exported_architecture(stored: StoredModel) -> dict[str, Any]:
    """Return the architecture as Keras 3 JSON, with the scale or the temperature at its end."""
    node = rewrite(stored.architecture)
    scale = stored.description.get(KEY)
    if scale is not None:
        node = add_scale(node, scale)
    if temperature.KEY in stored.description:
        node = temperature.add_temperature(node, stored.description[temperature.KEY])
    return node


def finalize_layers(model: Any) -> None:
    """Let layers such as Normalization compute what they derive from their weights."""
    for layer in model._flatten_layers():
        if hasattr(layer, "finalize_state"):
            layer.finalize_state()


def build_architecture(architecture: str) -> Any:
    """Return the Keras model of an architecture with initial weights.

    Raises:
        InvalidText: the architecture is not JSON.
        FeatureNotSupported: it has a class that is not listed, or this Keras cannot build it.
        InvalidParameter: it is larger than an architecture may be.
    """
    node = rewrite(architecture)
    return _build(lambda keras: _deserialize(keras, node))


def rewrite(architecture: str) -> dict[str, Any]:
    """Return an architecture as Keras 3 JSON that contains listed classes only."""
    if len(architecture) > allowlist.MAX_CHARACTERS:
        raise InvalidParameter(
            f"the architecture has {count_nouns(len(architecture), 'character')}",
            hint=f"At most {allowlist.MAX_CHARACTERS} are allowed.",
        )
    try:
        value = json.loads(architecture)
    except (ValueError, RecursionError) as error:
        raise InvalidText(f"the architecture cannot be read: {error}") from error
    try:
        node = architectures.rewrite(value)
    except ArchitectureError as error:
        raise find_error_class(error.sqlstate)(error.message, hint=error.hint) from error
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidText(
            f"the architecture is not one of Keras: {type(error).__name__}: {error}"
        ) from error
    layers = count_layers(node)
    if layers > allowlist.MAX_LAYERS:
        raise InvalidParameter(
            f"the architecture has {count_nouns(layers, 'layer')}",
            hint=f"At most {allowlist.MAX_LAYERS} are allowed.",
        )
    return node


def count_layers(node: object) -> int:
    """Return the number of layers and models in a rewritten architecture."""
    unvisited = [node]
    count = 0
    while unvisited:
        value = unvisited.pop()
        if isinstance(value, dict):
            count += value.get("module") in LAYERS
            unvisited += value.values()
        elif isinstance(value, list):
            unvisited += value
    return count


def measure_weights(node: dict[str, Any]) -> list[Shape]:
    """Return the shapes of the weights of a rewritten architecture without allocating them."""

    def list_shapes(keras: Any) -> list[Shape]:
        with keras.StatelessScope(initialize_variables=False):
            return [tuple(weight.shape) for weight in _deserialize(keras, node).weights]

    # A thread of its own, because Keras remembers such weights per thread to initialize them later.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_build, list_shapes).result()


def _build(function: Callable[[Any], T]) -> T:
    """Call a function with Keras.

    Raises:
        FeatureNotSupported: the function raised any exception.
    """
    keras = import_keras()
    try:
        return function(keras)
    except Exception as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise FeatureNotSupported(
            f"Keras {keras.__version__} cannot build the model: {reason:.300}"
        ) from error


def _deserialize(keras: Any, node: dict[str, Any]) -> Any:
    # A copy, because Keras changes configs while it reads them.
    model = keras.saving.deserialize_keras_object(copy.deepcopy(node), safe_mode=True)
    if not model.built:
        raise ValueError("the architecture does not say the shape of its input")
    return model


def list_weight_names(model: Any) -> list[str]:
    """Return a name for each weight, in the order of get_weights().

    The name is the path of the weight; within a nested model, that model's name precedes it.
    """
    names = {id(weight): name for weight, name in _name_weights(model, "")}
    return [names[id(weight)] for weight in model.weights]


def _name_weights(model: Any, prefix: str) -> Iterator[tuple[Any, str]]:
    model_class = import_keras().Model
    for layer in model.layers:
        if isinstance(layer, model_class):
            yield from _name_weights(layer, f"{prefix}{layer.name}/")
        else:
            yield from ((weight, f"{prefix}{weight.path}") for weight in layer.weights)


def _shape_weights(stored: StoredModel, shapes: list[Shape]) -> list[NDArray[Any]]:
    """Return the stored weights in the shapes of the architecture."""
    if not stored.is_flat:
        stored_shapes = [weight.shape for weight in stored.weights]
        if stored_shapes != shapes:
            raise _mismatch(
                f"other shapes than the architecture: {len(stored_shapes)} where {len(shapes)} "
                "are expected"
            )
        return list(stored.weights)
    (numbers,) = stored.weights
    sizes = [math.prod(shape) for shape in shapes]
    if sum(sizes) != len(numbers) or not sizes:
        raise _mismatch(f"{count_nouns(len(numbers), 'number')}, the architecture {sum(sizes)}")
    parts = np.split(numbers, np.cumsum(sizes)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _mismatch(difference: str) -> DatatypeMismatch:
    return DatatypeMismatch(
        f"the weights have {difference}",
        hint="The table was changed since it was trained; train the model again.",
    )
