"""Numbers and points in time that are written in texts: their formats, and their values as SQL.

A format is a family of its own, so that everything that reads a column of the family reads its
texts. Patterns use what PostgreSQL and Python share; characters beyond ASCII are escaped, so that
a statement can be sent to a database of any encoding. A text that does not match is missing. All
texts that match can be cast, so that no text is an error. The exported recipe has the same
patterns, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.preprocessing.values.expression import DOUBLE

BLANKS = "[ \\t\\u00A0\\u202F]*"
EMPTY = f"^{BLANKS}$"
"""Pattern of texts without a value."""
GROUP_MARKS = {".": "[, '\\u2019\\u00A0\\u202F]", ",": "[. '\\u2019\\u00A0\\u202F]"}
"""Marks between groups of three digits, by the mark before the fraction."""
PERCENT = "%"
CURRENCIES = {
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
"""Patterns of signs that may stand before or after an amount."""
UNITS = {PERCENT: "\\u0025", **CURRENCIES}
MOST_DIGITS = 40
"""Digits before and after the mark; double precision can hold any number of so many."""


class NumberFormat(NamedTuple):
    """A format of numbers."""

    mark: str  # before the fraction
    unit: str  # a key of UNITS, or '' for none

    @property
    def example(self) -> str:
        """A number in this format."""
        number = "1,234.50" if self.mark == "." else "1.234,50"
        if self.unit == PERCENT:
            return f"12{self.mark}5%"
        if self.unit and self.mark == ".":
            return f"{self.unit}{' ' * self.unit.isalpha()}{number}"
        return f"{number} {self.unit}".strip()

    @property
    def pattern(self) -> str:
        """The pattern of texts that are numbers."""
        digits = f"[0-9]{{1,{MOST_DIGITS}}}"
        mark = f"[{self.mark}]"
        groups = f"[0-9]{{1,3}}(?:{GROUP_MARKS[self.mark]}[0-9]{{3}}){{1,9}}"
        number = f"(?:(?:{groups}|{digits})(?:{mark}{digits})?|{mark}{digits})"
        if not self.unit:
            exponent = "(?:[eE][+-]?[0-9]{1,2})?"
            return f"^{BLANKS}(?:[+-]{BLANKS})?{number}{exponent}{BLANKS}$"
        unit = UNITS[self.unit]
        if self.unit == PERCENT:
            return f"^{BLANKS}(?:[+-]{BLANKS})?{number}{BLANKS}{unit}{BLANKS}$"
        before = f"(?:{unit}{BLANKS})?"
        sign = f"(?:[+-]{BLANKS}{before}|{before}[+-]?{BLANKS})"
        amount = f"{number}(?:{BLANKS}{unit})?"
        negative = f"[(]{BLANKS}{before}{amount}{BLANKS}[)]"
        return f"^{BLANKS}(?:{sign}{amount}|{negative}){BLANKS}$"

    @property
    def dropped(self) -> str:
        """The pattern of characters that have no part in the value."""
        return f"[^0-9{self.mark}(+-]" if self.unit else f"[^0-9{self.mark}eE+-]"


class MomentFormat(NamedTuple):
    """A format of dates, with or without a time of day."""

    order: str  # a key of ORDERS
    has_time: bool

    @property
    def example(self) -> str:
        """The format, in letters."""
        return f"{ORDERS[self.order].example}{' HH:MM' * self.has_time}"


class DateOrder(NamedTuple):
    """The order of the parts of a date."""

    example: str
    template: str  # as to_date takes it
    marks: Sequence[str]  # between the parts, one of them throughout
    parts: str  # of year, month and day, the first letters
    zero: str = "0?"  # before a digit that stands alone


ORDERS = {
    "iso": DateOrder("YYYY-MM-DD", "YYYY-MM-DD", ("-", "/"), "ymd"),
    "dmy": DateOrder("DD.MM.YYYY", "DD.MM.YYYY", ("[.]", "/", "-"), "dmy"),
    "mdy": DateOrder("MM/DD/YYYY", "MM/DD/YYYY", ("/", "-"), "mdy"),
    "compact": DateOrder("YYYYMMDD", "YYYYMMDD", ("",), "ymd", "0"),
}
YEAR = "[12][0-9]{3}"
LEAP_YEAR = "(?:[12][0-9](?:0[48]|[2468][048]|[13579][26])|1[26]00|2[048]00)"
CLOCK = "(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,6})?)?"
HALF_DAYS = "(?:0?[1-9]|1[0-2]):[0-5][0-9](?::[0-5][0-9])? ?[AaPp][Mm]"
ISO_CLOCK = "[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:[.][0-9]{1,6})?)?"
ZONE = " ?(?:Z|[+-](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?)"
SPACES = " *"


def date_pattern(order: str) -> str:
    """Return the pattern of days that exist, from the year 1000 to 2999."""
    marks, parts, zero = ORDERS[order][2:]
    months = f"{zero}[1-9]|1[0-2]"
    days = [
        (YEAR, months, f"{zero}[1-9]|1[0-9]|2[0-8]"),
        (YEAR, f"{zero}[13-9]|1[0-2]", "29|30"),
        (YEAR, f"{zero}[13578]|1[02]", "31"),
        (LEAP_YEAR, f"{zero}2", "29"),
    ]
    alternatives = []
    for mark in marks:
        for year, month, day in days:
            by_letter = {"y": year, "m": month, "d": day}
            alternatives.append(mark.join(f"(?:{by_letter[letter]})" for letter in parts))
    return f"(?:{'|'.join(alternatives)})"


def moment_pattern(order: str) -> str:
    """Return the pattern of dates in an order, with or without a time of day."""
    time = ISO_CLOCK if order == "iso" else f" +(?:{CLOCK}|{HALF_DAYS})"
    return f"^{SPACES}{date_pattern(order)}(?:{time})?{SPACES}$"


ZONED_PATTERN = f"^{SPACES}{date_pattern('iso')}{ISO_CLOCK}{ZONE}{SPACES}$"
"""Pattern of ISO dates with a time of day and a time zone."""
NUMBER_FORMATS = {
    f"text as {number.example}": number
    for number in (NumberFormat(mark, unit) for unit in ("", *UNITS) for mark in ".,")
}
"""Formats of numbers by family; those without a unit come first."""
MOMENT_FORMATS = {
    f"text as {moment.example}": moment
    for moment in (MomentFormat(order, has_time) for order in ORDERS for has_time in (False, True))
}
"""Formats of points in time by family."""


RECORD = "record of "
"""Before the family of a column of JSON, whose texts are in a format and whose numbers are none."""


def describe_format(family: str) -> str:
    """Return how the texts of a column are read, for plans."""
    if family in NUMBER_FORMATS:
        return f"read as a number from text: {NUMBER_FORMATS[family].example}"
    return f"read as a point in time from text: {MOMENT_FORMATS[family].example}"


def record_text(value: str) -> str:
    """Return a value of JSON as a text; NULL for the null of JSON."""
    return f"({value} #>> '{{}}'::text[] COLLATE pg_catalog.\"C\")"


def record_number(value: str, family: str) -> str:
    """Return the number in a value of JSON as double precision: a number, or a text of a format."""
    text = record_text(value)
    is_number = f"pg_catalog.jsonb_typeof({value}) = 'number'::text"
    plain = NumberFormat(".", "")
    number = text_number(text, family.removeprefix(RECORD))
    return f"(CASE WHEN {is_number} THEN {_read(text, plain)} ELSE {number} END)"


def text_number(text: str, family: str) -> str:
    """Return the number in a text as double precision; NULL if it does not match."""
    return _read(text, NUMBER_FORMATS[family])


def _read(text: str, number: NumberFormat) -> str:
    dropped = f"{literal(number.dropped)}::text, ''::text, 'g'::text"
    digits = f"pg_catalog.regexp_replace({text}, {dropped})"
    decimal = f"pg_catalog.translate({digits}, '{number.mark}('::text, '.-'::text)"
    return f"(CASE WHEN {_matches(text, number.pattern)} THEN {decimal}::{DOUBLE} END)"


def text_moment(text: str, family: str) -> str:
    """Return the point in time in a text as a timestamp, in UTC; NULL if it does not match.

    A text in the format of ISO 8601 is read in any case.
    """
    iso = f"pg_catalog.translate({text}, '/'::text, '-'::text)"
    cases = [
        (ZONED_PATTERN, f"({iso}::timestamptz AT TIME ZONE 'UTC')"),
        (moment_pattern("iso"), f"{iso}::timestamp"),
    ]
    order = MOMENT_FORMATS[family].order
    if order != "iso":
        cases.insert(0, (moment_pattern(order), _read_date(text, order)))
    branches = " ".join(f"WHEN {_matches(text, pattern)} THEN {value}" for pattern, value in cases)
    return f"(CASE {branches} END)"


def _read_date(text: str, order: str) -> str:
    """Return a text that matches an order of dates as a timestamp."""
    day = f"pg_catalog.split_part(pg_catalog.btrim({text}), ' '::text, 1)"
    clock = f"pg_catalog.substring({text}, ' ([0-9]{{1,2}}:.*)$'::text)"
    date = f"pg_catalog.to_date({day}, '{ORDERS[order].template}'::text)"
    return f"({date} + coalesce({clock}::time, '00:00'::time))"


def _matches(text: str, pattern: str) -> str:
    return f"{text} ~ {literal(pattern)}::text"
