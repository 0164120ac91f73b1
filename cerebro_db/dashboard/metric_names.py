"""Name the metrics of a run as its call does, those of `cerebro.train` by its own names.

Trainers compute metrics by Keras' names, which the log has. Runs of MADlib's functions keep them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

TRAIN_NAMES: Mapping[str, str] = {
    "root_mean_squared_error": "rmse",
    "mean_absolute_error": "mae",
    "r2_score": "r2",
}
"""The names of cerebro.train, by those of Keras."""
LOSS = "loss"
LOG_LOSS = "log_loss"
FIRST_METRIC = re.compile(r"^\w+(?= (?:[-\d]|nan|inf))")
"""A metric at the beginning of a reason, before its value."""
VALIDATION_METRIC = re.compile(r"\bval_(\w+)")
"""Keras' name of a metric of the validation rows."""


@dataclass(frozen=True)
class RunMetrics:
    """The names of a run's metrics.

    Args:
        names: those that pages show, by Keras' names where they differ.
        searched: the metric by which the search compares configurations, as pages show it.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    searched: str = ""

    def rename(self, metric: str) -> str:
        """Return the name of a metric on pages."""
        return self.names.get(metric, metric)

    def rename_reason(self, reason: str) -> str:
        """Return why something was decided, with the names of metrics as pages show them.

        >>> metrics = choose_names("regression", "r2_score")
        >>> metrics.rename_reason("r2_score 0.5 after epoch 1")
        'r2 0.5 after epoch 1'
        >>> metrics.rename_reason("patience: val_r2_score did not get better")
        'patience: validation r2 did not get better'
        """
        if not self.names:
            return reason
        renamed = FIRST_METRIC.sub(lambda match: self.rename(match[0]), reason)
        return VALIDATION_METRIC.sub(lambda match: f"validation {self.rename(match[1])}", renamed)


def choose_names(task: str | None, rank_metric: str | None) -> RunMetrics:
    """Return the names of a run's metrics.

    The loss is the log loss if the run is ranked by it: other runs may smooth their labels.

    Args:
        task: that of cerebro.train; None for a run of another function.
        rank_metric: Keras' name of the metric that ranks the configurations.

    >>> choose_names("regression", "r2_score").rename("root_mean_squared_error")
    'rmse'
    >>> choose_names("classification", "accuracy").rename("loss")
    'loss'
    >>> choose_names(None, "loss").searched
    'loss'
    """
    searched = rank_metric or ""
    if task is None:
        return RunMetrics({}, searched)
    names = dict(TRAIN_NAMES)
    if searched == LOSS:
        names[LOSS] = LOG_LOSS
    return RunMetrics(names, names.get(searched, searched))
