"""What a run would take, by a clock that nobody waits for: the schedule as it is, over visits that
take what is known of them.

A config may go on at the worker that has trained it while its state is being stored; others can
have it when that is done. What a worker does for the first time, such as to compile a program, it
does once.
"""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.records import dataclass, field, replace
from cerebro_plpy.scheduling.schedule import schedule, visit_batches, worker_affinity
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Plan, Visit, VisitBatch
from cerebro_plpy.scheduling.schedule.scheduling_policies import (
    FOREMOST,
    LONGEST,
    choose_front,
    make_policy,
)
from cerebro_plpy.scheduling.schedule.visit_batches import BatchLimit

MOST_VISITS = 64
"""Of a longer run so many visits are simulated: epochs resemble each other, but for the first and
the last.
"""
MOST_IN_EPOCH = 128
"""Of more visits in an epoch none is simulated: so many leave nobody without anything to do."""


class Cost(NamedTuple):
    """Seconds of a config: those of a visit to train and of one to evaluate; what comes before
    where its worker has to read its state, or to compile its program; and what it takes to store
    what a tour has left."""

    program: object
    train: float
    evaluate: float = 0.0
    hop: float = 0.0
    store: float = 0.0
    compile: float = 0.0


@dataclass(frozen=True)
class Case:
    """A run to be simulated: what there is to do, at what cost, and in which order. Where configs
    stay, see `Residence`; workers may have `compiled` programs before. No tour goes on over more
    evaluations than are `certain`."""

    plan: Plan
    costs: Mapping[int, Cost]
    schedule: str = LONGEST
    stays: bool = False
    orders: Mapping[tuple[int, int], Sequence[int]] = field(default_factory=dict)
    compiled: Mapping[int, Collection[object]] = field(default_factory=dict)
    commit_seconds: float = 0.0
    certain: int = sys.maxsize

    @property
    def workers(self) -> int:
        """How many there are."""
        return len({*self.plan.workers.values()})

    @property
    def visits(self) -> int:
        """How many visits an epoch has."""
        return sum(len(self.plan.segments_of(key)) for key in self.costs)


class Outcome(NamedTuple):
    """What a simulated run came to: its seconds, those in which each worker was at work, how many
    visits trained, how many states were read and stored, and how often a worker compiled a program.
    """

    seconds: float
    work: Mapping[int, float]
    visits: int
    hops: int
    stores: int
    compilations: int

    @property
    def idle(self) -> float:
        """The part of the time of all workers in which they had nothing to do."""
        whole = self.seconds * len(self.work)
        return max(0.0, 1 - sum(self.work.values()) / whole) if whole else 0.0


