"""The epoch loop against a platform in which anything may fail at any time."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain, cycle, groupby, pairwise, product, repeat
from itertools import count as naturals
from typing import Any, TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from specs import spec_of
from trials import trials
from watched_loop import STAGES, Noted, WatchedLoop

from cerebro_plpy.configs.architecture.boosted_trees import write_architecture
from cerebro_plpy.configs.params.compile_params import parse_compile_params
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.configs.params.fit_params import parse_fit_params
from cerebro_plpy.configs.params.output_losses import LoggedMetric
from cerebro_plpy.configs.run_spec import MAX_ATTEMPTS
from cerebro_plpy.configs.search_space.distributions import Choices
from cerebro_plpy.configs.search_space.sampler_space import ParameterSpace
from cerebro_plpy.configs.search_space.space import Space
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.sessions.async_dispatcher import DONE, READ, Rows, Statement, Steps
from cerebro_plpy.errors import (
    CerebroError,
    ConfigFailure,
    ConnectionFailure,
    OutOfMemory,
    QueryCanceled,
)
from cerebro_plpy.packing.packed_table import PackedTable
from cerebro_plpy.platform.job import Dataset, Filling, Job, RawRows, StateSource, Sums
from cerebro_plpy.platform.postgres.adapter import Postgres
from cerebro_plpy.platform.postgres.visits import PostgresVisits
from cerebro_plpy.platform.resource_usage import Cost
from cerebro_plpy.platform.state_tables import StoredState, best_table
from cerebro_plpy.platform.state_writer import select_first
from cerebro_plpy.platform.visit_protocol import (
    BatchResult,
    BatchVisit,
    BestState,
    EvaluateVisit,
    FusedResult,
    TrainVisit,
    VisitResult,
    Worker,
)
from cerebro_plpy.records import dataclass, field, replace
from cerebro_plpy.run.log import program_costs
from cerebro_plpy.run.log.config_rows import Origin
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.log.step_log import Command, DecisionRow
from cerebro_plpy.run.loop.added_configs import AddedConfigs, ConfigSource
from cerebro_plpy.run.loop.epoch_loop import EpochLoop
from cerebro_plpy.run.request.replay import Orders, compute_endings
from cerebro_plpy.run.request.run_request import (
    BUDGET_OVER,
    CloneStart,
    Deadline,
    Evaluation,
    FitRequest,
    Replay,
    SamplingPlan,
    SearchRequest,
    WarmState,
)
from cerebro_plpy.run.state import config_state
from cerebro_plpy.run.state.config_state import ConfigHistory, RetainedState
from cerebro_plpy.run.state.restore import restore_run
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.run.workers.admission import RunSlots
from cerebro_plpy.run.workers.run_context import RunContext
from cerebro_plpy.run.workers.tasks import RETRYABLE_ERRORS, AttemptKey
from cerebro_plpy.scheduling.planning import replanning
from cerebro_plpy.scheduling.planning.replanning import Replan, StrategyChange
from cerebro_plpy.scheduling.planning.run_plan import (
    MOP,
    TASK,
    UNKNOWN,
    Data,
    Program,
    RunPlan,
    Strategy,
    Work,
)
from cerebro_plpy.scheduling.quota.cost_limits import CostLimits, Usage
from cerebro_plpy.scheduling.schedule.schedule import Visit, VisitBatch
from cerebro_plpy.scheduling.search import search_state
from cerebro_plpy.scheduling.search.early_stopping_rule import EarlyStoppingRule
from cerebro_plpy.scheduling.search.pasha import Pasha
from cerebro_plpy.scheduling.search.promotion_rules import (
    Asha,
    Capacity,
    Decision,
    Median,
    Rule,
    Stepwise,
)
from cerebro_plpy.scheduling.search.successive_halving import make_halving
from cerebro_plpy.tables.architectures import BuiltConfigs, StoredModel

RUN_ID = 7
ALWAYS_READABLE = os.open("/dev/null", os.O_RDONLY)
TABLE = Relation("t", "public", "t", 1, "public.t")
COMPILE = "optimizer='SGD',loss='mse',metrics=['mae']"
MEASURED = (LoggedMetric("mean_absolute_error", "mean_absolute_error"),)
TREES = write_architecture({"units": 1})
RESIDENT, BESIDE, ROOM = "resident", "beside", 1_000
STATE_BYTES = 1 << 20
TIMING = {"seconds_per_row": 1.0, "compile_seconds": 1.0}
Fault: TypeAlias = type[CerebroError] | None


@dataclass
class Clock:
    """The time of a run: it goes on by one with each look at a session."""

    now: float = 0.0
    hears: bool = (
        True  # whether a statement that is cancelled ends at once, or is about to end anyway
    )

    def pass_by(self, seconds: float) -> None:
        """Somebody sleeps."""
        self.now += 1


class Session:
    """Answers each statement after a few looks; always readable, so that nobody really waits."""

    pid = 0
    platform = Postgres()

    def __init__(self, looks: Sequence[int], clock: Clock | None = None) -> None:
        self._looks = cycle(looks)
        self._left = 0
        self._clock = clock or Clock()
        self._cancelled = False

    def start(self, statement: str, values: Sequence[object] = ()) -> None:
        self._left, self._cancelled = next(self._looks), False

    def poll(self) -> int:
        self._clock.now += 1
        if self._cancelled:
            raise QueryCanceled("canceling statement due to user request")
        self._left -= 1
        return READ if self._left > 0 else DONE

    def fetch(self) -> Rows:
        return []

    def fileno(self) -> int:
        return ALWAYS_READABLE

    def cancel(self) -> None:
        self._cancelled = self._clock.hears

    def run(self, statement: str, values: Sequence[object] = ()) -> Rows:
        return []

    def close(self) -> None:
        """Nothing is held."""


def tasks_of(visit: BatchVisit) -> list[tuple[Any, ...]]:
    """What attempts at a visit are counted for; one that evaluates is several."""
    if isinstance(visit, TrainVisit):
        return [("train", visit.mst_key, visit.visit_no)]
    return [("evaluate", visit.mst_key, visit.epoch, segment) for segment in visit.segments]


def is_of_trees(visit: BatchVisit) -> bool:
    """Tell whether the config of a visit makes whole epochs."""
    return bool(visit.job.program["architecture"] == json.loads(TREES))


def loss_of(visit: TrainVisit) -> float | None:
    """The loss of a visit, unless it only collects rows."""
    return None if is_of_trees(visit) and not visit.job.grows else float(visit.epoch)


@dataclass
class Unreliable(PostgresVisits):
    """A platform that keeps the laws' account and fails where it was told to."""

    faults: Iterator[Fault]
    places: dict[str, set[int]] = field(
        default_factory=lambda: {"configs": set(), "workers": set()}
    )
    hosts: dict[int, set[int]] = field(
        default_factory=dict
    )  # the workers that trained or evaluated a config
    done: dict[int, list[tuple[Visit, VisitResult]]] = field(default_factory=dict)
    measured: bool = False
    interruptions: int = 0
    evaluated: list[tuple[int, int, int]] = field(default_factory=list)
    logged: dict[tuple[int, int], list[Evaluation]] = field(
        default_factory=dict
    )  # with a tour, by config and epoch
    attempts: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    free: Counter[tuple[Any, ...]] = field(
        default_factory=Counter
    )  # of those, what nobody is charged with
    visits: Counter[int] = field(default_factory=Counter)
    ahead: float = math.inf
    remains: dict[str, set[int]] = field(
        default_factory=dict
    )  # segments of which a table has something, by table
    losses: Mapping[tuple[int, int], float] = field(
        default_factory=dict
    )  # of a segment, by config and epoch
    best: dict[int, RetainedState] = field(default_factory=dict)
    made: dict[tuple[int, int], int] = field(
        default_factory=dict
    )  # visits before an evaluation, by config and epoch
    clock: Clock = field(default_factory=Clock)
    last_visit: float = math.inf
    allowed: float = math.inf  # visits, which are what it costs
    streams: bool = False  # whether no worker keeps its segments
    longest: int = 0
    unstored: dict[int, BatchResult] = field(default_factory=dict)  # by worker
    begun: dict[int, Sequence[BatchVisit]] = field(
        default_factory=dict
    )  # by worker, beside what is unstored
    stored_beside: int = 0
    fusions: int = 0  # of configs that were trained together
    timings: Mapping[str, Any] = field(default_factory=lambda: {"f": TIMING})
    gone_on: int = 0  # tours of a config from a state that was still to be stored
    evaluations: frozenset[int] = frozenset()  # epochs that end with one
    decided: list[DecisionRow] = field(default_factory=list)  # of a search, in all of its parts
    metrics: list[Evaluation] = field(default_factory=list)  # in the log, but for those of tours
    segments: int = 0
    is_bound: bool = False  # whether each worker serves one segment

    def start(self, worker: Worker) -> Steps[None]:
        yield Statement("start")

    def report_cost(self, worker: Worker) -> Steps[None]:
        raise AssertionError("no loop asks for that")
        yield

    def stop_trainer(self, worker: Worker) -> Steps[None]:
        assert worker.number not in {*self.unstored, *self.begun}
        yield Statement("release")

    def train(self, worker: Worker, tour: Sequence[BatchVisit]) -> Steps[BatchResult]:
        assert worker.number not in self.unstored, "a trainer has one state at a time"
        with self._alone("workers", worker.number):
            made = select_first(tour) if self.streams else tour
            yield from self._take_up(worker, tour, made)
            return self._leave(worker, made)

    def can_overlap(
        self, worker: Worker, trained: BatchResult, datasets: Sequence[Dataset]
    ) -> bool:
        assert trained.visits is self.unstored[worker.number].visits
        return not self.streams

    def begin(self, worker: Worker, tour: Sequence[BatchVisit]) -> Steps[None]:
        with self._alone("workers", worker.number):
            yield from self._take_up(worker, tour, tour)
            self.begun[worker.number] = tour

    def finish(self, worker: Worker, tour: Sequence[BatchVisit]) -> Steps[BatchResult]:
        assert worker.number not in self.unstored and self.begun[worker.number] is tour
        with self._alone("workers", worker.number), self._in_vain(worker, tour):
            yield Statement("finish")
            self._fail(worker, tour, next(self.faults))
            return self._leave(worker, tour)

    def _take_up(
        self, worker: Worker, tour: Sequence[BatchVisit], made: Sequence[BatchVisit]
    ) -> Iterator[Statement]:
        key, unstored = tour[0].mst_key, self.unstored.get(worker.number)
        ahead = len(unstored.training) if unstored and unstored.visits[0].mst_key == key else 0
        assert self.clock.now < self.last_visit, "no training visit begins when the budget is over"
        assert self.spent().cpu_seconds < self.allowed, "nor when the log has what the run may cost"
        assert ahead or key not in self.places["configs"], (
            "but where its worker's trainer has its state"
        )
        self._check_tour(tour, self.visits[key] + ahead)
        if worker.segment_id is not None:
            self._check_place(worker.segment_id, tour)
        self.gone_on += bool(ahead)
        self.hosts.setdefault(key, set()).add(worker.number)
        self.places["configs"].add(key)
        with self._in_vain(worker, tour):
            ((task, *_), *_) = map(tasks_of, tour)
            self._count(task, tour[0].attempt)
            yield Statement("work")
            self._fail(worker, tour, next(self.faults))

    def spent(self) -> Usage:
        """A second for each visit that was stored."""
        return Usage(cpu_seconds=float(sum(self.visits.values())))

    @contextmanager
    def _in_vain(self, worker: Worker, tour: Sequence[BatchVisit]) -> Iterator[None]:
        """Nobody works on a tour any more where it is cancelled, or has a fault."""
        try:
            yield
        except CerebroError:
            self.places["configs"].discard(tour[0].mst_key)
            self.begun.pop(worker.number, None)
            if self.unstored.get(worker.number, BatchResult((), ())).visits is tour:
                del self.unstored[worker.number]
            raise

    def _leave(self, worker: Worker, made: Sequence[BatchVisit]) -> BatchResult:
        """What was trained is known, and nobody but the trainer has it."""
        self.begun.pop(worker.number, None)
        results: list[dict[str, Any]] = []
        for visit in made:
            if results and not math.isfinite(
                results[-1].get("metrics", {"training": {"loss": 0.0}})["training"]["loss"]
            ):
                break
            trained = {
                "rows": 2,
                "seconds": 1.0,
                "timings": {**self.timings},
                "fallback": "it cannot be traced",
            }
            trained |= {"state_bytes": STATE_BYTES, "shards": []}
            if is_of_trees(visit):
                trained |= {"timings": {}, "fallback": None}
            results.append(
                {**trained, "warnings": ()}
                if isinstance(visit, TrainVisit)
                else self._metrics(visit)
            )
        self.unstored[worker.number] = BatchResult(made[: len(results)], results)
        self.longest = max(self.longest, len(self.unstored[worker.number].training))
        self.measured = self.measured or not is_of_trees(made[0])
        return self.unstored[worker.number]

    def _metrics(self, visit: EvaluateVisit) -> dict[str, Any]:
        """What comes of an evaluation within a tour."""
        count, loss = len(visit.segments), sum(self._losses(visit).values())
        return {"seconds": 0.0, "metrics": {"training": {"loss": loss, "metrics": [2.0 * count]}}}

    def _losses(self, visit: EvaluateVisit) -> dict[int, float]:
        return {s: self.losses.get((visit.mst_key, visit.epoch), float(s)) for s in visit.segments}

    def train_fused(
        self, worker: Worker, tours: Sequence[Sequence[TrainVisit]]
    ) -> Steps[list[FusedResult]]:
        firsts = [tasks_of(tour[0])[0] for tour in tours]
        assert (
            len({tour[0].mst_key for tour in tours}) == len(tours) > 1
            and worker.number not in self.unstored
        )
        assert len({tuple((v.epoch, v.dataset.segment_id) for v in tour) for tour in tours}) == 1, (
            "the same segments"
        )
        assert self.clock.now < self.last_visit and self.spent().cpu_seconds < self.allowed, (
            "nor when it is over"
        )
        with self._alone("workers", worker.number), ExitStack() as busy:
            for tour, first in zip(tours, firsts, strict=True):
                busy.enter_context(self._alone("configs", tour[0].mst_key))
                self._check_tour(tour, self.visits[tour[0].mst_key])
                self._count(first, tour[0].attempt)
                self.hosts.setdefault(tour[0].mst_key, set()).add(worker.number)
            yield Statement("work")
            fault = next(self.faults)
            if self.streams or fault is not None:
                others = [task for tour in tours for visit in tour[1:] for task in tasks_of(visit)]
                lost = others if fault is ConnectionFailure else []
                self.attempts.update(lost)
                self.free.update([*firsts, *lost])
            if fault is not None:
                raise fault(f"{fault.__name__} among {firsts}")
        return [] if self.streams else [*self._fusion(worker, tours)]

    def _fusion(
        self, worker: Worker, tours: Sequence[Sequence[TrainVisit]]
    ) -> Iterator[FusedResult]:
        """What becomes of each, of which some may not be trained."""
        self.fusions += 1
        for tour in tours:
            measured = self.measured
            trained, key = self._leave(worker, tour), tour[0].mst_key
            del self.unstored[worker.number]
            if next(self.faults) is ConfigFailure:
                self.measured = measured  # of who has failed nothing is heard
                yield FusedResult(trained, [], "it cannot be trained", Cost())
                continue
            self.visits[key] += len(tour)
            results = [
                VisitResult(2, float(v.epoch), 1.0, v.state_table if v is tour[-1] else None)
                for v in tour
            ]
            made = [Visit(visit.epoch, key, visit.dataset.segment_id, "train") for visit in tour]
            self.done.setdefault(key, []).extend(zip(made, results, strict=True))
            self.remains[tour[-1].state_table] = {tour[-1].dataset.segment_id}
            yield FusedResult(trained, results, None, Cost())

    def store(self, worker: Worker, trained: BatchResult) -> Steps[list[VisitResult]]:
        assert self.unstored[worker.number].visits is trained.visits, "what the trainer still has"
        made, key = [visit for visit, _ in trained.training], trained.visits[0].mst_key
        last, before = made[-1], self.remains.get(made[-1].state_table, set())
        segment = last.dataset.segment_id
        assert last.must_empty or segment not in before, "no state is mixed up with another one"
        assert not (last.is_fresh and before), "nothing is left of another one"
        self.remains[last.state_table] = {segment, *(() if last.must_empty else before)}
        with self._alone("workers", worker.number), self._in_vain(worker, trained.visits):
            yield Statement("store")
            fault = next(self.faults)
            charged = self.begun.get(worker.number, trained.visits)
            self._fail(worker, charged, None if fault is ConfigFailure else fault)
        del self.unstored[worker.number]
        begun = self.begun.get(worker.number)
        self.stored_beside += begun is not None
        if begun is None or begun[0].mst_key != key:
            self.places["configs"].discard(key)
        self._note_evaluations(trained)
        self.visits[key] += len(made)
        results = [
            VisitResult(2, loss_of(visit), 1.0, visit.state_table if visit is last else None)
            for visit in made
        ]
        visits = [Visit(visit.epoch, key, visit.dataset.segment_id, "train") for visit in made]
        self.done.setdefault(key, []).extend(zip(visits, results, strict=True))
        return results

    def _note_evaluations(self, trained: BatchResult) -> None:
        """Evaluations that were stored with a tour, and the best state with them."""
        key = trained.visits[0].mst_key
        made = self.visits[key]
        for visit in trained.visits:
            made += isinstance(visit, TrainVisit)
            if isinstance(visit, EvaluateVisit):
                assert ("evaluate", key, visit.epoch, visit.segments[0]) not in self.attempts, (
                    "who failed is alone"
                )
                self.attempts.update(tasks_of(visit))
                self.evaluated += [(key, visit.epoch, segment) for segment in visit.segments]
                self.made[key, visit.epoch] = made
                assert visit.is_candidate or trained.best is None
        for visit, result in trained.evaluations:
            self.logged[key, visit.epoch] = config_state.make_evaluations(
                key, visit.epoch, result["metrics"], 0.0
            )
        if best := trained.best:
            assert best.epoch in [visit.epoch for visit, _ in trained.evaluations]
            self.best[key] = RetainedState(best.epoch, best.stored)

    def _fail(self, worker: Worker, charged: Sequence[BatchVisit], fault: Fault) -> None:
        """Raise a fault in such a tour; what the trainer had beside it is gone, and costs nobody an
        attempt.
        """
        if fault is None:
            return
        if fault in RETRYABLE_ERRORS:
            unstored = self.unstored.pop(worker.number, None)
            tours = [
                charged,
                *([unstored.visits] if unstored and unstored.visits is not charged else []),
            ]
            for tour in tours:
                first, *others = [task for visit in tour for task in tasks_of(visit)]
                if fault is ConnectionFailure:  # all may have been logged
                    self.attempts.update(others)
                    self.free.update(others)
                if tour is not charged:
                    self.free[first] += 1
                    # What was done before it is to be done again.
                    self.ahead = math.inf if tour[0].mst_key == charged[0].mst_key else self.ahead
                self.places["configs"].discard(tour[0].mst_key)
        self.places["configs"].discard(charged[0].mst_key)
        raise fault(f"{fault.__name__} in {charged}")

    def _check_tour(self, tour: Sequence[BatchVisit], made: int) -> None:
        """Its visits begin where the last success ended, and follow one another; one that is tried
        again is alone.
        """
        key = tour[0].mst_key
        for visit in tour:
            assert visit.state.key == f"{RUN_ID}/{key}/{made}", "the state of the last success"
            if isinstance(visit, TrainVisit):
                if not is_of_trees(visit):
                    self._check_forms(visit.job.forms or {})
                made += 1
                assert visit.visit_no == made and visit.mst_key == key
        evaluated = {visit.epoch for visit in tour if isinstance(visit, EvaluateVisit)}
        assert evaluated >= self.evaluations & {
            visit.epoch for visit in tour if visit.epoch != tour[-1].epoch
        }
        assert len({visit.state_table for visit in tour if isinstance(visit, TrainVisit)}) == 1
        if is_of_trees(tour[0]):
            return self._check_whole(tour)
        assert not any(visit.job.grows for visit in tour)
        assert len(tour) == 1 or tour[0].attempt == 1
        assert not any(task in self.attempts for visit in tour[1:] for task in tasks_of(visit)), (
            "tried ones are alone"
        )

    def _check_place(self, segment: int, tour: Sequence[BatchVisit]) -> None:
        """A state is stored on the segment of its worker, which reads other rows for trees only."""
        segments = [visit.segments[-1] for visit in tour if isinstance(visit, TrainVisit)]
        assert segments[-1] == segment
        assert is_of_trees(tour[0]) or set(segments) == {segment}

    def _check_whole(self, tour: Sequence[BatchVisit]) -> None:
        """Trees see all segments in each epoch, in order, and grow at the last one.

        The order is a ring, which ends at the home of the config if workers are bound.
        """
        for _, visits in groupby(tour, lambda visit: (visit.epoch, isinstance(visit, TrainVisit))):
            stage = [*visits]
            datasets = [dataset for visit in stage for dataset in visit.datasets]
            begin = (tour[0].mst_key + 1) % self.segments if self.is_bound else 0
            ring = [*range(begin, self.segments), *range(begin)]
            assert [each.segment_id for each in datasets] == ring
            grown = [visit.job.grows for visit in stage]
            if isinstance(stage[0], TrainVisit):
                assert grown == [None] * (len(stage) - 1) + [[each.key for each in datasets]]

    @property
    def trained(self) -> list[tuple[int, int, int]]:
        """Config, epoch and segment of all visits, in an order that is right for each config."""
        return [
            (v.mst_key, v.epoch, v.segment_id) for visits in self.done.values() for v, _ in visits
        ]

    def interrupt(self, evaluations: Sequence[Evaluation]) -> dict[int, ConfigHistory]:
        """What a log would know now, also of what was stored and no loop has heard of; nobody works
        any more.
        """
        heard = {(evaluation.mst_key, evaluation.epoch) for evaluation in evaluations}
        unheard = [
            each for where in sorted(self.logged.keys() - heard) for each in self.logged[where]
        ]
        evaluations = [*evaluations, *unheard]
        self.places, self.ahead, self.measured = (
            {"configs": set(), "workers": set()},
            math.inf,
            False,
        )
        self.unstored, self.begun = {}, {}
        self.interruptions += 1
        attempts: dict[int, dict[AttemptKey, int]] = {}
        for (kind, key, *where), count in self.attempts.items():
            step: AttemptKey = (
                where[0] if kind == "train" else Visit(where[0], key, where[1], "evaluate")
            )
            attempts.setdefault(key, {})[step] = count
        keys = self.done.keys() | attempts.keys()
        return {
            key: ConfigHistory(
                self.done.get(key, []),
                [e for e in evaluations if e.mst_key == key],
                attempts.get(key, {}),
                self.best.get(key),
            )
            for key in keys
        }

    def _check_forms(self, forms: Mapping[str, Any]) -> None:
        """What one visit measured, later ones are told; the work ahead, this visit included, grows
        in searches only.
        """
        assert forms["use"] is None and 0 <= forms["remaining_rows"] <= (
            math.inf if self.decided else self.ahead
        )
        self.ahead = forms["remaining_rows"]
        assert forms["known"] == (self.timings if self.measured else {})

    def evaluate(self, worker: Worker, visit: EvaluateVisit) -> Steps[dict[int, dict[str, Any]]]:
        assert worker.number not in self.unstored
        asked = [(visit.mst_key, visit.epoch, segment) for segment in visit.segments]
        visit = visit.first_segment() if self.streams else visit
        assert visit.mst_key not in self.places["configs"], (
            "weights stand still while they are evaluated"
        )
        self.hosts.setdefault(visit.mst_key, set()).add(worker.number)
        places = [(visit.mst_key, visit.epoch, segment) for segment in visit.segments]
        with self._alone("workers", worker.number):
            yield from self._work([("evaluate", *place) for place in asked], visit.attempt)
        self.evaluated += places
        self.made[visit.mst_key, visit.epoch] = self.visits[visit.mst_key]
        return {
            s: {"training": {"rows": 1, "sums": [[1.0, loss]]}}
            for s, loss in self._losses(visit).items()
        }

    def probe(
        self, worker: Worker, dataset: Dataset, state: StateSource, job: Job
    ) -> Steps[dict[str, Any]]:
        raise NotImplementedError("frameworks are chosen before there is an epoch loop")

    def check_state(self, worker: Worker, state: StateSource, job: Job) -> Steps[bool]:
        raise NotImplementedError("what runs go on from is looked at before there is an epoch loop")

    def inspect(self, worker: Worker, state: StateSource, job: Job) -> Steps[dict[str, Any]]:
        raise NotImplementedError

    def store_features(
        self, worker: Worker, state: StateSource, job: Job, fillings: Sequence[Filling]
    ) -> Steps[None]:
        raise NotImplementedError

    def measure(
        self, worker: Worker, datasets: tuple[Dataset, ...], state: StateSource, job: Job
    ) -> Steps[dict[str, Any]]:
        raise NotImplementedError("an epoch loop evaluates in visits")

    def read_outputs(
        self, worker: Worker, dataset: Dataset, state: StateSource, job: Job
    ) -> Steps[Sequence[bytes]]:
        raise NotImplementedError("versions are made of what an epoch loop has come to")

    def predict(
        self,
        worker: Worker,
        rows: RawRows,
        state: StateSource,
        job: Job,
        request: Mapping[str, Any],
    ) -> Steps[str | None]:
        raise NotImplementedError("an epoch loop predicts nothing")

    def end_prediction(self, worker: Worker) -> Statement:
        raise NotImplementedError("an epoch loop predicts nothing")

    def compute_metrics(self, worker: Worker, sums: Sums) -> Steps[dict[str, Any]]:
        with self._alone("workers", worker.number):
            yield from self._work([("results",)], 1)
        ((count, total),) = sums.sums["training"]
        return {"training": {"loss": total, "metrics": [count + sums.rows["training"]]}}

    def retain(self, worker: Worker, best: BestState) -> Steps[StoredState]:
        visit, result = self.done[best.mst_key][-1]
        assert result.state_table
        assert best.state.stored == StoredState(result.state_table, visit.segment_id), (
            "the newest state"
        )
        assert (visit.epoch, best.epoch) == (best.epoch, self.evaluated_epoch(best.mst_key)), (
            "no visit came after it"
        )
        with self._alone("configs", best.mst_key), self._alone("workers", worker.number):
            yield from self._work([("keep",)], 1)
        self.best[best.mst_key] = RetainedState(best.epoch, best.stored)
        return best.stored

    def evaluated_epoch(self, mst_key: int) -> int:
        """The epoch that a config was last evaluated after."""
        return max(epoch for key, epoch, _ in self.evaluated if key == mst_key)

    def _work(self, tasks: Sequence[tuple[object, ...]], attempt: int) -> Iterator[Statement]:
        task, *others = tasks
        if task[0] not in ("results", "keep"):
            self._count(task, attempt)
        yield Statement("work")
        fault = next(self.faults)
        if fault:
            if fault is ConnectionFailure:  # all may have been logged
                self.attempts.update(others)
                self.free.update(others)
            raise fault(f"{fault.__name__} in {task}")

    def _count(self, task: tuple[object, ...], attempt: int) -> None:
        self.attempts[task] += 1
        assert (
            attempt
            == self.attempts[task]
            <= MAX_ATTEMPTS * (1 + self.interruptions) + self.free[task]
        )

    @contextmanager
    def _alone(self, kind: str, who: int) -> Iterator[None]:
        busy = self.places[kind]
        assert who not in busy
        busy.add(who)
        try:
            yield
        finally:
            busy.remove(who)


