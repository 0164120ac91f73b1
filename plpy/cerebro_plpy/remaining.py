"""How much a config has still to do, by which those that take longest go first."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from cerebro_plpy.schedule import ConfigProgress, Plan


class Remaining(NamedTuple):
    """Visits of a config that are not completed, running ones included."""

    train: int
    evaluate: int


def remaining_visits(plan: Plan, progress: ConfigProgress) -> Remaining:
    """How many visits a config has still to complete."""
    if progress.finished:
        return Remaining(0, 0)
    here = len(progress.waiting) + len(progress.running)
    segments = len(plan.segments)
    trained = here if progress.kind == "train" else 0
    if progress.stopping:
        later = here if progress.kind == "evaluate" else segments * bool(plan.evaluations)
        return Remaining(trained, later)
    train = (plan.epochs - progress.epoch) * segments
    later = len(plan.evaluations) - bisect_right(plan.evaluations, progress.epoch)
    if progress.kind == "evaluate":
        return Remaining(train, later * segments + here)
    own = progress.epoch in plan.evaluate_epochs
    return Remaining(train + trained, (later + own) * segments)
