"""JSON that PostgreSQL accepts: NaN and infinities, which a loss may well become, are texts.

Python writes such numbers as bare words, which PostgreSQL refuses.
"""

from __future__ import annotations

import json
import math
from typing import Any

JsonObject = dict[str, Any]
NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def dumps(value: Any) -> str:
    """Return a value as JSON text.

    >>> dumps({"loss": float("nan"), "sums": [1.5, float("-inf")]})
    '{"loss": "NaN", "sums": [1.5, "-Infinity"]}'
    """
    return json.dumps(_map_leaves(value, _as_text))


def restore(value: Any) -> Any:
    """Return the value that `dumps` wrote, with special numbers instead of their texts.

    Args:
        value: JSON text, or the same already parsed.

    >>> restore('{"sums": ["Infinity", 1]}')
    {'sums': [inf, 1]}
    """
    if isinstance(value, str):
        value = json.loads(value)
    return _map_leaves(value, _as_number)


def _map_leaves(value: Any, change: Any) -> Any:
    if isinstance(value, dict):
        return {key: _map_leaves(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map_leaves(item, change) for item in value]
    return change(value)


def _as_text(value: Any) -> Any:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _as_number(value: Any) -> Any:
    return NUMBERS.get(value, value) if isinstance(value, str) else value
