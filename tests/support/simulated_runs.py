"""Simulated runs of drawn plans, for the laws of the schedule.

The simulator does not depend on the scheduler's internals: it starts the batches that
`choose_batches` returns, lets each visit take its time, lets some attempts fail and some configs
disappear, and writes a log as a run would.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from itertools import accumulate, count, pairwise, product
from random import Random

from hypothesis import strategies as st

from cerebro_plpy.records import dataclass, field, replace
from cerebro_plpy.scheduling.schedule.placement import divide_segments
from cerebro_plpy.scheduling.schedule.schedule import (
    ConfigProgress,
    Kind,
    Plan,
    Visit,
    VisitBatch,
    abandon,
    begin,
    complete,
    start,
)
from cerebro_plpy.scheduling.schedule.scheduling_policies import (
    LongestFirst,
    make_foremost,
    make_replay,
    make_rotation,
)
from cerebro_plpy.scheduling.schedule.visit_batches import BatchLimit, Policy, choose_batches

Seconds = Callable[[Visit], float]


@dataclass
class Logged:
    visit: Visit
    worker: int
    started: float
    ended: float
    completed: bool


@dataclass
class Simulation:
    """One run in simulated time, one event at a time.

    `fails` and `vanishes` decide at the end of each attempt whether it failed and whether its
    config is stopped; `checks` is called after every choice with the workers that stayed idle.
    """

    plan: Plan
    keys: tuple[int, ...]
    seconds: Seconds
    policy: Policy
    fails: Callable[[Visit], bool] = lambda visit: False
    vanishes: Callable[[Visit], bool] = lambda visit: False
    checks: Callable[[Mapping[int, ConfigProgress], set[int]], None] = lambda configs, idle: None
    choice: Callable[..., tuple[tuple[int, VisitBatch], ...]] = choose_batches
    limit: BatchLimit = BatchLimit(1)
    log: list[Logged] = field(default_factory=list)

    def run(self) -> float:
        """Simulates until nothing runs and nothing can start; gives the time of the end."""
        configs = {key: start(self.plan, key) for key in self.keys}
        idle, now, number = set(self.plan.workers.values()), 0.0, count()
        events: list[tuple[float, int, int, VisitBatch, list[float]]] = []
        while True:
            for worker, batch in self.choice(
                self.plan, configs, tuple(idle), self.policy, lambda progress: self.limit
            ):
                idle.remove(worker)
                key = batch[0].mst_key
                configs[key] = begin(configs[key], batch)
                times = [*accumulate((self.seconds(visit) for visit in batch), initial=now)]
                heapq.heappush(events, (times[-1], next(number), worker, batch, times))
            self.checks(configs, idle)
            if not events:
                self.left = configs
                return now
            now, _, worker, batch, times = heapq.heappop(events)
            idle.add(worker)
            self._end(configs, batch, worker, times)

    def _end(
        self, configs: dict[int, ConfigProgress], batch: VisitBatch, worker: int, times: list[float]
    ) -> None:
        completed, key = not any([self.fails(visit) for visit in batch]), batch[0].mst_key
        intervals = zip(batch, pairwise(times), strict=True)
        self.log += [Logged(visit, worker, *interval, completed) for visit, interval in intervals]
        if key not in configs:
            return
        progress = configs[key]
        configs[key] = (
            complete(self.plan, progress, batch) if completed else abandon(progress, batch)
        )
        if any([self.vanishes(visit) for visit in batch]):
            del configs[key]


def plan_of(
    segments: int,
    epochs: int = 1,
    workers: int | None = None,
    evaluate: frozenset[int] = frozenset(),
) -> Plan:
    return Plan(
        epochs,
        tuple(range(segments)),
        {s: s % (workers or segments) for s in range(segments)},
        evaluate,
    )


def overlapping(log: list[Logged]) -> bool:
    ordered = sorted(log, key=lambda item: (item.started, item.ended))
    return any(one.ended > two.started for one, two in pairwise(ordered))


def group(log: list[Logged], key: Callable[[Logged], object]) -> list[list[Logged]]:
    groups: dict[object, list[Logged]] = {}
    for item in log:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    segments = draw(st.lists(st.integers(0, 99), min_size=1, max_size=6, unique=True))
    epochs = draw(st.integers(1, 3))
    workers = {segment: draw(st.integers(0, len(segments))) for segment in segments}
    copies = draw(st.integers(0, len(segments)))
    averaged = divide_segments(segments, copies) if copies else ()
    return Plan(epochs, tuple(segments), workers, draw(st.frozensets(st.integers(1, 3))), averaged)


KEYS = st.lists(st.integers(1, 99), min_size=1, max_size=9, unique=True).map(tuple)


@st.composite
def simulations(draw: st.DrawFn) -> Simulation:
    plan, keys, random = draw(plans()), draw(KEYS), Random(draw(st.integers()))
    if not plan.is_averaging and draw(st.booleans()):
        some = [key for key in keys if random.random() < 0.5]
        own = {
            key: frozenset(random.sample(plan.segments, random.randint(1, len(plan.segments))))
            for key in some
        }
        plan = replace(plan, segment_subsets=own)
    durations = {key: random.choice([0.5, 1, 1, 4]) for key in keys}
    jitter = draw(st.sampled_from([0, 0.1, 1]))
    orders = {
        (key, epoch): random.sample(plan.segments, len(plan.segments))
        for key, epoch in product(keys, range(1, plan.epochs + 1))
    }
    measured: dict[tuple[int, Kind], float] = {
        (key, kind): durations[key]
        for key in keys
        for kind in ("train", "evaluate")
        if random.random() < 0.7
    }
    rings = [make_rotation(keys, plan.segments), make_foremost(keys, plan.segments)]
    policies: list[Policy] = [LongestFirst(), LongestFirst(measured), *rings, make_replay(orders)]
    policy = draw(st.sampled_from(policies[:2] if plan.is_averaging else policies))
    limit = (
        BatchLimit(1)
        if plan.is_averaging
        else BatchLimit(draw(st.sampled_from([1, 2, 9])), draw(st.sampled_from([0, 1, 2, 9])))
    )
    seconds = lambda visit: durations[visit.mst_key] + jitter * random.random()  # noqa: E731
    return Simulation(plan, keys, seconds, policy, limit=limit)


def due(simulation: Simulation) -> set[Visit]:
    plan = simulation.plan
    kinds: tuple[Kind, ...] = ("train", "evaluate")
    every = product(range(1, plan.epochs + 1), simulation.keys, plan.segments, kinds)
    visited = (item for item in every if item[2] in plan.segments_of(item[1]))
    hopping = {
        Visit(*item) for item in visited if item[3] == "train" or item[0] in plan.evaluate_epochs
    }
    if not plan.is_averaging:
        return hopping
    places = {
        epoch: plan.segments[epoch % len(plan.segments)] for epoch in range(1, plan.epochs + 1)
    }
    return hopping | {
        Visit(e, key, place, "average") for e, place in places.items() for key in simulation.keys
    }


def assert_ordered(log: list[Logged]) -> None:
    """A config evaluates an epoch after training (and averaging) it, and trains the next one after
    that.
    """
    kinds = ("train", "average", "evaluate")
    for items in group(log, lambda item: item.visit.mst_key):
        stages = [
            (item.visit.epoch, kinds.index(item.visit.kind)) for item in items if item.completed
        ]
        assert stages == sorted(stages)
