"""Which of the possible visits start first: by remaining work, or in an order fixed beforehand."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

from cerebro_plpy.records import dataclass, field, replace
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Kind, Plan
from cerebro_plpy.scheduling.schedule.visit_batches import Policy, Preference

LONGEST = "longest"  # the name of the schedule that measured times decide
REPLAY = "replay"  # that of the one that repeats the logged orders of an earlier run
FOREMOST = "foremost"  # that of the one that finishes some configs before it begins others


class Remaining(NamedTuple):
    """Visits of a config that are not completed, running ones included."""

    train: int
    evaluate: int


def remaining_visits(plan: Plan, progress: ConfigProgress) -> Remaining:
    """How many visits a config has still to complete, up to its limit."""
    if progress.finished or progress.resting:
        return Remaining(0, 0)
    here = len(progress.waiting) + len(progress.running)
    segments = len(plan.visited(progress.mst_key))
    trained = here if progress.kind == "train" else 0
    if progress.stopping:
        later = here if progress.kind == "evaluate" else segments * bool(plan.evaluations)
        return Remaining(trained + progress.beyond, later)
    last = plan.epochs if progress.limit is None else min(plan.epochs, progress.limit)
    train = (last - progress.epoch) * segments
    later = bisect_right(plan.evaluations, last) - bisect_right(plan.evaluations, progress.epoch)
    if progress.kind == "evaluate":
        return Remaining(train, later * segments + here)
    own = progress.epoch in plan.evaluate_epochs
    return Remaining(train + trained, (later + own) * segments)


@dataclass(frozen=True)
class Longest:
    """The config with the most remaining work first (longest remaining time first).

    `seconds` holds the measured mean seconds of a visit by (mst_key, kind). A config without one
    counts as the mean of its kind; where nothing is measured, all count alike. Of those with as
    much to do, one of each of the `programs` goes first, by mst_key: else workers would compile the
    same one side by side. Of several free segments a config takes the next on the ring from its own
    place, so that configs spread; preferring the segment with the most work left made no difference
    in simulations, because mostly one worker at a time becomes idle. A worker that has trained a
    state which is to be evaluated goes on with that.
    """

    seconds: Mapping[tuple[int, Kind], float] = field(default_factory=dict)
    programs: Mapping[int, object] = field(default_factory=dict)

    @classmethod
    def of_training(cls, seconds: Mapping[int, float], programs: Mapping[int, object]) -> Longest:
        """Where only visits that train were measured, by mst_key."""
        return cls({(key, "train"): visit for key, visit in seconds.items()}, programs)

    def prefer(self, plan: Plan, configs: Mapping[int, ConfigProgress]) -> Preference:
        remaining = {key: self._remaining(plan, progress) for key, progress in configs.items()}
        ranked = sorted(configs, key=lambda key: (-remaining[key], self._turns.get(key, 0), key))
        position = {key: index for index, key in enumerate(sorted(configs))}

        def pick(progress: ConfigProgress, free: Sequence[int]) -> int:
            ring = _ring(plan.segments, position[progress.mst_key])
            return next(segment for segment in ring if segment in free)

        return Preference([configs[key] for key in ranked], pick, stays=True)

    def cost(self, mst_key: int, kind: Kind) -> float:
        """The seconds that a visit is expected to take."""
        return self.seconds.get((mst_key, kind), self._means[kind])

    def _remaining(self, plan: Plan, progress: ConfigProgress) -> float:
        train, evaluate = remaining_visits(plan, progress)
        return train * self.cost(progress.mst_key, "train") + evaluate * self.cost(
            progress.mst_key, "evaluate"
        )

    @cached_property
    def _turns(self) -> dict[int, int]:
        """How many configs of its program come before each one."""
        seen: Counter[object] = Counter()
        turns = {}
        for key in sorted(self.programs):
            turns[key] = seen[self.programs[key]]
            seen[self.programs[key]] += 1
        return turns

    @cached_property
    def _means(self) -> dict[Kind, float]:
        return {"train": self._mean("train"), "evaluate": self._mean("evaluate")}

    def _mean(self, kind: Kind) -> float:
        known = [seconds for (_, measured), seconds in self.seconds.items() if measured == kind]
        return fmean(known) if known else 1.0


Rank = Callable[[ConfigProgress], tuple[int, ...]]
"""The place of a config among others, the smallest first; no two have the same."""


def _advance(progress: ConfigProgress) -> tuple[int, ...]:
    return progress.epoch, progress.kind == "evaluate", -len(progress.waiting), progress.mst_key


def _key(progress: ConfigProgress) -> tuple[int, ...]:
    return (progress.mst_key,)


@dataclass(frozen=True)
class FixedOrder:
    """Every config visits the segments of an epoch in its own given order; by default the least
    advanced goes first.

    `order(mst_key, epoch)` gives all segments of the plan. A config waits for its next segment even
    while another is idle. Evaluations change no state, so they take any free segment. `rank` says
    who goes first where several want one worker; no config's order depends on it.
    """

    order: Callable[[int, int], Sequence[int]]
    rank: Rank = _advance

    def prefer(self, plan: Plan, configs: Mapping[int, ConfigProgress]) -> Preference:
        return Preference(sorted(configs.values(), key=self.rank), self._pick)

    def _pick(self, progress: ConfigProgress, free: Sequence[int]) -> int | None:
        if progress.kind == "evaluate":
            return free[0]
        order = self.order(progress.mst_key, progress.epoch)
        if not progress.waiting <= set(order):
            raise ValueError(
                f"order {order} of config {progress.mst_key} leaves out {progress.waiting}"
            )
        following = next(segment for segment in order if segment in progress.waiting)
        return following if following in free else None


@dataclass(frozen=True)
class Prioritised:
    """A policy but for configs that somebody wants to go `first`, in that order."""

    policy: Policy
    first: Sequence[int]

    def prefer(self, plan: Plan, configs: Mapping[int, ConfigProgress]) -> Preference:
        order = {key: place for place, key in enumerate(self.first)}
        preference = self.policy.prefer(plan, configs)
        ranked = sorted(
            preference.ranked, key=lambda progress: order.get(progress.mst_key, len(order))
        )
        return preference._replace(ranked=ranked)


def rotation(mst_keys: Sequence[int], segments: Sequence[int]) -> FixedOrder:
    """Ring order: config i of all configs of the run starts at segment i modulo the number of
    segments.

    Every epoch goes round the same ring on from where the last one ended. Optimal where all visits
    take the same time; otherwise a slow config may hold up those behind it.
    """
    rings = {key: _ring(segments, index) for index, key in enumerate(sorted(mst_keys))}
    return FixedOrder(lambda mst_key, epoch: rings[mst_key])


def foremost(mst_keys: Sequence[int], segments: Sequence[int]) -> FixedOrder:
    """The orders of `rotation`, where the config with the lowest key goes first: depth before
    breadth.

    A worker that the first configs cannot use now serves those behind them, as far as `front` has
    them. Whenever such a run ends, few configs are half trained.
    """
    return replace(rotation(mst_keys, segments), rank=_key)


def front(configs: Mapping[int, ConfigProgress], workers: int) -> frozenset[int]:
    """Of unfinished configs the first ones, as many as keep so many workers busy, and one for their
    gaps.

    A program takes seconds to compile. Who begins another one for a gap of a moment lets the first
    ones wait for it.
    """
    unfinished = sorted(key for key, progress in configs.items() if not progress.finished)
    return frozenset(unfinished[: workers + 1])


def replay(orders: Mapping[tuple[int, int], Sequence[int]]) -> FixedOrder:
    """The logged orders of an earlier run: segments as visited, by (mst_key, epoch)."""
    return FixedOrder(lambda mst_key, epoch: orders[mst_key, epoch])


def fixed_order(
    schedule: str,
    mst_keys: Sequence[int],
    segments: Sequence[int],
    recorded: Mapping[tuple[int, int], Sequence[int]],
) -> FixedOrder | None:
    """The policy of a schedule by its name; None where measured times decide."""
    if schedule == REPLAY:
        return replay(recorded)
    named = {"rotation": rotation, FOREMOST: foremost}.get(schedule)
    return named(mst_keys, segments) if named else None


def policy_of(
    schedule: str,
    mst_keys: Iterable[int],
    segments: Sequence[int],
    recorded: Mapping[tuple[int, int], Sequence[int]],
    seconds: Mapping[int, float],
    programs: Mapping[int, object],
) -> Policy:
    """The policy of a schedule by its name, where a visit of each config takes so many seconds, as
    far as that is known, and these programs are compiled for them."""
    fixed = fixed_order(schedule, list(mst_keys), segments, recorded)
    return fixed or Longest.of_training(seconds, programs)


def _ring(segments: Sequence[int], index: int) -> tuple[int, ...]:
    first = index % len(segments)
    return (*segments[first:], *segments[:first])
