"""Weights of rows in the training loss: those of the table, multiplied by those of classes.

Programs see the product only. The rules are those of Keras' `fit(sample_weight=…,
class_weight=…)`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.wire.fields import Header, is_number, typed
from cerebro_trainer.wire.frames import Array, Float32Array

ClassWeight: TypeAlias = Float32Array
"""By class index; further classes have weight 1."""


def parse_class_weight(fit: Header) -> ClassWeight | None:
    """Read the optional field `class_weight` of fit parameters, a list of numbers."""
    if fit.get("class_weight") is None:
        return None
    values = typed(fit, "class_weight", list)
    if not all(map(is_number, values)):
        raise RequestError(f'"class_weight" must be a list of numbers, received {values!r}'[:300])
    return np.array(values, np.float32)


def add_weights(buffer: Buffer, class_weight: ClassWeight | None) -> Buffer:
    """Return the buffer with the weights of its rows in the loss.

    Raises:
        ConfigError: there are class weights, but rows do not have one class each.
    """
    if class_weight is None:
        return replace(buffer, weights=buffer.sample_weights)
    if len(buffer.targets) != 1:
        raise ConfigError("class_weight is for models with one output", sqlstate="0A000")
    weights = look_up_weights(buffer.targets[0], class_weight)
    if buffer.sample_weights is not None:
        weights = weights * buffer.sample_weights
    return replace(buffer, weights=weights)


def look_up_weights(target: Array, class_weight: ClassWeight) -> Float32Array:
    """Return the weight of each row's class.

    The class is the index of the largest of several columns, or the rounded number.

    >>> look_up_weights(np.array([[0, 1], [1, 0]]), np.array([1, 5], np.float32)).tolist()
    [5.0, 1.0]
    """
    if target.ndim > 2:
        raise ConfigError(
            "class_weight needs one class per row, but rows of the targets have several",
            sqlstate="0A000",
        )
    if target.ndim == 2 and target.shape[1] != 1:
        classes = target.argmax(axis=1)
    else:
        classes = np.round(target.reshape(len(target)))
    has_weight = (classes >= 0) & (classes < len(class_weight))
    weights = np.ones(len(target), np.float32)
    weights[has_weight] = class_weight[classes[has_weight].astype(np.intp)]
    return weights
