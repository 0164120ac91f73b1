"""Loss and metrics of boosted trees, as sums that add up over buffers and segments.

The names are those of Keras, which networks are compiled with, and so are the values: trees and
networks are compared by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from cerebro_trainer.data.arrays import Floats
from cerebro_trainer.errors import ConfigError, RequestError

Numbers: TypeAlias = list[float]
MIN_PROBABILITY = 1e-7
"""Probabilities are at least this, and at most 1 minus this, as in Keras."""


@dataclass(frozen=True)
class Metric:
    """A metric as a function of sums over rows."""

    add_up: Callable[[Floats, Floats], Numbers]
    """Returns sums for outputs of shape (rows, units), and numbers or indices of classes."""
    compute: Callable[[Sequence[float]], float]
    sums: int
    is_for_classes: bool


def _add_hits(outputs: Floats, target: Floats) -> Numbers:
    return [float((outputs.argmax(axis=1) == target).sum()), float(len(target))]


def _add_log_losses(outputs: Floats, target: Floats) -> Numbers:
    return [float(compute_log_losses(outputs, target).sum()), float(len(target))]


def _add_squares(outputs: Floats, target: Floats) -> Numbers:
    return [float(np.square(outputs[:, 0] - target).sum()), float(len(target))]


def _add_distances(outputs: Floats, target: Floats) -> Numbers:
    return [float(np.abs(outputs[:, 0] - target).sum()), float(len(target))]


def _add_moments(outputs: Floats, target: Floats) -> Numbers:
    squares, rows = _add_squares(outputs, target)
    return [squares, float(target.sum()), float(np.square(target).sum()), rows]


def _compute_mean(sums: Sequence[float]) -> float:
    total, rows = sums
    return total / max(rows, 1.0)


def _compute_root(sums: Sequence[float]) -> float:
    return float(np.sqrt(_compute_mean(sums)))


def _compute_r2(sums: Sequence[float]) -> float:
    squares, total, total_of_squares, rows = sums
    variation = total_of_squares - total * total / max(rows, 1.0)
    if variation <= 0:
        return 0.0
    return 1.0 - squares / variation


ACCURACY = Metric(_add_hits, _compute_mean, 2, True)
LOG_LOSS = Metric(_add_log_losses, _compute_mean, 2, True)
SQUARED_ERROR = Metric(_add_squares, _compute_mean, 2, False)
ABSOLUTE_ERROR = Metric(_add_distances, _compute_mean, 2, False)
METRICS: Mapping[str, Metric] = {
    "accuracy": ACCURACY,
    "acc": ACCURACY,
    "categorical_accuracy": ACCURACY,
    "categorical_crossentropy": LOG_LOSS,
    "mean_squared_error": SQUARED_ERROR,
    "mse": SQUARED_ERROR,
    "root_mean_squared_error": Metric(_add_squares, _compute_root, 2, False),
    "mean_absolute_error": ABSOLUTE_ERROR,
    "mae": ABSOLUTE_ERROR,
    "r2_score": Metric(_add_moments, _compute_r2, 4, False),
}
"""By Keras' names."""


class Results:
    """The loss and the metrics that a config is compiled with.

    Args:
        names: the metrics in compile order.

    Raises:
        ConfigError: trees have no such metric, or it does not fit the task.
    """

    def __init__(self, names: Iterable[object], has_classes: bool) -> None:
        self._metrics = [_find_metric(name, has_classes) for name in names]
        self._loss = LOG_LOSS if has_classes else SQUARED_ERROR

    def add_up(self, outputs: Floats, target: Floats) -> list[Numbers]:
        """Return the sums of the loss and of each metric."""
        return [metric.add_up(outputs, target) for metric in (self._loss, *self._metrics)]

    def create_zeros(self) -> list[Numbers]:
        """Return the sums over no rows."""
        return [[0.0] * metric.sums for metric in (self._loss, *self._metrics)]

    def compute(self, sums: Sequence[Sequence[float]]) -> dict[str, object]:
        """Return the loss and the metrics from sums; None for each if there are no rows."""
        expected = [metric.sums for metric in (self._loss, *self._metrics)]
        if [len(numbers) for numbers in sums] != expected:
            raise RequestError(
                f"sums have {expected} as their lengths; received {[len(entry) for entry in sums]}"
            )
        if not sums[0][1]:
            return {"loss": None, "metrics": [None] * len(self._metrics)}
        pairs = zip(self._metrics, sums[1:], strict=True)
        return {
            "loss": self._loss.compute(sums[0]),
            "metrics": [metric.compute(numbers) for metric, numbers in pairs],
        }


def compute_losses(outputs: Floats, target: Floats) -> Floats:
    """Return the loss of each row, by its number of units."""
    if outputs.shape[1] > 1:
        return compute_log_losses(outputs, target)
    losses: Floats = np.square(outputs[:, 0] - target)
    return losses


def compute_log_losses(outputs: Floats, target: Floats) -> Floats:
    """Return -log of the probability of each row's class."""
    classes = target.astype(np.int64)[:, np.newaxis]
    probabilities = np.take_along_axis(outputs, classes, axis=1)[:, 0]
    losses: Floats = -np.log(np.clip(probabilities, MIN_PROBABILITY, 1 - MIN_PROBABILITY))
    return losses


def _find_metric(name: object, has_classes: bool) -> Metric:
    metric = METRICS.get(name) if isinstance(name, str) else None
    if metric is None or metric.is_for_classes != has_classes:
        task = "classes" if has_classes else "numbers"
        names = [key for key, value in METRICS.items() if value.is_for_classes == has_classes]
        raise ConfigError(
            f"boosted trees have no metric {name!r:.80} for {task}",
            sqlstate="0A000",
            hint=f"Expected one of {', '.join(names)}.",
        )
    return metric
