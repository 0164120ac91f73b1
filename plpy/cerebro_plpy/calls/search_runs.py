"""The runs of a search: one for each stage, over the same workers, whose trainers keep their data from run to run.

What is remembered of a configuration is where its newest state lies; of the best one, where that lies with which it
was the best. All other states are dropped as soon as a stage is over.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from cerebro_plpy.calls.fit_request import (
    Models,
    functions_of,
    give_notices,
    make_request,
    metrics_iterations,
    most_workers,
)
from cerebro_plpy.calls.inputs import Data
from cerebro_plpy.configs import frameworks
from cerebro_plpy.configs.compile_params import parse_compile_params
from cerebro_plpy.configs.config import Config
from cerebro_plpy.configs.custom_functions import Functions
from cerebro_plpy.configs.fit_params import parse_fit_params
from cerebro_plpy.configs.grid import ConfigRow
from cerebro_plpy.configs.spec import FitArguments, Ranking, SearchSpec, Spec
from cerebro_plpy.configs.stages import Losses, Search, Stage
from cerebro_plpy.database.catalog import Catalog, Relation
from cerebro_plpy.errors import CerebroError, ConfigFailure, FeatureNotSupported, SegmentLost
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.workplace import Workplace
from cerebro_plpy.records import dataclass, field, replace
from cerebro_plpy.run import messages, workers
from cerebro_plpy.run.epoch_loop import Orchestrator
from cerebro_plpy.run.lifecycle import logged_run, reserve_run, surroundings
from cerebro_plpy.run.log import RunLog
from cerebro_plpy.run.request import Evaluation, FitRequest, Repeat, WarmState
from cerebro_plpy.tables.architectures import StoredModel
from cerebro_plpy.tables.compatibility import check_configs
from cerebro_plpy.tables.selection import check_callbacks


@dataclass(frozen=True)
class Basis:
    """What all runs of a search have in common; `tables` are the quoted names of the tables of the call."""

    arguments: FitArguments
    data: Data
    architectures: dict[int, StoredModel]
    table: Relation
    seed: int
    schedule: str
    search: SearchSpec
    object_table: str | None
    tables: Mapping[str, str]
    version: str

    @property
    def dataset(self) -> str:
        """The data set whose loss decides."""
        return "training" if self.data.validation is None else "validation"


@dataclass
class Trial:
    """A configuration: the runs that trained it, with the iterations of each, and where its newest state lies."""

    config: Config
    runs: list[tuple[int, int]] = field(default_factory=list)
    place: tuple[int, int] | None = None
    state: StoredState | None = None


class Best(NamedTuple):
    """The configuration with the lowest loss after any run so far, as it then was."""

    loss: float
    tried: Trial


class Runs:
    """Trains stage after stage."""

    def __init__(self, catalog: Catalog, workplace: Workplace, basis: Basis, functions: Functions | None) -> None:
        self._catalog, self._db, self._workplace, self.basis = catalog, catalog.db, workplace, basis
        self._functions = functions
        self._crew: workers.Crew | None = None
        self._leaders: dict[str, Evaluation] = {}
        self._reasons: dict[int, str] = {}
        self._holding: set[int] = set()  # runs that may have states
        self.run_ids: list[int] = []
        self.frequency = 0  # of metrics, in the last run
        self.tried: dict[int, Trial] = {}
        self.best: Best | None = None

    def search(self, search: Search) -> Best:
        """Work through a search; the best that it found."""
        stage, finished = _next(search, None), set[int]()
        while stage:
            losses = self._train(stage)
            finished.update(stage.rows if stage.last else ())
            stage = _next(search, losses)
            self._drop_states(finished.union(stage.rows if stage else ()))
        if self.best is None:
            reasons = "; ".join(f"mst_key={key}: {reason}" for key, reason in sorted(self._reasons.items()))
            raise ConfigFailure(f"all {len(self.tried)} configurations failed", detail=reasons)
        return self.best

    def abandon(self) -> None:
        """After an error: no run of the search can be gone on with by itself, so all states go."""
        self._workplace.control.unguarded()
        with suppress(CerebroError):
            for run_id in () if self._workplace.local else self._holding:  # those go with the caller's transaction
                RunLog(self._workplace.control, run_id).drop_states(keep=[])

    def check(self, rows: Iterable[ConfigRow]) -> None:
        """Raises where one of these configurations, whose keys are their numbers, cannot be trained on the data."""
        self._checked(dict(enumerate(rows, len(self.tried) + 1)))

    def _checked(self, rows: Mapping[int, ConfigRow]) -> tuple[Config, ...]:
        basis, configs = self.basis, [self._config(key, row) for key, row in rows.items()]
        check_callbacks(self._db, (config.fit for config in configs))
        if any(config.fit.callbacks.stopping for config in configs):
            raise FeatureNotSupported(
                f"{self._catalog.module} error: fit parameters have EarlyStopping, but a search decides itself which"
                " configurations go on.",
                hint="Leave it out.",
            )
        return check_configs(configs, basis.architectures, basis.data.source, basis.table)

    def _config(self, mst_key: int, row: ConfigRow) -> Config:
        compiled, fitted = parse_compile_params(row.compile_params, self._functions), parse_fit_params(row.fit_params)
        return Config(mst_key, row.model_id, row.compile_params, row.fit_params, compiled, fitted)

    def _train(self, stage: Stage) -> Losses:
        request = self._request(stage)
        self._db.info(stage.message)
        failed: ConfigFailure | None = None
        self.run_ids.append(reserve_run(self._db, self._workplace))
        self._holding.add(self.run_ids[-1])
        with logged_run(self._db, self._workplace, request, self.run_ids[-1]) as log:
            self._crew = self._crew or workers.start(self._workplace, request)
            around = surroundings(self._db, self._workplace, request)
            orchestrator = Orchestrator(self._crew.visits, request, self._crew.workers, log, around, {})
            try:
                orchestrator.run()
            except ConfigFailure as error:
                failed = error  # all of this stage; another one may do better
        log.stop("failed", failed.message) if failed else log.end()
        self._refuse_lost()
        self._reasons.update(orchestrator.failed)
        return self._heard(stage, orchestrator, log.run_id)

    def _request(self, stage: Stage) -> FitRequest:
        new = self._checked({key: row for key, row in stage.rows.items() if key not in self.tried})
        self.tried.update({config.mst_key: Trial(config) for config in new})
        give_notices(self._catalog, new, self.basis.architectures, self.basis.data.source)
        basis, configs = self.basis, tuple(self.tried[key].config for key in stage.rows)
        spec = self._spec(stage, configs)
        self.frequency = spec.frequency
        models = Models(configs, basis.architectures, basis.table, frameworks.frameworks_of(None, stage.rows))
        request = make_request(self._catalog, self._workplace, spec, basis.data, models, Repeat())
        read = self._workplace.platform.state_rows
        warm = {key: WarmState("chunks", read(*state), ()) for key, state in self._states()}
        # Of all stages, while this one alone may have few configurations.
        workers = most_workers(self._workplace, spec, basis.data)
        return replace(request, warm_states=warm, workers=workers)

    def _spec(self, stage: Stage, configs: tuple[Config, ...]) -> Spec:
        basis, source, validation = self.basis, self.basis.data.source, self.basis.data.validation
        frequency = self._frequency(basis.arguments.metrics_compute_frequency, stage.iterations)
        return Spec(
            arguments=basis.arguments,
            epochs=stage.iterations,
            frequency=frequency,
            evaluate_epochs=metrics_iterations(stage.iterations, frequency),
            seed=basis.seed,
            epochs_before={
                config.mst_key: sum(epochs for _, epochs in self.tried[config.mst_key].runs) for config in configs
            },
            schedule=basis.schedule,
            dtype_policy=None,
            model_arch_table=basis.table.spelling,
            object_table=basis.object_table,
            segments=source.segments,
            source=source.spec(),
            validation=validation.spec() if validation else None,
            ranking=Ranking(basis.dataset, "loss", descending=False),
            version=basis.version,
            functions=functions_of(configs),
            tables=basis.tables,
            search=replace(basis.search, stage=stage.title),
        )

    def _states(self) -> list[tuple[int, StoredState]]:
        return [(key, tried.state) for key, tried in self.tried.items() if tried.state]

    def _frequency(self, given: int | None, iterations: int) -> int:
        """After how many iterations metrics are computed in a run of so many."""
        if given is not None and not 1 <= given <= iterations:
            self._db.notice(
                f"metrics_compute_frequency is {given}, but this run has {iterations} iterations: metrics are computed"
                " after the last one only."
            )
        return given if given is not None and 1 <= given <= iterations else iterations

    def _heard(self, stage: Stage, orchestrator: Orchestrator, run_id: int) -> Losses:
        """Take down what a run came to, tell who is the best so far, and give the losses that decide."""
        for key in stage.rows:
            tried = self.tried[key]
            tried.runs.append((run_id, stage.iterations))
            tried.place, tried.state = stage.places.get(key), orchestrator.states.get(key)
        final = [
            found
            for found in orchestrator.evaluations
            if found.epoch == stage.iterations and found.mst_key in orchestrator.states
        ]
        for found in final:
            self._lead(found)
        self._tell_best()
        return {found.mst_key: found.loss for found in final if found.dataset == self.basis.dataset}

    def _lead(self, found: Evaluation) -> None:
        leader = self._leaders.get(found.dataset)
        if math.isnan(found.loss) or (leader and leader.loss <= found.loss):
            return
        self._leaders[found.dataset] = found
        if found.dataset == self.basis.dataset:
            tried = self.tried[found.mst_key]
            self.best = Best(found.loss, replace(tried, runs=list(tried.runs)))

    def _tell_best(self) -> None:
        lines = [
            f"Best {dataset} loss so far:\nmst_key={e.mst_key}: metric={messages.metric_text(e)}, loss={e.loss}\n"
            for dataset, e in sorted(self._leaders.items())
        ]
        if lines:
            self._db.info("\n" + "".join(lines))

    def _drop_states(self, alive: Collection[int]) -> None:
        """Drop all states but those of the best, of who goes on and of who was trained to the end."""
        for key, tried in self.tried.items():
            tried.state = tried.state if key in alive else None
        kept = [tried for tried in (*self.tried.values(), *([self.best.tried] if self.best else [])) if tried.state]
        keep = [tried.state.table for tried in kept if tried.state]
        for run_id in () if self._workplace.local else self._holding:  # the caller's transaction holds them still
            RunLog(self._workplace.control, run_id).drop_states(keep)
        self._holding = {tried.runs[-1][0] for tried in kept}

    def _refuse_lost(self) -> None:
        if self._workplace.segment_lost:
            raise SegmentLost(
                f"{self._workplace.platform.name} lost a segment during the search, and this transaction with it",
                hint="Call madlib_keras_automl() again.",
            )


def _next(search: Search, losses: Losses | None) -> Stage | None:
    try:
        return next(search) if losses is None else search.send(losses)
    except StopIteration:
        return None
