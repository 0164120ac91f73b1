"""Timestamps as seconds since 1970, and their parts, as in PostgreSQL's date_part.

Seconds are rounded to a double, which does not have microseconds in the year 9999. If they are sent
together with the microseconds since the minute began, both together are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cerebro_trainer.data.arrays import Floats, Integers

VALUE = "value"
"""The raw number itself."""
EPOCH = "epoch"
PARTS = (VALUE, EPOCH, "year", "month", "day", "dow", "hour")
MAX_SECONDS = 1e14
"""Beyond all dates of PostgreSQL."""
MINUTE = 60
HOUR = 3600
DAY = 86400


def are_parts(names: Sequence[Any]) -> bool:
    """Return whether names are valid for one raw number: VALUE alone, or parts of a timestamp."""
    return names == [VALUE] or all(name in PARTS[1:] for name in names)


def extract_parts(values: Floats, parts: Sequence[Sequence[str]]) -> Floats:
    """Return the numbers derived from raw numbers.

    A raw number without parts, behind one with parts, contains the microseconds of that timestamp.

    Args:
        values: shape (rows, raw numbers).
        parts: names of the parts of each raw number.
    """
    plain = [index for index, names in enumerate(parts) if names == (VALUE,)]
    if len(plain) == len(parts):
        return values
    numbers = np.empty((len(values), sum(map(len, parts))))
    ends = np.cumsum([len(names) for names in parts])
    numbers[:, ends[plain] - 1] = values[:, plain]
    for index, names in enumerate(parts):
        if not names or names == (VALUE,):
            continue
        has_microseconds = index + 1 < len(parts) and not parts[index + 1]
        microseconds = values[:, index + 1] if has_microseconds else None
        columns = _extract_timestamp_parts(values[:, index], microseconds, names)
        for column, numbers_of_part in enumerate(columns, ends[index] - len(names)):
            numbers[:, column] = numbers_of_part
    return numbers


def _extract_timestamp_parts(
    seconds: Floats, microseconds: Floats | None, names: Sequence[str]
) -> list[Floats]:
    """Return parts of timestamps; an infinite one has a year and an epoch only."""
    is_finite = np.isfinite(seconds)
    finite_microseconds = None
    if microseconds is not None:
        finite_microseconds = np.where(is_finite, microseconds, 0.0)
    whole_seconds = _round_down(np.where(is_finite, seconds, 0.0), finite_microseconds)
    days = whole_seconds // DAY
    parts = []
    for name in names:
        if name == EPOCH:
            parts.append(seconds)
            continue
        if_infinite = seconds if name == "year" else np.full_like(seconds, np.nan)
        parts.append(np.where(is_finite, _extract_part(name, whole_seconds, days), if_infinite))
    return parts


def _round_down(seconds: Floats, microseconds: Floats | None) -> Integers:
    """Round seconds down, exactly if the microseconds since the minute began are given."""
    bounded = np.clip(seconds, -MAX_SECONDS, MAX_SECONDS)
    if microseconds is None:
        return np.floor(bounded).astype(np.int64)
    minute_seconds = np.clip(microseconds / 1e6, 0, MINUTE)
    minutes = np.rint((bounded - minute_seconds) / MINUTE).astype(np.int64)
    return minutes * MINUTE + np.floor(minute_seconds).astype(np.int64)


def _extract_part(name: str, seconds: Integers, days: Integers) -> Integers:
    if name == "hour":
        return seconds // HOUR % 24
    if name == "dow":
        return (days + 4) % 7  # 1970 began on a Thursday
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    if name == "day":
        return days - months.astype("datetime64[D]").astype(np.int64) + 1
    if name == "month":
        return months.astype(np.int64) % 12 + 1
    years = months.astype("datetime64[Y]").astype(np.int64) + 1970
    return years - (years <= 0)  # there is no year 0
