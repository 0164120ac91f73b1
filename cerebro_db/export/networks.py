"""A stored model as a Keras model: built of listed classes by Keras itself in its safe mode, and given its weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cerebro_db.errors import DatatypeMismatch, FeatureNotSupported
from cerebro_db.export.stored_models import StoredModel
from cerebro_db.libraries import library


def network(stored: StoredModel) -> Any:
    """The Keras model; FeatureNotSupported where this Keras cannot build it."""
    model = built(stored.architecture)
    model.set_weights(_shaped(stored, [tuple(weight.shape) for weight in model.weights]))
    return model


def built(architecture: str) -> Any:
    """The Keras model of an architecture, with weights as they come; FeatureNotSupported as above."""
    keras = library("keras", "export,tensorflow")
    try:
        return keras.saving.deserialize_keras_object(json.loads(architecture), safe_mode=True)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise FeatureNotSupported(
            f"Keras {keras.__version__} cannot build the model: {str(error).splitlines()[0]:.300}",
            hint="An architecture of Keras 2 has to be loaded as Keras 3 writes it, with model.to_json().",
        ) from error


def weight_names(model: Any) -> list[str]:
    """A name for each weight in the order of get_weights(): its path, behind the layer's name within a nested model."""
    named = {id(weight): name for weight, name in _named(model, "")}
    return [named[id(weight)] for weight in model.weights]


def _named(model: Any, prefix: str) -> Iterator[tuple[Any, str]]:
    nested = library("keras", "export,tensorflow").Model
    for layer in model.layers:
        if isinstance(layer, nested):
            yield from _named(layer, f"{prefix}{layer.name}/")
        else:
            yield from ((weight, f"{prefix}{weight.path}") for weight in layer.weights)


def _shaped(stored: StoredModel, shapes: list[tuple[int, ...]]) -> list[NDArray[Any]]:
    """The weights in these shapes, cut out of all numbers where they come so."""
    if not stored.flat:
        return list(stored.weights)
    (numbers,) = stored.weights
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    if not len(ends) or ends[-1] != len(numbers):
        raise DatatypeMismatch(
            f"the weights have {len(numbers)} numbers, the architecture {ends[-1] if len(ends) else 0}",
            hint="The table was changed since it was trained; train the model again.",
        )
    return [part.reshape(shape) for part, shape in zip(np.split(numbers, ends[:-1]), shapes, strict=True)]
