"""How much worse predictions of the same rows are than others: the metrics that models are compared
by, as losses.

The backend has the same metrics for rows that come one by one; here they are of whole arrays, for
they are wanted for one block of rows again and again. Tests compare both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
LEAST = 1e-7
"""No probability counts as less, as in Keras."""


def inaccuracy(outputs: Array, target: Array) -> float:
    """The share of rows whose class is not the most probable one; a class that is not known is
    -1.
    """
    return float((outputs.argmax(axis=1) != target).mean())


def log_loss(outputs: Array, target: Array) -> float:
    """The mean of -log of the probability of the right class; one that is not known has none."""
    place = np.maximum(target, 0).astype(np.int64)[:, np.newaxis]
    right = np.where(target < 0, 0.0, np.take_along_axis(outputs, place, axis=1)[:, 0])
    return float(-np.log(np.maximum(right, LEAST)).mean())


def outside_curve(outputs: Array, target: Array) -> float:
    """1 less the mean area under the ROC curves of the classes of which there are rows, and rows of
    others.
    """
    areas = [*_areas(outputs, target)]
    return 1.0 - float(np.mean(areas)) if areas else float("nan")


def _areas(outputs: Array, target: Array) -> Iterator[float]:
    for place in range(outputs.shape[1]):
        inside = target == place
        count, others = int(inside.sum()), int((~inside).sum())
        if count and others:
            _, order, equal = np.unique(outputs[:, place], return_inverse=True, return_counts=True)
            ranks = (np.cumsum(equal) - (equal - 1) / 2)[order]
            yield (float(ranks[inside].sum()) - count * (count + 1) / 2) / (count * others)


def rmse(outputs: Array, target: Array) -> float:
    """The root of the mean square of the distances."""
    return float(np.sqrt(np.square(outputs[:, 0] - target).mean()))


def mae(outputs: Array, target: Array) -> float:
    """The mean of the distances."""
    return float(np.abs(outputs[:, 0] - target).mean())


def unexplained(outputs: Array, target: Array) -> float:
    """The share of the variance that is not explained."""
    spread = float(np.square(target - target.mean()).sum())
    return float(np.square(outputs[:, 0] - target).sum()) / spread if spread else float("nan")


LOSSES: Mapping[str, Callable[[Array, Array], float]] = {
    "accuracy": inaccuracy, "log_loss": log_loss, "auc": outside_curve, "rmse": rmse, "mae": mae,
    "r2": unexplained,
}  # fmt: skip
"""By the names that the backend has for the metrics."""