class Heard:
    """Beside the run: who is trained, with the visits that it had made by then, and who is
    finished.
    """

    def __init__(self, platform: Unreliable) -> None:
        self._platform = platform
        self.trained_by: dict[int, int] = {}
        self.finished_keys: set[int] = set()
        self.before: int | None = None  # visits of all, when the first was heard of

    def report_trained(self, run_id: int, mst_key: int) -> None:
        assert run_id == RUN_ID and mst_key not in self.trained_by
        self.trained_by[mst_key] = self._platform.visits[mst_key]
        self.before = self.before or sum(self._platform.visits.values())

    def report_finished(self, mst_key: int) -> None:
        assert mst_key in self.trained_by and mst_key not in self.finished_keys
        assert mst_key not in self._platform.places["configs"], "its best state is kept"
        self.finished_keys.add(mst_key)

    def do_piece(self) -> bool:
        return False


class Ended(Exception):
    """The run ended early; what it had evaluated by then."""

    def __init__(self, reason: str, evaluations: Sequence[Evaluation]) -> None:
        super().__init__(reason)
        self.evaluations = list(evaluations)


@dataclass(frozen=True)
class Told:
    """One call of announce."""

    epoch: int
    losses: Mapping[int, float]
    evaluated: frozenset[int]


def requested(
    configs: int,
    segments: int,
    epochs: int,
    evaluated: set[int],
    schedule: str,
    fit: str = "batch_size=1",
    commit_seconds: int = 0,
    trees: Container[int] = (),
) -> FitRequest:
    """A request over that many configs and segments; its rows have no room in a worker, but for
    configs that are to stay with one: each to its end, or all of them "beside" each other.

    Each visit takes a second. Configs in `trees` make whole epochs.
    """
    source = PackedTable(
        relation=TABLE,
        independent=("x",),
        dependent=("y",),
        dependent_types=("real",),
        class_values=(None,),
        class_types=("real[]",),
        num_classes=None,
        normalizing_const=1.0,
        buffer_size=1,
        input_shapes=((1,),) if schedule in (RESIDENT, BESIDE) else ((ROOM,),),
        target_shapes=((1,),),
        float_targets=(True,),
        segments=tuple(range(segments)),
        key="k",
        rows=segments,
    )
    parsed = (parse_compile_params(COMPILE), parse_fit_params(fit))
    return FitRequest(
        spec=spec_of(
            source,
            epochs,
            tuple(sorted(e for e in evaluated if e <= epochs)),
            schedule={RESIDENT: "foremost", BESIDE: "longest"}.get(schedule, schedule),
        ),
        source=source,
        validation=None,
        configs=tuple(
            Config(key, 1 + (key in trees), "", "", *parsed, MEASURED) for key in range(configs)
        ),
        architectures={1: StoredModel(1, "{}", False), 2: StoredModel(2, TREES, False)},
        architecture_table=TABLE,
        workers=1,
        gpus=(),
        backends=dict.fromkeys(range(configs), "tensorflow"),
        commit_seconds=commit_seconds,
    )


