"""What EarlyStopping says of a configuration, by the metrics that were computed of it.

A search by patience is that callback for all configurations that have none.
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
    """When a configuration is stopped: as it says itself, or by the patience of its search."""
    return config.fit.callbacks.early_stopping or patience


def check_monitor(
    config: Config, datasets: Collection[str], patience: EarlyStopping | None = None
) -> None:
    """Raises InvalidParameter where a configuration watches what is not computed of these data
    sets.
    """
    stopping = find_early_stopping(config, patience)
    if stopping:
        computed = [
            MonitoredSeries(dataset, m.logged_name)
            for dataset in datasets
            for m in (LOSS, *config.metrics)
        ]
        stopping.check(f"{_name(config)} of mst_key {config.mst_key}", computed)


def restores_best(config: Config, request: FitRequest) -> bool:
    """Whether the model of a configuration is that of its best epoch."""
    stopping = find_early_stopping(config, request.patience)
    return stopping is not None and stopping.restore_best_weights


def compute_stopping_status(
    config: Config, request: FitRequest, evaluations: Iterable[Evaluation]
) -> StoppingStatus:
    """What becomes of a configuration, of which these are the evaluations in the order of their
    epochs.
    """
    stopping = find_early_stopping(config, request.patience)
    if stopping is None:
        return StoppingStatus(None, None, sys.maxsize)
    dataset, name = stopping.monitored
    metrics = [LOSS, *config.metrics]
    place = [m.logged_name for m in metrics].index(name)
    larger = {"min": False, "max": True}.get(stopping.mode, larger_is_better(metrics[place].metric))
    values = [
        (each.epoch, (each.loss, *each.metrics)[place])
        for each in evaluations
        if each.dataset == dataset
    ]
    return stopping.make_rule(larger).judge(values)


def find_best_epoch(
    config: Config, request: FitRequest, evaluations: Iterable[Evaluation]
) -> int | None:
    """The epoch of which the state is to be kept as the best, where that is wanted."""
    return (
        compute_stopping_status(config, request, evaluations).best_epoch
        if restores_best(config, request)
        else None
    )


def describe_stop(config: Config, request: FitRequest, found: StoppingStatus) -> str:
    """Why a configuration was stopped, for its log."""
    stopping = find_early_stopping(config, request.patience)
    assert stopping is not None
    since = "at all" if found.best_epoch is None else f"since iteration {found.best_epoch}"
    return f"{_name(config)}: {stopping.monitor} did not get better {since}"


def _name(config: Config) -> str:
    return NAME if config.fit.callbacks.early_stopping else "patience"
