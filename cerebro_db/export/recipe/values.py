"""Values of Python as the database would have them: as numbers, as texts, and as the elements of
arrays.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from .scales import LARGEST, Array

EPOCH = datetime(1970, 1, 1)
PLAIN = ("integer", "real")
"""Families of numbers that double precision has as they are."""


def is_missing(value: Any) -> bool:
    """Whether it is None, NaN, or what pandas has for a value that is not there."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, Decimal, np.floating, np.datetime64, np.timedelta64)) and bool(
        value != value
    )


def numbers(given: Sequence[Any], family: str) -> Array:
    """The numbers of a column; NaN is missing."""
    try:
        return np.array(given, np.float64) if family in PLAIN else _one_by_one(given, family)
    except (TypeError, OverflowError):  # of pandas' NA, and of numbers that are too large
        return _one_by_one(given, family)


def _one_by_one(given: Sequence[Any], family: str) -> Array:
    return np.array([number(value, family) for value in given], np.float64)


def number(value: Any, family: str) -> float:
    if is_missing(value) or (
        family == "json" and (isinstance(value, bool) or not isinstance(value, (int, float)))
    ):
        return math.nan
    try:
        found = float(value)
    except OverflowError:
        found = math.copysign(math.inf, value)
    if family in PLAIN:
        return found
    return 0.0 if abs(found) < 1 / LARGEST else min(max(found, -LARGEST), LARGEST)


def _array(value: Any, family: str) -> Array:
    """An array of numbers, of no elements where there is none; NaN is missing."""
    if is_missing(value):
        return np.empty(0)
    own = family.removesuffix("[]").removeprefix("cast to ")
    given = np.array(value.tolist() if isinstance(value, np.ndarray) else value, object)
    return np.array([number(each, own) for each in given.ravel()], np.float64).reshape(given.shape)


def line(value: Any, family: str, places: int) -> Array:
    found = _array(value, family)
    rest = found[:places] if found.ndim == 1 else np.empty(0)
    return np.concatenate([rest, np.full(places - len(rest), np.nan)])


def absent(value: Any, family: str | None) -> float:
    return float(
        is_missing(value) if family is None else bool(np.isnan(_array(value, family)).all())
    )


def laid_out(value: Any, family: str, shape: tuple[int, ...]) -> Array:
    """The elements in this shape: cut, and filled with NaN."""
    given, found = _array(value, family), np.full(shape, np.nan)
    ones = (1,) * (len(shape) - given.ndim)
    if (
        given.ndim == 1
        or len(shape) == 1
        or (given.ndim <= len(shape) and (given.shape + ones)[1:] == shape[1:])
    ):
        flat = given.ravel()[: found.size]
        found.ravel()[: len(flat)] = flat
    elif given.ndim <= len(shape):
        sizes = tuple(map(min, given.shape + ones, shape))
        part = tuple(map(slice, sizes))
        found[part] = given.reshape(given.shape + ones)[part]
    return found


def moment(value: Any, family: str, parts: Sequence[str]) -> list[float]:
    if is_missing(value):
        return [math.nan] * len(parts)
    if isinstance(value, np.timedelta64):
        value = value.astype("timedelta64[us]").item()
    if isinstance(value, timedelta):
        return [value.total_seconds()]
    if family == "time":
        return [_seconds(time.fromisoformat(value) if isinstance(value, str) else value)]
    point = _point(value)
    numbers = {
        "epoch": (point - EPOCH).total_seconds(),
        "dow": point.isoweekday() % 7,
        **{part: getattr(point, part) for part in ("year", "month", "day", "hour")},
    }
    return [float(numbers[part]) for part in parts]


def _seconds(at: time) -> float:
    """Since midnight; with a zone in UTC, as the database has it."""
    offset = at.utcoffset() or timedelta()
    return (datetime.combine(EPOCH, at.replace(tzinfo=None)) - EPOCH - offset).total_seconds()


def _point(value: Any) -> datetime:
    """A point of time without a zone, that of UTC where it had one."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        value = datetime.combine(value, time())
    return (
        value.astimezone(UTC).replace(tzinfo=None)
        if value.tzinfo
        else datetime.combine(value, value.time())
    )


def text(value: Any) -> str | None:
    """The text that the database has of a value."""
    if is_missing(value):
        return None
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)):
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    if isinstance(value, (datetime, np.datetime64)):
        return _trimmed(_point(value).isoformat(" "))
    if isinstance(value, time):
        return _trimmed(value.isoformat())
    if isinstance(value, date):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else str(value)


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