MAX_CPU = "max_cpu"
DRAWN = 100
"""The first key of those that are drawn."""


DECIDED: Mapping[str, str] = {"rest": "paused", "hold": "paused", "stop": "stopped"}
REVIVED: Mapping[str, Sequence[str]] = {
    "continue": ("paused", "stopped"),
    "promote": ("paused", "stopped", "completed"),
}


class Log(RunLog):
    """A log that knows which configurations it was told to be completed, and which to be stopped,
    and why.
    """

    def __init__(self, looks: Sequence[int], decisions: list[DecisionRow] | None = None) -> None:
        super().__init__(Session(looks), RUN_ID)
        self.decisions = decisions
        self.completed: set[int] = set()
        self.status: dict[int, str] = {}
        self.stopped: dict[int, str] = {}
        self.drawn = 0
        self.replans: list[Replan] = []
        self.metrics: list[Evaluation] = []

    def read_costs(self, plan: RunPlan) -> program_costs.LoggedCosts:
        return program_costs.LoggedCosts({}, {}, {})

    def write(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            if isinstance(statement, Noted):
                statement.note()
        super().write(statements)

    def log_replan(self, row: Replan) -> Statement:
        return Noted("replan", note=partial(self.replans.append, row))

    def read_next_key(self) -> int:
        return DRAWN + self.drawn

    def make_state_tables(
        self, request: FitRequest, mst_keys: Iterable[int], usable: Container[str] = ()
    ) -> None:
        self.drawn += len(list(mst_keys))

    def build_config_statements(
        self, request: FitRequest, configs: Sequence[Config], origin: Origin
    ) -> list[Statement]:
        return []

    def log_config_completed(self, mst_key: int) -> Statement:
        return Noted("completed", note=partial(self.note_completed, mst_key))

    def note_completed(self, mst_key: int) -> None:
        self.completed.add(mst_key)
        self.status[mst_key] = "completed"

    def log_decisions(self, rule: str, rows: Sequence[DecisionRow]) -> list[Statement]:
        if rule == MAX_CPU:
            return [self.log_config_stopped(row.mst_key, MAX_CPU) for row in rows]
        assert rule == "rule"
        return [Noted("decide", note=partial(self.note_decisions, rows))] if rows else []

    def note_decisions(self, rows: Sequence[DecisionRow]) -> None:
        assert self.decisions is not None
        self.decisions += rows
        self.configs_decided(rows)

    def configs_decided(self, rows: Sequence[DecisionRow]) -> None:
        """What the statement of that name does: of several decisions about a configuration the last
        one holds.
        """
        for key, row in {row.mst_key: row for row in rows}.items():
            status = self.status.get(key, "running")
            if row.action in DECIDED and status in ("running", "paused"):
                self.status[key] = DECIDED[row.action]
            elif status in REVIVED.get(row.action, ()):
                self.status[key] = "running"

    def log_metrics(self, evaluations: Sequence[Evaluation], names: Sequence[str]) -> Statement:
        return Noted("metrics", note=partial(self.metrics.extend, evaluations))

    def log_search_end(self) -> Statement:
        return Noted("search over", note=self.note_search_end)

    def note_search_end(self) -> None:
        self.status |= {key: "stopped" for key, status in self.status.items() if status == "paused"}

    def log_config_stopped(self, mst_key: int, reason: str) -> Statement:
        return Noted("stopped", note=partial(self.note_stopped, mst_key, reason))

    def note_stopped(self, mst_key: int, reason: str) -> None:
        assert mst_key not in self.stopped
        self.stopped[mst_key] = reason
        self.status[mst_key] = "stopped"


@dataclass(frozen=True)
class Trial:
    """A request worked through on an unreliable platform."""

    request: FitRequest
    platform: Unreliable
    orchestrator: EpochLoop
    told: list[Told]
    log: Log
    heard: Heard

    @property
    def alive(self) -> set[int]:
        """The configs that were not given up."""
        return {config.mst_key for config in self.request.configs} - self.orchestrator.failed.keys()


def tried(
    request: FitRequest, workers: int, faults: Iterator[Fault], looks: Sequence[int]
) -> Trial:
    """Work through a request; that no config is left must be the reason where the run fails."""
    return continued(request, workers, Unreliable(faults), looks, {})


def continued(
    request: FitRequest,
    workers: int,
    platform: Unreliable,
    looks: Sequence[int],
    past: Mapping[int, ConfigHistory],
    reopened: Iterator[bool] | None = None,
    places: RunSlots | None = None,
    kill: tuple[int, str] | None = None,
) -> Trial:
    """Work through what is left of a request; `reopened` says which lost workers get a new
    session, `kill` at which stage of which step the run is killed.
    """
    platform.clock.now = 0.0
    platform.evaluations = frozenset(request.spec.evaluate_epochs)
    platform.segments = len(request.source.segments)
    backend = next(iter(request.backends.values()))
    crew = [Worker(number, Session(looks, platform.clock), backend) for number in range(workers)]
    if platform.is_bound:
        for worker, segment in zip(crew, request.source.segments, strict=True):
            worker.segment_id = segment
    for worker in crew:
        worker.memory.cache_bytes = ROOM
    told: list[Told] = []
    failed: dict[int, str] = {}
    notes: list[str] = []
    lost: list[Worker] = []

    def announce(
        epoch: int, _: float, found: Sequence[Evaluation], losses: Mapping[int, float]
    ) -> None:
        told.append(
            Told(epoch, dict(losses), frozenset(e.mst_key for e in found if e.epoch == epoch))
        )

    def reopen(worker: Worker) -> bool:
        if reopened is not None and not next(reopened):
            lost.append(worker)
            platform.ahead = math.inf  # what was to be shared is shared by fewer
            return False
        worker.session = Session(looks, platform.clock)
        return True

    heard = Heard(platform)
    around = RunContext(
        lambda: None,
        announce,
        failed.__setitem__,
        notes.append,
        reopen,
        side_work=heard,
        read_usage=platform.spent,
        slots=places,
    )
    log = Log(looks, platform.decided)
    log.metrics = platform.metrics
    most = replace(request, workers=4 if places else workers)
    orchestrator = WatchedLoop(platform, most, crew, log, around, past)
    if kill:
        orchestrator.kill_step, orchestrator.kill_stage = kill
    trial = Trial(request, platform, orchestrator, told, log, heard)
    try:
        orchestrator.run()
    except ConfigFailure as error:
        limited = request.deadline or request.cost_limits
        assert not trial.alive or (limited and error.hint and not orchestrator.model_states)
    except CerebroError as error:
        raise Ended(str(error), orchestrator.evaluations) from error
    assert failed == orchestrator.failed
    told_of = platform.measured + len(lost) + len(log.replans)
    assert len(notes) <= told_of, "all configs have one program, told of once"
    return trial


REQUESTS = st.builds(
    requested,
    configs=st.integers(1, 4),
    segments=st.integers(1, 4),
    epochs=st.integers(1, 3),
    evaluated=st.sets(st.integers(1, 3)),
    schedule=st.sampled_from(["longest", "rotation", "foremost", RESIDENT, BESIDE]),
    commit_seconds=st.sampled_from([0, 2, 9]),
    trees=st.one_of(st.just(()), st.sets(st.integers(0, 3))),
)
SOME = WORKERS = st.integers(1, 4)
LOOKS = st.lists(st.integers(1, 5), min_size=1, max_size=10)
MANY = st.lists(st.sampled_from((None, ConfigFailure, *RETRYABLE_ERRORS)), max_size=30)
PAUSES = st.lists(st.integers(0, 12), max_size=4)
FEW = st.dictionaries(
    st.integers(0, 60), st.sampled_from(RETRYABLE_ERRORS), max_size=MAX_ATTEMPTS - 1
)


@given(REQUESTS, st.none() | WORKERS, MANY, LOOKS, st.booleans())
@trials(100)
def test_every_config_is_trained_whole_or_given_up_whatever_fails(
    request: FitRequest,
    free_workers: int | None,
    faults: list[Fault],
    looks: list[int],
    streams: bool,
) -> None:
    """Each segment has a worker of its own if `free_workers` is None."""
    is_bound = free_workers is None
    platform = Unreliable(chain(faults, repeat(None)), streams=streams, is_bound=is_bound)
    workers = free_workers or len(request.source.segments)
    trial = continued(request, workers, platform, looks, {})
    trained, alive = trial.platform.trained, trial.alive
    epochs = range(1, request.spec.epochs + 1)
    assert len(trained) == len(set(trained)), "nothing twice"
    assert {v for v in trained if v[0] in alive} == set(
        product(alive, epochs, request.source.segments)
    )
    found = [e for e in trial.orchestrator.evaluations if e.mst_key in alive]
    assert sorted((e.mst_key, e.epoch) for e in found) == sorted(
        product(alive, request.spec.evaluate_epochs)
    )
    count = len(request.source.segments)
    assert all((e.loss, e.metrics) == (sum(range(count)), (2.0 * count,)) for e in found), (
        "sums over all segments"
    )
    assert trial.orchestrator.model_states.keys() == alive


SIDE_BY_SIDE = {"f": TIMING, "fused_8": {"seconds_per_row": 0.1, "compile_seconds": 1.0}}
BESIDE_ONE_ANOTHER = st.builds(
    requested,
    configs=st.integers(5, 9),
    segments=SOME,
    epochs=st.integers(1, 3),
    evaluated=st.sets(SOME),
    schedule=st.sampled_from([RESIDENT, BESIDE]),
    commit_seconds=st.sampled_from([0, 9]),
)


ALL_OF_A_JOB_FAIL = requested(5, 1, 1, set(), RESIDENT), 2, [None, *[ConfigFailure] * 4], [1], False


@given(BESIDE_ONE_ANOTHER, st.integers(1, 2), MANY, LOOKS, st.booleans())
@example(*ALL_OF_A_JOB_FAIL)
@trials(100)
def test_configs_that_are_trained_together_are_each_trained_whole_or_given_up(
    request: FitRequest, workers: int, faults: list[Fault], looks: list[int], streams: bool
) -> None:
    """Whatever fails of several is tried again alone, and a fault of many is charged to none of
    them.
    """
    platform = Unreliable(chain(faults, repeat(None)), streams=streams, timings=SIDE_BY_SIDE)
    request = replace(request, backends=dict.fromkeys(request.backends, "jax"))
    trial = continued(request, workers, platform, looks, {})
    trained, alive = platform.trained, trial.alive
    assert len(trained) == len(set(trained)), "nothing twice"
    places = product(alive, range(1, request.spec.epochs + 1), request.source.segments)
    assert {v for v in trained if v[0] in alive} == set(places)
    assert trial.orchestrator.model_states.keys() == alive
    assert platform.fusions or faults or streams or workers > 1


@pytest.mark.parametrize("order", ["rotation", "longest"])
def test_where_configs_hop_none_are_trained_together(order: str) -> None:
    """Whether one was would depend on who stands beside it, and so would its weights."""
    platform = Unreliable(repeat(None), timings=SIDE_BY_SIDE)
    request = requested(configs=8, segments=2, epochs=3, evaluated=set(), schedule=order)
    continued(replace(request, backends=dict.fromkeys(range(8), "jax")), 2, platform, [1], {})
    assert len(platform.trained) == 8 * 2 * 3 and not platform.fusions


@given(REQUESTS, WORKERS, MANY, LOOKS)
@trials(100)
def test_epochs_are_announced_in_order_with_their_own_numbers(
    request: FitRequest, workers: int, faults: list[Fault], looks: list[int]
) -> None:
    trial = tried(request, workers, chain(faults, repeat(None)), looks)
    epochs = [tell.epoch for tell in trial.told]
    assert epochs == list(range(1, request.spec.epochs + 1))[: len(epochs)]
    assert len(epochs) == request.spec.epochs or not trial.alive
    for tell in trial.told:
        assert trial.alive <= tell.losses.keys() and set(tell.losses.values()) == {
            float(tell.epoch)
        }
        assert tell.epoch not in request.spec.evaluate_epochs or trial.alive <= tell.evaluated


@given(REQUESTS, WORKERS, MANY, LOOKS)
@trials(100)
def test_who_is_trained_is_heard_of_before_the_end_and_trained_no_further(
    request: FitRequest, workers: int, faults: list[Fault], looks: list[int]
) -> None:
    """Once, and again when it is finished; one that fails when it is evaluated was heard of as
    trained at most.
    """
    trial = tried(request, workers, chain(faults, repeat(None)), looks)
    assert trial.heard.finished_keys == trial.alive
    for key, visits in trial.heard.trained_by.items():
        assert (
            visits
            == trial.platform.visits[key]
            == request.spec.epochs * len(request.source.segments)
        )


@given(
    st.builds(requested, SOME, SOME, st.integers(2, 4), st.sets(SOME), st.just(BESIDE)),
    WORKERS,
    MANY,
    LOOKS,
    st.sampled_from([MOP, TASK]),
    st.lists(st.booleans(), min_size=1, max_size=4),
)
@trials(100)
def test_a_run_may_change_its_strategy_at_the_end_of_each_epoch(
    request: FitRequest,
    workers: int,
    faults: list[Fault],
    looks: list[int],
    begun: str,
    changes: list[bool],
) -> None:
    """Whatever fails, every config is trained whole or given up, and from each state once."""
    answers, asked = cycle(changes), list[str]()

    def change(
        work: Work, programs: object, compiled: object, now: Strategy, pace: float
    ) -> StrategyChange | None:
        assert (
            work.rows.keys() <= {config.mst_key for config in request.configs} and work.epochs >= 1
        )
        asked.append(now.name)
        other = replace(now, seconds=1.0, name=MOP if now.name == TASK else TASK)
        return StrategyChange(replace(now, seconds=2.0), other) if next(answers) else None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replanning, "propose_change", change)
        patch.setattr(replanning, "is_surprising", lambda plan, programs: True)
        request = replace(request, plan=planned(request, begun, workers))
        trial = tried(request, workers, chain(faults, repeat(None)), looks)
    trained, alive = trial.platform.trained, trial.alive
    assert len(trained) == len(set(trained)), "nothing twice"
    epochs = range(1, request.spec.epochs + 1)
    assert {v for v in trained if v[0] in alive} == set(
        product(alive, epochs, request.source.segments)
    )
    rows = trial.log.replans
    assert [row.decision_no for row in rows] == [*range(1, len(rows) + 1)]
    assert [row.epoch for row in rows] == sorted({row.epoch for row in rows}) and len(
        asked
    ) < request.spec.epochs
    names = [begun, *(row.strategy for row in rows)]
    assert all(one != other for one, other in pairwise(names)), "each is another one"
    assert len(rows) == sum(answer for _, answer in zip(asked, cycle(changes), strict=False))


