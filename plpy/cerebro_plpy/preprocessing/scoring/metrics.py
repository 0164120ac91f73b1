"""The metrics that models are compared by, computed from predictions and labels of rows.

A trainer computes them as a rule. Versions whose classes or recipes differ are compared here.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
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
    prediction: str | None = None  # predicted class; None for the most probable one


def accuracy(rows: Sequence[ScoredRow]) -> float:
    """Return the share of rows whose most probable class is the label.

    >>> accuracy([ScoredRow("a", {"a": 0.9, "b": 0.1}), ScoredRow("c", {"a": 0.9, "b": 0.1})])
    0.5
    """
    return fmean(find_prediction(row) == row.label for row in rows)


def find_prediction(row: ScoredRow) -> str:
    """Return the predicted class of a row: as a rule the most probable one, the first of equals."""
    if row.prediction is not None:
        return row.prediction
    return max(row.classes, key=lambda name: row.classes[name])


def balanced_accuracy(rows: Sequence[ScoredRow]) -> float:
    """Return the mean recall of the classes that have rows.

    >>> rows = [ScoredRow(label, {"a": 0.9, "b": 0.1}) for label in "aaab"]
    >>> accuracy(rows), balanced_accuracy(rows)
    (0.75, 0.5)
    """
    actual = Counter(row.label for row in rows)
    hits = Counter(row.label for row in rows if find_prediction(row) == row.label)
    return fmean(hits[name] / count for name, count in actual.items())


def f1(rows: Sequence[ScoredRow]) -> float:
    """Return the mean F1 score of the classes that have rows or are predicted (macro average).

    >>> round(f1([ScoredRow(label, {"a": 0.9, "b": 0.1}) for label in "aaab"]), 4)
    0.4286
    """
    actual = Counter(row.label for row in rows)
    predicted = Counter(map(find_prediction, rows))
    hits = Counter(row.label for row in rows if find_prediction(row) == row.label)
    names = sorted({*actual, *predicted})
    return fmean(2 * hits[name] / (actual[name] + predicted[name]) for name in names)


def brier(rows: Sequence[ScoredRow]) -> float:
    """Return half the mean squared distance of the probabilities from those of a sure prediction.

    >>> brier([ScoredRow("a", {"a": 0.5, "b": 0.5}), ScoredRow("c", {"a": 0.0, "b": 0.0})])
    0.375
    """
    return fmean(_squared_distance(row) for row in rows) / 2


def _squared_distance(row: ScoredRow) -> float:
    names = {row.label, *row.classes}
    return math.fsum((row.classes.get(name, 0.0) - (name == row.label)) ** 2 for name in names)


def log_loss(rows: Sequence[ScoredRow]) -> float:
    """Return the mean of -log of the probability of the label; an unknown class has none."""
    return fmean(-math.log(max(row.classes.get(row.label, 0.0), MIN_PROBABILITY)) for row in rows)


def roc_auc(rows: Sequence[ScoredRow]) -> float:
    """Return the area under the ROC curve, averaged over the classes that have other rows, too.

    >>> roc_auc([ScoredRow("a", {"a": 0.9, "b": 0.1}), ScoredRow("b", {"a": 0.9, "b": 0.1}),
    ...     ScoredRow("b", {"a": 0.2, "b": 0.8})])
    0.75
    """
    return _average_classes(rows, _area)


def average_precision(rows: Sequence[ScoredRow]) -> float:
    """Return the area under the precision-recall curve, averaged as that of `roc_auc`.

    >>> average_precision([ScoredRow("a", {"a": 0.9}), ScoredRow("b", {"a": 0.7}),
    ...     ScoredRow("a", {"a": 0.2})])
    0.5833333333333333
    """
    return _average_classes(rows, _average_precision)


def _average_classes(
    rows: Sequence[ScoredRow], score: Callable[[Sequence[ScoredRow], str], float | None]
) -> float:
    """Return the mean score of the classes for which it is defined; NaN if there are none."""
    names = {name for row in rows for name in (row.label, *row.classes)}
    scores = [value for name in sorted(names) if (value := score(rows, name)) is not None]
    return fmean(scores) if scores else math.nan


def _average_precision(rows: Sequence[ScoredRow], name: str) -> float | None:
    """Return the mean precision at the rows of one class; None if only it, or none, has rows."""
    inside = Counter(row.classes.get(name, 0.0) for row in rows if row.label == name)
    outside = Counter(row.classes.get(name, 0.0) for row in rows if row.label != name)
    if not inside or not outside:
        return None
    hits = 0
    misses = 0
    total = 0.0
    for probability in sorted({*inside, *outside}, reverse=True):
        hits += inside[probability]
        misses += outside[probability]
        total += inside[probability] * hits / (hits + misses)
    return total / hits


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


def mape(rows: Sequence[ScoredRow]) -> float:
    """Return the mean absolute error as a share of the label; NaN if a label is 0.

    >>> mape([ScoredRow("2", {}, 1.0), ScoredRow("-4", {}, -5.0)])
    0.375
    >>> mape([ScoredRow("0", {}, 0.0)])
    nan
    """
    labels = [abs(float(row.label)) for row in rows]
    if not all(labels):
        return math.nan
    return fmean(error / label for error, label in zip(absolute_errors(rows), labels))


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
    "accuracy": accuracy, "log_loss": log_loss, "auc": roc_auc, "f1": f1,
    "balanced_accuracy": balanced_accuracy, "average_precision": average_precision, "brier": brier,
    "rmse": rmse, "mae": mae, "mape": mape, "r2": r2,
}  # fmt: skip
"""Metrics by the names of the argument `metric`."""
LARGER_IS_BETTER = ("accuracy", "auc", "f1", "balanced_accuracy", "average_precision", "r2")
"""The metrics of which larger values are better; smaller values of the others are."""
