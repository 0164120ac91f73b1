"""Lengths of time, which SQL gives as intervals and PL/Python as their texts."""

from __future__ import annotations

from cerebro_plpy.db import Database
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.queries import sql

LONGEST = 1e9  # a generation; times so long ago can still be computed with


def seconds(db: Database, module: str, name: str, interval: str | None) -> float | None:
    """An interval in seconds, at most LONGEST, None for NULL; raises InvalidParameter where it is negative."""
    if interval is None:
        return None
    found = float(db.value(sql("read.seconds"), interval))
    if found < 0:
        raise InvalidParameter(f"{module} error: {name} is {interval!r}; expected an interval that is not negative.")
    return min(found, LONGEST)