def planned(request: FitRequest, strategy: str, workers: int) -> RunPlan:
    """A plan of a request, which knows of no time."""
    keys = tuple(config.mst_key for config in request.configs)
    work = Work(
        request.spec.epochs, (), request.source.segments, dict.fromkeys(keys, 1), 0.0, "longest"
    )
    return RunPlan(
        work,
        (Program("p", keys, "jax", 1, UNKNOWN),),
        Strategy(strategy, workers, 1),
        (),
        Data(1, 1, 1, 1),
    )


def test_who_is_trained_long_before_the_end_is_heard_of_in_the_last_minute() -> None:
    """Each visit takes a second, and each configuration 64 of them."""
    trial = tried(requested(4, 4, 16, set(), "foremost"), 1, repeat(None), [1])
    assert trial.heard.before is not None and trial.heard.trained_by.keys() == set(range(4))
    assert 0 <= trial.heard.before - (4 * 4 * 16 - 60) <= 4


@given(REQUESTS, WORKERS, FEW, LOOKS)
@trials(100)
def test_what_may_succeed_when_tried_again_costs_no_config(
    request: FitRequest, workers: int, faults: dict[int, Fault], looks: list[int]
) -> None:
    trial = tried(request, workers, (faults.get(n) for n in naturals()), looks)
    assert trial.orchestrator.failed == {}


class Sharing(RunSlots):
    """Places of which a run hears with each look, and of which others may have taken some by then;
    it has the staff.
    """

    is_limited, is_static, next_check = True, False, math.inf

    def __init__(
        self, platform: Unreliable, looks: Sequence[int], heard: Sequence[int], taken: Sequence[int]
    ) -> None:
        opener: Any = self
        self.opener = opener
        self.count = heard[0] or 1
        self._platform, self._looks, self._first = platform, looks, True
        self._heard, self._others = cycle([*heard, 1]), cycle([*taken, 0])
        self.present = set(range(self.count))
        self.waits = 0

    def read_share(self) -> int | None:
        self._first, first = False, self._first
        self._platform.ahead = math.inf  # what was to be shared is shared by others
        assert len(self.present) <= self.count, "nobody is there without a place"
        return self.count if first else next(self._heard)

    def refresh(self) -> None:
        """They all have workers."""

    def take(self, wanted: int) -> int:
        assert len(self.present) <= max(wanted, self.count), (
            "none is given back before who has it has gone"
        )
        self.count = (
            wanted if wanted <= self.count else max(self.count, wanted - next(self._others))
        )
        return self.count

    def wait(self) -> float:
        assert not self.present and not self.count
        self.count, self.waits = max(1, next(self._heard)), self.waits + 1
        return 0.0

    def add_worker(self, number: int, framework: str) -> Worker:
        self._add(number)
        worker = Worker(number, Session(self._looks, self._platform.clock))
        worker.memory.cache_bytes = ROOM
        return worker

    def reopen(self, worker: Worker) -> bool:
        self._add(worker.number)
        worker.session = Session(self._looks, self._platform.clock)
        return True

    def _add(self, number: int) -> None:
        assert number not in self.present
        self.present.add(number)

    def close_workers(self, workers: Sequence[Worker]) -> None:
        for worker in workers:
            assert worker.number not in {
                *self._platform.places["workers"],
                *self._platform.unstored,
            }, "it works"
            self.present.discard(worker.number)


SHARES = st.lists(st.integers(0, 4), min_size=1, max_size=12)


@given(REQUESTS, SHARES, SHARES, MANY, LOOKS, st.booleans())
@trials(120)
def test_every_config_is_trained_whole_however_many_workers_there_are_meanwhile(
    request: FitRequest,
    heard: list[int],
    taken: list[int],
    faults: list[Fault],
    looks: list[int],
    streams: bool,
) -> None:
    platform = Unreliable(
        chain((None if fault is ConnectionFailure else fault for fault in faults), repeat(None))
    )
    platform.streams = streams
    places = Sharing(platform, looks, heard, taken)
    trial = continued(request, places.count, platform, looks, {}, places=places)
    trained, alive = trial.platform.trained, trial.alive
    assert len(trained) == len(set(trained)), "nothing twice"
    epochs = range(1, request.spec.epochs + 1)
    assert {v for v in trained if v[0] in alive} == set(
        product(alive, epochs, request.source.segments)
    )


@pytest.mark.parametrize("slow", [0, 1])
@pytest.mark.parametrize("evaluated", [set(), {1, 2}])
def test_who_comes_after_the_foremost_is_not_begun_while_a_slow_worker_is_waited_for(
    slow: int, evaluated: set[int]
) -> None:
    platform = Unreliable(repeat(None))
    request = replace(requested(8, 2, 2, evaluated, "foremost"), workers=2)
    around = RunContext(
        lambda: None, lambda *_: None, lambda *_: None, lambda _: None, lambda _: True
    )
    crew = [
        Worker(number, Session([40 if number == slow else 1], platform.clock)) for number in (0, 1)
    ]
    WatchedLoop(platform, request, crew, Log([1]), around, {}).run()
    done = dict.fromkeys(range(8), 0)
    for key, *_ in platform.trained:
        done[key] += 1
        assert sum(done[before] < 4 for before in range(key)) <= 2
    assert set(done.values()) == {4}


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.booleans(), LOOKS)
def test_no_more_workers_are_at_work_than_the_request_has(
    workers: int, configs: int, segments: int, streams: bool, looks: list[int]
) -> None:
    """Though there may be more of them, each with a segment of its own."""

    @dataclass
    class Counting(Unreliable):
        most: int = 0

        def _work(self, tasks: Sequence[tuple[object, ...]], attempt: int) -> Iterator[Statement]:
            self.look()
            return super()._work(tasks, attempt)

        def _take_up(
            self, worker: Worker, tour: Sequence[BatchVisit], made: Sequence[BatchVisit]
        ) -> Iterator[Statement]:
            self.look()
            return super()._take_up(worker, tour, made)

        def look(self) -> None:
            self.most = max(self.most, len(self.places["workers"] | self.unstored.keys()))

    platform = Counting(repeat(None), streams=streams)
    request = replace(requested(configs, segments, 2, {2}, "longest"), workers=workers)
    around = RunContext(
        lambda: None, lambda *_: None, lambda *_: None, lambda _: None, lambda _: True
    )
    crew = [Worker(number, Session(looks, platform.clock)) for number in range(segments)]
    WatchedLoop(platform, request, crew, Log([1]), around, {}).run()
    assert 0 < platform.most <= workers


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), WORKERS, FEW, LOOKS)
@trials(100)
def test_a_config_whose_rows_all_workers_have_room_for_stays_with_one(
    configs: int,
    segments: int,
    epochs: int,
    workers: int,
    faults: dict[int, Fault],
    looks: list[int],
) -> None:
    request = requested(configs, segments, epochs, {1, 3}, RESIDENT)
    trial = tried(request, workers, (faults.get(n) for n in naturals()), looks)
    assert all(len(hosts) == 1 for hosts in trial.platform.hosts.values())


