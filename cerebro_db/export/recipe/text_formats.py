"""Numbers and points in time that are written in texts, read as the database reads them.

The patterns are those of `preprocessing/values/text_formats.py` of the backend, and a test compares
them. A text that does not match is missing.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from functools import cache

PREFIX = "text as "
"""The beginning of the families of texts; an example of the format follows."""
UNITS = {
    "": "",
    "%": "\\u0025",
    "$": "[$]",
    "€": "\\u20AC",
    "£": "\\u00A3",
    "¥": "\\u00A5",
    "₹": "\\u20B9",
    "USD": "USD",
    "EUR": "EUR",
    "GBP": "GBP",
    "CHF": "CHF",
}
BLANKS = "[ \\t\\u00A0\\u202F]*"
DIGITS = "[0-9]{1,40}"
EXPONENT = "(?:[eE][+-]?[0-9]{1,2})?"
GROUP_MARKS = {".": "[, '\\u2019\\u00A0\\u202F]", ",": "[. '\\u2019\\u00A0\\u202F]"}
ORDERS = {
    "YYYY-MM-DD": (("-", "/"), "ymd", "0?"),
    "DD.MM.YYYY": (("[.]", "/", "-"), "dmy", "0?"),
    "MM/DD/YYYY": (("/", "-"), "mdy", "0?"),
    "YYYYMMDD": (("",), "ymd", "0"),
}
"""Marks between the parts of a date, their order, and the zero before a single digit."""
ISO = "YYYY-MM-DD"
YEAR = "[12][0-9]{3}"
LEAP_YEAR = "(?:[12][0-9](?:0[48]|[2468][048]|[13579][26])|1[26]00|2[048]00)"
CLOCK = "(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,6})?)?"
HALF_DAYS = "(?:0?[1-9]|1[0-2]):[0-5][0-9](?::[0-5][0-9])? ?[AaPp][Mm]"
ISO_CLOCK = "[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,6})?)?"
ZONE = " ?(?:Z|[+-](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?)"
TIME = re.compile(
    "([0-9]+):([0-9]+)(?::([0-9]+)(?:[.]([0-9]+))?)? ?([AaPp][Mm])?(?:Z|([+-])(..):?(..)?)?"
)


def is_text_family(family: str) -> bool:
    """Return whether the values of a family are written in texts."""
    return family.startswith(PREFIX)


def number_pattern(family: str) -> str:
    """Return the pattern of texts that are numbers."""
    mark, unit = _split_number_family(family)
    groups = f"[0-9]{{1,3}}(?:{GROUP_MARKS[mark]}[0-9]{{3}}){{1,9}}"
    number = f"(?:(?:{groups}|{DIGITS})(?:[{mark}]{DIGITS})?|[{mark}]{DIGITS})"
    sign = f"(?:[+-]{BLANKS})?"
    if not unit:
        return f"^{BLANKS}{sign}{number}{EXPONENT}{BLANKS}$"
    symbol = UNITS[unit]
    if unit == "%":
        return f"^{BLANKS}{sign}{number}{BLANKS}{symbol}{BLANKS}$"
    prefix = f"(?:{symbol}{BLANKS})?"
    sign = f"(?:[+-]{BLANKS}{prefix}|{prefix}[+-]?{BLANKS})"
    amount = f"{number}(?:{BLANKS}{symbol})?"
    negative = f"[(]{BLANKS}{prefix}{amount}{BLANKS}[)]"
    return f"^{BLANKS}(?:{sign}{amount}|{negative}){BLANKS}$"


def _split_number_family(family: str) -> tuple[str, str]:
    """Return the mark before the fraction, and the unit."""
    example = family.removeprefix(PREFIX)
    marks = re.findall("[.,]", example)
    unit = re.sub("[0-9., ]", "", example)
    return marks[-1], unit


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.removeprefix("^").removesuffix("$"))


def is_blank(value: object) -> bool:
    """Return whether a value is a text of blanks alone."""
    return isinstance(value, str) and _compile(BLANKS).fullmatch(value) is not None


def read_number(text: str, family: str) -> float:
    """Return the number in a text; NaN if it does not match."""
    if _compile(number_pattern(family)).fullmatch(text) is None:
        return math.nan
    mark, unit = _split_number_family(family)
    allowed = f"0-9{mark}(+-"
    if not unit:
        allowed = f"0-9{mark}eE+-"
    digits = re.sub(f"[^{allowed}]", "", text).replace(mark, ".")
    return float(digits.replace("(", "-"))


def date_pattern(order: str) -> str:
    """Return the pattern of days that exist, from the year 1000 to 2999."""
    marks, parts, zero = ORDERS[order]
    all_months = {"y": YEAR, "m": f"{zero}[1-9]|1[0-2]", "d": f"{zero}[1-9]|1[0-9]|2[0-8]"}
    but_february = {"y": YEAR, "m": f"{zero}[13-9]|1[0-2]", "d": "29|30"}
    long_months = {"y": YEAR, "m": f"{zero}[13578]|1[02]", "d": "31"}
    leap_days = {"y": LEAP_YEAR, "m": f"{zero}2", "d": "29"}
    alternatives = []
    for mark in marks:
        for days in (all_months, but_february, long_months, leap_days):
            groups = [f"(?:{days[letter]})" for letter in parts]
            alternatives.append(mark.join(groups))
    return f"(?:{'|'.join(alternatives)})"


def moment_pattern(order: str) -> str:
    """Return the pattern of dates in an order, with or without a time of day."""
    time = f" +(?:{CLOCK}|{HALF_DAYS})"
    if order == ISO:
        time = ISO_CLOCK
    return f"^ *{date_pattern(order)}(?:{time})? *$"


def zoned_pattern() -> str:
    """Return the pattern of ISO dates with a time of day and a time zone."""
    return f"^ *{date_pattern(ISO)}{ISO_CLOCK}{ZONE} *$"


def read_moment(text: str, family: str) -> datetime | None:
    """Return the point in time in a text, in UTC; None if it does not match."""
    order = family.removeprefix(PREFIX)
    order = order.removesuffix(" HH:MM")
    if _compile(moment_pattern(order)).fullmatch(text):
        return _read_parts(text, order)
    if _compile(moment_pattern(ISO)).fullmatch(text):
        return _read_parts(text, ISO)
    if _compile(zoned_pattern()).fullmatch(text):
        return _read_parts(text, ISO)
    return None


def _read_parts(text: str, order: str) -> datetime:
    """Read a text that matches the pattern of an order."""
    day, *clock = re.split("[T ]", text.strip(" "), maxsplit=1)
    numbers = re.split("[-./]", day)
    if day.isdigit():
        numbers = [day[:4], day[4:6], day[6:]]
    parts = dict(zip(ORDERS[order][1], map(int, numbers), strict=True))
    date = datetime(parts["y"], parts["m"], parts["d"])
    if not clock:
        return date
    return date + _read_clock(clock[0].replace(" ", ""))


def _read_clock(text: str) -> timedelta:
    """Return the time since midnight; in UTC, if there is a zone."""
    match = TIME.fullmatch(text)
    assert match is not None
    hour, minute, second, fraction, half, sign, zone_hours, zone_minutes = match.groups("0")
    hours = int(hour)
    if half != "0":
        hours = hours % 12
    if half.upper() == "PM":
        hours += 12
    time = timedelta(
        hours=hours,
        minutes=int(minute),
        seconds=int(second),
        microseconds=int(f"{fraction:0<6}"),
    )
    offset = timedelta(hours=int(zone_hours), minutes=int(zone_minutes))
    if sign == "-":
        return time + offset
    return time - offset
