"""Format records as JSON for other programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from cerebro_db.result_set import get_fields


def format_document(records: Iterable[object]) -> str:
    """Return records as a JSON list of objects, in ASCII.

    Times have the format of ISO 8601, durations are in seconds, and numbers that are not finite
    are null.

    >>> format_document([{"value": float("nan"), "eta": timedelta(seconds=90),
    ...     "started_at": datetime(2030, 1, 2)}])
    '[{"value": null, "eta": 90.0, "started_at": "2030-01-02T00:00:00"}]'
    """
    return _dump([_to_json(get_fields(record)) for record in records])


def format_line(record: object) -> str:
    """Return a record as a JSON object in one line."""
    return _dump(_to_json(get_fields(record)))


def _dump(value: object) -> str:
    text = json.dumps(value, allow_nan=False)
    return text.replace("\x7f", "\\u007f")  # the only control character that JSON does not escape


def _to_json(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    return str(value)