@pytest.mark.parametrize(
    ("schedule", "commit_seconds", "visits"),
    [
        (RESIDENT, 9, 9),
        (RESIDENT, 3, 3),
        (RESIDENT, 0, 1),
        (BESIDE, 6, 6),
        ("rotation", 9, 2),
        ("longest", 2, 2),
    ],
)
def test_visits_of_one_worker_wait_together_for_their_commit(
    schedule: str, commit_seconds: int, visits: int
) -> None:
    """From the second on, whose time is known, over epochs, too; no tour goes beyond its worker."""
    trial = tried(
        requested(1, 4, 3, {3}, schedule, commit_seconds=commit_seconds), 2, repeat(None), [1]
    )
    assert trial.platform.longest == visits
    assert len(trial.platform.trained) == 12


@pytest.mark.parametrize(("evaluated", "visits"), [({2, 4}, 8), ({1, 2, 3, 4}, 12), ({4}, 14)])
def test_visits_wait_for_their_commit_with_the_evaluations_between(
    evaluated: set[int], visits: int
) -> None:
    """The first two are made alone: what a hop takes is known when the first is stored, beside the
    second. And but one evaluation is among the next ones: how long it takes is not known."""
    trial = tried(requested(1, 4, 4, evaluated, RESIDENT, commit_seconds=99), 1, repeat(None), [1])
    assert trial.platform.longest == visits
    assert len(trial.platform.trained) == 16


@pytest.mark.parametrize(("patience", "visits"), [(1, 4), (2, 8), (3, 12), (9, 13)])
def test_visits_wait_for_no_commit_beyond_an_evaluation_that_may_be_the_end(
    patience: int, visits: int
) -> None:
    """All epochs are alike, so that the first one is the best, and each other one brings the end
    nearer.
    """
    fit = f"batch_size=1, callbacks=[EarlyStopping(monitor='loss', patience={patience})]"
    request = requested(1, 4, 9, set(range(1, 10)), RESIDENT, fit=fit, commit_seconds=13)
    trial = tried(request, 1, repeat(None), [1])
    assert trial.platform.longest == visits
    assert len(trial.platform.trained) == 4 * min(9, patience + 1)


@pytest.mark.parametrize(
    ("configs", "evaluated", "seconds", "beside"),
    [
        (3, set(), None, True),
        (1, set(), None, True),
        (3, {1, 2}, None, False),
        (3, set(), 99.0, False),
    ],
)
def test_a_state_is_stored_beside_the_next_visit(
    configs: int, evaluated: set[int], seconds: float | None, beside: bool
) -> None:
    """But where the state is evaluated next, or where what is under way may be cancelled."""
    request = requested(configs, 1, 2, evaluated, "longest")
    deadline = None if seconds is None else Deadline(seconds, seconds, seconds)
    trial = tried(replace(request, deadline=deadline), 1, repeat(None), [1])
    assert (trial.platform.stored_beside > 0) == beside
    assert (trial.platform.gone_on > 0) == (beside and configs == 1)


def test_a_config_whose_rows_one_worker_has_no_room_for_hops() -> None:
    trial = tried(requested(2, 2, 1, set(), "foremost"), 2, repeat(None), [1])
    assert trial.platform.hosts == {0: {0, 1}, 1: {0, 1}}


def test_a_fault_of_nobody_s_ends_the_run() -> None:
    request = requested(2, 2, 1, set(), "longest")
    with pytest.raises(Ended, match="CerebroError in"):
        tried(request, 1, iter([None, CerebroError]), [1])


@given(
    REQUESTS,
    st.none() | WORKERS,
    PAUSES,
    st.sets(st.sampled_from(RETRYABLE_ERRORS), max_size=2),
    LOOKS,
)
@trials(100)
def test_a_run_that_is_interrupted_anywhere_goes_on_where_it_was(
    request: FitRequest,
    free_workers: int | None,
    pauses: list[int],
    passing: set[Fault],
    looks: list[int],
) -> None:
    """Nothing that was completed is done again; what was under way is, and is not held against its
    config. Each segment has a worker of its own if `free_workers` is None.
    """
    workers = free_workers or len(request.source.segments)
    interruptions: list[Fault] = list(
        chain.from_iterable([None] * pause + [CerebroError] for pause in pauses)
    )
    is_bound = free_workers is None
    platform = Unreliable(chain(interruptions, passing, repeat(None)), is_bound=is_bound)
    past: dict[int, ConfigHistory] = {}
    found: list[Evaluation] = []
    while True:
        try:
            trial = continued(request, workers, platform, looks, past)
        except Ended as ended:
            found = ended.evaluations
            past = platform.interrupt(found)
        else:
            break
    configs = [config.mst_key for config in request.configs]
    epochs = range(1, request.spec.epochs + 1)
    assert sorted(platform.trained) == sorted(product(configs, epochs, request.source.segments))
    evaluations = [(e.mst_key, e.epoch) for e in trial.orchestrator.evaluations]
    assert sorted(evaluations) == sorted(product(configs, request.spec.evaluate_epochs))
    assert [tell.epoch for tell in trial.told] == sorted(tell.epoch for tell in trial.told)
    assert (
        trial.orchestrator.model_states.keys() == set(configs) and trial.orchestrator.failed == {}
    )
    assert trial.log.completed == set(configs), (
        "also what nobody was left to say of the last visits before"
    )


KILLS = st.lists(st.tuples(st.integers(0, 60), st.sampled_from(STAGES)), max_size=5)


@given(
    searched=st.booleans(),
    schedule=st.sampled_from(["longest", "rotation", "foremost", RESIDENT, BESIDE]),
    configs=st.integers(1, 4),
    segments=st.integers(1, 3),
    workers=WORKERS,
    evaluates=st.booleans(),
    kills=KILLS,
    looks=LOOKS,
    commit_seconds=st.sampled_from([0, 2, 9]),
)
@trials(150)
def test_a_run_that_is_killed_between_two_stages_of_a_step_goes_on_from_its_log(
    searched: bool,
    schedule: str,
    configs: int,
    segments: int,
    workers: int,
    evaluates: bool,
    kills: list[tuple[int, str]],
    looks: list[int],
    commit_seconds: int,
) -> None:
    """Nothing is trained, measured or decided twice, and nothing is left out: what a step has
    logged holds, and all else of it is done again.
    """
    epochs = 4
    evaluated = set(range(1, epochs + 1)) if evaluates or searched else set[int]()
    request = requested(
        configs, segments, epochs, evaluated, schedule, commit_seconds=commit_seconds
    )
    if searched:
        search = SearchRequest("rule", Asha(epochs, 2), tuple(range(configs)))
        request = replace(request, search=search)
    platform = Unreliable(repeat(None))
    past: dict[int, ConfigHistory] = {}
    for kill in [*kills, None]:
        known = replace(request, logged_decisions=known_decisions(platform.decided))
        try:
            trial = continued(known, workers, platform, looks, past, kill=kill)
        except Ended:
            past = platform.interrupt(platform.metrics)
        else:
            break
    numbers = [row.decision_no for row in platform.decided]
    assert numbers == list(range(1, len(numbers) + 1))
    limits = {row.mst_key: row.last_epoch for row in platform.decided}
    wanted = [
        (key, epoch, segment)
        for key in range(configs)
        for epoch in range(1, limits.get(key, epochs) + 1)
        for segment in range(segments)
    ]
    assert sorted(platform.trained) == wanted
    measured = [(each.mst_key, each.epoch) for each in trial.orchestrator.evaluations]
    assert sorted(measured) == sorted({(key, epoch) for key, epoch, _ in wanted if evaluated})
    assert trial.log.completed == {
        key for key in range(configs) if limits.get(key, epochs) == epochs
    }


def rule_of(kind: str, configs: int, epochs: int) -> Rule:
    """A search rule over configs."""
    if kind == "median":
        return Median(range(1, epochs + 1), 1, 2)
    if kind == "pasha":
        return Pasha(epochs, 2)
    return Asha(epochs, 2) if kind == "asha" else make_halving(range(configs), epochs, 2, 1)


def by_epoch(losses: Sequence[Sequence[int]]) -> dict[tuple[int, int], float]:
    """The losses of configs, a row each, by config and epoch."""
    return {
        (key, epoch): float(loss)
        for key, row in enumerate(losses)
        for epoch, loss in enumerate(row, 1)
    }


def known_decisions(
    rows: Sequence[DecisionRow], acts: Mapping[int, str] = {}
) -> tuple[search_state.DecisionBatch, ...]:
    """What a log tells of decisions, result by result; the acts, by number, are those that somebody
    asked for.
    """
    return search_state.group_by_result(
        (
            row.cause,
            acts.get(row.decision_no),
            Decision(row.mst_key, row.action, row.last_epoch, row.reason),
        )
        for row in rows
    )


@given(
    kind=st.sampled_from(["asha", "pasha", "halving", "median"]),
    schedule=st.sampled_from(["longest", "rotation", "foremost", RESIDENT, BESIDE]),
    segments=st.integers(1, 3),
    workers=WORKERS,
    losses=st.lists(st.lists(st.integers(0, 9), min_size=5, max_size=5), min_size=1, max_size=7),
    faults=MANY,
    pauses=PAUSES,
    looks=LOOKS,
)
@trials(120)
def test_a_search_trains_each_config_as_far_as_it_decides(
    kind: str,
    schedule: str,
    segments: int,
    workers: int,
    losses: list[list[int]],
    faults: list[Fault],
    pauses: list[int],
    looks: list[int],
) -> None:
    """Wherever it is interrupted and whatever fails: nothing is decided twice, and nobody goes
    further or less far.
    """
    request = requested(len(losses), segments, 5, set(range(1, 6)), schedule)
    search = SearchRequest("rule", rule_of(kind, len(losses), 5), tuple(range(len(losses))))
    interruptions: list[Fault] = list(
        chain.from_iterable([None] * pause + [CerebroError] for pause in pauses)
    )
    of_segments = by_epoch(losses)
    platform = Unreliable(chain(interruptions, faults, repeat(None)), losses=of_segments)
    past: dict[int, ConfigHistory] = {}
    while True:
        known = replace(request, search=search, logged_decisions=known_decisions(platform.decided))
        try:
            trial = continued(known, workers, platform, looks, past)
        except Ended as ended:
            past = platform.interrupt(ended.evaluations)
        else:
            break
    limits = {row.mst_key: row.last_epoch for row in platform.decided}
    assert [row.decision_no for row in platform.decided] == list(
        range(1, len(platform.decided) + 1)
    )
    wanted = {
        (k, e, s) for k in trial.alive for e in range(1, limits[k] + 1) for s in range(segments)
    }
    assert {visit for visit in platform.trained if visit[0] in trial.alive} == wanted
    assert len(platform.trained) == len(set(platform.trained)), "nothing twice"
    causes = [
        (row.mst_key, row.epoch)
        for row in platform.decided
        if row.cause == row.mst_key and row.action != "stop"
    ]
    assert len(causes) == len(set(causes)), "no result is decided about twice"
    assert trial.orchestrator.model_states.keys() == trial.alive
    assert (
        not trial.alive
        or kind == "halving"
        or max(limits[key] for key in trial.alive) >= (2 if kind == "pasha" else 5)
        or trial.orchestrator.failed
    )


@given(
    kind=st.sampled_from(["asha", "grid"]),
    schedule=st.sampled_from(["longest", "rotation", "foremost", RESIDENT, BESIDE]),
    configs=st.integers(1, 3),
    epochs=st.integers(1, 3),
    draws=st.integers(1, 5),
    segments=st.integers(1, 3),
    workers=WORKERS,
    losses=st.lists(st.integers(0, 9), min_size=8, max_size=8),
    faults=FEW,
    looks=LOOKS,
)
@example(
    "grid", "rotation", 1, 1, 5, 2, 2, [0] * 8, {}, [1]
)  # the rule hears of several at once, when all are done
@trials(100)
def test_a_search_trains_all_that_it_draws(
    kind: str,
    schedule: str,
    configs: int,
    epochs: int,
    draws: int,
    segments: int,
    workers: int,
    losses: list[int],
    faults: dict[int, Fault],
    looks: list[int],
) -> None:
    """Also where all others are done when there is room for one; and none before."""
    request = requested(configs, segments, epochs, {1, epochs}, schedule)

    def sample(self: ConfigSource, count: int, trials: object, group: object) -> AddedConfigs:
        first = self._log.read_next_key()
        known = [replace(request.configs[0], mst_key=first + n) for n in range(count)]
        return self._prepare(BuiltConfigs(tuple(known), {}), Origin("search"), None)

    space = ParameterSpace(Space(({},), {}, Choices((1,))))
    rule: Rule = Asha(epochs) if kind == "asha" else Stepwise((epochs,))
    search = SearchRequest(
        "rule", rule, tuple(range(configs)), SamplingPlan(space, "tpe", draws, {})
    )
    keys = [*range(configs), *range(DRAWN, DRAWN + draws)]
    of_segments = {
        (key, epoch): float(losses[n]) for n, key in enumerate(keys) for epoch in (1, 2, 3)
    }
    platform = Unreliable((faults.get(n) for n in naturals()), losses=of_segments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConfigSource, "sample", sample)
        trial = continued(replace(request, search=search), workers, platform, looks, {})
    assert trial.log.drawn == draws and trial.orchestrator.failed == {}
    limits = {row.mst_key: row.last_epoch for row in platform.decided}
    assert sorted(limits) == keys and max(limits.values()) == epochs
    wanted = {(k, e, s) for k in keys for e in range(1, limits[k] + 1) for s in range(segments)}
    assert set(platform.trained) == wanted


