"""Convert values of Python to the numbers, texts and arrays that the database makes of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from . import text_formats
from .scales import MAX_CONSTANT, Array

EPOCH = datetime(1970, 1, 1)
END_OF_DAY = "24:00:00"
DAY_SECONDS = 86400.0
DOUBLE_FAMILIES = ("integer", "real")
"""Families of numbers that double precision represents without change."""


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or a missing value of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    nan_types = (float, Decimal, np.floating, np.datetime64, np.timedelta64)
    return isinstance(value, nan_types) and bool(value != value)


def read_numbers(cells: Sequence[Any], family: str) -> Array:
    """Return the numbers of a column; NaN is missing."""
    if family in DOUBLE_FAMILIES:
        try:
            return np.array(cells, np.float64)
        except (TypeError, OverflowError):
            pass  # the column has pandas' NA, or numbers that are too large
    return _read_one_by_one(cells, family)


def _read_one_by_one(values: Iterable[Any], family: str) -> Array:
    return np.array([read_number(value, family) for value in values], np.float64)


def read_number(value: Any, family: str) -> float:
    """Return a number as double precision; NaN is missing."""
    if is_missing(value):
        return math.nan
    if text_formats.is_text_family(family) and isinstance(value, str):
        return text_formats.read_number(value, family)
    if family == "json" and (isinstance(value, bool) or not isinstance(value, (int, float))):
        return math.nan
    try:
        number = float(value)
    except OverflowError:
        number = math.copysign(math.inf, value)
    if family in DOUBLE_FAMILIES:
        return number
    if abs(number) < 1 / MAX_CONSTANT:
        return 0.0
    return min(max(number, -MAX_CONSTANT), MAX_CONSTANT)


def _read_array(value: Any, family: str) -> Array:
    """Return an array of numbers, empty if the value is missing; a missing element is NaN."""
    if is_missing(value):
        return np.empty(0)
    element_family = family.removesuffix("[]").removeprefix("cast to ")
    elements = np.array(value.tolist() if isinstance(value, np.ndarray) else value, object)
    return _read_one_by_one(elements.ravel(), element_family).reshape(elements.shape)


def read_vector(value: Any, family: str, size: int) -> Array:
    """Return the first `size` elements of a vector, padded with NaN."""
    array = _read_array(value, family)
    prefix = array[:size] if array.ndim == 1 else np.empty(0)
    return np.concatenate([prefix, np.full(size - len(prefix), np.nan)])


def read_absence(value: Any, family: str | None) -> float:
    """Return 1 if a value is missing, or if all elements of an array are; else 0."""
    if family is None:
        return float(is_missing(value))
    return float(np.isnan(_read_array(value, family)).all())


def read_shaped(value: Any, family: str, shape: tuple[int, ...]) -> Array:
    """Return the elements of an array in `shape`: cropped, and padded with NaN."""
    array = _read_array(value, family)
    result = np.full(shape, np.nan)
    padded_shape = array.shape + (1,) * (len(shape) - array.ndim)
    is_flat = array.ndim == 1 or len(shape) == 1
    if is_flat or (array.ndim <= len(shape) and padded_shape[1:] == shape[1:]):
        flat = array.ravel()[: result.size]
        result.ravel()[: len(flat)] = flat
    elif array.ndim <= len(shape):
        overlap = tuple(map(slice, map(min, padded_shape, shape)))
        result[overlap] = array.reshape(padded_shape)[overlap]
    return result


def read_timestamp(value: Any, family: str, parts: Sequence[str]) -> list[float]:
    """Return parts of a timestamp in UTC; a time or an interval has its seconds only."""
    if is_missing(value):
        return [math.nan] * len(parts)
    if isinstance(value, np.timedelta64):
        value = value.astype("timedelta64[us]").item()
    if isinstance(value, timedelta):
        return [value.total_seconds()]
    if text_formats.is_text_family(family) and isinstance(value, str):
        value = text_formats.read_moment(value, family)
        if value is None:
            return [math.nan] * len(parts)
    if family == "time":
        return [_read_seconds(value)]
    _check_zone(value, family)
    timestamp = read_datetime(value)
    numbers = {
        "epoch": (timestamp - EPOCH).total_seconds(),
        "dow": timestamp.isoweekday() % 7,
        **{part: getattr(timestamp, part) for part in ("year", "month", "day", "hour")},
    }
    return [float(numbers[part]) for part in parts]


def _check_zone(value: Any, family: str) -> None:
    """Raise ValueError if a point in time has a zone and the column has none, or reversely."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    has_zone = isinstance(value, datetime) and value.tzinfo is not None
    if has_zone != (family == "timestamptz"):
        raise ValueError(f"a value is {value!r}; expected a {family}, which it cannot stand for")


def _read_seconds(value: Any) -> float:
    """Return the seconds of a time of day; the end of a day is not its beginning."""
    if isinstance(value, str):
        if value.startswith(END_OF_DAY):
            return DAY_SECONDS
        value = time.fromisoformat(value)
    return _count_seconds(value)


def _count_seconds(value: time) -> float:
    """Return the seconds since midnight; those of a time with a zone since midnight in UTC."""
    offset = value.utcoffset() or timedelta()
    return (datetime.combine(EPOCH, value.replace(tzinfo=None)) - EPOCH - offset).total_seconds()


def read_datetime(value: Any) -> datetime:
    """Return a timestamp without a zone; one with a zone is converted to UTC."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if value.tzinfo:
        timestamp: datetime = value.astimezone(UTC).replace(tzinfo=None)
        return timestamp
    return datetime.combine(value, value.time())


def format_text(value: Any) -> str | None:
    """Return the text of a value in the database; None if it is missing."""
    if is_missing(value):
        return None
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)):
        return str(int(value)) if float(value).is_integer() else str(value)
    if isinstance(value, (datetime, np.datetime64)):
        return trim_zeros(read_datetime(value).isoformat(" "))
    if isinstance(value, time):
        return trim_zeros(value.replace(tzinfo=None).isoformat()) + _format_zone(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _format_zone(value: time) -> str:
    """Return the zone of a time of day, with as few digits as possible; '' without a zone."""
    offset = value.utcoffset()
    if offset is None:
        return ""
    minutes = abs(offset) // timedelta(minutes=1)
    sign = "-" if offset < timedelta() else "+"
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}".removesuffix(":00")


def trim_zeros(text: str) -> str:
    """Return a number, or a time of day, without zeros at the end of its fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text
