"""The calibration of class probabilities: a temperature, and how a class is selection by them.

Computed in double precision, so that different probabilities stay different and in their order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cerebro_trainer.data.arrays import Floats, Integers
from cerebro_trainer.errors import RequestError
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.wire.fields import Header, integer, items, number, optional, record
from cerebro_trainer.wire.frames import Array

MIN_PROBABILITY = 1e-7
"""Smaller probabilities count as this, as in the loss of Keras."""


def _place_points(count: int) -> tuple[tuple[float, float], ...]:
    """Return points of a path from 0 to 1 with their weights in an integral.

    They are dense at both ends, where slopes of small probabilities may be steep.
    """
    nodes, weights = np.polynomial.legendre.leggauss(count)
    nodes = (nodes + 1) / 2
    points = nodes**3 * (10 - 15 * nodes + 6 * nodes**2)
    densities = 30 * nodes**2 * (1 - nodes) ** 2
    return tuple(zip(points.tolist(), (weights / 2 * densities).tolist(), strict=True))


PATH_POINTS = _place_points(64)


class NamedCost(NamedTuple):
    """The cost of a predicted class for rows of another class, or of the same one.

    Costs that are not named are 0 for the right class, and 1 for another one.
    """

    actual: int  # position of the class of the row
    predicted: int
    cost: float

    @classmethod
    def from_header(cls, entry: Header) -> NamedCost:
        """Read an object of the list `costs`."""
        named_cost = cls(
            integer(entry, "actual", 0), integer(entry, "predicted", 0), number(entry, "cost")
        )
        if not 0 <= named_cost.cost < math.inf:
            raise RequestError(f'"cost" must be a number from 0 on; received {named_cost.cost!r}')
        return named_cost

    @property
    def surplus(self) -> float:
        """Return the cost beyond the usual one."""
        return self.cost - (self.actual != self.predicted)


@dataclass(frozen=True)
class Calibration:
    """The corrections of a model's outputs; the defaults change nothing."""

    temperature: float = 1.0  # divides the logarithms of probabilities
    threshold: float | None = None  # the second of two classes is predicted from it on
    costs: tuple[NamedCost, ...] = ()  # without a threshold, the expected cost is minimised

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
        costs = optional(entry, "costs", items) or ()
        return cls(temperature, threshold, tuple(map(NamedCost.from_header, costs)))

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

    def average_slopes(self, begin: Floats, end: Floats, classes: Integers) -> Floats:
        """Return the mean slopes of a corrected probability on a straight path between outputs.

        The differences of the outputs, multiplied by the slopes, add up to about the difference of
        the probability.

        Args:
            begin: outputs of a baseline, shape (classes,).
            end: outputs of rows, shape (rows, classes).
            classes: position of the class of each row whose probability is meant.

        Returns:
            The slopes by the outputs, shape (rows, classes).
        """
        selection: Floats = np.eye(end.shape[1])[classes]
        if self.temperature == NO_CALIBRATION.temperature:
            return selection
        slopes = np.zeros_like(end)
        for point, weight in PATH_POINTS:
            outputs = begin + point * (end - begin)
            corrected = self.correct(outputs)
            explained = (corrected * selection).sum(axis=1, keepdims=True)
            change = explained * (selection - corrected) / np.maximum(outputs, MIN_PROBABILITY)
            slopes += np.where(outputs > MIN_PROBABILITY, weight / self.temperature * change, 0.0)
        return slopes

    def choose_classes(self, probabilities: Floats) -> Integers:
        """Return the positions of the predicted classes.

        Probabilities that are not finite count as 0.

        >>> rows = np.array([[0.8, 0.2], [0.6, 0.4]])
        >>> Calibration(threshold=0.3).choose_classes(rows).tolist()
        [0, 1]
        """
        probabilities = np.where(np.isfinite(probabilities), probabilities, 0.0)
        if self.threshold is not None and probabilities.shape[1] == 2:
            return np.asarray(probabilities[:, 1] >= self.threshold, dtype=np.int64)
        if self.costs:
            return np.asarray(self._compute_expected_costs(probabilities).argmin(axis=1))
        return np.asarray(probabilities.argmax(axis=1))

    def _compute_expected_costs(self, probabilities: Floats) -> Floats:
        """Return the expected cost of each prediction less a constant, shape (rows, classes)."""
        classes = probabilities.shape[1]
        if any(max(cost.actual, cost.predicted) >= classes for cost in self.costs):
            size = count_nouns(classes, "class")
            raise RequestError(f'"costs" must be of {size}; received {self.costs!r}'[:300])
        # With usual costs alone, a prediction costs 1 less the probability of its class.
        expected = -probabilities
        for cost in self.costs:
            expected[:, cost.predicted] += probabilities[:, cost.actual] * cost.surplus
        return expected


NO_CALIBRATION = Calibration()