def could_begin(run: EpochLoop) -> list[tuple[int, int | None]]:
    """Workers that have nothing to do, each with a config that it could train or evaluate now, or
    with None where the rule would let one begin or go on if it were asked.

    A config is not free while its state is stored, or kept.
    """
    course, own = run._run.search, run._run.state.plan.workers
    idle = {
        worker
        for worker in run._run.pool.idle
        if run._run.state.residence or worker in own.values()
    }
    held = {*run._run.state.saving_best, *(task.mst_key for task in run._run.pool.unstored)}
    free = [each for each in run._run.state.progress.values() if each.mst_key not in held]
    found: list[tuple[int, int | None]] = []
    for worker in idle:
        served = {
            segment
            for segment in run._run.state.plan.segments
            if run._run.state.residence or own[segment] == worker
        }
        found += [(worker, each.mst_key) for each in free if each.startable_segments & served]
    if course and idle and not course.rule.is_finished(course.trials):
        found += [
            (worker, None)
            for worker in idle
            if course.rule.decide(course.trials, Capacity(1), None)
        ]
    return found


@given(
    kind=st.sampled_from(["asha", "pasha", "median"]),
    schedule=st.sampled_from(["longest", BESIDE]),
    segments=st.integers(1, 3),
    workers=WORKERS,
    losses=st.lists(st.lists(st.integers(0, 9), min_size=5, max_size=5), min_size=1, max_size=7),
    faults=MANY,
    looks=LOOKS,
)
@trials(100)
def test_nobody_is_idle_while_a_config_of_a_search_could_run(
    kind: str,
    schedule: str,
    segments: int,
    workers: int,
    losses: list[list[int]],
    faults: list[Fault],
    looks: list[int],
) -> None:
    """Whenever visits were given out: neither the schedule nor the rule has anything for a worker
    that has none.
    """
    request = requested(len(losses), segments, 5, set(range(1, 6)), schedule)
    search = SearchRequest("rule", rule_of(kind, len(losses), 5), tuple(range(len(losses))))
    of_segments = by_epoch(losses)
    platform = Unreliable(chain(faults, repeat(None)), losses=of_segments)
    start, looked = EpochLoop._start_tasks, list[int]()

    def started(run: EpochLoop) -> None:
        start(run)
        looked.append(len(run._run.pool.idle))
        assert could_begin(run) == []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EpochLoop, "_start_tasks", started)
        continued(replace(request, search=search), workers, platform, looks, {})
    assert looked and max(looked) <= workers


class Steered(Log):
    """A log in which acts come up as time goes by, each with its moment."""

    def __init__(
        self, clock: Clock, decisions: list[DecisionRow], asked: Sequence[tuple[int, Command]]
    ) -> None:
        super().__init__([1], decisions)
        self._clock, self._asked = clock, asked
        self.answered: list[int] = []
        self.refused: list[str] = []
        self.by_act: dict[int, str] = {}  # by the number of the decision
        self._turn = 0.0

    def read_commands(self) -> list[Command]:
        return self._unanswered(self._clock.now)

    def is_owned(self) -> bool:
        return True

    def turn(self) -> None:
        """A turn of the loop begins, in which nobody waits for anything before visits begin."""
        self._turn = self._clock.now

    def late(self) -> list[Command]:
        """Acts that were there when the turn began."""
        return self._unanswered(self._turn)

    def _unanswered(self, moment: float) -> list[Command]:
        return [
            act for at, act in self._asked if at <= moment and act.command_id not in self.answered
        ]

    def log_command_done(
        self, command: Command, visits: int | None, rows: Sequence[DecisionRow] = ()
    ) -> list[Statement]:
        return [Noted("done", note=partial(self.note_done, command, rows))]

    def note_done(self, command: Command, rows: Sequence[DecisionRow]) -> None:
        self.answered.append(command.command_id)
        self.by_act.update({row.decision_no: command.action for row in rows})
        self.note_decisions(rows)

    def log_command_refused(self, command: Command, reason: str) -> Statement:
        return Noted("refused", note=partial(self.note_refused, command, reason))

    def note_refused(self, command: Command, reason: str) -> None:
        self.answered.append(command.command_id)
        self.refused.append(reason)


ASKED = st.tuples(
    st.integers(1, 60),
    st.sampled_from(
        ["stop_config", "continue_config", "prioritize", "set_epochs", "pause_run", "continue_run"]
    ),
    st.integers(0, 3),
    st.integers(1, 4),
)
LATEST = 100
ACTS_AFTER_THE_SEARCH = [
    (22, "pause_run", 1, 1),
    (43, "stop_config", 2, 2),
    (1, "stop_config", 0, 2),
    (35, "continue_run", 2, 2),
    (5, "stop_config", 1, 2),
    (47, "set_epochs", 3, 4),
    (1, "set_epochs", 0, 4),
]


