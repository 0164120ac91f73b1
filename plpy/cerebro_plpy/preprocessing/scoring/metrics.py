"""The metrics that models are compared by, computed from predictions and labels of rows.

A trainer computes them as a rule. Versions whose classes or recipes differ are compared here.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

MIN_PROBABILITY = 1e-7
"""Smaller probabilities count as this, as in Keras."""


class ScoredRow(NamedTuple):
    """A row with its label and a prediction."""

    label: str  # the text of its class or number
    classes: Mapping[str, float]  # predicted probabilities by class; empty for numbers
    number: float = math.nan  # predicted number


def accuracy(rows: Sequence[ScoredRow]) -> float:
    """Return the share of rows whose most probable class is the label.

    >>> accuracy([ScoredRow("a", {"a": 0.9, "b": 0.1}), ScoredRow("c", {"a": 0.9, "b": 0.1})])
    0.5
    """
    return fmean(max(row.classes, key=lambda name: row.classes[name]) == row.label for row in rows)


def log_loss(rows: Sequence[ScoredRow]) -> float:
    """Return the mean of -log of the probability of the label; an unknown class has none."""
    return fmean(-math.log(max(row.classes.get(row.label, 0.0), MIN_PROBABILITY)) for row in rows)


def roc_auc(rows: Sequence[ScoredRow]) -> float:
    """Return the area under the ROC curve, averaged over the classes that have other rows, too.

    >>> roc_auc([ScoredRow("a", {"a": 0.9, "b": 0.1}), ScoredRow("b", {"a": 0.9, "b": 0.1}),
    ...     ScoredRow("b", {"a": 0.2, "b": 0.8})])
    0.75
    """
    names = {name for row in rows for name in (row.label, *row.classes)}
    areas = [area for name in sorted(names) if (area := _area(rows, name)) is not None]
    return fmean(areas) if areas else math.nan


def _area(rows: Sequence[ScoredRow], name: str) -> float | None:
    """Return the area of one class against all others, by ranks; None if either has no rows."""
    inside = [row.classes.get(name, 0.0) for row in rows if row.label == name]
    outside = sorted(row.classes.get(name, 0.0) for row in rows if row.label != name)
    if not inside or not outside:
        return None
    below = sum(bisect_left(outside, value) + bisect_right(outside, value) for value in inside) / 2
    return below / (len(inside) * len(outside))


def absolute_errors(rows: Sequence[ScoredRow]) -> list[float]:
    """Return the absolute error of each row."""
    return [abs(float(row.label) - row.number) for row in rows]


def rmse(rows: Sequence[ScoredRow]) -> float:
    """Return the root mean squared error.

    >>> rmse([ScoredRow("1", {}, 4.0), ScoredRow("5", {}, 1.0)])
    3.5355339059327378
    """
    return math.sqrt(fmean(error**2 for error in absolute_errors(rows)))


def mae(rows: Sequence[ScoredRow]) -> float:
    """Return the mean absolute error."""
    return fmean(absolute_errors(rows))


def r2(rows: Sequence[ScoredRow]) -> float:
    """Return the share of the variance that is explained.

    >>> r2([ScoredRow("1", {}, 1.0), ScoredRow("3", {}, 3.0)])
    1.0
    >>> r2([ScoredRow("1", {}, 2.0), ScoredRow("3", {}, 2.0)])
    0.0
    """
    mean = fmean(float(row.label) for row in rows)
    spread = sum((float(row.label) - mean) ** 2 for row in rows)
    if not spread:
        return math.nan
    return 1 - sum(error**2 for error in absolute_errors(rows)) / spread


SCORES: Mapping[str, Callable[[Sequence[ScoredRow]], float]] = {
    "accuracy": accuracy, "log_loss": log_loss, "auc": roc_auc, "rmse": rmse, "mae": mae, "r2": r2,
}  # fmt: skip
"""Metrics by the names of the argument `metric`."""
