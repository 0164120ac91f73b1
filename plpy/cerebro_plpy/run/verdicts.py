"""What EarlyStopping says of a configuration, by the metrics that were computed of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cerebro_plpy.configs.config import Config
from cerebro_plpy.configs.early_stopping import Watched
from cerebro_plpy.configs.keras_names import larger_is_better
from cerebro_plpy.configs.per_output import LOSS
from cerebro_plpy.hopping.patience import Verdict
from cerebro_plpy.run.request import Evaluation


def check_monitor(config: Config, datasets: Collection[str]) -> None:
    """Raises InvalidParameter where a configuration watches what is not computed of these data sets."""
    stopping = config.fit.callbacks.stopping
    if stopping:
        computed = [Watched(dataset, m.logged) for dataset in datasets for m in (LOSS, *config.metrics)]
        stopping.check(f"mst_key {config.mst_key}", computed)


def verdict(config: Config, evaluations: Iterable[Evaluation]) -> Verdict:
    """What becomes of a configuration, of which these are the evaluations in the order of their epochs."""
    stopping = config.fit.callbacks.stopping
    if stopping is None:
        return Verdict(None, None)
    dataset, name = stopping.watched
    metrics = [LOSS, *config.metrics]
    place = [m.logged for m in metrics].index(name)
    larger = {"min": False, "max": True}.get(stopping.mode, larger_is_better(metrics[place].metric))
    values = [(each.epoch, (each.loss, *each.metrics)[place]) for each in evaluations if each.dataset == dataset]
    return stopping.rule(larger).judge(values)


def stop_reason(config: Config, found: Verdict) -> str:
    """Why a configuration was stopped, for its log."""
    stopping = config.fit.callbacks.stopping
    assert stopping is not None
    since = "at all" if found.best is None else f"since iteration {found.best}"
    return f"EarlyStopping: {stopping.monitor} did not get better {since}"
