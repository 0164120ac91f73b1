"""Points of time that come as seconds since 1970, and their parts: those that PostgreSQL's
date_part tells.

Seconds are rounded to a double, which has no millionth of a second in the year 9999. Where they are
told with the millionths since the minute began, both together are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Days = npt.NDArray[np.int64]

VALUE, EPOCH = "value", "epoch"
PARTS = (VALUE, EPOCH, "year", "month", "day", "dow", "hour")
FARTHEST = 1e14
"""Seconds: beyond is no date of PostgreSQL's."""
MINUTE, HOUR, DAY = 60, 3600, 86400


def known(names: Sequence[Any]) -> bool:
    """Whether a number may become these: itself, or parts of time, or nothing."""
    return names == [VALUE] or all(name in PARTS[1:] for name in names)


def numbers(values: Numbers, parts: Sequence[Sequence[str]]) -> Numbers:
    """What becomes of raw numbers, of shape (rows, raw numbers); of one that nothing becomes of,
    see `_whole`.
    """
    plain = [place for place, names in enumerate(parts) if names == (VALUE,)]
    if len(plain) == len(parts):
        return values
    found = np.empty((len(values), sum(map(len, parts))))
    ends = np.cumsum([len(names) for names in parts])
    found[:, ends[plain] - 1] = values[:, plain]
    for place, names in enumerate(parts):
        if names and names != (VALUE,):
            begin = ends[place] - len(names)
            beside = place + 1 < len(parts) and not parts[place + 1]
            told = _told(values[:, place], values[:, place + 1] if beside else None, names)
            for column, part in enumerate(told, begin):
                found[:, column] = part
    return found


def _told(seconds: Numbers, fraction: Numbers | None, names: Sequence[str]) -> list[Numbers]:
    """The parts of points of time; of infinite ones none, but for the year."""
    finite = np.isfinite(seconds)
    whole = _whole(
        np.where(finite, seconds, 0.0),
        None if fraction is None else np.where(finite, fraction, 0.0),
    )
    days = whole // DAY
    return [
        seconds
        if name == EPOCH
        else np.where(finite, _part(name, whole, days), _of_infinite(name, seconds))
        for name in names
    ]


def _whole(seconds: Numbers, fraction: Numbers | None) -> Days:
    """Seconds, rounded down; what follows the minute is told by millionths, if it is."""
    bounded = np.clip(seconds, -FARTHEST, FARTHEST)
    if fraction is None:
        return np.floor(bounded).astype(np.int64)
    rest = np.clip(fraction / 1e6, 0, MINUTE)
    return np.rint((bounded - rest) / MINUTE).astype(np.int64) * MINUTE + np.floor(rest).astype(
        np.int64
    )


def _of_infinite(name: str, seconds: Numbers) -> Numbers:
    return seconds if name == "year" else np.full_like(seconds, np.nan)


def _part(name: str, seconds: Days, days: Days) -> Days:
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
