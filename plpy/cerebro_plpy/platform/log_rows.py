"""Log rows of visits, from the results of their trainer."""

from __future__ import annotations

from collections.abc import Mapping

from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.platform.resource_usage import Cost
from cerebro_plpy.platform.visit_protocol import BatchResult, EvaluateVisit, TrainVisit

# Columns of a visit that `result_values` returns the values of.
RESULT_COLUMNS = (
    "ended_at",
    "rows",
    "form",
    "threads",
    "loss",
    "training_seconds",
    *Cost._fields,
)


def result_values(result: JsonObject) -> tuple[object, ...]:
    """Return the values of RESULT_COLUMNS for a training visit."""
    fields = ("ended_at", "rows", "form", "threads", "loss", "seconds")
    return (*(result[name] for name in fields), *Cost.from_result(result))


def later_visits(batch: BatchResult) -> list[JsonObject]:
    """Return a row for each training visit after the first, which starts when the one before ends.

    The row of the last visit has no result yet: that is logged with its state.
    """
    last = batch.training[-1][0]
    rows = []
    for visit, previous, result in zip(batch.visits[1:], batch.results, batch.results[1:]):
        if not isinstance(visit, TrainVisit):
            continue
        row: JsonObject = {
            "epoch": visit.epoch,
            "segment_id": visit.dataset.segment_id,
            "visit_no": visit.visit_no,
            "attempt": visit.attempt,
            "started_at": end_time(previous),
        }
        if visit is not last:
            row.update(zip(RESULT_COLUMNS, result_values(result)))
        rows.append(row)
    return rows


def end_time(result: JsonObject) -> float:
    """Return the end of a visit; an evaluation has an end for each data set."""
    end = result["ended_at"]
    if isinstance(end, Mapping):
        end = max(end.values())
    return float(end)


def shift_ends(result: JsonObject, offset: float) -> JsonObject:
    """Return a result whose ends are by a clock that is `offset` seconds ahead.

    >>> shift_ends({"ended_at": 1.0}, 2.0), shift_ends({"ended_at": {"a": 1.0, "b": 1.5}}, 2.0)
    ({'ended_at': 3.0}, {'ended_at': {'a': 3.0, 'b': 3.5}})
    """
    moment = result["ended_at"]
    if isinstance(moment, Mapping):
        return {**result, "ended_at": {key: end + offset for key, end in moment.items()}}
    return {**result, "ended_at": moment + offset}


def group_by_segment(visit: EvaluateVisit, result: JsonObject) -> dict[int, JsonObject]:
    """Return rows and sums of an evaluation by segment and data set (training, validation)."""
    segments: dict[int, JsonObject] = {}
    for name, dataset in visit.partitions:
        segments.setdefault(dataset.segment_id, {})[name] = result["datasets"][dataset.key]
    return segments


def evaluations(visit: EvaluateVisit, result: JsonObject, start: float | None) -> list[JsonObject]:
    """Return a row for each segment of an evaluation; the first row has the cost of all.

    Args:
        start: start of the first segment; each further segment starts when the one before ends.
    """
    rows = []
    cost = Cost.from_result(result)
    for segment, parts in group_by_segment(visit, result).items():
        datasets = [dataset for dataset in visit.datasets if dataset.segment_id == segment]
        end = max(result["ended_at"][dataset.key] for dataset in datasets)
        row = {
            "segment_id": segment,
            "started_at": start,
            "ended_at": end,
            "rows": sum(part["rows"] for part in parts.values()),
        }
        rows.append({**row, **cost._asdict()})
        start = end
        cost = Cost()
    return rows
