"""Values of JSON in SQL: which of them are numbers, and what numbers. Pure.

Each may be anything: a number that is written with more digits than numeric takes, or beyond its
range, is none here.
"""

from __future__ import annotations

WRITTEN, LONGEST = "^-?[0-9.]+(?:[eE][-+]?[0-9]{1,4})?$", 4000
"""Numbers that numeric holds, and how long they may be; `substring` gives what is in brackets that
capture.
"""

NULL = "null"
"""The text of the null of JSON, which is as missing as that of SQL: `to_jsonb(t)` makes one of
both.
"""


def number(value: str) -> str:
    """What is a number as numeric, and of all else NULL."""
    json = f"({value})::json"
    text = f"{json} #>> '{{}}'::text[]"
    held = f"pg_catalog.json_typeof({json}) = 'number' AND pg_catalog.length({text}) <= {LONGEST}"
    return f"(CASE WHEN {held} THEN pg_catalog.substring({text}, '{WRITTEN}')::numeric END)"


def other(value: str) -> str:
    """Whether some are values that are neither numbers nor null, of an aggregate."""
    return f"pg_catalog.bool_or(pg_catalog.json_typeof(({value})::json) NOT IN ('number', 'null'))"
