"""Values of JSON as SQL: numbers among them.

A value may be anything. A number with more digits than numeric takes, or beyond its range, does not
count as a number.
"""

from __future__ import annotations

NUMBER = "^-?[0-9.]+(?:[eE][-+]?[0-9]{1,4})?$"
"""Pattern of numbers that numeric can hold; without a group, `substring` returns the whole
match.
"""
MOST_CHARACTERS = 4000


def number(value: str) -> str:
    """Return a number as numeric, and NULL for any other value."""
    json = f"({value})::json"
    text = f"{json} #>> '{{}}'::text[]"
    is_short = f"pg_catalog.length({text}) <= {MOST_CHARACTERS}"
    is_number = f"pg_catalog.json_typeof({json}) = 'number' AND {is_short}"
    return f"(CASE WHEN {is_number} THEN pg_catalog.substring({text}, '{NUMBER}')::numeric END)"


def has_other(value: str) -> str:
    """Return an aggregate that is true if some values are neither numbers nor null."""
    return f"pg_catalog.bool_or(pg_catalog.json_typeof(({value})::json) NOT IN ('number', 'null'))"
