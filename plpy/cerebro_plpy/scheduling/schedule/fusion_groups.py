"""Which configurations make a tour together: those that stand where it begins and may go as far;
pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Tour, Visit


def fellows(leader: ConfigProgress, others: Iterable[ConfigProgress]) -> list[ConfigProgress]:
    """Those of the others that can make whatever visits the leader can make now, none of which is
    under way.
    """
    stand = _stand(leader)
    return [each for each in others if each.startable and _stand(each) == stand]


def training_only(tour: Tour) -> Tour:
    """The visits of a tour before the first evaluation."""
    count = next((number for number, visit in enumerate(tour) if visit.kind != "train"), len(tour))
    return tour[:count]


def of(tour: Tour, mst_key: int) -> Tour:
    """The same tour, made by another configuration."""
    return tuple(Visit(visit.epoch, mst_key, visit.segment_id, visit.kind) for visit in tour)


def _stand(progress: ConfigProgress) -> tuple[object, ...]:
    return (
        progress.epoch,
        progress.kind,
        progress.waiting,
        progress.running,
        progress.limit,
        progress.stopping,
    )
