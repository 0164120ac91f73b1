"""The calibration of class probabilities: a temperature, and a threshold between two classes.

Computed in double precision, so that different probabilities stay different and in their order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cerebro_trainer.data.arrays import Floats, Integers
from cerebro_trainer.errors import RequestError
from cerebro_trainer.wire.fields import Header, number, optional, record
from cerebro_trainer.wire.frames import Array

MIN_PROBABILITY = 1e-7
"""Smaller probabilities count as this, as in the loss of Keras."""


@dataclass(frozen=True)
class Calibration:
    """The corrections of a model's outputs; the defaults change nothing."""

    temperature: float = 1.0  # divides the logarithms of probabilities
    threshold: float | None = None  # the second of two classes is predicted from it on

    @classmethod
    def from_header(cls, header: Header) -> Calibration:
        """Read the object `calibration` of a request, if it has one."""
        entry = optional(header, "calibration", record)
        if entry is None:
            return NO_CALIBRATION
        temperature = number(entry, "temperature")
        threshold = optional(entry, "threshold", number)
        is_possible = 0 < temperature < math.inf
        if threshold is not None:
            is_possible = is_possible and 0 <= threshold <= 1
        if not is_possible:
            raise RequestError(
                f'"calibration" must have a positive temperature, and a probability as threshold; '
                f"received {entry!r}"[:300]
            )
        return cls(temperature, threshold)

    def correct(self, outputs: Array) -> Array:
        """Return the probabilities under the temperature; rows that are not finite stay."""
        if self.temperature == NO_CALIBRATION.temperature:
            return outputs
        values = outputs.astype(np.float64).reshape(len(outputs), -1)
        is_finite = np.isfinite(values).all(axis=1, keepdims=True)
        logarithms = np.log(np.maximum(np.where(is_finite, values, 1.0), MIN_PROBABILITY))
        logarithms -= logarithms.max(axis=1, keepdims=True)
        powers = np.exp(logarithms / self.temperature)
        probabilities = powers / powers.sum(axis=1, keepdims=True)
        return np.where(is_finite, probabilities, values)

    def choose_classes(self, probabilities: Floats) -> Integers:
        """Return the positions of the predicted classes.

        >>> rows = np.array([[0.8, 0.2], [0.6, 0.4]])
        >>> Calibration(threshold=0.3).choose_classes(rows).tolist()
        [0, 1]
        """
        if self.threshold is None or probabilities.shape[1] != 2:
            return np.asarray(probabilities.argmax(axis=1))
        return np.asarray(probabilities[:, 1] >= self.threshold, dtype=np.int64)


NO_CALIBRATION = Calibration()
