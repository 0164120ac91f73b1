"""Families of types: types whose values become inputs in the same way."""

from __future__ import annotations

from cerebro_plpy.preprocessing.values.canonical_text import MONEY
from cerebro_plpy.preprocessing.values.text_formats import MOMENT_FORMATS, NUMBER_FORMATS

TEXT = "text"
BOOLEAN = "boolean"
BIT = "bit"
"""A bit is a boolean that is written as 0 or 1."""
CITEXT = "citext"
"""Texts whose letters may be capitals or not."""
JSON = "json"
"""Values of JSON; those that are numbers are read, all others are missing."""
SCALAR = "scalar"
"""Values of JSON that are categories."""
TEXTS = (TEXT, BOOLEAN, BIT, CITEXT, SCALAR)
"""Families whose values are categories or texts, and nothing else."""
BYTES = "bytea"
"""Files of images."""
NUMBERS = ("integer", "real", "numeric", MONEY)
TEXT_NUMBERS = tuple(NUMBER_FORMATS)
"""Numbers that are written in texts, by format."""
TEXT_POINTS = tuple(MOMENT_FORMATS)
"""Points in time that are written in texts, by format."""
POINTS = ("date", "timestamp", "timestamptz")
"""Points in time. Each has all parts that the others have."""
LOCAL_POINTS = ("date", "timestamp")
"""Points in time without a zone."""
MOMENTS = {
    "date": ("epoch", "year", "month", "day", "dow"),
    "timestamp": ("epoch", "year", "month", "day", "dow", "hour"),
    "timestamptz": ("epoch", "year", "month", "day", "dow", "hour"),
    "time": ("epoch",),
    "interval": ("epoch",),
    **{
        family: ("epoch", "year", "month", "day", "dow", *["hour"] * moment.has_time)
        for family, moment in MOMENT_FORMATS.items()
    },
}
"""Points and spans of time, with the parts that may be inputs, in the terms of `date_part`."""
CAST = "cast to real[]"
"""Types of extensions that have a cast to real[]."""
ARRAYS = {"integer[]": "integer", "real[]": "real", "numeric[]": "numeric", CAST: "real"}
"""Arrays of numbers, with the family of an element."""
WHOLE = ("integer", "integer[]")
EXACT_TYPES = ("real", MONEY, "real[]")
"""Types of numbers that are read from JSON as themselves: no other type has the same texts."""


def interchangeable(family: str) -> tuple[str, ...]:
    """Return the families that may take the place of a family when another table is read.

    A point in time without a zone is another one in each zone: it does not stand for one with a
    zone, nor the reverse.
    """
    if family in TEXT_NUMBERS:
        return (*NUMBERS, JSON)
    if family in TEXT_POINTS:
        return LOCAL_POINTS
    for families in ((*NUMBERS, JSON), LOCAL_POINTS, tuple(ARRAYS)):
        if family in families:
            return families
    return (family,)


def family_over(family: str, column_family: str | None) -> str | None:
    """Return the family that a column of another table is read as; None if it does not fit.

    Texts are read in their format, and other types as what they are.
    """
    if column_family == TEXT and family in (*TEXT_NUMBERS, *TEXT_POINTS):
        return family
    return column_family if column_family in interchangeable(family) else None


def array_type(family: str, source_type: str | None) -> str:
    """Return the type that arrays of a family are read from JSON as.

    Args:
        source_type: the type of the column in the table that the model was trained on.
    """
    if source_type in EXACT_TYPES:
        return str(source_type)
    if family == CAST and source_type:
        return source_type
    if family in ("real[]", CAST):
        return "double precision[]"
    return "numeric[]"


def family_of_array(type_: str, default: str) -> str:
    """Return the family of arrays that were read as a type; `default` if the type has none."""
    families = {"numeric[]": "numeric[]", "double precision[]": "real[]", "real[]": "real[]"}
    return families.get(type_, default)
