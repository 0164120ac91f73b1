"""The texts by which equal values of a category are recognized, whatever their types are.

A text has a *form*, a family of types whose equal values have one text. Values of another type are
converted by value, as the database converts columns of other types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from .nouns import count_nouns
from .values import format_text, is_missing, read_datetime, trim_zeros

TRUE_WORDS = ("t", "true", "y", "yes", "on", "1")
FALSE_WORDS = ("f", "false", "n", "no", "off", "0")
NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,254})([.][0-9]{1,254})?([eE][-+]?[0-9]{1,3})?")
"""Texts that are a number: a leading zero, as in 0042, makes a code of it."""
BLANK = " "
"""The only character that the database trims."""
SMALLEST_SINGLE = Decimal("1e-37")
LARGEST_SINGLE = Decimal("3.4e38")
TEXTS_OF_TYPES = {
    "number": re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?"),
    "boolean": re.compile("true|false"),
    "date": re.compile("[0-9]{4,}-[0-9]{2}-[0-9]{2}"),
    "timestamp": re.compile("[0-9]{4,}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}.*"),
    "time": re.compile("[0-9]{2}:[0-9]{2}:[0-9]{2}.*"),
}
"""The texts that values of a type have; other types have no text that a text may be equal to."""
MIDNIGHT = "00:00:00"
JSON_TYPES = (dict, list)


def encode_categories(values: Sequence[str], form: str, cells: Sequence[Any]) -> list[int]:
    """Return the codes of cells: the number of a value, from 1; 0 if missing or unknown.

    Raises:
        ValueError: a cell has a type whose values cannot be compared with the category's.
    """
    codes: dict[str | None, int] = {value: code for code, value in enumerate(values, 1)}
    write_text = FORMS.get(form, format_text)
    allowed = None
    if form in ("text", "citext"):
        allowed = _list_types_of_texts(values)
    result: list[int] = []
    for cell in cells:
        if is_missing(cell):
            result.append(0)
            continue
        if allowed is not None and name_type(cell) not in allowed:
            raise ValueError(
                f"a value is {cell!r}, of type {name_type(cell)}; expected a text such as "
                f"{values[0]!r}"
            )
        text = write_text(cell)
        result.append(codes.get(text, 0))
    return result


def _list_types_of_texts(values: Sequence[str]) -> set[str]:
    """Return the types whose values may take the place of texts, since all of these are such."""
    types = {"text", "json"}
    for name, pattern in TEXTS_OF_TYPES.items():
        if all(pattern.fullmatch(value) for value in values):
            types.add(name)
    return types


def name_type(value: Any) -> str:
    """Return the family of the type of a value, as the database names it."""
    if isinstance(value, (bool, np.bool_)):
        return "boolean"
    if isinstance(value, (int, float, Decimal, np.integer, np.floating)):
        return "number"
    if isinstance(value, np.datetime64):
        return "timestamp"
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            return "timestamptz"
        return "timestamp"
    if isinstance(value, date):
        return "date"
    if isinstance(value, time):
        return "time"
    if isinstance(value, (timedelta, np.timedelta64)):
        return "interval"
    if isinstance(value, JSON_TYPES):
        return "json"
    return "text"


def write_number(value: Any) -> str | None:
    """Return the text of a number: all digits, without an exponent, trailing zeros or -0."""
    number = read_decimal(value)
    if number is None:
        return None
    return write_decimal(number)


def read_decimal(value: Any) -> Decimal | None:
    """Return a value as a number; None if it is not one.

    Raises:
        ValueError: it is a point or span of time.
    """
    kind = name_type(value)
    if kind == "boolean":
        return Decimal(int(value))
    if isinstance(value, (float, np.floating)):
        return _read_float(value)
    if kind == "number":
        return Decimal(str(value))
    if kind != "text":
        _refuse_moment(value, "number")
        return None
    text = str(value).strip(BLANK)
    if not NUMBER.fullmatch(text):
        return None
    return Decimal(text)


def _read_float(value: Any) -> Decimal:
    """Return the number with the fewest digits that the database writes for a float.

    It is nearer to the float than to any other: half-way is not enough, as it is for Python.
    """
    number = Decimal(str(value))
    if not number.is_finite():
        return number
    digits = len(number.as_tuple().digits)
    while _is_half_way(number, value):
        number = Decimal(f"{float(value):.{digits}e}")
        digits += 1
    return number


def _is_half_way(number: Decimal, value: Any) -> bool:
    """Return whether a number is as near to a float as to another one."""
    type_: Any = np.float64
    if isinstance(value, np.float32):
        type_ = np.float32
    with np.errstate(over="ignore"):  # beyond the largest number is infinity
        neighbours = [np.nextafter(type_(value), type_(limit)) for limit in (-np.inf, np.inf)]
    middles = [
        (Fraction(float(value)) + Fraction(float(neighbour))) / 2
        for neighbour in neighbours
        if np.isfinite(neighbour)
    ]
    return Fraction(number) in middles


def write_decimal(number: Decimal) -> str:
    """Return all digits of a number, without trailing zeros or a sign of 0."""
    if number.is_infinite():
        return f"{number}"  # Infinity or -Infinity, as in the database
    if not number:
        return "0"
    return trim_zeros(f"{number:f}")


def write_single(value: Any) -> str | None:
    """Return the text of the number of type real that is next to a number."""
    number = read_decimal(value)
    if number is None:
        return None
    if number.is_infinite():
        return write_decimal(number)
    if abs(number) < SMALLEST_SINGLE:
        return "0"
    bounded = min(max(number, -LARGEST_SINGLE), LARGEST_SINGLE)
    return write_decimal(_read_float(np.float32(float(bounded))))


def write_boolean(value: Any) -> str | None:
    kind = name_type(value)
    if kind == "text":
        word = _lower(str(value).strip(BLANK))
    elif kind in ("boolean", "number"):
        word = write_number(value) or ""
    else:
        _refuse_moment(value, "boolean")
        return None
    if word in TRUE_WORDS:
        return "true"
    if word in FALSE_WORDS:
        return "false"
    return None


def write_text(value: Any) -> str | None:
    if name_type(value) == "number":
        return write_number(value)
    return format_text(value)


def write_scalar(value: Any) -> str | None:
    """Return the text of a value of JSON."""
    if name_type(value) in ("timestamptz", "interval"):
        _refuse_moment(value, "value of JSON")
    return write_text(value)


def write_citext(value: Any) -> str | None:
    text = write_text(value)
    if text is None:
        return None
    return _lower(text)


def _lower(text: str) -> str:
    """Return a text in small letters: one for each letter, as the database does."""
    return "".join(character.lower()[0] for character in text)


def write_date(value: Any) -> str | None:
    kind = name_type(value)
    if kind == "text":
        return str(value).strip(BLANK)
    if kind == "timestamp":
        day, _, clock = (format_text(read_datetime(value)) or "").partition(" ")
        if clock != MIDNIGHT:
            return None
        return day
    return _expect(value, "date", "date")


def write_timestamp(value: Any) -> str | None:
    kind = name_type(value)
    if kind == "text":
        return str(value).strip(BLANK).replace("T", " ")
    if kind == "date":
        return f"{value.isoformat()} {MIDNIGHT}"
    return _expect(value, "timestamp", "timestamp")


def write_timestamptz(value: Any) -> str | None:
    return _expect(value, "timestamptz", "timestamp with time zone")


def write_time(value: Any) -> str | None:
    if name_type(value) == "text":
        return str(value).strip(BLANK)
    return _expect(value, "time", "time")


def write_interval(value: Any) -> str | None:
    """Return the text of a span of time; texts are taken as the database writes them."""
    if name_type(value) == "text":
        return str(value).strip(BLANK)
    if isinstance(value, np.timedelta64):
        value = value.astype("timedelta64[us]").item()
    if name_type(value) != "interval":
        return _expect(value, "interval", "interval")
    seconds = value - timedelta(days=value.days)
    days = value.days
    if days < 0 and seconds:  # the database has one sign for the time and one for the days
        days += 1
        seconds -= timedelta(days=1)
    parts = []
    if days:
        parts.append(count_nouns(days, "day"))
    if seconds or not days:
        clock = trim_zeros((datetime.min + abs(seconds)).time().isoformat())
        parts.append("-" * (seconds < timedelta()) + clock)
    return " ".join(parts)


def _refuse_moment(value: Any, name: str) -> None:
    """Raise ValueError if a value is a point or span of time; other values are unknown."""
    if name_type(value) != "json":
        raise ValueError(f"a value is {value!r}, of type {name_type(value)}; expected a {name}")


def _expect(value: Any, kind: str, name: str) -> str | None:
    if name_type(value) != kind:
        raise ValueError(f"a value is {value!r}, of type {name_type(value)}; expected a {name}")
    return format_text(value)


FORMS: dict[str, Callable[[Any], str | None]] = {
    "text": write_text,
    "citext": write_citext,
    "boolean": write_boolean,
    "number": write_number,
    "integer": write_number,
    "single": write_single,
    "scalar": write_scalar,
    "date": write_date,
    "timestamp": write_timestamp,
    "timestamptz": write_timestamptz,
    "time": write_time,
    "interval": write_interval,
}
"""The text of a value by the form; recipes of earlier versions have others."""