@given(
    searched=st.booleans(),
    schedule=st.sampled_from(["longest", "rotation", "foremost", RESIDENT, BESIDE]),
    segments=st.integers(1, 3),
    workers=WORKERS,
    asked=st.lists(ASKED, max_size=8),
    faults=FEW,
    looks=LOOKS,
    commit_seconds=st.sampled_from([0, 9]),
)
# A rule went beyond the epochs that were set.
@example(True, "longest", 2, 1, [(1, "set_epochs", 0, 1)], {}, [1, 1, 2, 5, 5], 9)
# Who went on from the midst of an epoch, after the search was over, never came to an end.
@example(
    False,
    "rotation",
    3,
    2,
    ACTS_AFTER_THE_SEARCH,
    {59: OutOfMemory, 8: OutOfMemory},
    [1, 1, 2, 2, 4, 1, 1, 2],
    0,
)
# Who was stopped before its first visit, and then named to go first, was waited for.
@example(
    True,
    "rotation",
    1,
    1,
    [(4, "stop_config", 2, 2), (7, "prioritize", 2, 2)],
    {},
    [1, 4, 4, 4, 3, 5, 3, 5, 3, 3],
    0,
)
@trials(100)
def test_an_act_holds_from_the_next_visit_on(
    searched: bool,
    schedule: str,
    segments: int,
    workers: int,
    asked: list[tuple[int, str, int, int]],
    faults: dict[int, Fault],
    looks: list[int],
    commit_seconds: int,
) -> None:
    """No visit begins before all acts that there were at its turn are done or refused, and in the
    log, each once; and none is of an epoch beyond those that the last decision about its
    configuration lets it train. No rule lets one train for more epochs than somebody has set, and
    who reads the log knows what the search knew."""
    configs, epochs = 4, 9
    request = requested(
        configs,
        segments,
        epochs,
        set(range(1, epochs + 1)),
        schedule,
        commit_seconds=commit_seconds,
    )
    search = SearchRequest("rule", Asha(epochs, 2), tuple(range(configs))) if searched else None
    last = [(LATEST, "continue_config", key, 1) for key in range(configs)] + [
        (LATEST, "continue_run", 0, 1)
    ]
    acts = [
        (
            at,
            Command(
                number,
                "ann",
                action,
                None if action in ("pause_run", "continue_run") else key,
                {"epochs": epoch},
            ),
        )
        for number, (at, action, key, epoch) in enumerate([*asked, *last])
    ]

    class Watched(Unreliable):
        def _take_up(
            self, worker: Worker, tour: Sequence[BatchVisit], made: Sequence[BatchVisit]
        ) -> Iterator[Statement]:
            assert log.late() == []
            return super()._take_up(worker, tour, made)

        def evaluate(
            self, worker: Worker, visit: EvaluateVisit
        ) -> Steps[dict[int, dict[str, Any]]]:
            assert log.late() == []
            return super().evaluate(worker, visit)

    platform = Watched(faults.get(n) for n in naturals())
    log = Steered(platform.clock, platform.decided, acts)
    crew = [Worker(number, Session(looks, platform.clock)) for number in range(workers)]
    for worker in crew:
        worker.memory.cache_bytes = ROOM
    around = RunContext(log.turn, lambda *_: None, lambda *_: None, lambda _: None, lambda _: True)
    known = replace(request, search=search, workers=workers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.monotonic", lambda: platform.clock.now)
        patch.setattr("cerebro_plpy.run.workers.worker_pool.time.sleep", platform.clock.pass_by)
        orchestrator = WatchedLoop(platform, known, crew, log, around, {})
        orchestrator.run()
    assert len(log.answered) == len(set(log.answered)), "each once"
    assert orchestrator.failed == {} and platform.trained
    limits = {decision.mst_key: decision.last_epoch for decision in platform.decided}
    assert all(epoch <= limits.get(key, epochs) for key, epoch, _ in platform.trained)
    assert {log.status.get(key) for key in range(configs)} <= {"completed", "stopped"}, (
        "nothing goes on"
    )
    most: dict[int, int] = {}
    for decision in platform.decided:
        if log.by_act.get(decision.decision_no) == "set_epochs":
            most[decision.mst_key] = decision.last_epoch
        assert decision.last_epoch <= most.get(decision.mst_key, epochs)
    if searched and (known_course := orchestrator._run.search):
        recalled = search_state.SearchState(known_course.rule, range(configs), 1, fixed=False)
        recalled.restore(known_decisions(platform.decided, log.by_act), known_course._curves)
        assert recalled.trials == known_course.trials


@given(
    searched=st.booleans(),
    schedule=st.sampled_from(["longest", "rotation", "foremost", RESIDENT, BESIDE]),
    segments=st.integers(1, 3),
    at=st.integers(1, 60),
    parent=st.integers(0, 3),
    looks=LOOKS,
    commit_seconds=st.sampled_from([0, 9]),
    budget=st.integers(1, 120),
)
@trials(100)
def test_a_clone_that_somebody_asks_for_comes_next(
    searched: bool,
    schedule: str,
    segments: int,
    at: int,
    parent: int,
    looks: list[int],
    commit_seconds: int,
    budget: int,
) -> None:
    """Whatever a search thinks of it; if the time is over before, the caller is told."""
    configs, epochs = 4, 9
    request = requested(
        configs,
        segments,
        epochs,
        set(range(1, epochs + 1)),
        schedule,
        commit_seconds=commit_seconds,
    )
    search = SearchRequest("rule", Asha(epochs, 2), tuple(range(configs))) if searched else None
    clone = Command(1, "ann", "clone_config", parent, {})
    begun: list[int] = []
    start_visits = RunState.start_visits

    def note_start(state: RunState, batch: VisitBatch, unstored: VisitBatch | None = None) -> None:
        if log.answered and batch[0].kind == "train":
            begun.append(batch[0].mst_key)
        start_visits(state, batch, unstored)

    platform = Unreliable(None for _ in naturals())
    log = Steered(platform.clock, platform.decided, [(at, clone)])
    worker = Worker(0, Session(looks, platform.clock))
    worker.memory.cache_bytes = ROOM
    notices: list[str] = []
    around = RunContext(log.turn, lambda *_: None, lambda *_: None, notices.append, lambda _: True)
    known = replace(
        request,
        search=search,
        workers=1,
        max_runtime=budget,
        build_configs=lambda rows: BuiltConfigs(
            tuple(replace(request.configs[0], mst_key=key) for key in rows), {}
        ),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.monotonic", lambda: platform.clock.now)
        patch.setattr("cerebro_plpy.run.workers.worker_pool.time.sleep", platform.clock.pass_by)
        patch.setattr(RunState, "start_visits", note_start)
        WatchedLoop(platform, known, [worker], log, around, {}).run()
    assert begun[:1] in ([], [DRAWN])
    assert log.refused == []
    is_trained = any(key == DRAWN for key, *_ in platform.trained)
    told = [text for text in notices if f"mst_key {DRAWN} was added" in text]
    assert len(told) == (bool(log.answered) and not is_trained)


def test_a_resumed_run_knows_which_clones_were_asked_for() -> None:
    batches = tuple(
        search_state.DecisionBatch(None, (Decision(key, "start", 3, "x"),), act=act)
        for key, act in ((0, None), (1, "clone_config"), (2, "add_configs"), (3, "clone_config"))
    )
    request = replace(requested(4, 1, 3, set(), "foremost"), logged_decisions=batches)
    restored = restore_run(request, RUN_ID, [Worker(0, Session([1], Clock()))], {})
    assert restored.state.first == [3, 1]
    assert restored.state.untrained_requests == [1, 3]


@dataclass
class Copying(Unreliable):
    """A platform whose first visit of a clone begins from the state that was copied for it."""

    copies: dict[int, CloneStart] = field(default_factory=dict)
    starts: Mapping[int, CloneStart] = field(default_factory=dict)

    def copy(self, log: RunLog, state: StoredState, mst_key: int, visits: int) -> str:
        start, made = self.starts[mst_key], self.done[self.starts[mst_key].parent]
        assert mst_key not in self.copies and visits == start.visits == len(made), (
            "the state of that moment"
        )
        assert state == StoredState(made[-1][1].state_table or "", made[-1][0].segment_id), (
            "the newest one"
        )
        self.copies[mst_key] = start
        self.ahead = math.inf  # there is more to do
        return f"copy_{mst_key}"

    def _take_up(
        self, worker: Worker, tour: Sequence[BatchVisit], made: Sequence[BatchVisit]
    ) -> Iterator[Statement]:
        first, key = tour[0], tour[0].mst_key
        assert isinstance(first, TrainVisit)
        assert (f"copy_{key}" in first.state.sql) == (key in self.starts and first.visit_no == 1)
        assert key in self.copies or key not in self.starts
        return super()._take_up(worker, tour, made)


@st.composite
def families(draw: st.DrawFn) -> tuple[FitRequest, dict[int, CloneStart]]:
    """A request that repeats a run with warm clones, of clones too, and from which states they
    begin.
    """
    schedule = draw(st.sampled_from(["longest", "rotation", RESIDENT, BESIDE]))
    configs, segments, epochs = (
        draw(st.integers(2, 5)),
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
    )
    request = requested(
        configs,
        segments,
        epochs,
        {1, epochs},
        schedule,
        commit_seconds=draw(st.sampled_from([0, 9])),
    )
    clones = draw(st.sets(st.integers(1, configs - 1), min_size=1))
    visits = st.integers(1, segments * epochs)
    starts = {key: CloneStart(draw(st.integers(0, key - 1)), draw(visits)) for key in clones}
    return replace(
        request, replay=Replay(clone_starts=starts, added_sources=dict.fromkeys(starts, "clone"))
    ), starts


@given(families(), WORKERS, MANY, PAUSES, LOOKS)
@trials(120)
def test_a_warm_clone_is_repeated_from_the_state_that_it_began_from(
    family: tuple[FitRequest, dict[int, CloneStart]],
    workers: int,
    faults: list[Fault],
    pauses: list[int],
    looks: list[int],
) -> None:
    """Wherever the replay is interrupted and whatever fails: once; and not without that state."""
    request, starts = family
    interruptions: list[Fault] = list(
        chain.from_iterable([None] * pause + [CerebroError] for pause in pauses)
    )
    platform = Copying(chain(interruptions, faults, repeat(None)), starts=starts)
    past: dict[int, ConfigHistory] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Log, "copy_state", lambda *given: platform.copy(*given))
        while True:
            warm = {
                key: WarmState("chunks", f"SELECT FROM copy_{key}", ()) for key in platform.copies
            }
            try:
                trial = continued(
                    replace(request, warm_states=warm), workers, platform, looks, past
                )
            except Ended as ended:
                past = platform.interrupt(ended.evaluations)
            else:
                break
    trained, failed = platform.trained, trial.orchestrator.failed
    assert len(trained) == len(set(trained)), "nothing twice"
    wanted = set(product(trial.alive, range(1, request.spec.epochs + 1), request.source.segments))
    assert {visit for visit in trained if visit[0] in trial.alive} == wanted
    assert trial.alive & starts.keys() <= platform.copies.keys()
    orphans = {
        key for key, reason in failed.items() if "from whose state it was to begin" in reason
    }
    assert all(starts[key].parent in failed and key not in platform.copies for key in orphans)


@given(REQUESTS, st.integers(2, 4), FEW, LOOKS, st.lists(st.booleans(), max_size=3))
@trials(100)
def test_a_run_goes_on_with_the_workers_that_are_left(
    request: FitRequest,
    workers: int,
    faults: dict[int, Fault],
    looks: list[int],
    reopened: list[bool],
) -> None:
    """Of the workers that cannot be opened again there is always one less than there are
    workers.
    """
    losses = iter(
        [*([again or n >= workers - 1 for n, again in enumerate(reopened)]), *repeat(True, 99)]
    )
    platform = Unreliable(faults.get(n) for n in naturals())
    trial = continued(request, workers, platform, looks, {}, losses)
    everything = set(
        product(trial.alive, range(1, request.spec.epochs + 1), request.source.segments)
    )
    assert set(trial.platform.trained) == everything and trial.orchestrator.failed == {}
    assert len(trial.orchestrator.evaluations) == len(trial.alive) * len(
        request.spec.evaluate_epochs
    )


def test_without_any_worker_the_run_ends() -> None:
    platform = Unreliable(chain([None, ConnectionFailure], repeat(None)))
    with pytest.raises(Ended, match="ConnectionFailure"):
        continued(requested(2, 2, 1, set(), "longest"), 1, platform, [1], {}, repeat(False))


@given(REQUESTS, WORKERS, MANY, LOOKS, st.integers(1, 60))
@trials(100)
def test_a_run_whose_time_is_over_ends_in_good_order(
    request: FitRequest, workers: int, faults: list[Fault], looks: list[int], ticks: int
) -> None:
    """What is under way is completed, nothing else is trained, and every state that is left is
    evaluated once.
    """
    clock = naturals()
    limited = replace(request, max_runtime=float(ticks))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.monotonic", lambda: float(next(clock)))
        trial = tried(limited, workers, chain(faults, repeat(None)), looks)
    trained, stopped = trial.platform.trained, trial.orchestrator.stopped & trial.alive
    assert len(trained) == len(set(trained))
    count = len(request.source.segments)
    for key in trial.alive:
        visits = [v for v in trained if v[0] == key]
        assert (len(visits) < request.spec.epochs * count) == (key in stopped)
        epochs = [e.epoch for e in trial.orchestrator.evaluations if e.mst_key == key]
        assert len(epochs) == len(set(epochs)), "no state is evaluated twice"
        if request.spec.evaluate_epochs and visits and key in stopped:
            assert max(epochs) == max(v[1] for v in visits), "the newest state is evaluated"
    assert trial.orchestrator.model_states.keys() == {key for key, _, _ in trained} & trial.alive


@given(
    segments=st.integers(1, 3),
    workers=WORKERS,
    schedule=st.sampled_from(["longest", "rotation"]),
    losses=st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=1, max_size=3),
    patience=st.integers(0, 3),
    restored=st.booleans(),
    pauses=PAUSES,
    looks=LOOKS,
)
@trials(100)
def test_who_gets_no_better_goes_no_further_and_has_its_best_state(
    segments: int,
    workers: int,
    schedule: str,
    losses: list[list[int]],
    patience: int,
    restored: bool,
    pauses: list[int],
    looks: list[int],
) -> None:
    """Wherever the run is interrupted: what was decided before is decided again, and no state is
    lost meanwhile.
    """
    epochs = range(1, 7)
    options = f"monitor='loss',patience={patience},restore_best_weights={restored}"
    fit = f"callbacks=[EarlyStopping({options})]"
    request = requested(len(losses), segments, len(epochs), set(epochs), schedule, fit)
    interruptions: list[Fault] = list(
        chain.from_iterable([None] * pause + [CerebroError] for pause in pauses)
    )
    of_segments = by_epoch(losses)
    platform = Unreliable(chain(interruptions, repeat(None)), losses=of_segments)
    past: dict[int, ConfigHistory] = {}
    while True:
        try:
            trial = continued(request, workers, platform, looks, past)
        except Ended as ended:
            past = platform.interrupt(ended.evaluations)
        else:
            break
    verdicts = {
        key: EarlyStoppingRule(patience).judge(enumerate(row, 1)) for key, row in enumerate(losses)
    }
    last = {key: verdict.stopped_epoch or len(epochs) for key, verdict in verdicts.items()}
    wanted = [
        (key, e, segment)
        for key in last
        for e in epochs
        if e <= last[key]
        for segment in range(segments)
    ]
    assert sorted(platform.trained) == wanted
    evaluated = [(e.mst_key, e.epoch) for e in trial.orchestrator.evaluations]
    assert sorted(evaluated) == [(key, e) for key in last for e in epochs if e <= last[key]]
    kept = {
        key: best_table(RUN_ID, key, verdict.best_epoch or 0) for key, verdict in verdicts.items()
    }
    found = {key: state.table for key, state in trial.orchestrator.model_states.items()}
    assert found == (
        kept if restored else {key: platform.done[key][-1][1].state_table for key in last}
    )
    assert trial.log.completed == {key for key, epoch in last.items() if epoch == len(epochs)}
    assert [tell.epoch for tell in trial.told] == sorted(tell.epoch for tell in trial.told)


KEEPING = (
    "batch_size=1,"
    "callbacks=[EarlyStopping(monitor='loss',patience={patience},restore_best_weights=True)]"
)
BUDGETS = st.builds(
    requested,
    configs=st.integers(1, 4),
    segments=st.integers(1, 3),
    epochs=st.integers(1, 4),
    evaluated=st.sampled_from([set(), {1, 2, 3, 4}, {2, 4}]),
    schedule=st.sampled_from(["longest", "rotation", "foremost", RESIDENT, BESIDE]),
    fit=st.sampled_from(["batch_size=1", KEEPING.format(patience=1), KEEPING.format(patience=9)]),
    commit_seconds=st.sampled_from([0, 2, 9]),
)
DEADLINES = st.tuples(
    st.integers(0, 60), st.integers(0, 30) | st.just(math.inf), st.integers(0, 30)
).map(lambda given: Deadline(float(given[0]), given[0] + given[1], sum(given)))
ALLOWANCES = st.builds(CostLimits, max_cpu=st.integers(1, 30).map(float), max_cost=st.none())
LIMITS = (
    st.tuples(DEADLINES, ALLOWANCES)
    | st.tuples(DEADLINES, st.none())
    | st.tuples(st.none(), ALLOWANCES)
)
"""By the clock, or by what it costs, or by either."""
Limits = tuple[Deadline | None, CostLimits | None]
LOSSES = st.dictionaries(
    st.tuples(st.integers(0, 3), st.integers(1, 4)), st.sampled_from([0.0, 1.0, 2.0])
)


def in_time(
    request: FitRequest,
    workers: int,
    platform: Unreliable,
    looks: list[int],
    past: dict[int, ConfigHistory],
) -> Trial:
    """Work through a request by the platform's clock."""
    platform.last_visit = request.deadline.last_visit if request.deadline else math.inf
    platform.allowed = request.cost_limits.max_cpu or math.inf if request.cost_limits else math.inf
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.monotonic", lambda: platform.clock.now)
        return continued(request, workers, platform, looks, past)


def check_ends(trial: Trial) -> None:
    """Each config ended in exactly one of the ways that there are, and whoever was trained has a
    model.
    """
    request, run, deadline = trial.request, trial.orchestrator, trial.request.deadline
    assert not any(trial.platform.places.values()) and run._run.pool.is_finished, (
        "nobody is left at work"
    )
    assert run.model_states.keys() == {key for key, _, _ in trial.platform.trained} & trial.alive
    found = Counter((e.mst_key, e.epoch) for e in run.evaluations)
    assert all(times == 1 for times in found.values()), "no state is evaluated twice"
    assert run.stopped == {
        key for key, reason in trial.log.stopped.items() if reason in (BUDGET_OVER, MAX_CPU)
    }
    assert all(trial.log.status[key] == "stopped" for key in run.stopped)
    for key, epoch in found:
        visits = [v for v in trial.platform.trained if v[0] == key]
        assert trial.platform.made[key, epoch] == sum(v[1] <= epoch for v in visits), (
            "metrics are those of its last state"
        )
        earlier = any(other < epoch for mst_key, other in found if mst_key == key)
        whole = sum(v[1] <= epoch for v in visits) == epoch * len(request.source.segments)
        assert whole or not (earlier and key in trial.platform.best), (
            "beside a best state no other is a makeshift"
        )
    for key in trial.alive:
        visits = [v for v in trial.platform.trained if v[0] == key]
        evaluated = {epoch for mst_key, epoch in found if mst_key == key}
        kept = trial.platform.best.get(key)
        newest = max((epoch for _, epoch, _ in visits), default=0)
        whole = len(visits) == request.spec.epochs * len(request.source.segments)
        ends = {
            "completed": whole
            and {e for e in request.spec.evaluate_epochs} <= evaluated
            and key not in run.stopped,
            "no better": "EarlyStopping" in trial.log.stopped.get(key, ""),
            "with its best": key in run.stopped and kept is not None,
            "evaluated": key in run.stopped and kept is None and newest > 0 and newest in evaluated,
            "not evaluated": key in run.stopped
            and kept is None
            and newest > 0
            and newest not in evaluated,
            "not begun": key in run.stopped and newest == 0,
        }
        assert sum(ends.values()) == 1, ends
        assert (
            not ends["not evaluated"]
            or not request.spec.evaluate_epochs
            or deadline is None
            or deadline.cancel < math.inf
        )
        state = run.model_states.get(key)
        assert state is None or kept is None or state == kept.stored
        if kept and not trial.platform.losses:
            assert kept.epoch in evaluated


