"""The progress of configurations through their visits, as pure functions.

A config's life is a sequence of stages. In the training stage of an epoch a config visits every
segment once, one at a time, because its state is in one place. In the evaluation stage the state
does not change, so several segments may evaluate it at once. No stage of a config waits for another
config: there is no barrier.

This schedule is Model Hopper Parallelism (Nakandala et al., VLDB 2020). The alternative is model
averaging: copies of a config train from one state at once, each copy on segments of its own, and a
further visit averages their states. With a copy per segment, this is the usual model averaging.
Fewer copies hop among their segments and are averaged less often.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, groupby
from typing import Literal, NamedTuple

from cerebro_plpy.records import dataclass, field, replace

Kind = Literal["train", "average", "evaluate"]
Stage = tuple[int, int, Kind]  # mst_key, epoch and kind
Segments = tuple[int, ...]
Epochs = tuple[int, ...]
Copies = tuple[Segments, ...]  # segments of each averaged copy of a config
Orders = Mapping[tuple[int, int], Sequence[int]]
"""Segments in the order of visits, by mst_key and epoch."""
AVERAGING = "averaging"  # name of the schedule that averages copies


class Visit(NamedTuple):
    """One visit of a config to the partition of one segment."""

    epoch: int  # counted from 1
    mst_key: int
    segment_id: int
    kind: Kind


VisitBatch = tuple[Visit, ...]
"""Visits of one config that a worker makes together, in this order; a single one if visits are
long. Training visits may continue into the next epochs. The evaluations in between belong to the
batch if its worker makes all of them."""


@dataclass(frozen=True)
class Plan:
    """The work of every config of a run, and the worker of each segment.

    Raises:
        ValueError: epochs < 1, segments repeat, copies do not share all segments, or a segment
            has no worker.
    """

    epochs: int
    segments: Segments
    workers: Mapping[int, int]  # by segment
    evaluate_epochs: frozenset[int] = frozenset()
    copies: Copies = ()  # segments of each averaged copy; empty without copies
    segment_subsets: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """Segments by mst_key, of configs that do not visit all segments."""
    whole_epoch_keys: frozenset[int] = frozenset()
    """Configs, by mst_key, that learn from the rows of all their segments at once: one worker makes
    all visits of an epoch in one batch, in the order of `order_whole_epoch`."""
    is_segment_bound: bool = False
    """True if each worker stores states on its own segment only."""

    def __post_init__(self) -> None:
        if self.epochs < 1 or not self.segments or len(set(self.segments)) != len(self.segments):
            raise ValueError(f"a plan needs epochs >= 1 and distinct segments, got {self}")
        if self.copies and sorted(chain(*self.copies)) != sorted(self.segments):
            raise ValueError(f"copies share all segments {self.segments}, got {self.copies}")
        unserved = set(self.segments) - self.workers.keys()
        if unserved:
            raise ValueError(f"segments without a worker: {unserved}")

    def segments_of(self, mst_key: int) -> frozenset[int]:
        """Return the segments that a config visits in an epoch."""
        return self.segment_subsets.get(mst_key) or self._all_segments

    def find_home_segment(self, mst_key: int) -> int | None:
        """Return the segment whose worker makes the whole epochs of a config.

        None if any worker may make them.
        """
        if not self.is_segment_bound or mst_key not in self.whole_epoch_keys:
            return None
        segments = sorted(self.segments_of(mst_key))
        return segments[mst_key % len(segments)]

    def order_whole_epoch(self, mst_key: int) -> Segments:
        """Return the segments of a config in the order of a whole epoch.

        The state is stored on the segment of the last visit, which is the home if there is one.
        """
        segments = tuple(sorted(self.segments_of(mst_key)))
        home = self.find_home_segment(mst_key)
        if home is None:
            return segments
        end = segments.index(home) + 1
        return (*segments[end:], *segments[:end])

    @property
    def is_averaging(self) -> bool:
        """Return True if copies of a config are averaged."""
        return bool(self.copies)

    @cached_property
    def _all_segments(self) -> frozenset[int]:
        return frozenset(self.segments)

    @cached_property
    def evaluations(self) -> Epochs:
        """Return the epochs that end with an evaluation, in order."""
        return tuple(sorted(epoch for epoch in self.evaluate_epochs if 1 <= epoch <= self.epochs))


@dataclass(frozen=True)
class ConfigProgress:
    """The stage of one config, with the segments of this stage that are still to be visited."""

    mst_key: int
    epoch: int
    kind: Kind
    waiting_segments: frozenset[int]
    running_segments: frozenset[int] = frozenset()
    stopping: bool = False  # after this stage, the config is at most evaluated
    copies: Copies = ()  # segments of each copy in the order of its visits
    last_segment: int | None = field(default=None, compare=False)
    """Segment of the visit that produced the state; None if unknown."""
    later_visits: int = 0  # running visits that belong to later stages
    max_epoch: int | None = None  # trains until the end of this epoch; None for the last one
    paused: bool = False  # starts no training visit

    @property
    def finished(self) -> bool:
        return not (self.waiting_segments or self.running_segments)

    @property
    def awaits_decision(self) -> bool:
        """Return True if the config is at its last epoch or paused, and only a decision helps."""
        if self.kind != "train" or self.stopping or self.running_segments:
            return False
        if not self.waiting_segments:
            return False
        return self.paused or (self.max_epoch is not None and self.epoch > self.max_epoch)

    @property
    def startable_segments(self) -> frozenset[int]:
        """Return the segments that the config may visit now."""
        if self.awaits_decision:
            return frozenset()
        if self.kind != "train":
            return self.waiting_segments
        if not self.copies:
            return frozenset() if self.running_segments else self.waiting_segments
        startable = set()
        for copy in self.copies:
            waiting = [segment for segment in copy if segment in self.waiting_segments]
            if waiting and not self.running_segments.intersection(copy):
                startable.add(waiting[0])
        return frozenset(startable)


Configs = Mapping[int, ConfigProgress]
"""The progress of configs by mst_key."""


def start(plan: Plan, mst_key: int) -> ConfigProgress:
    """Return the progress of a config that has not made any visit."""
    copies = rotate_copies(plan.copies, mst_key)
    return ConfigProgress(mst_key, 1, "train", plan.segments_of(mst_key), copies=copies)


def rotate_copies(copies: Copies, mst_key: int) -> Copies:
    """Return the segments of each copy in visiting order, which starts elsewhere for each config.

    >>> rotate_copies(((0, 1, 2), (3, 4)), 1)
    ((1, 2, 0), (4, 3))
    """
    return tuple((*copy[mst_key % len(copy) :], *copy[: mst_key % len(copy)]) for copy in copies)


def resume(plan: Plan, mst_key: int, completed: Iterable[Visit]) -> ConfigProgress:
    """Return the progress of a config after the completed visits.

    Args:
        completed: visits of any configs; those of other configs are ignored.
    """
    visited: dict[Stage, set[int]] = {}
    for visit in completed:
        visited.setdefault(_stage_of_visit(visit), set()).add(visit.segment_id)
    progress = start(plan, mst_key)
    while not progress.finished:
        waiting = progress.waiting_segments - visited.get(_stage(progress), set())
        progress = replace(progress, waiting_segments=waiting)
        if waiting:
            return progress
        progress = next_stage(plan, progress)
    return progress


def begin(progress: ConfigProgress, batch: VisitBatch) -> ConfigProgress:
    """Return the progress with the visits of a batch running.

    Raises:
        ValueError: the visits may not start.
    """
    segments = {visit.segment_id for visit in _visits_of_stage(progress, batch)}
    is_current = _stage_of_visit(batch[0]) == _stage(progress)
    if not is_current or not segments <= progress.startable_segments:
        raise ValueError(f"{batch} cannot start: {progress}")
    return replace(
        progress,
        waiting_segments=progress.waiting_segments - segments,
        running_segments=progress.running_segments | segments,
        later_visits=sum(visit.kind == "train" for visit in batch[len(segments) :]),
    )


def complete(plan: Plan, progress: ConfigProgress, batch: VisitBatch) -> ConfigProgress:
    """Return the progress with running visits done; in the next stage if this one is complete."""
    trained = [visit.segment_id for visit in batch if visit.kind != "evaluate"]
    progress = replace(
        progress,
        running_segments=progress.running_segments - _running(progress, batch),
        last_segment=trained[-1] if trained else progress.last_segment,
        later_visits=0,
    )
    later_visits = batch[len(_visits_of_stage(progress, batch)) :]
    for (_, epoch, kind), visits in groupby(later_visits, _stage_of_visit):
        waiting: frozenset[int] = frozenset()
        if not progress.stopping:
            visited = {visit.segment_id for visit in visits}
            waiting = plan.segments_of(progress.mst_key) - visited
        progress = replace(progress, epoch=epoch, kind=kind, waiting_segments=waiting)
    if not progress.finished:
        return progress
    return next_stage(plan, progress)


def abandon(progress: ConfigProgress, batch: VisitBatch) -> ConfigProgress:
    """Return the progress with running visits waiting again, because they were not made."""
    segments = _running(progress, batch)
    return replace(
        progress,
        waiting_segments=progress.waiting_segments | segments,
        running_segments=progress.running_segments - segments,
        later_visits=0,
    )


def stop(plan: Plan, progress: ConfigProgress) -> ConfigProgress:
    """Return the progress of a config that starts no further training visit.

    Running visits remain, and the evaluation of the newest state unless that is done or the run
    does not evaluate. A config that averages completes the epoch that it has begun, because it has
    no state in the middle of an epoch.
    """
    if progress.finished:
        return progress
    has_begun = has_begun_epoch(plan, progress)
    completes_epoch = plan.is_averaging and (has_begun or progress.kind == "average")
    if completes_epoch and progress.kind != "evaluate":
        return replace(progress, stopping=True)
    if progress.kind == "evaluate":
        return replace(progress, stopping=True)
    stopped = replace(progress, waiting_segments=frozenset(), stopping=True)
    if progress.running_segments:
        return stopped
    if has_begun:
        return next_stage(plan, stopped)
    previous = replace(
        stopped, epoch=progress.epoch - 1, kind="average" if plan.is_averaging else "train"
    )
    if previous.epoch == 0 or previous.epoch in plan.evaluate_epochs:
        return stopped
    return next_stage(plan, previous)


def expire(
    plan: Plan, progress: ConfigProgress, has_retained_state: bool, evaluated: bool
) -> ConfigProgress:
    """Return the progress when no training visit may start any more, not even as a retry.

    Call it again whenever a visit of the config has ended. Running visits and evaluations continue.
    Without running visits, the config ends with the evaluation of its newest state, even in the
    middle of an epoch. A config that averages has no such state; the previous epoch's is its
    newest.

    Args:
        has_retained_state: an earlier state is the config's model. The config then ends as it is,
            and without a visit that would require the rest of its epoch.
        evaluated: the newest state is evaluated already.
    """
    if progress.kind == "evaluate" or progress.finished:
        return replace(progress, stopping=True)
    if progress.kind == "average":
        return progress
    if progress.running_segments:
        ends_early = has_retained_state or plan.is_averaging
        if not (progress.waiting_segments and ends_early):
            return progress
    if has_retained_state or evaluated:
        return end(progress)
    waiting = progress.waiting_segments
    if plan.is_averaging:
        waiting = plan.segments_of(progress.mst_key)
    return stop(plan, replace(progress, waiting_segments=waiting, running_segments=frozenset()))


def revive(plan: Plan, progress: ConfigProgress, max_epoch: int) -> ConfigProgress:
    """Return the progress of a config that trains again until the end of `max_epoch`.

    The config was paused, or stopped between two epochs.
    """
    waiting = progress.waiting_segments
    if progress.finished:
        waiting = plan.segments_of(progress.mst_key)
    return replace(
        progress, waiting_segments=waiting, stopping=False, paused=False, max_epoch=max_epoch
    )


def has_begun_epoch(plan: Plan, progress: ConfigProgress) -> bool:
    """Return True if a training config has visited segments of its epoch, or does so now."""
    return len(progress.waiting_segments) < len(plan.segments_of(progress.mst_key))


def end(progress: ConfigProgress) -> ConfigProgress:
    """Return the progress of a finished config; visits that still run do not count."""
    return replace(
        progress, waiting_segments=frozenset(), running_segments=frozenset(), stopping=True
    )


def is_epoch_complete(configs: Configs, epoch: int) -> bool:
    """Return True if every config has completed the epoch and its evaluation."""
    return all(progress.finished or progress.epoch > epoch for progress in configs.values())


def is_run_finished(configs: Configs) -> bool:
    """Return True if every config is finished."""
    return all(progress.finished for progress in configs.values())


def next_stage(plan: Plan, progress: ConfigProgress) -> ConfigProgress:
    """Return the progress at the start of the following stage."""
    segments = plan.segments_of(progress.mst_key)
    if progress.kind == "train" and plan.is_averaging:
        segment = plan.segments[progress.epoch % len(segments)]  # segments take turns
        return replace(progress, kind="average", waiting_segments=frozenset({segment}))
    needs_evaluation = progress.epoch in plan.evaluate_epochs
    if progress.stopping:
        needs_evaluation = bool(plan.evaluations)
    if progress.kind != "evaluate" and needs_evaluation:
        return replace(progress, kind="evaluate", waiting_segments=segments)
    epoch = progress.epoch + 1
    if progress.stopping or epoch > plan.epochs:
        segments = frozenset()
    return replace(progress, epoch=epoch, kind="train", waiting_segments=segments)


def _stage_of_visit(visit: Visit) -> Stage:
    return visit.mst_key, visit.epoch, visit.kind


def _stage(progress: ConfigProgress) -> Stage:
    return progress.mst_key, progress.epoch, progress.kind


def _visits_of_stage(progress: ConfigProgress, batch: VisitBatch) -> VisitBatch:
    """Return the first visits of a batch, those of the config's current stage."""
    return tuple(visit for visit in batch if _stage_of_visit(visit) == _stage(progress))


def _running(progress: ConfigProgress, batch: VisitBatch) -> set[int]:
    """Return the segments of a batch's visits in the config's current stage.

    Raises:
        ValueError: the visits are not running.
    """
    segments = {visit.segment_id for visit in _visits_of_stage(progress, batch)}
    is_own = all(visit.mst_key == progress.mst_key for visit in batch)
    if not is_own or not segments <= progress.running_segments:
        raise ValueError(f"{batch} is not running: {progress}")
    return segments
