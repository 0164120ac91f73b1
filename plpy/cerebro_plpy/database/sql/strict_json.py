"""JSON as PostgreSQL accepts it: without NaN and infinities, which a loss may well become.

Python writes such numbers as bare words that PostgreSQL refuses; here they travel as texts.
"""

from __future__ import annotations

import json
import math
from typing import Any

NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def dumps(value: Any) -> str:
    """A value as JSON text.

    >>> dumps({"loss": float("nan"), "sums": [1.5, float("-inf")]})
    '{"loss": "NaN", "sums": [1.5, "-Infinity"]}'
    """
    return json.dumps(_mapped(value, _as_text))


def restored(value: Any) -> Any:
    """What JSON from `dumps` held, parsed or still as text; the texts of special numbers are
    numbers again.

    >>> restored('{"sums": ["Infinity", 1]}')
    {'sums': [inf, 1]}
    """
    return _mapped(json.loads(value) if isinstance(value, str) else value, _as_number)


def _mapped(value: Any, change: Any) -> Any:
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mapped(item, change) for item in value]
    return change(value)


def _as_text(value: Any) -> Any:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _as_number(value: Any) -> Any:
    return NUMBERS.get(value, value) if isinstance(value, str) else value
