"""Early stopping of configurations, from the metrics that were computed for them.

A search by patience is the EarlyStopping callback for all configurations that have none.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.early_stopping import NAME, EarlyStopping, MonitoredSeries
from cerebro_plpy.configs.params.keras_names import larger_is_better
from cerebro_plpy.configs.params.output_losses import LOSS
from cerebro_plpy.run.request.run_request import Evaluation, FitRequest
from cerebro_plpy.scheduling.search.early_stopping_rule import StoppingStatus


def find_early_stopping(config: Config, patience: EarlyStopping | None) -> EarlyStopping | None:
    """Return the callback of a configuration, or else the one of a search by patience."""
    return config.fit.callbacks.early_stopping or patience


def check_monitor(
    config: Config, datasets: Collection[str], patience: EarlyStopping | None = None
) -> None:
    """Check that the metric that a configuration monitors is computed.

    Args:
        datasets: names of the data sets that are evaluated.

    Raises:
        InvalidParameter: the metric is not computed on one of these data sets.
    """
    stopping = find_early_stopping(config, patience)
    if stopping is None:
        return
    names = [metric.logged_name for metric in (LOSS, *config.metrics)]
    computed = [MonitoredSeries(dataset, name) for dataset in datasets for name in names]
    stopping.check(f"{_name_origin(config)} of mst_key {config.mst_key}", computed)


def restores_best(config: Config, request: FitRequest) -> bool:
    """Return whether the model of a configuration is that of its best epoch."""
    stopping = find_early_stopping(config, request.patience)
    return stopping is not None and stopping.restore_best_weights


def compute_stopping_status(
    config: Config, request: FitRequest, evaluations: Iterable[Evaluation]
) -> StoppingStatus:
    """Return what the metrics of a configuration mean for its best epoch and its end.

    Args:
        evaluations: those of the configuration, in the order of their epochs.
    """
    stopping = find_early_stopping(config, request.patience)
    if stopping is None:
        return StoppingStatus(None, None, sys.maxsize)
    dataset, name = stopping.monitored
    metrics = [LOSS, *config.metrics]
    position = [metric.logged_name for metric in metrics].index(name)
    maximizes = stopping.mode == "max"
    if stopping.mode not in ("min", "max"):
        maximizes = larger_is_better(metrics[position].metric)
    judged = [evaluation for evaluation in evaluations if evaluation.dataset == dataset]
    values = [
        (evaluation.epoch, (evaluation.loss, *evaluation.metrics)[position])
        for evaluation in judged
    ]
    losses: dict[int, float] = {}
    if request.spec.train is not None:  # few rows have few values of a metric such as accuracy
        losses = {evaluation.epoch: evaluation.loss for evaluation in judged}
    return stopping.make_rule(maximizes).judge(values, losses)


def find_best_epoch(
    config: Config, request: FitRequest, evaluations: Iterable[Evaluation]
) -> int | None:
    """Return the epoch whose state is kept as the best, or None without `restore_best_weights`."""
    if not restores_best(config, request):
        return None
    return compute_stopping_status(config, request, evaluations).best_epoch


def describe_stop(config: Config, request: FitRequest, status: StoppingStatus) -> str:
    """Return the reason for stopping a configuration, as its log contains it."""
    stopping = find_early_stopping(config, request.patience)
    assert stopping is not None
    since = "at all" if status.best_epoch is None else f"since iteration {status.best_epoch}"
    return f"{_name_origin(config)}: {stopping.monitor} did not get better {since}"


def _name_origin(config: Config) -> str:
    return NAME if config.fit.callbacks.early_stopping else "patience"
