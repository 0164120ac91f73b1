"""Earlier runs as a search knows them when it begins: the best of their configurations, and what
came of all of them.

What it is told is kept in the log of its own run, so that who resumes it knows the same, whatever
became of the others.
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
from cerebro_plpy.tables.architectures import StoredModel


class Comparison(NamedTuple):
    """By what a run compares its configurations, for which task if it is one of `cerebro.train`,
    and whether they begin `warm`, from states of runs before."""

    dataset: str
    metric: str
    descending: bool
    task: str | None
    warm: bool

    def like(self, ranking: Ranking, task: str | None) -> bool:
        """Whether a search by that ranking can learn from the order of its values."""
        alike = (self.dataset, self.metric, self.descending) == (
            ranking.dataset,
            ranking.metric,
            ranking.descending,
        )
        return alike and self.task == task and not self.warm


class PriorRunConfig(NamedTuple):
    """A configuration of an earlier run, its value if it has one, and whether it has failed; `row`
    is what makes it.
    """

    mst_key: int
    value: float | None
    failed: bool
    row: Mapping[str, Any]
    architecture: str


class PriorRun(NamedTuple):
    """A run that a search starts from."""

    run_id: int
    compared: Comparison
    configs: tuple[PriorRunConfig, ...]

    def best(self, space: PointSpace, models: Mapping[int, StoredModel]) -> list[Point]:
        """Where the best of its configurations lie that are in a space, whose models are these."""
        sign = -1.0 if self.compared.descending else 1.0
        real = [
            each for each in self.configs if each.value is not None and math.isfinite(each.value)
        ]
        ordered = sorted(real, key=lambda each: (sign * (each.value or 0.0), each.mst_key))
        points = (_point(space, models, each) for each in ordered)
        return list(islice((point for point in points if point is not None), BEST_PER_RUN))

    def trials(
        self, space: PointSpace, models: Mapping[int, StoredModel] | None
    ) -> list[PriorTrial]:
        """Those of its configurations that are in a space, with how they stood among all of the
        run.
        """
        sign = -1.0 if self.compared.descending else 1.0
        ended = [each for each in self.configs if not each.failed]
        placed = compute_standings(
            [(0.0, sign * (math.nan if each.value is None else each.value)) for each in ended]
        )
        known = dict(zip((each.mst_key for each in ended), placed))
        points = ((each.mst_key, _point(space, models, each)) for each in self.configs)
        return [
            PriorTrial(self.run_id, key, point, known.get(key))
            for key, point in points
            if point is not None
        ]


def read_prior_runs(session: Session, runs: Iterable[int]) -> list[PriorRun]:
    """Those of these runs that the caller may see."""
    found = []
    for run_id in runs:
        for compared in session.run(sql("earlier.run"), (run_id,)):
            rows = session.run(sql("earlier.configs"), (run_id,))
            found.append(
                PriorRun(run_id, Comparison(*compared), tuple(_config(row) for row in rows))
            )
    return found


def require_prior_runs(module: str, session: Session, runs: Sequence[int]) -> list[PriorRun]:
    """These runs; UndefinedObject where one of them is not there, or not the caller's."""
    found = read_prior_runs(session, runs)
    missing = sorted(set(runs) - {each.run_id for each in found})
    if missing:
        raise UndefinedObject(
            f"{module} error: start_from in search_params names run {missing[0]}, but there is no "
            "such run of yours.",
            hint="SELECT run_id, name FROM cerebro.run;",
        )
    return found


def collect_prior_trials(
    catalog: Catalog,
    runs: Iterable[PriorRun],
    space: PointSpace,
    ranking: Ranking,
    *,
    task: str | None = None,
    models: Mapping[int, StoredModel] | None = None,
) -> tuple[PriorTrial, ...]:
    """What a search that learns is told of these runs; the caller hears how much that is."""
    found = list[PriorTrial]()
    for each in runs:
        if each.compared.like(ranking, task):
            found += each.trials(space, models)
        else:
            catalog.db.info(
                f"the sampler is not told of run {each.run_id}, which compares otherwise: by "
                f"{each.compared.metric} over {each.compared.dataset} rows, or from states of runs "
                "before"
            )
    told = tuple(found[:MAX_PRIOR_TRIALS])
    if told:
        names = ", ".join(str(run_id) for run_id in dict.fromkeys(each.run_id for each in told))
        catalog.db.info(
            f"the sampler is told how {len(told)} configurations of earlier runs stood: runs "
            f"{names}"
        )
    return told


def has_point(row: Mapping[str, Any]) -> bool:
    """Whether a search that is resumed is to find where a configuration of its log lies: of all
    that the call chose and that acts added, but for warm clones, as in a run that was not
    interrupted."""
    return row["source"] in ("call", "act", "clone") and row["warm_started_from"] is None


def _config(row: Sequence[Any]) -> PriorRunConfig:
    mst_key, value, failed, model_id, compiled, fitted, architecture, template, params = row
    texts = {
        "model_id": model_id,
        "compile_params": compiled,
        "fit_params": fitted,
        "template": template,
    }
    made = {**texts, "params": None if params is None else json.loads(params)}
    return PriorRunConfig(mst_key, value, failed, made, architecture)


def _point(
    space: PointSpace, models: Mapping[int, StoredModel] | None, config: PriorRunConfig
) -> Point | None:
    """Where a configuration lies; nowhere if its model's number stands for another network by now,
    or for none.
    """
    if models is not None:
        model = models.get(config.row["model_id"])
        if config.row["template"] or model is None or model.json != config.architecture:
            return None
    return space.find_point(config.row)
