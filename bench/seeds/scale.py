"""Simulate the schedule at the size of a cluster, with the costs of the measured run.

The next visits are chosen as in a run, by the rule `longest`, but nothing is trained.

The product's own simulation calls the schedule for each visit, which reads all configurations; ten
million visits of ten thousand configurations would take days. Here the same rule keeps its state in
arrays, and updates only the changes: when a visit ends, only its configuration can start another
visit, and only its worker can take another configuration. A test compares both simulations. The
time of a decision at that size is measured with the product's schedule.
"""

from __future__ import annotations

import heapq
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bench import tables
from bench.workloads import REPORT, SMALL
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Plan
from cerebro_plpy.scheduling.schedule.scheduling_policies import LongestFirst
from cerebro_plpy.scheduling.schedule.visit_batches import BatchLimit, choose_batches

SIZES = {
    REPORT: ((8, 16), (8, 80), (64, 128), (64, 640), (1000, 2000), (1000, 10_000)),
    SMALL: ((4, 8), (8, 80), (64, 128)),
}
"""Numbers of segments and configurations, by scale."""
DECISIONS = 5
"""Number of measured decisions."""
SETS = 50
"""Number of different sets of segments that configurations have still to visit."""
SEED = 1


class Visit(NamedTuple):
    """Mean seconds of a visit of a configuration."""

    train: float  # with reading the state
    store: float  # of storing the state afterwards


@dataclass(frozen=True)
class Simulation:
    """A simulated epoch."""

    segments: int
    configs: int
    makespan: float  # seconds of the epoch
    bound: float  # the least possible seconds
    decision: float  # CPU seconds of a decision of the schedule within the epoch


def simulate(visits: Sequence[Visit], sizes: Sequence[tuple[int, int]]) -> list[Simulation]:
    """Simulate epochs of configurations with the costs of measured visits.

    The time to store a state is not hidden behind the next visit. Without visits there are no
    results.
    """
    results = []
    for segments, configs in sizes if visits else ():
        costs = [sum(visits[number % len(visits)]) for number in range(configs)]
        results.append(
            Simulation(
                segments,
                configs,
                simulate_makespan(costs, segments),
                find_bound(costs, segments),
                time_decision(costs, segments),
            )
        )
    return results


def find_bound(costs: Sequence[float], segments: int) -> float:
    """Return the least possible seconds: workers and configurations do one visit at a time.

    >>> find_bound([3.0, 1.0], 2), find_bound([1.0, 1.0, 1.0], 2)
    (6.0, 3.0)
    """
    return max(sum(costs), segments * max(costs))


def simulate_makespan(costs: Sequence[float], segments: int) -> float:
    """Return the end of an epoch whose configurations are ordered by their remaining time."""
    return _Epoch(costs, segments).end()


class _Epoch:
    """A running epoch: the pending visits, and the idle workers."""

    def __init__(self, costs: Sequence[float], segments: int) -> None:
        self._costs = np.array(costs)
        self._segments = segments
        self._pending = np.ones((segments, len(costs)))
        # The first of configurations with the same remaining time goes first, as in the schedule.
        self._remaining = np.full(len(costs), segments)
        self._rank = self._remaining * self._costs
        self._free = self._rank.copy()  # 0 for configurations that are not free
        self._products = np.empty(len(costs))  # a buffer for products with the pending visits
        self._idle = set(range(segments))
        self._events: list[tuple[float, int, int, int]] = []
        self._started = 0

    def end(self) -> float:
        """Simulate the epoch; return its end."""
        now = 0.0
        for config in np.lexsort((np.arange(len(self._costs)), -self._rank)):
            if not self._idle:
                break
            self._try(int(config), now)
        while self._events:
            now, _, config, segment = heapq.heappop(self._events)
            self._remaining[config] -= 1
            self._free[config] = self._rank[config] = self._remaining[config] * self._costs[config]
            self._idle.add(segment)
            self._assign_after(config, segment, now)
        return now

    def _assign_after(self, config: int, segment: int, now: float) -> None:
        """Assign a worker and a configuration that have become free.

        The best of all configurations may take the worker, and the configuration any worker.
        """
        second = self._best(segment)
        if second is not None and second != config and self._precedes(second, config):
            self._start(second, segment, now)
        self._try(config, now)
        if segment in self._idle and (next_config := self._best(segment)) is not None:
            self._start(next_config, segment, now)

    def _precedes(self, first: int, second: int) -> bool:
        return (-self._rank[first], first) < (-self._rank[second], second)

    def _best(self, segment: int) -> int | None:
        np.multiply(self._free, self._pending[segment], out=self._products)
        best = int(self._products.argmax())
        return best if self._products[best] > 0 else None

    def _try(self, config: int, now: float) -> None:
        """Let a configuration take the next idle worker on the ring.

        The ring starts at the position of the configuration among those that have pending visits.
        """
        open_segments = [segment for segment in self._idle if self._pending[segment, config]]
        if open_segments:
            place = int(np.count_nonzero(self._remaining[:config]))
            self._start(
                config,
                min(open_segments, key=lambda segment: (segment - place) % self._segments),
                now,
            )

    def _start(self, config: int, segment: int, now: float) -> None:
        self._idle.remove(segment)
        self._free[config] = self._pending[segment, config] = 0.0
        self._started += 1
        heapq.heappush(
            self._events, (now + float(self._costs[config]), self._started, config, segment)
        )


def time_decision(costs: Sequence[float], segments: int) -> float:
    """Return the median CPU seconds of a decision of the schedule for a single idle worker.

    All other workers have a configuration. The other configurations have visited about half of the
    segments.
    """
    rng = random.Random(SEED)
    everywhere = tuple(range(segments))
    plan = Plan(1, everywhere, {segment: segment for segment in everywhere})
    halves = [frozenset(rng.sample(everywhere, max(1, segments // 2))) for _ in range(SETS)]
    progress = {}
    for key in range(len(costs)):
        waiting = halves[key % SETS]
        running = frozenset({key}) if 0 < key < segments else frozenset()
        progress[key] = ConfigProgress(key, 1, "train", waiting - running, running)
    policy = LongestFirst.of_training(dict(enumerate(costs)), {})
    durations = []
    for _ in range(DECISIONS):
        began = time.thread_time()
        choose_batches(plan, progress, {0}, policy, lambda _: BatchLimit(1))
        durations.append(time.thread_time() - began)
    return statistics.median(durations)


def report(results: Sequence[Simulation]) -> str:
    """Return a table with a row for each size."""
    headings = [
        "segments",
        "configurations",
        "visits",
        "makespan / bound",
        "a decision, ms",
        "visits end every, ms",
    ]
    rows = [
        [
            f"{result.segments:,}",
            f"{result.configs:,}",
            f"{result.segments * result.configs:,}",
            f"{result.makespan / result.bound:.4f}",
            f"{1000 * result.decision:.2f}",
            f"{1000 * result.makespan / (result.segments * result.configs):.2f}",
        ]
        for result in results
    ]
    return tables.format_table(headings, rows)
