"""Weights of rows in the training loss: those of the table, times those of classes; so no program
knows of either.

The rules are those of Keras' `fit(sample_weight=…, class_weight=…)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data.buffers import Buffer
from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.wire.fields import typed

ClassWeight: TypeAlias = npt.NDArray[np.float32]
"""By class, from 0; classes beyond its end have weight 1."""


def from_fit(fit: Mapping[str, Any]) -> ClassWeight | None:
    """The field `class_weight` of fit parameters, a list of numbers; None where there is none."""
    if fit.get("class_weight") is None:
        return None
    values = typed(fit, "class_weight", list)
    if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        raise RequestError(f'"class_weight" must be a list of numbers, received {values!r}'[:300])
    return np.array(values, np.float32)


def weighted(buffer: Buffer, weights: ClassWeight | None) -> Buffer:
    """The buffer with the weights of its rows; ConfigError where its rows have no class."""
    if weights is None:
        return replace(buffer, weights=buffer.sample_weights)
    if len(buffer.targets) != 1:
        raise ConfigError("class_weight is for models with one output", sqlstate="0A000")
    found = of_rows(buffer.targets[0], weights)
    return replace(
        buffer, weights=found if buffer.sample_weights is None else found * buffer.sample_weights
    )


def of_rows(target: npt.NDArray[Any], weights: ClassWeight) -> npt.NDArray[np.float32]:
    """The weight of each row, by its class: the largest of several columns, else the number itself,
    rounded.

    >>> of_rows(np.array([[0, 1], [1, 0]]), np.array([1, 5], np.float32)).tolist()
    [5.0, 1.0]
    """
    if target.ndim > 2:
        raise ConfigError(
            "class_weight needs one class per row, but rows of the targets have several",
            sqlstate="0A000",
        )
    wide = target.ndim == 2 and target.shape[1] != 1
    classes = target.argmax(axis=1) if wide else np.round(target.reshape(len(target)))
    known = (classes >= 0) & (classes < len(weights))
    found = np.ones(len(target), np.float32)
    found[known] = weights[classes[known].astype(np.intp)]
    return found
