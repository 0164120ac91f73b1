"""What the log says of visits, as their trainer's results tell it; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cerebro_plpy.platform.resource_usage import Cost
from cerebro_plpy.platform.visit_protocol import EvaluateVisit, Trained, TrainVisit

LOGGED = ("ended_at", "rows", "form", "threads", "loss", "training_seconds", *Cost._fields)
"""Columns of a visit that `logged` has the values of."""
Result = Mapping[str, Any]


def logged(result: Result) -> tuple[object, ...]:
    """What the log says of a visit that trained."""
    return (
        *(result[name] for name in ("ended_at", "rows", "form", "threads", "loss", "seconds")),
        *Cost.of(result),
    )


def following(trained: Trained) -> list[dict[str, Any]]:
    """A row for each visit of a tour behind the first one, from the end of what was done before it;
    the last has no result yet, which comes with its state."""
    last = trained.trained[-1][0]
    return [
        {
            "epoch": visit.epoch,
            "segment_id": visit.dataset.segment_id,
            "visit_no": visit.visit_no,
            "started_at": end(before),
            **({} if visit is last else dict(zip(LOGGED, logged(found)))),
        }
        for visit, before, found in zip(trained.visits[1:], trained.results, trained.results[1:])
        if isinstance(visit, TrainVisit)
    ]


def end(result: Result) -> float:
    """When a visit ended; an evaluation has an end for each data set."""
    ended = result["ended_at"]
    return float(max(ended.values()) if isinstance(ended, Mapping) else ended)


def shift_ends(result: Result, offset: float) -> Result:
    """Return a result whose ends are by a clock that is `offset` seconds ahead.

    >>> shift_ends({"ended_at": 1.0}, 2.0), shift_ends({"ended_at": {"a": 1.0, "b": 1.5}}, 2.0)
    ({'ended_at': 3.0}, {'ended_at': {'a': 3.0, 'b': 3.5}})
    """
    moment = result["ended_at"]
    if isinstance(moment, Mapping):
        return {**result, "ended_at": {key: end + offset for key, end in moment.items()}}
    return {**result, "ended_at": moment + offset}


def by_segment(visit: EvaluateVisit, result: Result) -> dict[int, dict[str, Any]]:
    """What an evaluation found: by segment, per data set (training, validation) its rows and
    sums.
    """
    found: dict[int, dict[str, Any]] = {}
    for name, dataset in visit.named:
        found.setdefault(dataset.segment_id, {})[name] = result["datasets"][dataset.key]
    return found


def evaluations(visit: EvaluateVisit, result: Result, began: float | None) -> list[dict[str, Any]]:
    """A row for each segment of an evaluation, the first of which `began` then, and each other one
    when the one before it had ended. The first one has what all have cost."""
    rows, cost = [], Cost.of(result)
    for segment, parts in by_segment(visit, result).items():
        ended = max(
            result["ended_at"][each.key] for each in visit.datasets if each.segment_id == segment
        )
        count = sum(part["rows"] for part in parts.values())
        rows.append(
            {
                "segment_id": segment,
                "started_at": began,
                "ended_at": ended,
                "rows": count,
                **cost._asdict(),
            }
        )
        began, cost = ended, Cost()
    return rows
