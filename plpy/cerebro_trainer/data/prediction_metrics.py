"""Metrics that compare models, as losses: the lower, the better.

The backend computes the same metrics from single rows. Here they are computed from whole arrays,
because they are needed repeatedly for the same block of rows. Tests compare both.

Args of all metrics:
    outputs: probabilities, shape (rows, classes), or numbers, shape (rows, 1).
    target: class indices, -1 for an unknown class, or numbers, shape (rows,).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from cerebro_trainer.data.arrays import Floats

MIN_PROBABILITY = 1e-7
"""Smaller probabilities count as this one, as in Keras."""


def compute_error_rate(outputs: Floats, target: Floats) -> float:
    """Return the share of rows whose class is not the most probable one."""
    return float((outputs.argmax(axis=1) != target).mean())


def compute_log_loss(outputs: Floats, target: Floats) -> float:
    """Return the mean of -log of the target's probability, which is 0 for an unknown class."""
    classes = np.maximum(target, 0).astype(np.int64)[:, np.newaxis]
    probabilities = np.take_along_axis(outputs, classes, axis=1)[:, 0]
    probabilities = np.where(target < 0, 0.0, probabilities)
    return float(-np.log(np.maximum(probabilities, MIN_PROBABILITY)).mean())


def compute_auc_loss(outputs: Floats, target: Floats) -> float:
    """Return 1 minus the mean area under the ROC curves of the classes.

    Classes without rows, and classes of all rows, do not count.
    """
    areas = list(_compute_areas(outputs, target))
    return 1.0 - float(np.mean(areas)) if areas else float("nan")


def _compute_areas(outputs: Floats, target: Floats) -> Iterator[float]:
    for index in range(outputs.shape[1]):
        is_positive = target == index
        positives = int(is_positive.sum())
        negatives = int((~is_positive).sum())
        if not positives or not negatives:
            continue
        _, inverse, counts = np.unique(outputs[:, index], return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
        rank_sum = float(ranks[is_positive].sum())
        yield (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def compute_rmse(outputs: Floats, target: Floats) -> float:
    """Return the root of the mean squared error."""
    return float(np.sqrt(np.square(outputs[:, 0] - target).mean()))


def compute_mae(outputs: Floats, target: Floats) -> float:
    """Return the mean absolute error."""
    return float(np.abs(outputs[:, 0] - target).mean())


def compute_unexplained_variance(outputs: Floats, target: Floats) -> float:
    """Return the share of the target's variance that the outputs do not explain."""
    total = float(np.square(target - target.mean()).sum())
    return float(np.square(outputs[:, 0] - target).sum()) / total if total else float("nan")


LOSSES: Mapping[str, Callable[[Floats, Floats], float]] = {
    "accuracy": compute_error_rate,
    "log_loss": compute_log_loss,
    "auc": compute_auc_loss,
    "rmse": compute_rmse,
    "mae": compute_mae,
    "r2": compute_unexplained_variance,
}
"""By the names of the metrics in the backend."""
