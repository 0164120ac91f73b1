"""Which visits begin now: tours for idle workers, of visits that a worker makes together.

Configs that failed or were stopped are left out of the mapping given to `choose`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Optional, Protocol

from cerebro_plpy.records import replace
from cerebro_plpy.scheduling.schedule.schedule import (
    ConfigProgress,
    Plan,
    Tour,
    Visit,
    begin,
    next_stage,
)

HOPS = 8.0
"""Visits train together for as long as so many hops, where several fit into that."""
LONGEST = 2.0
"""But no longer than so many seconds, or than a hop: somebody may want something of the run."""
SHORTEST = 1e-6


class Reach(NamedTuple):
    """How far a tour may go: over so many visits that train, or that evaluate where it begins with
    one; and with those that train over so many evaluations, after the last of which it ends."""

    visits: int
    evaluations: int = 0


Pick = Callable[[ConfigProgress, Sequence[int]], Optional[int]]
"""Names the segment that a config takes of the free ones, a non-empty sequence, or None if it
rather waits.
"""


class Preference(NamedTuple):
    """A policy's opinion of one moment.

    `ranked` lists configs in the order in which they take workers. Where it `stays`, an evaluation
    that a worker can begin from the state that it has just trained goes before all of them: it has
    to be made there, and later that state would have to be read again.
    """

    ranked: Sequence[ConfigProgress]
    pick: Pick
    stays: bool = False


class Policy(Protocol):
    """What decides between visits that could all start; it must give the same answer to the same
    question.
    """

    def prefer(self, plan: Plan, configs: Mapping[int, ConfigProgress]) -> Preference: ...


Reaches = Callable[[ConfigProgress], Reach]
"""How far the next tour of a config may go."""


NOBODY: Mapping[int, int] = {}


def choose(
    plan: Plan,
    configs: Mapping[int, ConfigProgress],
    idle_workers: Iterable[int],
    policy: Policy,
    reaches: Reaches,
    held: Mapping[int, int] = NOBODY,
) -> tuple[tuple[int, Tour], ...]:
    """The visits to start now, each tour with its worker; none of them conflicts with another.

    No worker stays idle that could serve a config, unless the policy lets that config wait. Configs
    that are `held` have a state that only one worker's trainer has yet: none but that one can go on
    with them.
    """
    idle = set(idle_workers)
    segments = [segment for segment in plan.segments if plan.workers[segment] in idle]
    ranked, pick, stays = policy.prefer(plan, configs)
    chosen: list[tuple[int, Tour]] = []
    if stays:
        staying = [progress for progress in ranked if _near(plan, progress, segments)]
        ranked = [*staying, *(progress for progress in ranked if progress not in staying)]
    for progress in ranked:
        home = held.get(progress.mst_key)
        own = [segment for segment in segments if home in (None, plan.workers[segment])]
        while free := [segment for segment in own if segment in progress.startable]:
            segment = pick(progress, (_near(plan, progress, free) if stays else ()) or free)
            if segment is None:
                break
            worker = plan.workers[segment]
            served = [other for other in segments if plan.workers[other] == worker]
            tour = tour_from(plan, progress, segment, served, pick, reaches(progress))
            chosen.append((worker, tour))
            segments, own = (
                [other for other in each if other not in served] for each in (segments, own)
            )
            progress = begin(progress, tour)
        if not segments:
            break
    return tuple(chosen)


def together(visit: float, evaluation: float | None, hop: float, wait: float) -> Reach:
    """How far tours are to go, where a visit and an evaluation take so long, what is around a tour
    takes a `hop`, and what is trained may `wait` so long until it is stored. An evaluation belongs
    to them where they are several.

    >>> together(1.0, None, 0.1, 0.0), together(0.01, None, 0.1, 0.0)
    (Reach(visits=1, evaluations=0), Reach(visits=80, evaluations=1))
    >>> together(1.0, 1.5, 0.1, 5.0)
    Reach(visits=2, evaluations=2)
    """
    seconds = max(wait, min(HOPS * hop, max(hop, LONGEST)))
    visits = math.floor(seconds / max(visit + (evaluation or 0.0), SHORTEST))
    return Reach(1) if visits <= 1 else Reach(visits, 1 if evaluation is None else visits)


def _near(plan: Plan, progress: ConfigProgress, segments: Iterable[int]) -> list[int]:
    """Those of the segments on which a config can be evaluated by the worker that its state was
    left at.
    """
    if progress.kind != "evaluate" or progress.left is None:
        return []
    worker = plan.workers[progress.left]
    return [
        segment
        for segment in segments
        if segment in progress.startable and plan.workers[segment] == worker
    ]


def tour_from(
    plan: Plan,
    progress: ConfigProgress,
    segment: int | None,
    within: Sequence[int],
    pick: Pick,
    reach: Reach,
) -> Tour:
    """The visits that a config makes from a segment on, one after another, as long as all are
    within these segments: as far as the tour may reach, but one in any case."""
    tour: list[Visit] = []
    made, left = 0, reach.evaluations
    while segment is not None and made < max(1, reach.visits):
        tour.append(Visit(progress.epoch, progress.mst_key, segment, progress.kind))
        made, progress = made + 1, replace(progress, waiting=progress.waiting - {segment})
        if (
            progress.kind == "train"
            and progress.finished
            and not (progress.copies or progress.stopping)
        ):
            progress, evaluation = _onward(plan, progress, within if left else ())
            tour += evaluation
            left -= bool(evaluation)
            if evaluation and not left:
                break
        free = [other for other in within if other in progress.startable]
        segment = pick(progress, free) if free else None
    return tuple(tour)


def _onward(
    plan: Plan, progress: ConfigProgress, within: Sequence[int]
) -> tuple[ConfigProgress, Tour]:
    """A config that has trained on all segments as it begins to train again, and the evaluation
    before that; as it is, where not all of that is within these segments."""
    following = next_stage(plan, progress)
    if following.kind == "train":
        return following, ()
    if not following.waiting <= set(within):
        return progress, ()
    where = [segment for segment in within if segment in following.waiting]
    evaluation = tuple(
        Visit(following.epoch, following.mst_key, segment, "evaluate") for segment in where
    )
    return next_stage(plan, replace(following, waiting=frozenset())), evaluation