def foreseen(case: Case, most: int = MOST_VISITS) -> Outcome:
    """The outcome of a run; of one with more visits, by the course of its first epochs."""
    plan, epochs = case.plan, max(2, most // max(1, case.visits))
    if case.visits > MOST_IN_EPOCH:
        return _crowded(case)
    if plan.epochs <= epochs:
        return simulate(case)
    ends = [frozenset({each} if plan.evaluations else ()) for each in (epochs - 1, epochs)]
    before, after = (
        simulate(replace(case, plan=replace(plan, epochs=number, evaluate_epochs=end)))
        for number, end in zip((epochs - 1, epochs), ends)
    )
    evaluations = max(0, len(plan.evaluations) - 1)
    evaluating = evaluations * sum(
        cost.evaluate * len(plan.segments_of(key)) for key, cost in case.costs.items()
    )
    times, each = plan.epochs - epochs, evaluating / case.workers

    def later(earlier: float, last: float) -> float:
        return last + times * max(0.0, last - earlier)

    work = {worker: later(before.work[worker], after.work[worker]) + each for worker in after.work}
    counts = (int(later(*pair)) for pair in zip(before[2:], after[2:]))
    return Outcome(later(before.seconds, after.seconds) + each, work, *counts)


def _crowded(case: Case) -> Outcome:
    """The outcome where all workers always have something to do."""
    plan, workers = case.plan, {*case.plan.workers.values()}
    visits = {key: plan.epochs * len(plan.segments_of(key)) for key in case.costs}
    compilations = len({cost.program for cost in case.costs.values()}) * (
        1 if case.stays else len(workers)
    )
    compiling = sum({cost.program: cost.compile for cost in case.costs.values()}.values())
    compiling *= 1 / len(workers) if case.stays else 1
    around = sum(visits[key] * (cost.hop + cost.store) for key, cost in case.costs.items())
    if plan.is_averaging:
        around += plan.epochs * sum(averaging(case, key) for key in case.costs)
    around /= len(workers)
    seconds = max(longest(case), shared(case) + around) + compiling
    made = sum(visits.values())
    means = plan.epochs * len(visits) if plan.is_averaging else 0
    hops, stores = made + means * len(plan.copies), made + means
    return Outcome(
        seconds,
        dict.fromkeys(workers, shared(case) + around + compiling),
        made,
        hops,
        stores,
        compilations,
    )


def simulate(case: Case) -> Outcome:
    """The outcome of a run, visit by visit."""
    return _Run(case).outcome()


def least(case: Case) -> float:
    """No schedule is done sooner: a config is in one place at a time, and so is a worker.

    >>> plan, alike = Plan(1, (0, 1), {0: 0, 1: 1}), dict.fromkeys((1, 2, 3), Cost("a", 1.0))
    >>> least(Case(plan, {1: Cost("a", 3.0), 2: Cost("a", 1.0)})), least(Case(plan, alike))
    (6.0, 3.0)
    """
    return max(longest(case), shared(case))


def longest(case: Case) -> float:
    """What the config with the most work trains for; its copies do so at once, as far as there are
    workers.
    """
    plan, places = case.plan, min(case.workers, max(1, len(case.plan.copies)))
    turns = {key: math.ceil(len(plan.segments_of(key)) / places) for key in case.costs}
    return max(
        (cost.train * turns[key] * plan.epochs for key, cost in case.costs.items()), default=0.0
    )


def averaging(case: Case, key: int) -> float:
    """What a visit takes that makes the mean of what others have left: it reads them, and stores
    one.
    """
    cost = case.costs[key]
    return len(case.plan.copies) * cost.hop + cost.store


def shared(case: Case) -> float:
    """What each worker would do if all work could be divided evenly."""
    plan, epochs = case.plan, (case.plan.epochs, len(case.plan.evaluations))
    visits = ((cost, len(plan.segments_of(key))) for key, cost in case.costs.items())
    return (
        sum(count * (cost.train * epochs[0] + cost.evaluate * epochs[1]) for cost, count in visits)
        / case.workers
    )


class _Run:
    """A run under way."""

    def __init__(self, case: Case) -> None:
        self._case, self._now = case, 0.0
        programs = {key: cost.program for key, cost in case.costs.items()}
        self._programs = programs
        self._residence = (
            worker_affinity.make_affinity(case.schedule, programs, case.compiled)
            if case.stays
            else None
        )
        self._progress = {key: schedule.start(case.plan, key) for key in case.costs}
        self._idle = {*case.plan.workers.values()}
        self._work = dict.fromkeys(self._idle, 0.0)
        self._compiled = {
            (worker, each) for worker in self._idle for each in case.compiled.get(worker, ())
        }
        self._has: dict[int, int] = {}  # whose state a worker has
        self._stored = dict.fromkeys(self._idle, 0.0)  # until when a worker is storing
        self._held: dict[
            int, tuple[int, float]
        ] = {}  # the worker that alone can go on, and until when
        self._expected = {key: cost.train for key, cost in case.costs.items()}
        self._trained: set[int] = set()  # of which is known how many visits may go together
        self._hop = min((cost.hop + cost.store for cost in case.costs.values()), default=0.0)
        self._events: list[tuple[float, int, int, VisitBatch]] = []
        self._visits = self._hops = self._stores = self._compilations = self._begun = 0

    def outcome(self) -> Outcome:
        """Go on to the end."""
        self._begin()
        while self._events:
            self._now, _, worker, tour = heapq.heappop(self._events)
            if tour:
                self._end(worker, tour)
            self._begin()
        seconds = max([self._now, *self._stored.values()])
        return Outcome(
            seconds, self._work, self._visits, self._hops, self._stores, self._compilations
        )

    def _begin(self) -> None:
        case = self._case
        if not self._idle:
            return
        held = {key: worker for key, (worker, until) in self._held.items() if until > self._now}
        awake = {key: each for key, each in self._progress.items() if not each.finished}
        if case.schedule == FOREMOST and self._residence is None:
            first = choose_front(awake, case.workers)
            awake = {key: each for key, each in awake.items() if key in first}
        policy = make_policy(
            case.schedule,
            case.costs,
            case.plan.segments,
            case.orders,
            self._expected,
            self._programs,
        )
        choose = self._residence.choose_batches if self._residence else visit_batches.choose_batches
        for worker, tour in choose(case.plan, awake, self._idle, policy, self._reach, held):
            self._start(worker, tour)

    def _reach(self, progress: ConfigProgress) -> BatchLimit:
        if progress.kind == "evaluate":
            return BatchLimit(len(progress.waiting_segments))
        key, case = progress.mst_key, self._case
        if progress.copies or key not in self._trained:
            return BatchLimit(1)
        evaluation = case.costs[key].evaluate * len(case.plan.segments_of(key))
        found = visit_batches.choose_limit(
            self._expected[key], evaluation, self._hop, case.commit_seconds
        )
        return found._replace(evaluations=min(found.evaluations, case.certain))

    def _start(self, worker: int, tour: VisitBatch) -> None:
        if self._case.plan.is_averaging and tour[0].kind != "evaluate":
            return self._start_copy(worker, tour)
        key, cost, storing = (
            tour[0].mst_key,
            self._case.costs[tour[0].mst_key],
            self._stored[worker],
        )
        progress = schedule.begin(self._progress[key], tour)
        self._idle.remove(worker)
        training = tour[0].kind == "train"
        began = self._now if training else max(self._now, storing)
        made = sum(cost.train if visit.kind == "train" else cost.evaluate for visit in tour)
        end = max(storing, began + self._before(worker, key) + made)
        if training:
            evaluated = schedule.complete(self._case.plan, progress, tour).kind == "evaluate"
            stored = end + cost.store
            end = stored if evaluated else end
            self._stored[worker] = stored
            self._held[key] = (worker, stored)
            self._visits += sum(visit.kind == "train" for visit in tour)
            self._stores += 1
            if stored > end:
                self._note(stored, worker, ())
        self._progress[key] = progress
        self._work[worker] += end - self._now
        self._note(end, worker, tour)

    def _start_copy(self, worker: int, tour: VisitBatch) -> None:
        """A config that averages: what goes on is not what a copy has left, but the mean, wherever
        that is made.
        """
        key, case = tour[0].mst_key, self._case
        self._idle.remove(worker)
        self._progress[key] = schedule.begin(self._progress[key], tour)
        if tour[0].kind == "train":
            seconds = self._before(worker, key) + case.costs[key].train + case.costs[key].store
            if key not in self._held and self._follows(tour[0]):
                self._hops += 1
                seconds += case.costs[key].hop
            self._visits += 1
            del self._has[worker]
        else:
            seconds = averaging(case, key)
            self._hops += len(case.plan.copies)
            self._has[worker], self._held[key] = key, (worker, 0.0)
        self._stores += 1
        self._work[worker] += seconds
        self._note(self._now + seconds, worker, tour)

    def _follows(self, visit: Visit) -> bool:
        """Whether another visit of the same copy comes before, in the same epoch."""
        return all(visit.segment_id != copy[0] for copy in self._progress[visit.mst_key].copies)

    def _before(self, worker: int, key: int) -> float:
        """What a worker has to do before it can go on with a config."""
        cost, seconds = self._case.costs[key], 0.0
        if self._has.get(worker) != key and key in self._held:
            self._hops += 1
            seconds += cost.hop
        if (worker, cost.program) not in self._compiled:
            self._compiled.add((worker, cost.program))
            self._compilations += 1
            seconds += cost.compile
        self._has[worker] = key
        return seconds

    def _end(self, worker: int, tour: VisitBatch) -> None:
        key = tour[0].mst_key
        self._idle.add(worker)
        self._progress[key] = schedule.complete(self._case.plan, self._progress[key], tour)
        if tour[0].kind == "train":
            self._trained.add(key)

    def _note(self, moment: float, worker: int, tour: VisitBatch) -> None:
        self._begun += 1
        heapq.heappush(self._events, (moment, self._begun, worker, tour))
