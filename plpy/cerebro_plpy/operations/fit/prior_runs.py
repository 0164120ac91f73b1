"""Earlier runs as a search uses them: the best configurations, and the results of all.

The log of the search's own run keeps the trials that the sampler receives. A resumed search
therefore has the same ones, even if the earlier runs were removed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from cerebro_plpy.configs.prior_trials import (
    BEST_PER_RUN,
    MAX_PRIOR_TRIALS,
    PriorTrial,
    compute_standings,
)
from cerebro_plpy.configs.run_spec import Ranking
from cerebro_plpy.configs.search_space.sampler_space import Point, PointSpace
from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.errors import UndefinedObject
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.tables.architectures import StoredModel


class Comparison(NamedTuple):
    """The way in which a run compares its configurations."""

    dataset: str
    metric: str
    descending: bool  # larger values are better
    task: str | None  # of a run of `cerebro.train`
    warm: bool  # configurations start from states of earlier runs

    def matches(self, ranking: Ranking, task: str | None) -> bool:
        """Return True if a search can learn from the order of the run's values."""
        if self.warm or self.task != task:
            return False
        return self[:3] == (ranking.dataset, ranking.metric, ranking.descending)


class PriorRunConfig(NamedTuple):
    """A configuration of an earlier run."""

    mst_key: int
    value: float | None
    failed: bool
    row: Mapping[str, Any]  # its parameters, or its template with the values of the fields
    architecture: str


class PriorRun(NamedTuple):
    """A run that a search starts from."""

    run_id: int
    comparison: Comparison
    configs: tuple[PriorRunConfig, ...]

    def find_best_points(self, space: PointSpace, models: Mapping[int, StoredModel]) -> list[Point]:
        """Return the points of the best configurations that are in a space with these models."""
        finite = [config for config in self.configs if math.isfinite(self._loss(config))]
        ordered = sorted(finite, key=lambda config: (self._loss(config), config.mst_key))
        points = (_find_point(space, models, config) for config in ordered)
        return list(islice((point for point in points if point is not None), BEST_PER_RUN))

    def list_trials(
        self, space: PointSpace, models: Mapping[int, StoredModel] | None
    ) -> list[PriorTrial]:
        """Return the configurations in a space, with their standings among all of the run."""
        ranked = [config for config in self.configs if not config.failed]
        standings = compute_standings([(0.0, self._loss(config)) for config in ranked])
        standing_of = dict(zip((config.mst_key for config in ranked), standings))
        trials = []
        for config in self.configs:
            point = _find_point(space, models, config)
            if point is not None:
                standing = standing_of.get(config.mst_key)
                trials.append(PriorTrial(self.run_id, config.mst_key, point, standing))
        return trials

    def _loss(self, config: PriorRunConfig) -> float:
        """Return the value so that smaller ones are better; NaN if it is missing."""
        if config.value is None:
            return math.nan
        return -config.value if self.comparison.descending else config.value


def read_prior_runs(session: Session, run_ids: Iterable[int]) -> list[PriorRun]:
    """Read runs, except those that the caller may not see."""
    runs = []
    for run_id in run_ids:
        for comparison in session.run(sql("earlier.run"), (run_id,)):
            rows = session.run(sql("earlier.configs"), (run_id, run_id))
            configs = tuple(_make_config(*row) for row in rows)
            runs.append(PriorRun(run_id, Comparison(*comparison), configs))
    return runs


def require_prior_runs(module: str, session: Session, run_ids: Sequence[int]) -> list[PriorRun]:
    """Read runs.

    Raises:
        UndefinedObject: a run does not exist, or the caller may not see it.
    """
    runs = read_prior_runs(session, run_ids)
    missing = sorted(set(run_ids) - {run.run_id for run in runs})
    if missing:
        raise UndefinedObject(
            f"{module} error: start_from in search_params names run {missing[0]}, but there is no "
            "such run of yours.",
            hint="SELECT run_id, name FROM cerebro.run;",
        )
    return runs


def collect_prior_trials(
    catalog: Catalog,
    runs: Iterable[PriorRun],
    space: PointSpace,
    ranking: Ranking,
    *,
    task: str | None = None,
    models: Mapping[int, StoredModel] | None = None,
) -> tuple[PriorTrial, ...]:
    """Return the trials that a search can learn from; report their number to the caller.

    Args:
        task: of a search of `cerebro.train`.
        models: the models of the space; None if its configurations are of templates.
    """
    trials: list[PriorTrial] = []
    for run in runs:
        if run.comparison.matches(ranking, task):
            trials += run.list_trials(space, models)
            continue
        catalog.db.info(
            f"the sampler is not told of run {run.run_id}, which compares otherwise: by "
            f"{run.comparison.metric} over {count_nouns(run.comparison.dataset, 'row')}, or from "
            "states of runs before"
        )
    trials = trials[:MAX_PRIOR_TRIALS]
    if trials:
        run_ids = dict.fromkeys(str(trial.run_id) for trial in trials)
        number = count_nouns(len(trials), "configuration")
        catalog.db.info(
            f"the sampler is told how {number} of earlier runs stood: runs {', '.join(run_ids)}"
        )
    return tuple(trials)


def has_point(row: Mapping[str, Any]) -> bool:
    """Return True if a resumed search has to find the point of a logged configuration.

    As in a run without interruption, these are the configurations of the call and of acts, except
    warm clones.
    """
    return row["source"] in ("call", "act", "clone") and row["warm_started_from"] is None


def _make_config(
    mst_key: int,
    value: float | None,
    failed: bool,
    model_id: int,
    compile_params: str,
    fit_params: str,
    architecture: str,
    template: str | None,
    params: str | None,
) -> PriorRunConfig:
    row = {
        "model_id": model_id,
        "compile_params": compile_params,
        "fit_params": fit_params,
        "template": template,
        "params": None if params is None else json.loads(params),
    }
    return PriorRunConfig(mst_key, value, failed, row, architecture)


def _find_point(
    space: PointSpace, models: Mapping[int, StoredModel] | None, config: PriorRunConfig
) -> Point | None:
    """Return the point of a configuration; None if it is not in the space.

    If the model id stands for another network by now, the configuration is not in the space.
    """
    if models is not None:
        model = models.get(config.row["model_id"])
        if config.row["template"] or model is None or model.json != config.architecture:
            return None
    return space.find_point(config.row)
