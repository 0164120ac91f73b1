"""How good predictions are, by what is known of the same rows: the metrics that models are compared
by. Pure.

They are computed here and not in a trainer where two versions are compared whose classes or recipes
differ.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

LEAST = 1e-7
"""No probability counts as less, as in Keras."""


class Told(NamedTuple):
    """What is known of a row, and what a model says of it: the probability of each class by its
    text, or a number.
    """

    label: str
    classes: Mapping[str, float]
    number: float = math.nan


def accuracy(rows: Sequence[Told]) -> float:
    """The share of rows whose most probable class is the right one.

    >>> accuracy([Told("a", {"a": 0.9, "b": 0.1}), Told("c", {"a": 0.9, "b": 0.1})])
    0.5
    """
    return fmean(max(row.classes, key=lambda name: row.classes[name]) == row.label for row in rows)


def log_loss(rows: Sequence[Told]) -> float:
    """The mean of -log of the probability of the right class; one that the model does not know has
    none.
    """
    return fmean(-math.log(max(row.classes.get(row.label, 0.0), LEAST)) for row in rows)


def auc(rows: Sequence[Told]) -> float:
    """The area under the ROC curve of each class against the others, by ranks; the mean over those
    that have both.

    >>> auc([Told("a", {"a": 0.9, "b": 0.1}), Told("b", {"a": 0.9, "b": 0.1}),
    ...     Told("b", {"a": 0.2, "b": 0.8})])
    0.75
    """
    names = {name for row in rows for name in (row.label, *row.classes)}
    found = [area for name in sorted(names) if (area := _area(rows, name)) is not None]
    return fmean(found) if found else math.nan


def _area(rows: Sequence[Told], name: str) -> float | None:
    inside = [row.classes.get(name, 0.0) for row in rows if row.label == name]
    outside = sorted(row.classes.get(name, 0.0) for row in rows if row.label != name)
    if not inside or not outside:
        return None
    below = sum(bisect_left(outside, value) + bisect_right(outside, value) for value in inside) / 2
    return below / (len(inside) * len(outside))


def distances(rows: Sequence[Told]) -> list[float]:
    """How far the numbers lie from what the model says."""
    return [abs(float(row.label) - row.number) for row in rows]


def rmse(rows: Sequence[Told]) -> float:
    """The root of the mean square of the distances.

    >>> rmse([Told("1", {}, 4.0), Told("5", {}, 1.0)])
    3.5355339059327378
    """
    return math.sqrt(fmean(distance**2 for distance in distances(rows)))


def mae(rows: Sequence[Told]) -> float:
    """The mean of the distances."""
    return fmean(distances(rows))


def r2(rows: Sequence[Told]) -> float:
    """The share of the variance that is explained.

    >>> r2([Told("1", {}, 1.0), Told("3", {}, 3.0)]), r2([Told("1", {}, 2.0), Told("3", {}, 2.0)])
    (1.0, 0.0)
    """
    mean = fmean(float(row.label) for row in rows)
    spread = sum((float(row.label) - mean) ** 2 for row in rows)
    return 1 - sum(distance**2 for distance in distances(rows)) / spread if spread else math.nan


SCORES: Mapping[str, Callable[[Sequence[Told]], float]] = {
    "accuracy": accuracy, "log_loss": log_loss, "auc": auc, "rmse": rmse, "mae": mae, "r2": r2,
}  # fmt: skip
"""By the names that the argument `metric` has."""
