"""Fusion groups: configurations at the same position, which can make the same visits together."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, VisitBatch


def find_companions(
    leader: ConfigProgress, configs: Iterable[ConfigProgress]
) -> list[ConfigProgress]:
    """Return the configs that are at the leader's position and may start visits now.

    These configs can make all visits that the leader can make.
    """
    position = _position(leader)
    return [
        config for config in configs if config.startable_segments and _position(config) == position
    ]


def take_training(batch: VisitBatch) -> VisitBatch:
    """Return the visits of a batch before the first evaluation."""
    return tuple(takewhile(lambda visit: visit.kind == "train", batch))


def assign_batch(batch: VisitBatch, mst_key: int) -> VisitBatch:
    """Return the same visits for another configuration."""
    return tuple(visit._replace(mst_key=mst_key) for visit in batch)


def _position(progress: ConfigProgress) -> tuple[object, ...]:
    return (
        progress.epoch,
        progress.kind,
        progress.waiting_segments,
        progress.running_segments,
        progress.max_epoch,
        progress.stopping,
    )
