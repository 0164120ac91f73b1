"""Model hopping as pure functions: which config may visit which segment now.

A config's life is a sequence of stages. In the training stage of an epoch it visits every segment
once, one at a time, because its state is in one place; in the evaluation stage, after it, the state
stands still, so it may be evaluated on several segments at once. No stage of one config waits for
another config: there is no barrier.

The form of the schedule is Model Hopper Parallelism (Nakandala et al., VLDB 2020). The one other
form is model averaging: there copies of a config train from one state, at once, each on segments of
its own, and a visit follows that averages what these left. Where each segment has a copy it is
model averaging as others know it; fewer copies, which hop among their segments, are averaged the
later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import chain, groupby
from typing import Literal, NamedTuple

from cerebro_plpy.records import dataclass, field, replace

Kind = Literal["train", "average", "evaluate"]
AVERAGING = "averaging"  # the name of the schedule of that form


class Visit(NamedTuple):
    """One config on one segment's partition, once; epochs count from 1."""

    epoch: int
    mst_key: int
    segment_id: int
    kind: Kind


Tour = tuple[Visit, ...]
"""Visits of one config that a worker makes together, in this order: one where they are long. Those
that train may go on into the next epochs; the evaluations in between belong to the tour, where its
worker makes all visits of them."""


@dataclass(frozen=True)
class Plan:
    """What every config of a run has to do, and which worker serves which segment.

    With `copies` these start an epoch from one state, visit their segments one after another, and a
    further visit makes the mean of what they have left. Configs that do not visit all segments have
    `own` ones, by mst_key. Raises ValueError where epochs < 1, segments repeat, or a segment has no
    worker.
    """

    epochs: int
    segments: tuple[int, ...]
    workers: Mapping[int, int]
    evaluate_epochs: frozenset[int] = frozenset()
    copies: tuple[tuple[int, ...], ...] = ()
    own: Mapping[int, frozenset[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.epochs < 1 or not self.segments or len(set(self.segments)) != len(self.segments):
            raise ValueError(f"a plan needs epochs >= 1 and distinct segments, got {self}")
        if self.copies and sorted(chain(*self.copies)) != sorted(self.segments):
            raise ValueError(f"copies share all segments {self.segments}, got {self.copies}")
        if not set(self.segments) <= self.workers.keys():
            raise ValueError(
                f"segments without a worker: {set(self.segments) - self.workers.keys()}"
            )

    def visited(self, mst_key: int) -> frozenset[int]:
        """The segments that a config visits in an epoch."""
        return self.own.get(mst_key) or self._everywhere

    @property
    def averaging(self) -> bool:
        """Whether copies of a config are averaged."""
        return bool(self.copies)

    @cached_property
    def _everywhere(self) -> frozenset[int]:
        return frozenset(self.segments)

    @cached_property
    def evaluations(self) -> tuple[int, ...]:
        """The epochs that end with an evaluation, in order."""
        return tuple(sorted(epoch for epoch in self.evaluate_epochs if 1 <= epoch <= self.epochs))


@dataclass(frozen=True)
class ConfigProgress:
    """Where one config stands: its stage, and the stage's segments still waiting and now running.

    Where there are `copies` each of them visits its segments in this order. After this stage one
    that is `stopping` is at most evaluated. Its state was left by a visit to the segment `left`,
    None where nobody remembers. So many visits `beyond` the stage run as well. Until somebody
    decides otherwise it trains to the end of the epoch `limit`, None for the last one; one that is
    `held` begins no visit to train.
    """

    mst_key: int
    epoch: int
    kind: Kind
    waiting: frozenset[int]
    running: frozenset[int] = frozenset()
    stopping: bool = False
    copies: tuple[tuple[int, ...], ...] = ()
    left: int | None = field(default=None, compare=False)
    beyond: int = 0
    limit: int | None = None
    held: bool = False

    @property
    def finished(self) -> bool:
        return not (self.waiting or self.running)

    @property
    def resting(self) -> bool:
        """Whether the config has come to its limit, or is held, and waits for what is decided."""
        waits = self.held or (self.limit is not None and self.epoch > self.limit)
        return (
            waits
            and self.kind == "train"
            and bool(self.waiting)
            and not (self.stopping or self.running)
        )

    @property
    def startable(self) -> frozenset[int]:
        """The segments that the config may visit now."""
        if self.resting:
            return frozenset()
        if self.kind == "train" and self.copies:
            free = (copy for copy in self.copies if not self.running.intersection(copy))
            following = (
                next((segment for segment in copy if segment in self.waiting), None)
                for copy in free
            )
            return frozenset(segment for segment in following if segment is not None)
        return frozenset() if self.kind == "train" and self.running else self.waiting


def start(plan: Plan, mst_key: int) -> ConfigProgress:
    """A config that has done nothing yet."""
    return ConfigProgress(
        mst_key, 1, "train", plan.visited(mst_key), copies=turns(plan.copies, mst_key)
    )


def turns(copies: tuple[tuple[int, ...], ...], mst_key: int) -> tuple[tuple[int, ...], ...]:
    """The segments of each copy of a config in the order in which it visits them: each config
    begins elsewhere.

    >>> turns(((0, 1, 2), (3, 4)), 1)
    ((1, 2, 0), (4, 3))
    """
    return tuple((*copy[mst_key % len(copy) :], *copy[: mst_key % len(copy)]) for copy in copies)


def resume(plan: Plan, mst_key: int, completed: Iterable[Visit]) -> ConfigProgress:
    """A config that has completed these visits (those of other configs are passed over)."""
    done: dict[tuple[int, int, Kind], set[int]] = {}
    for visit in completed:
        done.setdefault(_stage(visit), set()).add(visit.segment_id)
    progress = start(plan, mst_key)
    while not progress.finished:
        progress = replace(
            progress, waiting=progress.waiting - done.get(_stage_of(progress), set())
        )
        if progress.waiting:
            return progress
        progress = next_stage(plan, progress)
    return progress


def begin(progress: ConfigProgress, tour: Tour) -> ConfigProgress:
    """The config with these visits running, those of its stage; raises ValueError where they may
    not start.
    """
    moved = {visit.segment_id for visit in _of_stage(progress, tour)}
    if _stage(tour[0]) != _stage_of(progress) or not moved <= progress.startable:
        raise ValueError(f"{tour} cannot start: {progress}")
    beyond = sum(visit.kind == "train" for visit in tour[len(moved) :])
    return replace(
        progress, waiting=progress.waiting - moved, running=progress.running | moved, beyond=beyond
    )


def complete(plan: Plan, progress: ConfigProgress, tour: Tour) -> ConfigProgress:
    """The config with these running visits done, in its next stage if they were the last of this
    one.
    """
    left = next(
        (visit.segment_id for visit in reversed(tour) if visit.kind != "evaluate"), progress.left
    )
    progress = replace(
        progress, running=progress.running - _running(progress, tour), left=left, beyond=0
    )
    for (_, epoch, kind), visits in groupby(tour[len(_of_stage(progress, tour)) :], _stage):
        done = {visit.segment_id for visit in visits}
        waiting = frozenset() if progress.stopping else plan.visited(progress.mst_key) - done
        progress = replace(progress, epoch=epoch, kind=kind, waiting=waiting)
    return next_stage(plan, progress) if progress.finished else progress


def abandon(progress: ConfigProgress, tour: Tour) -> ConfigProgress:
    """The config with these running visits waiting again, because they were not made."""
    moved = _running(progress, tour)
    return replace(
        progress, waiting=progress.waiting | moved, running=progress.running - moved, beyond=0
    )


def stop(plan: Plan, progress: ConfigProgress) -> ConfigProgress:
    """The config as one that begins no further visit to train.

    What it has still to do is what runs, and the evaluation of its newest state where the run
    evaluates at all and that state was not evaluated yet. One that averages completes an epoch that
    it has begun: there is no state in the midst of it.
    """
    if progress.finished:
        return progress
    begun = progress.kind == "average" or begun_with_epoch(plan, progress)
    if plan.averaging and progress.kind != "evaluate" and begun:
        return replace(progress, stopping=True)
    if progress.kind == "evaluate" or progress.running:
        waiting = progress.waiting if progress.kind == "evaluate" else frozenset()
        return replace(progress, waiting=waiting, stopping=True)
    stopped = replace(progress, waiting=frozenset(), stopping=True)
    if begun_with_epoch(plan, progress):
        return next_stage(plan, stopped)
    before = replace(
        stopped, epoch=progress.epoch - 1, kind="average" if plan.averaging else "train"
    )
    return stopped if before.epoch in {0, *plan.evaluate_epochs} else next_stage(plan, before)


def expire(plan: Plan, progress: ConfigProgress, kept: bool, evaluated: bool) -> ConfigProgress:
    """The config when no visit to train may begin any more, not even one that is to be tried again.

    To be asked anew whenever one of its visits has ended. A visit that runs may end by itself, and
    an evaluation goes on. At rest the config ends with the evaluation of its newest state, in the
    midst of an epoch too, where the run evaluates at all and that state was not `evaluated`. One of
    which an earlier state is `kept` as its model ends as it is, and without a visit after which
    others of its epoch would have to follow. An epoch that averages has no state in the midst of
    it: the one before it is the newest.
    """
    if progress.kind == "evaluate" or progress.finished:
        return replace(progress, stopping=True)
    if progress.kind == "average" or (
        progress.running and not (progress.waiting and (kept or plan.averaging))
    ):
        return progress
    if kept or evaluated:
        return end(progress)
    waiting = plan.visited(progress.mst_key) if plan.averaging else progress.waiting
    return stop(plan, replace(progress, waiting=waiting, running=frozenset()))


def revive(plan: Plan, progress: ConfigProgress, limit: int) -> ConfigProgress:
    """The config as one that trains on, until the end of an epoch; it was held, or stopped between
    two epochs.
    """
    waiting = plan.visited(progress.mst_key) if progress.finished else progress.waiting
    return replace(progress, waiting=waiting, stopping=False, held=False, limit=limit)


def begun_with_epoch(plan: Plan, progress: ConfigProgress) -> bool:
    """Whether a config that trains has visited segments of its epoch, or does so now."""
    return len(progress.waiting) < len(plan.visited(progress.mst_key))


def end(progress: ConfigProgress) -> ConfigProgress:
    """The config as one that has nothing left to do, and for which what still runs does not
    count.
    """
    return replace(progress, waiting=frozenset(), running=frozenset(), stopping=True)


def epoch_completed(configs: Mapping[int, ConfigProgress], epoch: int) -> bool:
    """Whether every config has done all of the epoch, its evaluation included."""
    return all(progress.finished or progress.epoch > epoch for progress in configs.values())


def run_finished(configs: Mapping[int, ConfigProgress]) -> bool:
    """Whether no config has anything left to do."""
    return all(progress.finished for progress in configs.values())


def next_stage(plan: Plan, progress: ConfigProgress) -> ConfigProgress:
    """The config in the stage that follows its own."""
    segments = plan.visited(progress.mst_key)
    if progress.kind == "train" and plan.averaging:
        place = plan.segments[progress.epoch % len(segments)]  # segments take turns
        return replace(progress, kind="average", waiting=frozenset({place}))
    evaluated = (
        bool(plan.evaluations) if progress.stopping else progress.epoch in plan.evaluate_epochs
    )
    if progress.kind != "evaluate" and evaluated:
        return replace(progress, kind="evaluate", waiting=segments)
    epoch = progress.epoch + 1
    ahead = epoch <= plan.epochs and not progress.stopping
    return replace(progress, epoch=epoch, kind="train", waiting=segments if ahead else frozenset())


def _stage(visit: Visit) -> tuple[int, int, Kind]:
    return visit.mst_key, visit.epoch, visit.kind


def _stage_of(progress: ConfigProgress) -> tuple[int, int, Kind]:
    return progress.mst_key, progress.epoch, progress.kind


def _of_stage(progress: ConfigProgress, tour: Tour) -> Tour:
    """The first visits of a tour, which are of the stage that a config is in."""
    return tuple(visit for visit in tour if _stage(visit) == _stage_of(progress))


def _running(progress: ConfigProgress, tour: Tour) -> set[int]:
    """The segments of these visits, those of the config's stage; raises ValueError where they are
    not under way.
    """
    segments = {visit.segment_id for visit in _of_stage(progress, tour)}
    if any(visit.mst_key != progress.mst_key for visit in tour) or not segments <= progress.running:
        raise ValueError(f"{tour} is not running: {progress}")
    return segments
