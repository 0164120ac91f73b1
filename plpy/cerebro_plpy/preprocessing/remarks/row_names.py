"""Columns that name a row, such as ids: they have nothing that new rows would share.

Whole numbers that all differ name a row if the name of the column says so. Others may: if they
leave hardly a gap, they are as likely a position in time.
"""

from __future__ import annotations

import re

from cerebro_plpy.preprocessing.rows.statistics import NumberStatistics
from cerebro_plpy.preprocessing.values.columns import RawColumn

MIN_ROWS = 20
"""With fewer rows, values that all differ may still have a meaning."""
DENSEST = 2
"""Numbers of rows leave no gaps but those of rows that are held back, at most half of them."""
WORD = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
NAMING_WORDS = frozenset(
    ["id", "ids", "uid", "guid", "uuid", "oid", "no", "nr", "num", "number", "key", "pk"]
).union(["index", "idx", "rowid", "rownum", "rownumber"])
NAMING_ENDINGS = re.compile("^unnamed: ?[0-9]+$|row[._ ]?names?$", re.IGNORECASE)
"""Names that pandas and R give to the numbers of rows when they write a file."""


def has_naming_name(name: str) -> bool:
    """Return whether a column has the name of an id, a number or an index.

    >>> [has_naming_name(name) for name in ("PassengerId", "seq_no", "row.names", "customerID")]
    [True, True, True, True]
    >>> [has_naming_name(name) for name in ("paid", "number_of_rooms", "piano", "Id Type")]
    [False, False, False, False]
    """
    words = WORD.findall(name)
    is_naming = bool(words) and words[-1].lower() in NAMING_WORDS
    return is_naming or NAMING_ENDINGS.search(name) is not None


def all_differ(column: RawColumn, spread: NumberStatistics) -> bool:
    """Return whether whole numbers all differ, in a sample of enough rows."""
    return (
        column.family == "integer"
        and spread.sampled >= MIN_ROWS
        and spread.distinct == spread.sampled
    )


def describe_row_numbers(column: RawColumn, spread: NumberStatistics) -> str | None:
    """Return why a column may name a row although its name does not say so; None if it does not."""
    if not all_differ(column, spread) or spread.low is None or spread.high is None:
        return None
    if spread.high - spread.low < DENSEST * spread.rows:
        return "its whole numbers all differ and leave hardly a gap, as numbers of rows do"
    if column.name.lower().endswith("id"):
        return "its whole numbers all differ, and its name ends in id"
    return None
