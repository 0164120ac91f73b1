"""The metrics that models are compared by, computed from predictions and labels of rows.

A trainer computes them as a rule. Versions whose classes or recipes differ are compared here.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping
from operator import eq
from statistics import fmean

from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow, ScoredRows

MIN_PROBABILITY = 1e-7
"""Smaller probabilities count as this, as in Keras."""


def accuracy(rows: ScoredRows) -> float:
    """Return the share of rows whose most probable class is the label.

    >>> shares = {"a": 0.9, "b": 0.1}
    >>> accuracy(ScoredRows.collect([ScoredRow("a", shares), ScoredRow("c", shares)]))
    0.5
    """
    return fmean(map(eq, rows.list_predictions(), rows.labels))


def balanced_accuracy(rows: ScoredRows) -> float:
    """Return the mean recall of the classes that have rows.

    >>> rows = ScoredRows.collect(ScoredRow(label, {"a": 0.9, "b": 0.1}) for label in "aaab")
    >>> accuracy(rows), balanced_accuracy(rows)
    (0.75, 0.5)
    """
    actual = Counter(rows.labels)
    hits = _count_hits(rows)
    return fmean(hits[name] / count for name, count in actual.items())


def f1(rows: ScoredRows) -> float:
    """Return the mean F1 score of the classes that have rows or are predicted (macro average).

    >>> rows = ScoredRows.collect(ScoredRow(label, {"a": 0.9, "b": 0.1}) for label in "aaab")
    >>> round(f1(rows), 4)
    0.4286
    """
    actual = Counter(rows.labels)
    predicted = Counter(rows.list_predictions())
    hits = _count_hits(rows)
    names = sorted({*actual, *predicted})
    return fmean(2 * hits[name] / (actual[name] + predicted[name]) for name in names)


def _count_hits(rows: ScoredRows) -> Counter[str]:
    """Return the number of rows of each class that are predicted to be of it."""
    pairs = zip(rows.labels, rows.list_predictions())
    return Counter(label for label, prediction in pairs if prediction == label)


def brier(rows: ScoredRows) -> float:
    """Return half the mean squared distance of the probabilities from those of a sure prediction.

    >>> even, none = {"a": 0.5, "b": 0.5}, {"a": 0.0, "b": 0.0}
    >>> brier(ScoredRows.collect([ScoredRow("a", even), ScoredRow("c", none)]))
    0.375
    """
    return fmean(_squared_distance(row) for row in rows) / 2


def _squared_distance(row: ScoredRow) -> float:
    names = {row.label, *row.classes}
    return math.fsum((row.classes.get(name, 0.0) - (name == row.label)) ** 2 for name in names)


def log_loss(rows: ScoredRows) -> float:
    """Return the mean of -log of the probability of the label; an unknown class has none."""
    return fmean(
        -math.log(max(probability, MIN_PROBABILITY))
        for probability in rows.list_label_probabilities()
    )


def roc_auc(rows: ScoredRows) -> float:
    """Return the area under the ROC curve, averaged over the classes that have other rows, too.

    >>> shares = {"a": 0.9, "b": 0.1}, {"a": 0.9, "b": 0.1}, {"a": 0.2, "b": 0.8}
    >>> roc_auc(ScoredRows.collect(map(ScoredRow, "abb", shares)))
    0.75
    """
    return _average_classes(rows, _area)


def average_precision(rows: ScoredRows) -> float:
    """Return the area under the precision-recall curve, averaged as that of `roc_auc`.

    >>> shares = {"a": 0.9}, {"a": 0.7}, {"a": 0.2}
    >>> average_precision(ScoredRows.collect(map(ScoredRow, "aba", shares)))
    0.5833333333333333
    """
    return _average_classes(rows, _average_precision)


def _average_classes(rows: ScoredRows, score: Callable[[ScoredRows, str], float | None]) -> float:
    """Return the mean score of the classes for which it is defined; NaN if there are none."""
    names = {name for row in rows for name in (row.label, *row.classes)}
    scores = [value for name in sorted(names) if (value := score(rows, name)) is not None]
    return fmean(scores) if scores else math.nan


def _average_precision(rows: ScoredRows, name: str) -> float | None:
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


def _area(rows: ScoredRows, name: str) -> float | None:
    """Return the area of one class against all others, by ranks; None if either has no rows."""
    inside = [row.classes.get(name, 0.0) for row in rows if row.label == name]
    outside = sorted(row.classes.get(name, 0.0) for row in rows if row.label != name)
    if not inside or not outside:
        return None
    below = sum(bisect_left(outside, value) + bisect_right(outside, value) for value in inside) / 2
    return below / (len(inside) * len(outside))


def absolute_errors(rows: ScoredRows) -> list[float]:
    """Return the absolute error of each row."""
    return [abs(target - number) for target, number in zip(rows.targets, rows.columns[0])]


def rmse(rows: ScoredRows) -> float:
    """Return the root mean squared error.

    >>> rmse(ScoredRows.collect([ScoredRow("1", {}, 4.0), ScoredRow("5", {}, 1.0)]))
    3.5355339059327378
    """
    return math.sqrt(fmean(error**2 for error in absolute_errors(rows)))


def mae(rows: ScoredRows) -> float:
    """Return the mean absolute error."""
    return fmean(absolute_errors(rows))


def mape(rows: ScoredRows) -> float:
    """Return the mean absolute error as a share of the label; NaN if a label is 0.

    >>> mape(ScoredRows.collect([ScoredRow("2", {}, 1.0), ScoredRow("-4", {}, -5.0)]))
    0.375
    >>> mape(ScoredRows.collect([ScoredRow("0", {}, 0.0)]))
    nan
    """
    if not all(rows.targets):
        return math.nan
    return fmean(error / abs(target) for error, target in zip(absolute_errors(rows), rows.targets))


def r2(rows: ScoredRows) -> float:
    """Return the share of the variance that is explained.

    >>> r2(ScoredRows.collect([ScoredRow("1", {}, 1.0), ScoredRow("3", {}, 3.0)]))
    1.0
    >>> r2(ScoredRows.collect([ScoredRow("1", {}, 2.0), ScoredRow("3", {}, 2.0)]))
    0.0
    """
    mean = fmean(rows.targets)
    spread = sum((target - mean) ** 2 for target in rows.targets)
    if not spread:
        return math.nan
    return 1 - sum(error**2 for error in absolute_errors(rows)) / spread


SCORES: Mapping[str, Callable[[ScoredRows], float]] = {
    "accuracy": accuracy, "log_loss": log_loss, "auc": roc_auc, "f1": f1,
    "balanced_accuracy": balanced_accuracy, "average_precision": average_precision, "brier": brier,
    "rmse": rmse, "mae": mae, "mape": mape, "r2": r2,
}  # fmt: skip
"""Metrics by the names of the argument `metric`."""
LARGER_IS_BETTER = ("accuracy", "auc", "f1", "balanced_accuracy", "average_precision", "r2")
"""The metrics of which larger values are better; smaller values of the others are."""