def check_over(trial: Trial, workers: int, looks: Sequence[int]) -> None:
    """Whatever is under way at the end is heard of, and what is kept of it: a few statements of
    each worker.
    """
    deadline, platform = trial.request.deadline, trial.platform
    over = math.inf if deadline is None else deadline.cancel if platform.trained else deadline.end
    visit = max(looks) + 1  # the first to end after that moment is the last
    assert platform.clock.now <= over + visit + 4 * workers * visit or over == math.inf


@given(BUDGETS, WORKERS, LIMITS, MANY, LOOKS, LOSSES, st.booleans())
@trials(120)
def test_a_budget_ends_a_run_in_good_order_at_any_moment(
    request: FitRequest,
    workers: int,
    limits: Limits,
    faults: list[Fault],
    looks: list[int],
    losses: Mapping[tuple[int, int], float],
    hears: bool,
) -> None:
    platform = Unreliable(chain(faults, repeat(None)), losses=losses, clock=Clock(hears=hears))
    deadline, allowance = limits
    trial = in_time(
        replace(request, deadline=deadline, cost_limits=allowance), workers, platform, looks, {}
    )
    check_ends(trial)
    check_over(trial, workers, looks)


@given(BESIDE_ONE_ANOTHER, st.integers(1, 2), LIMITS, MANY, LOOKS, st.booleans())
@trials(120)
def test_a_budget_ends_those_in_good_order_who_are_trained_together(
    request: FitRequest,
    workers: int,
    limits: Limits,
    faults: list[Fault],
    looks: list[int],
    hears: bool,
) -> None:
    """Each by itself: whoever has a state keeps it, and who has none when all are cancelled has
    failed.
    """
    platform = Unreliable(
        chain(faults, repeat(None)), clock=Clock(hears=hears), timings=SIDE_BY_SIDE
    )
    deadline, allowance = limits
    backends = dict.fromkeys(request.backends, "jax")
    limited = replace(request, backends=backends, deadline=deadline, cost_limits=allowance)
    trial = in_time(limited, workers, platform, looks, {})
    check_ends(trial)
    assert len(platform.trained) == len(set(platform.trained)), "nothing twice"
    check_over(trial, workers, looks)


@given(
    kind=st.sampled_from(["asha", "pasha", "halving", "median"]),
    schedule=st.sampled_from(["longest", "rotation", "foremost", RESIDENT, BESIDE]),
    segments=st.integers(1, 3),
    workers=WORKERS,
    losses=st.lists(st.lists(st.integers(0, 9), min_size=5, max_size=5), min_size=1, max_size=7),
    limits=LIMITS | st.integers(1, 40),
    looks=LOOKS,
    commit_seconds=st.sampled_from([0, 9]),
)
@trials(120)
def test_whoever_begins_in_a_search_that_is_cut_short_has_come_to_an_end(
    kind: str,
    schedule: str,
    segments: int,
    workers: int,
    losses: list[list[int]],
    limits: Limits | int,
    looks: list[int],
    commit_seconds: int,
) -> None:
    """Also who is where the rule was to be asked how it goes on."""
    request = requested(
        len(losses), segments, 5, set(range(1, 6)), schedule, commit_seconds=commit_seconds
    )
    search = SearchRequest("rule", rule_of(kind, len(losses), 5), tuple(range(len(losses))))
    of_segments = by_epoch(losses)
    platform = Unreliable(repeat(None), losses=of_segments)
    if isinstance(limits, int):
        limited = replace(request, search=search, max_runtime=float(limits))
    else:
        limited = replace(request, search=search, deadline=limits[0], cost_limits=limits[1])
    try:
        trial = in_time(limited, workers, platform, looks, {})
    except Ended:
        return  # nobody was trained in time
    assert {status for key, status in trial.log.status.items() if key in trial.alive} <= {
        "completed",
        "stopped",
    }


@given(
    BUDGETS,
    WORKERS,
    st.lists(st.none() | DEADLINES, min_size=1, max_size=4),
    ALLOWANCES,
    PAUSES,
    LOOKS,
    LOSSES,
)
@trials(120)
def test_a_run_with_a_budget_goes_on_from_what_is_logged(
    request: FitRequest,
    workers: int,
    deadlines: list[Deadline | None],
    allowance: CostLimits,
    pauses: list[int],
    looks: list[int],
    losses: Mapping[tuple[int, int], float],
) -> None:
    """Wherever it was interrupted, also when its budget was over; each time it has another one
    left, and may cost what is left of that."""
    interruptions: list[Fault] = list(
        chain.from_iterable([None] * pause + [CerebroError] for pause in pauses)
    )
    platform = Unreliable(chain(interruptions, repeat(None)), losses=losses)
    past: dict[int, ConfigHistory] = {}
    left = chain(deadlines, repeat(deadlines[-1]))
    while True:
        limited = replace(request, deadline=next(left), cost_limits=allowance)
        try:
            trial = in_time(limited, workers, platform, looks, past)
        except Ended as ended:
            past = platform.interrupt(ended.evaluations)
        else:
            break
    check_ends(replace(trial, request=limited))
    assert trial.orchestrator.failed == {}


AT_ONCE = requested(1, 3, 3, {1, 2, 3, 4}, "longest", KEEPING.format(patience=1))
"""Its metrics speak against it when its budget is over."""


@given(BUDGETS, WORKERS, WORKERS, LIMITS, LOOKS, LOOKS, LOSSES, st.booleans())
@example(
    AT_ONCE, 1, 1, (Deadline(9.0, math.inf, math.inf), CostLimits(6.0, None)), [1], [2], {}, False
)
@trials(120)
def test_a_replay_ends_where_the_budget_did(
    request: FitRequest,
    workers: int,
    others: int,
    limits: Limits,
    looks: list[int],
    pace: list[int],
    losses: Mapping[tuple[int, int], float],
    hears: bool,
) -> None:
    """The same visits of each config, and the same state of each evaluated and kept, whatever the
    clock says.
    """
    platform = Unreliable(repeat(None), losses=losses, clock=Clock(hears=hears))
    deadline, allowance = limits
    first = in_time(
        replace(request, deadline=deadline, cost_limits=allowance), workers, platform, looks, {}
    )
    check_ends(first)
    if not platform.trained:
        return
    orders: Orders = {}
    for key, epoch, segment in platform.trained:
        orders[key, epoch] = (*orders.get((key, epoch), ()), segment)
    found = {key: 0 for key in first.orchestrator.stopped}
    found |= {e.mst_key: e.epoch for e in first.orchestrator.evaluations if e.mst_key in found}
    every = product(range(len(request.configs)), range(1, request.spec.epochs + 1))
    completed = {
        at: (*(o := orders.get(at, ())), *(s for s in request.source.segments if s not in o))
        for at in every
    }
    repeated = Replay(completed, endings=compute_endings(orders, found))
    spec = replace(request.spec, schedule="replay")
    again = Unreliable(repeat(None), losses=losses)
    second = in_time(replace(request, spec=spec, replay=repeated), others, again, pace, {})
    check_ends(second)
    assert first.orchestrator.failed == second.orchestrator.failed == {}
    assert {key: visits(again, key) for key in again.done} == {
        key: visits(platform, key) for key in platform.done
    }
    assert ends(second) == ends(first)
    # What was cancelled came to its end all the same, and was the last: nothing is left that a
    # replay could stop.
    whole = first.orchestrator.stopped & second.log.completed
    last = request.spec.epochs
    late = {key for key in whole if last not in request.spec.evaluate_epochs or found[key] == last}
    stopped = {
        key: BUDGET_OVER if reason == MAX_CPU else reason
        for key, reason in first.log.stopped.items()
    }
    assert second.log.stopped == {key: reason for key, reason in stopped.items() if key not in late}

    def evaluated(trial: Trial) -> dict[tuple[int, int], float]:
        return {(e.mst_key, e.epoch): e.loss for e in trial.orchestrator.evaluations}

    assert evaluated(second) == evaluated(first)


def ends(trial: Trial) -> dict[int, RetainedState | int | None]:
    """The state that each config has come to: the one that is kept of it, or where its last visit
    was.
    """
    states = trial.orchestrator.model_states
    return {key: trial.platform.best.get(key, state.segment_id) for key, state in states.items()}


def visits(platform: Unreliable, mst_key: int) -> list[Visit]:
    """What a config was trained on, in its order."""
    return [visit for visit, _ in platform.done[mst_key]]


def test_a_free_worker_evaluates_while_a_last_visit_of_another_goes_on() -> None:
    """Nothing but the clock says that the first is to be evaluated where it waits for a segment."""
    platform = Unreliable(repeat(None))
    request = replace(
        requested(2, 2, 2, {1, 2}, "foremost"), deadline=Deadline(20.0, 90.0, 90.0), workers=2
    )
    around = RunContext(
        lambda: None, lambda *_: None, lambda *_: None, lambda _: None, lambda _: True
    )
    crew = [
        Worker(number, Session([looks], platform.clock)) for number, looks in enumerate((1, 10**6))
    ]
    log = Log([1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.monotonic", lambda: platform.clock.now)
        orchestrator = WatchedLoop(platform, request, crew, log, around, {})
        orchestrator.run()
    assert platform.trained == [(0, 1, 0)] and platform.evaluated == [(0, 1, 0)]
    assert orchestrator.model_states.keys() == {0} and log.stopped == {
        0: BUDGET_OVER,
        1: BUDGET_OVER,
    }
    assert platform.clock.now < 100


def test_a_run_without_a_model_goes_on_until_its_budget_is_over() -> None:
    """What is set aside for explaining a model is of no use without one."""
    request = replace(
        requested(2, 2, 1, {1}, "foremost"), deadline=Deadline(5.0, 5.0, 30.0), workers=1
    )
    platform = Unreliable(repeat(None))
    log = Log([9])
    around = RunContext(
        lambda: None, lambda *_: None, lambda *_: None, lambda _: None, lambda _: True
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.monotonic", lambda: platform.clock.now)
        orchestrator = EpochLoop(
            platform, request, [Worker(0, Session([9], platform.clock))], log, around, {}
        )
        orchestrator.run()
    assert platform.trained == [(0, 1, 0)] and orchestrator.model_states.keys() == {0}
    assert log.stopped == {0: BUDGET_OVER, 1: BUDGET_OVER} and 5 < platform.clock.now < 30


def test_a_late_run_with_grace_waits_for_the_first_model_alone() -> None:
    """Its trainers started when the budget was over."""
    request = replace(
        requested(3, 2, 2, {2}, "foremost"),
        deadline=Deadline(0.0, 0.0, 0.0, grace=60.0),
        workers=1,
    )
    platform = Unreliable(repeat(None))
    log = Log([9])
    around = RunContext(
        lambda: None, lambda *_: None, lambda *_: None, lambda _: None, lambda _: True
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.monotonic", lambda: platform.clock.now)
        crew = [Worker(0, Session([9], platform.clock))]
        orchestrator = EpochLoop(platform, request, crew, log, around, {})
        orchestrator.run()
    assert platform.trained == [(0, 1, 0)] and orchestrator.model_states.keys() == {0}
    assert log.stopped == dict.fromkeys(range(3), BUDGET_OVER)


def test_a_run_compiles_until_its_first_visits_are_made() -> None:
    platform = Unreliable(repeat(None))
    request = requested(3, 2, 2, {2}, "foremost")
    phases: list[tuple[str, str]] = []

    def enter(phase: str) -> None:
        phases.append((phase, orchestrator.describe_work()))

    around = RunContext(
        lambda: None,
        lambda *_: None,
        lambda *_: None,
        lambda _: None,
        lambda _: True,
        enter_phase=enter,
    )
    crew = [Worker(0, Session([1], platform.clock))]
    orchestrator = WatchedLoop(platform, request, crew, Log([1]), around, {})
    assert orchestrator.describe_work() == "0 of 3 configurations done"
    orchestrator.run()
    assert phases == [("training", "0 of 3 configurations done")]
    best = min(orchestrator.evaluations, key=lambda evaluation: evaluation.loss)
    assert orchestrator.describe_work() == (
        f"3 of 3 configurations done, best {best.loss:.4g} loss (mst_key {best.mst_key})"
    )


def test_a_budget_in_which_nobody_was_trained_says_so() -> None:
    request = replace(
        requested(2, 2, 1, {1}, "foremost"), deadline=Deadline(5.0, 5.0, 5.0), workers=1
    )
    platform = Unreliable(repeat(None))
    log = Log([9])
    around = RunContext(
        lambda: None, lambda *_: None, lambda *_: None, lambda _: None, lambda _: True
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.monotonic", lambda: platform.clock.now)
        crew = [Worker(0, Session([9], platform.clock))]
        orchestrator = WatchedLoop(platform, request, crew, log, around, {})
        with pytest.raises(
            ConfigFailure, match="before any configuration was trained on one of 2 segments"
        ) as error:
            orchestrator.run()
    assert error.value.hint == "Give it a longer budget, or fewer rows."
    assert log.stopped == {0: BUDGET_OVER, 1: BUDGET_OVER}
