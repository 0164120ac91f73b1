"""The choice of the visits to start now: batches of visits for idle workers.

Configs that failed or were stopped are left out of the mapping that `choose_batches` takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Optional, Protocol

from cerebro_plpy.records import replace
from cerebro_plpy.scheduling.schedule.schedule import (
    ConfigProgress,
    Configs,
    Plan,
    Visit,
    VisitBatch,
    begin,
    next_stage,
)

BATCH_HOPS = 8.0
"""Intended duration of a batch, in hops, if several visits fit into it."""
MIN_BATCH_SECONDS = 0.3
"""The same if a hop is short: the messages around a batch take some milliseconds more."""
MAX_BATCH_SECONDS = 2.0
"""Longest duration of a batch of several visits, unless a hop is longer: users may wait for it."""
MIN_VISIT_SECONDS = 1e-6


class BatchLimit(NamedTuple):
    """The largest size of a batch."""

    visits: int  # that train; or that evaluate, if the batch starts with an evaluation
    evaluations: int = 0  # a batch that trains ends after the last of them


Pick = Callable[[ConfigProgress, Sequence[int]], Optional[int]]
"""Choose the segment that a config visits, from a non-empty sequence; None to let it wait."""


class Preference(NamedTuple):
    """The decisions of a policy at one moment."""

    ranked: Sequence[ConfigProgress]  # in the order in which configs take workers
    pick: Pick
    evaluates_first: bool = False
    """Start evaluations of a state that the worker has just trained before all other visits. The
    state must be evaluated there, and later the worker would have to read it again."""
    urgent: Collection[int] = ()
    """Configs, by mst_key, that a worker takes before those that are nearer to it."""


class Policy(Protocol):
    """A deterministic choice between visits that could all start."""

    def prefer(self, plan: Plan, configs: Configs) -> Preference: ...


LimitOf = Callable[[ConfigProgress], BatchLimit]
"""Return the limit of the next batch of a config."""


Batches = tuple[tuple[int, VisitBatch], ...]  # each with its worker
NOT_PINNED: Mapping[int, int] = {}


def choose_batches(
    plan: Plan,
    configs: Configs,
    idle_workers: Iterable[int],
    policy: Policy,
    limit_of: LimitOf,
    pinned: Mapping[int, int] = NOT_PINNED,
) -> Batches:
    """Return the visits to start now, each batch with its worker; batches do not conflict.

    A worker that could serve a config stays idle only if the policy lets that config wait.

    Args:
        pinned: worker by mst_key, of configs whose state only this worker's trainer has so far.
            Other workers cannot continue with these configs.
    """
    idle = set(idle_workers)
    segments = [segment for segment in plan.segments if plan.workers[segment] in idle]
    preference = policy.prefer(plan, configs)
    ranked = preference.ranked
    batches: list[tuple[int, VisitBatch]] = []
    if preference.evaluates_first:
        staying = [progress for progress in ranked if _near_state(plan, progress, segments)]
        ranked = [*staying, *(progress for progress in ranked if progress not in staying)]
    for progress in ranked:
        home = pinned.get(progress.mst_key)
        if progress.mst_key in plan.whole_epoch_keys:
            able_worker = _find_able_worker(plan, progress, segments, home)
            if able_worker is not None:
                batch = build_whole_batch(plan, progress, limit_of(progress))
                batches.append((able_worker, batch))
                segments = [segment for segment in segments if plan.workers[segment] != able_worker]
            continue
        while True:
            free = [
                segment
                for segment in segments
                if home in (None, plan.workers[segment]) and segment in progress.startable_segments
            ]
            if not free:
                break
            if preference.evaluates_first:
                free = _near_state(plan, progress, free) or free
            segment = preference.pick(progress, free)
            if segment is None:
                break
            worker = plan.workers[segment]
            served = [candidate for candidate in segments if plan.workers[candidate] == worker]
            limit = limit_of(progress)
            batch = build_batch(plan, progress, segment, served, preference.pick, limit)
            batches.append((worker, batch))
            segments = [remaining for remaining in segments if remaining not in served]
            progress = begin(progress, batch)
        if not segments:
            break
    return tuple(batches)


def choose_limit(
    visit_seconds: float, evaluation_seconds: float | None, hop_seconds: float, max_wait: float
) -> BatchLimit:
    """Return how many visits to put into a batch, so that hops take a small part of the time.

    Evaluations belong to a batch if several fit into it.

    Args:
        evaluation_seconds: None if unknown.
        hop_seconds: overhead of one batch.
        max_wait: seconds that trained states may wait until they are stored.

    >>> choose_limit(1.0, None, 0.1, 0.0), choose_limit(0.01, None, 0.1, 0.0)
    (BatchLimit(visits=1, evaluations=0), BatchLimit(visits=80, evaluations=1))
    >>> choose_limit(1.0, 1.5, 0.1, 5.0)
    BatchLimit(visits=2, evaluations=2)
    """
    usual_seconds = max(MIN_BATCH_SECONDS, BATCH_HOPS * hop_seconds)
    seconds = max(max_wait, min(usual_seconds, max(hop_seconds, MAX_BATCH_SECONDS)))
    visits = math.floor(
        seconds / max(visit_seconds + (evaluation_seconds or 0.0), MIN_VISIT_SECONDS)
    )
    if visits <= 1:
        return BatchLimit(1)
    return BatchLimit(visits, 1 if evaluation_seconds is None else visits)


def _near_state(plan: Plan, progress: ConfigProgress, segments: Iterable[int]) -> list[int]:
    """Return the segments on which the worker that trained the state can evaluate it."""
    if progress.kind != "evaluate" or progress.last_segment is None:
        return []
    worker = plan.workers[progress.last_segment]
    return [
        segment
        for segment in segments
        if segment in progress.startable_segments and plan.workers[segment] == worker
    ]


def build_batch(
    plan: Plan,
    progress: ConfigProgress,
    first_segment: int | None,
    segments: Sequence[int],
    pick: Pick,
    limit: BatchLimit,
) -> VisitBatch:
    """Return the visits that a config makes on `segments`, beginning with `first_segment`.

    The batch has at least one visit, whatever its limit.
    """
    batch: list[Visit] = []
    visits = 0
    evaluations = 0
    segment = first_segment
    while segment is not None and visits < max(1, limit.visits):
        batch.append(Visit(progress.epoch, progress.mst_key, segment, progress.kind))
        visits += 1
        progress = replace(progress, waiting_segments=progress.waiting_segments - {segment})
        if _may_continue(progress):
            may_evaluate = evaluations < limit.evaluations
            progress, evaluation = _continue(plan, progress, segments if may_evaluate else ())
            batch += evaluation
            evaluations += bool(evaluation)
            if evaluation and evaluations == limit.evaluations:
                break
        free = [candidate for candidate in segments if candidate in progress.startable_segments]
        segment = pick(progress, free) if free else None
    return tuple(batch)


def build_whole_batch(plan: Plan, progress: ConfigProgress, limit: BatchLimit) -> VisitBatch:
    """Return the visits of whole epochs that a config makes next.

    The batch has at least one epoch, or one evaluation, whatever its limit.
    """
    segments = plan.order_whole_epoch(progress.mst_key)

    def pick(progress: ConfigProgress, free: Collection[int]) -> int:
        return next(segment for segment in segments if segment in free)

    epochs = max(1, limit.visits // len(segments))
    whole_limit = limit._replace(visits=epochs * len(segments))
    if progress.kind == "evaluate":
        whole_limit = BatchLimit(len(progress.waiting_segments))
    first_segment = pick(progress, progress.startable_segments)
    return build_batch(plan, progress, first_segment, segments, pick, whole_limit)


def _find_able_worker(
    plan: Plan, progress: ConfigProgress, segments: Sequence[int], home: int | None
) -> int | None:
    """Return a worker of idle segments that makes all visits of an epoch; None if none may.

    Args:
        home: the only worker that may continue the config, if there is one.
    """
    if not progress.startable_segments:
        return None
    home_segment = plan.find_home_segment(progress.mst_key)
    if home_segment is not None:
        segments = [segment for segment in segments if segment == home_segment]
    workers = (plan.workers[segment] for segment in segments)
    return next((worker for worker in workers if home in (None, worker)), None)


def _may_continue(progress: ConfigProgress) -> bool:
    """Return True if a training stage is complete, and the next epoch may belong to the batch."""
    if progress.kind != "train" or progress.copies or progress.stopping:
        return False
    return progress.finished


def _continue(
    plan: Plan, progress: ConfigProgress, segments: Sequence[int]
) -> tuple[ConfigProgress, VisitBatch]:
    """Return the progress at the next training stage, and the evaluation before that stage.

    If the evaluation needs other segments, return the progress unchanged.
    """
    following = next_stage(plan, progress)
    if following.kind == "train":
        return following, ()
    if not following.waiting_segments <= set(segments):
        return progress, ()
    evaluation = tuple(
        Visit(following.epoch, following.mst_key, segment, "evaluate")
        for segment in segments
        if segment in following.waiting_segments
    )
    return next_stage(plan, replace(following, waiting_segments=frozenset())), evaluation
