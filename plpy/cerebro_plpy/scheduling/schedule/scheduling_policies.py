"""Scheduling policies: possible visits start by remaining work, or in a fixed order."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

from cerebro_plpy.records import dataclass, field, replace
from cerebro_plpy.scheduling.schedule.schedule import (
    ConfigProgress,
    Configs,
    Kind,
    Orders,
    Plan,
    Segments,
)
from cerebro_plpy.scheduling.schedule.visit_batches import Policy, Preference

# Names of schedules.
LONGEST = "longest"  # by measured times
REPLAY = "replay"  # repeats the logged orders of an earlier run
FOREMOST = "foremost"  # finishes some configs before it begins others


Programs = Mapping[int, object]
"""The program of each config, by mst_key."""


class RemainingVisits(NamedTuple):
    """Visits of a config that are not completed, including running ones."""

    train: int
    evaluate: int


def count_remaining_visits(plan: Plan, progress: ConfigProgress) -> RemainingVisits:
    """Count the visits that a config has still to complete, up to its last epoch."""
    if progress.finished or progress.awaits_decision:
        return RemainingVisits(0, 0)
    current = len(progress.waiting_segments) + len(progress.running_segments)
    is_evaluating = progress.kind == "evaluate"
    training = current * (progress.kind == "train")
    segments = len(plan.segments_of(progress.mst_key))
    if progress.stopping:
        evaluate = current if is_evaluating else segments * bool(plan.evaluations)
        return RemainingVisits(training + progress.later_visits, evaluate)
    last = plan.epochs
    if progress.max_epoch is not None:
        last = min(last, progress.max_epoch)
    train = (last - progress.epoch) * segments
    evaluations = bisect_right(plan.evaluations, last) - bisect_right(
        plan.evaluations, progress.epoch
    )
    if is_evaluating:
        return RemainingVisits(train, evaluations * segments + current)
    evaluations += progress.epoch in plan.evaluate_epochs
    return RemainingVisits(train + training, evaluations * segments)


@dataclass(frozen=True)
class LongestFirst:
    """The config with the longest remaining time goes first.

    A config without measured times counts as the mean of its kind; without any measured times, all
    count alike. Of configs with equal work, one config of each program goes first, by mst_key;
    otherwise workers would compile the same program side by side.

    Of several free segments, a config takes the next one on the ring from its own position, so that
    configs spread. Preferring the segment with the most remaining work made no difference in
    simulations, because mostly one worker at a time becomes idle. A worker that has trained a state
    also evaluates it.
    """

    seconds: Mapping[tuple[int, Kind], float] = field(default_factory=dict)
    """Measured mean seconds of a visit, by mst_key and kind."""
    programs: Programs = field(default_factory=dict)  # by mst_key

    @classmethod
    def of_training(cls, seconds: Mapping[int, float], programs: Programs) -> LongestFirst:
        """Return the policy if only training visits were measured, by mst_key."""
        return cls({(key, "train"): visit for key, visit in seconds.items()}, programs)

    def prefer(self, plan: Plan, configs: Configs) -> Preference:
        remaining = {
            key: self._remaining_seconds(plan, progress) for key, progress in configs.items()
        }
        ranked = sorted(
            configs, key=lambda key: (-remaining[key], self._program_ranks.get(key, 0), key)
        )
        position = {key: index for index, key in enumerate(sorted(configs))}

        def pick(progress: ConfigProgress, free: Sequence[int]) -> int:
            ring = _ring(plan.segments, position[progress.mst_key])
            return next(segment for segment in ring if segment in free)

        return Preference([configs[key] for key in ranked], pick, evaluates_first=True)

    def expected_seconds(self, mst_key: int, kind: Kind) -> float:
        """Return the seconds that a visit is expected to take."""
        return self.seconds.get((mst_key, kind), self._means[kind])

    def _remaining_seconds(self, plan: Plan, progress: ConfigProgress) -> float:
        remaining = count_remaining_visits(plan, progress)
        training = remaining.train * self.expected_seconds(progress.mst_key, "train")
        evaluation = remaining.evaluate * self.expected_seconds(progress.mst_key, "evaluate")
        return training + evaluation

    @cached_property
    def _program_ranks(self) -> dict[int, int]:
        """Return by mst_key how many configs of the same program come before it."""
        counts: Counter[object] = Counter()
        ranks = {}
        for key in sorted(self.programs):
            ranks[key] = counts[self.programs[key]]
            counts[self.programs[key]] += 1
        return ranks

    @cached_property
    def _means(self) -> dict[Kind, float]:
        return {"train": self._mean("train"), "evaluate": self._mean("evaluate")}

    def _mean(self, kind: Kind) -> float:
        measured = [seconds for (_, of_kind), seconds in self.seconds.items() if of_kind == kind]
        return fmean(measured or [1.0])


RankKey = tuple[int, ...]
Rank = Callable[[ConfigProgress], RankKey]
"""Return the rank of a config, the smallest first; ranks are distinct."""


def _advance(progress: ConfigProgress) -> RankKey:
    return (
        progress.epoch,
        progress.kind == "evaluate",
        -len(progress.waiting_segments),
        progress.mst_key,
    )


def _key(progress: ConfigProgress) -> RankKey:
    return (progress.mst_key,)


@dataclass(frozen=True)
class FixedOrder:
    """Every config visits the segments of an epoch in its own fixed order.

    A config waits for its next segment even if another segment is idle. Evaluations do not change
    the state, so they take any free segment.
    """

    order: Callable[[int, int], Sequence[int]]  # all segments of the plan, by mst_key and epoch
    rank: Rank = _advance  # if several configs want one worker; the order does not depend on it

    def prefer(self, plan: Plan, configs: Configs) -> Preference:
        return Preference(sorted(configs.values(), key=self.rank), self._pick)

    def _pick(self, progress: ConfigProgress, free: Sequence[int]) -> int | None:
        if progress.kind == "evaluate":
            return free[0]
        order = self.order(progress.mst_key, progress.epoch)
        waiting = progress.waiting_segments
        if not waiting <= set(order):
            raise ValueError(f"order {order} of config {progress.mst_key} leaves out {waiting}")
        following = next(segment for segment in order if segment in waiting)
        return following if following in free else None


@dataclass(frozen=True)
class Prioritised:
    """A policy with exceptions: some configs go first, in a requested order."""

    policy: Policy
    priority_keys: Sequence[int]  # mst_keys, the first config first

    def prefer(self, plan: Plan, configs: Configs) -> Preference:
        order = {key: index for index, key in enumerate(self.priority_keys)}
        preference = self.policy.prefer(plan, configs)
        ranked = sorted(
            preference.ranked, key=lambda progress: order.get(progress.mst_key, len(order))
        )
        return preference._replace(ranked=ranked, urgent=frozenset(order))


def make_rotation(mst_keys: Sequence[int], segments: Sequence[int]) -> FixedOrder:
    """Return the ring order: config i starts at segment i modulo the number of segments.

    Every epoch continues on the same ring after the last segment of the previous epoch. The order
    is optimal if all visits take the same time. Otherwise, a slow config may delay those behind it.
    """
    rings = {key: _ring(segments, index) for index, key in enumerate(sorted(mst_keys))}
    return FixedOrder(lambda mst_key, epoch: rings[mst_key])


def make_foremost(mst_keys: Sequence[int], segments: Sequence[int]) -> FixedOrder:
    """Return the orders of `make_rotation`, with the lowest key first: depth before breadth.

    A worker that the first configs cannot use now serves those behind them, as far as
    `choose_front` includes them. Whenever such a run ends, few configs are half trained.
    """
    return replace(make_rotation(mst_keys, segments), rank=_key)


def choose_front(configs: Configs, workers: int) -> frozenset[int]:
    """Return the first unfinished configs: one for each worker, and one more for gaps.

    A program takes seconds to compile. Beginning another config in a short gap would delay the
    first configs.
    """
    unfinished = sorted(key for key, progress in configs.items() if not progress.finished)
    return frozenset(unfinished[: workers + 1])


def make_replay(orders: Orders) -> FixedOrder:
    """Return the logged orders of an earlier run.

    Args:
        orders: segments as visited, by mst_key and epoch.
    """
    return FixedOrder(lambda mst_key, epoch: orders[mst_key, epoch])


def make_fixed_order(
    schedule: str,
    mst_keys: Sequence[int],
    segments: Sequence[int],
    logged_orders: Orders,
) -> FixedOrder | None:
    """Return the fixed order of a schedule; None if measured times decide."""
    if schedule == REPLAY:
        return make_replay(logged_orders)
    if schedule == "rotation":
        return make_rotation(mst_keys, segments)
    if schedule == FOREMOST:
        return make_foremost(mst_keys, segments)
    return None


def make_policy(
    schedule: str,
    mst_keys: Iterable[int],
    segments: Sequence[int],
    logged_orders: Orders,
    seconds: Mapping[int, float],
    programs: Programs,
) -> Policy:
    """Return the policy of a schedule.

    Args:
        logged_orders: segments by mst_key and epoch, of the run to repeat.
        seconds: duration of a training visit by mst_key, as far as it is known.
        programs: the program of each config, by mst_key.
    """
    fixed = make_fixed_order(schedule, list(mst_keys), segments, logged_orders)
    return fixed or LongestFirst.of_training(seconds, programs)


def _ring(segments: Sequence[int], index: int) -> Segments:
    first = index % len(segments)
    return (*segments[first:], *segments[:first])
