"""The simulation of a run in virtual time: the real schedule, over visits with estimated costs.

A config may continue at the worker that has trained it while its state is being stored; other
workers can read the state afterwards. A worker compiles each program once.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Mapping
from typing import NamedTuple

from cerebro_plpy.records import dataclass, field
from cerebro_plpy.scheduling.schedule import schedule, visit_batches, worker_affinity
from cerebro_plpy.scheduling.schedule.schedule import (
    ConfigProgress,
    Orders,
    Plan,
    Visit,
    VisitBatch,
)
from cerebro_plpy.scheduling.schedule.scheduling_policies import (
    FOREMOST,
    LONGEST,
    choose_front,
    make_policy,
)
from cerebro_plpy.scheduling.schedule.visit_batches import BatchLimit
from cerebro_plpy.scheduling.schedule.worker_affinity import Compiled


class ConfigCost(NamedTuple):
    """The costs of a config in seconds."""

    program: object
    train: float  # of a visit
    evaluate: float = 0.0  # of a visit
    hop: float = 0.0  # to read the state, if the worker does not have it
    store: float = 0.0  # to store the state after a batch
    compile: float = 0.0  # to compile the program, if the worker does not have it


@dataclass(frozen=True)
class Case:
    """A run to simulate."""

    plan: Plan
    costs: Mapping[int, ConfigCost]  # by mst_key
    schedule: str = LONGEST
    is_stationary: bool = False  # configs stay at their workers; see `WorkerAffinity`
    orders: Orders = field(default_factory=dict)
    """Segments of a replay, by mst_key and epoch."""
    compiled: Compiled = field(default_factory=dict)
    """Programs that workers have before the run, by worker."""
    commit_seconds: float = 0.0
    max_evaluations: int = sys.maxsize  # in a batch

    @property
    def workers(self) -> int:
        """Return the number of workers."""
        return len(set(self.plan.workers.values()))

    @property
    def visits(self) -> int:
        """Return the number of training visits in an epoch."""
        return sum(len(self.plan.segments_of(key)) for key in self.costs)


class Outcome(NamedTuple):
    """The outcome of a simulated run."""

    seconds: float
    busy_seconds: Mapping[int, float]  # by worker
    visits: int  # that trained
    hops: int  # states that were read
    stores: int  # states that were stored
    compilations: int

    @property
    def idle_share(self) -> float:
        """Return the part of the time of all workers in which they were idle."""
        available = self.seconds * len(self.busy_seconds)
        if not available:
            return 0.0
        return max(0.0, 1 - sum(self.busy_seconds.values()) / available)


def simulate(case: Case) -> Outcome:
    """Return the outcome of a run, visit by visit."""
    return _Simulation(case).run()


def averaging_seconds(case: Case, mst_key: int) -> float:
    """Return the seconds of a visit that averages copies: it reads them, and stores one state."""
    cost = case.costs[mst_key]
    return len(case.plan.copies) * cost.hop + cost.store


class _Simulation:
    """The state of a simulated run."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._now = 0.0
        self._programs = {key: cost.program for key, cost in case.costs.items()}
        self._affinity = None
        if case.is_stationary:
            self._affinity = worker_affinity.make_affinity(
                case.schedule, self._programs, case.compiled
            )
        self._progress = {key: schedule.start(case.plan, key) for key in case.costs}
        self._idle = set(case.plan.workers.values())
        self._busy_seconds = dict.fromkeys(self._idle, 0.0)
        self._compiled = {
            (worker, program) for worker in self._idle for program in case.compiled.get(worker, ())
        }
        self._loaded: dict[int, int] = {}  # mst_key of the state that a worker has, by worker
        self._storing_until = dict.fromkeys(self._idle, 0.0)  # by worker
        self._pinned: dict[int, tuple[int, float]] = {}
        """The only worker that has a config's state, and the time until this is so."""
        self._train_seconds = {key: cost.train for key, cost in case.costs.items()}
        self._measured: set[int] = set()  # configs that have trained; others get single visits
        self._hop_seconds = min(
            (cost.hop + cost.store for cost in case.costs.values()), default=0.0
        )
        self._events: list[tuple[float, int, int, VisitBatch]] = []
        self._event_count = 0
        self._visits = 0
        self._hops = 0
        self._stores = 0
        self._compilations = 0

    def run(self) -> Outcome:
        """Simulate the run to its end."""
        self._start_batches()
        while self._events:
            self._now, _, worker, batch = heapq.heappop(self._events)
            if batch:
                self._complete(worker, batch)
            self._start_batches()
        return Outcome(
            seconds=max([self._now, *self._storing_until.values()]),
            busy_seconds=self._busy_seconds,
            visits=self._visits,
            hops=self._hops,
            stores=self._stores,
            compilations=self._compilations,
        )

    def _start_batches(self) -> None:
        case = self._case
        if not self._idle:
            return
        pinned = {key: worker for key, (worker, until) in self._pinned.items() if until > self._now}
        configs = {
            key: progress for key, progress in self._progress.items() if not progress.finished
        }
        choose = visit_batches.choose_batches
        if self._affinity is not None:
            choose = self._affinity.choose_batches
        elif case.schedule == FOREMOST:
            front = choose_front(configs, case.workers)
            configs = {key: progress for key, progress in configs.items() if key in front}
        policy = make_policy(
            case.schedule,
            case.costs,
            case.plan.segments,
            case.orders,
            self._train_seconds,
            self._programs,
        )
        for worker, batch in choose(case.plan, configs, self._idle, policy, self._limit_of, pinned):
            key = batch[0].mst_key
            self._progress[key] = schedule.begin(self._progress[key], batch)
            self._idle.remove(worker)
            if case.plan.is_averaging and batch[0].kind != "evaluate":
                self._start_copy(worker, batch)
            else:
                self._start(worker, batch)

    def _limit_of(self, progress: ConfigProgress) -> BatchLimit:
        key = progress.mst_key
        if progress.kind == "evaluate":
            return BatchLimit(len(progress.waiting_segments))
        if progress.copies or key not in self._measured:
            return BatchLimit(1)
        segments = len(self._case.plan.segments_of(key))
        limit = visit_batches.choose_limit(
            visit_seconds=self._train_seconds[key],
            evaluation_seconds=self._case.costs[key].evaluate * segments,
            hop_seconds=self._hop_seconds,
            max_wait=self._case.commit_seconds,
        )
        return limit._replace(evaluations=min(limit.evaluations, self._case.max_evaluations))

    def _start(self, worker: int, batch: VisitBatch) -> None:
        key = batch[0].mst_key
        cost = self._case.costs[key]
        storing_until = self._storing_until[worker]
        is_training = batch[0].kind == "train"
        start = self._now if is_training else max(self._now, storing_until)
        visit_seconds = sum(
            cost.train if visit.kind == "train" else cost.evaluate for visit in batch
        )
        end = max(storing_until, start + self._prepare(worker, key) + visit_seconds)
        if is_training:
            stored = end + cost.store
            following = schedule.complete(self._case.plan, self._progress[key], batch)
            if following.kind == "evaluate":
                end = stored  # the evaluation needs the stored state
            self._storing_until[worker] = stored
            self._pinned[key] = (worker, stored)
            self._visits += sum(visit.kind == "train" for visit in batch)
            self._stores += 1
            if stored > end:
                self._add_event(stored, worker, ())
        self._busy_seconds[worker] += end - self._now
        self._add_event(end, worker, batch)

    def _start_copy(self, worker: int, batch: VisitBatch) -> None:
        """Start a training or averaging visit of a config with copies.

        The next epoch continues with the average, wherever that is computed, and not with the
        state of a copy.
        """
        key = batch[0].mst_key
        cost = self._case.costs[key]
        if batch[0].kind == "train":
            seconds = self._prepare(worker, key) + cost.train + cost.store
            if key not in self._pinned and self._continues_copy(batch[0]):
                self._hops += 1
                seconds += cost.hop
            self._visits += 1
            del self._loaded[worker]
        else:
            seconds = averaging_seconds(self._case, key)
            self._hops += len(self._case.plan.copies)
            self._loaded[worker] = key
            self._pinned[key] = (worker, 0.0)
        self._stores += 1
        self._busy_seconds[worker] += seconds
        self._add_event(self._now + seconds, worker, batch)

    def _continues_copy(self, visit: Visit) -> bool:
        """Return True if the same copy has made another visit before, in the same epoch."""
        copies = self._progress[visit.mst_key].copies
        return all(visit.segment_id != copy[0] for copy in copies)

    def _prepare(self, worker: int, mst_key: int) -> float:
        """Return the seconds until a worker can continue with a config."""
        cost = self._case.costs[mst_key]
        seconds = 0.0
        if self._loaded.get(worker) != mst_key and mst_key in self._pinned:
            self._hops += 1
            seconds += cost.hop
        if (worker, cost.program) not in self._compiled:
            self._compiled.add((worker, cost.program))
            self._compilations += 1
            seconds += cost.compile
        self._loaded[worker] = mst_key
        return seconds

    def _complete(self, worker: int, batch: VisitBatch) -> None:
        key = batch[0].mst_key
        self._idle.add(worker)
        self._progress[key] = schedule.complete(self._case.plan, self._progress[key], batch)
        if batch[0].kind == "train":
            self._measured.add(key)

    def _add_event(self, time: float, worker: int, batch: VisitBatch) -> None:
        self._event_count += 1
        heapq.heappush(self._events, (time, self._event_count, worker, batch))
