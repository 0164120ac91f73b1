"""Records as a JSON document, which other programs read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from cerebro_db.result_set import get_fields


def document(records: Iterable[object]) -> str:
    """A list of objects, ASCII only: times by ISO 8601, durations in seconds, null for what is no
    finite number.

    >>> document([{"value": float("nan"), "eta": timedelta(seconds=90),
    ...     "started_at": datetime(2030, 1, 2)}])
    '[{"value": null, "eta": 90.0, "started_at": "2030-01-02T00:00:00"}]'
    """
    return _written([_value(get_fields(record)) for record in records])


def line(record: object) -> str:
    """One record as such an object, on a line of its own."""
    return _written(_value(get_fields(record)))


def _written(value: object) -> str:
    return json.dumps(value, allow_nan=False).replace(
        "\x7f", "\\u007f"
    )  # the one that JSON leaves as it is


def _value(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_value(part) for part in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else str(value)
