"""Shapes of texts as SQL: a text whose digits are all 9, with what its digits say about dates.

A shape is in the same formats as its text (see `text_formats`), so that a few shapes show whether
a column of texts has numbers or dates. Letters before a colon are the orders of a date that exists
(keys of DATE_LETTERS), or `0` for a number that begins with a zero as codes do.
"""

from __future__ import annotations

from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.preprocessing.values.text_formats import EMPTY, SPACES, date_pattern

LONGEST = 60
MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
LETTERS = f"^(?:USD|EUR|GBP|CHF|[eETZ]|[AaPp][Mm]|{MONTHS}|[^A-Za-z])*$"
"""Pattern of texts that have no letters but those of numbers, of dates and of times."""
LEADING_ZERO = "^[^0-9]*0[0-9]"
DATE_LIKE = f"^{SPACES}(?:[0-9]{{1,4}}[-./][0-9]{{1,2}}[-./]|[12][0-9]{{7}}(?: |$))"
DATE_LETTERS = {"I": "iso", "D": "dmy", "M": "mdy", "C": "compact"}
ZERO = "0"


def shape(text: str) -> str:
    """Return the shape of a short text with digits; NULL for any other text."""
    letters = " || ".join(
        f"CASE WHEN {_matches(text, _begins(order))} THEN '{letter}'::text ELSE ''::text END"
        for letter, order in DATE_LETTERS.items()
    )
    prefix = (
        f"CASE WHEN {_matches(text, DATE_LIKE)} THEN {letters} WHEN {_matches(text, LEADING_ZERO)} "
        f"THEN '{ZERO}'::text ELSE ''::text END"
    )
    digits = f"pg_catalog.translate({text}, '0123456789'::text, '9999999999'::text)"
    is_short = f"pg_catalog.length({text}) <= {LONGEST}"
    has_digits = f"{is_short} AND {_matches(text, '[0-9]')} AND {_matches(text, LETTERS)}"
    return f"(CASE WHEN {has_digits} THEN {prefix} || ':'::text || {digits} END)"


def is_empty(text: str) -> str:
    """Return the condition that a text has no value: nothing but blanks."""
    return _matches(text, EMPTY)


def _begins(order: str) -> str:
    """Return the pattern of texts that begin with a date in an order."""
    return f"^{SPACES}{date_pattern(order)}(?:[T ]|$)"


def _matches(text: str, pattern: str) -> str:
    return f"{text} ~ {literal(pattern)}::text"
