"""The schedule at the size of a cluster, in simulation: nobody waits for a visit, but who goes next
is chosen as in a run, by the rule `longest`, with what visits and hops took in the measured run.

`hopping.simulation` asks the schedule anew for each visit, which looks at all configurations; ten
million visits of ten thousand configurations would take days. Here the same rule keeps what it
knows in arrays, and looks only at what has changed: when a visit ends, no other configuration can
begin than that one, and no other worker take one than that one. A test compares both. How long the
schedule itself takes for a decision at that size is measured with it, not with this.
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
"""Segments, and configurations."""
DECISIONS, SETS, SEED = 5, 50, 1
"""So many decisions are measured, between configurations that have one of so many sets of segments
before them.
"""


class Visit(NamedTuple):
    """Mean seconds of a visit of a configuration, with the reading of its state, and of the storing
    that follows.
    """

    train: float
    store: float


@dataclass(frozen=True)
class Simulated:
    """An epoch of so many configurations on so many segments, each with a worker: its seconds, the
    least that it could take, and those of a decision of the schedule in the midst of it."""

    segments: int
    configs: int
    makespan: float
    bound: float
    decision: float


def simulated(visits: Sequence[Visit], sizes: Sequence[tuple[int, int]]) -> list[Simulated]:
    """Epochs of configurations whose visits are these in turn; as if nothing of the storing hid
    behind the next one. None where no visits were measured."""
    found = []
    for segments, configs in sizes if visits else ():
        costs = [sum(visits[number % len(visits)]) for number in range(configs)]
        found.append(
            Simulated(
                segments,
                configs,
                makespan(costs, segments),
                bound(costs, segments),
                decision(costs, segments),
            )
        )
    return found


def bound(costs: Sequence[float], segments: int) -> float:
    """No schedule of an epoch is done sooner: a worker and a configuration do one visit at a time.

    >>> bound([3.0, 1.0], 2), bound([1.0, 1.0, 1.0], 2)
    (6.0, 3.0)
    """
    return max(sum(costs), segments * max(costs))


def makespan(costs: Sequence[float], segments: int) -> float:
    """When the last visit of an epoch ends, where configurations go by what remains of them."""
    return _Epoch(costs, segments).end()


class _Epoch:
    """An epoch under way: which configuration has still to visit which segment, and who is idle."""

    def __init__(self, costs: Sequence[float], segments: int) -> None:
        self._costs, self._segments = np.array(costs), segments
        self._ahead = np.ones((segments, len(costs)))
        # Of as much to do the first key goes first, as in the schedule.
        self._remaining = np.full(len(costs), segments)
        self._rank = self._remaining * self._costs
        # The same of those that are free, and 0 of the others; and room for the products with what
        # is ahead.
        self._free, self._able = self._rank.copy(), np.empty(len(costs))
        self._idle = set(range(segments))
        self._events: list[tuple[float, int, int, int]] = []
        self._begun = 0

    def end(self) -> float:
        """Go on to the end."""
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
            self._after(config, segment, now)
        return now

    def _after(self, config: int, segment: int, now: float) -> None:
        """One configuration and one worker are there again: the best of all may take the worker,
        and the configuration may take any worker."""
        other = self._best(segment)
        if other is not None and other != config and self._before(other, config):
            self._begin(other, segment, now)
        self._try(config, now)
        if segment in self._idle and (again := self._best(segment)) is not None:
            self._begin(again, segment, now)

    def _before(self, one: int, other: int) -> bool:
        return (-self._rank[one], one) < (-self._rank[other], other)

    def _best(self, segment: int) -> int | None:
        np.multiply(self._free, self._ahead[segment], out=self._able)
        best = int(self._able.argmax())
        return best if self._able[best] > 0 else None

    def _try(self, config: int, now: float) -> None:
        """Let a configuration take the next idle worker on the ring from its own place among those
        not yet done.
        """
        able = [segment for segment in self._idle if self._ahead[segment, config]]
        if able:
            place = int(np.count_nonzero(self._remaining[:config]))
            self._begin(
                config, min(able, key=lambda segment: (segment - place) % self._segments), now
            )

    def _begin(self, config: int, segment: int, now: float) -> None:
        self._idle.remove(segment)
        self._free[config] = self._ahead[segment, config] = 0.0
        self._begun += 1
        heapq.heappush(
            self._events, (now + float(self._costs[config]), self._begun, config, segment)
        )


def decision(costs: Sequence[float], segments: int) -> float:
    """Seconds of a core for a decision of the schedule, in the midst of an epoch, when one worker
    is idle; the median.

    All other workers have a configuration; the others have visited about half of the segments.
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
    taken = []
    for _ in range(DECISIONS):
        began = time.thread_time()
        choose_batches(plan, progress, {0}, policy, lambda _: BatchLimit(1))
        taken.append(time.thread_time() - began)
    return statistics.median(taken)


def report(found: Sequence[Simulated]) -> str:
    """A row for each size."""
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
            f"{each.segments:,}",
            f"{each.configs:,}",
            f"{each.segments * each.configs:,}",
            f"{each.makespan / each.bound:.4f}",
            f"{1000 * each.decision:.2f}",
            f"{1000 * each.makespan / (each.segments * each.configs):.2f}",
        ]
        for each in found
    ]
    return tables.table(headings, rows)
