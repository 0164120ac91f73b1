"""The values of a column as SQL: a number, an element of an array, a part of a date, a text.

`row` is the alias of the row in the statement.
"""

from __future__ import annotations

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.values import (
    canonical_text,
    json_scalars,
    text_formats,
    text_shapes,
    value_texts,
)
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import DOUBLE, Expression
from cerebro_plpy.preprocessing.values.families import ARRAYS, CAST, JSON, TEXT_NUMBERS, TEXT_POINTS

LARGEST = 1e300
"""Largest absolute value of a number or constant; arithmetic with it cannot overflow."""
CONVERSIONS = {JSON: json_scalars.number, canonical_text.MONEY: canonical_text.amount}
"""Families whose values become numeric by an expression of their own."""


def column_name(column: str, row: str = "t") -> str:
    """Return the quoted name of a column of a row."""
    return f"{row}.{quote_identifier(column)}"


def number(column: str, family: str, row: str = "t") -> Expression:
    """Return a column of numbers as double precision; NULL and NaN become NULL."""
    return number_of(column_name(column, row), family)


def number_of(value: str, family: str) -> Expression:
    """Return a number of a family as double precision; NULL and NaN become NULL."""
    if family.startswith(text_formats.RECORD):
        return Expression(text_formats.record_number(value, family))
    if family in TEXT_NUMBERS:
        return Expression(text_formats.text_number(_plain_text(value), family))
    if family == "integer":
        return Expression(f"{value}::{DOUBLE}")
    if family == "real":
        return Expression(without_nan(value, DOUBLE))
    value = CONVERSIONS.get(family, str)(value)
    # The cast of a number that double precision cannot hold would be an error.
    bounded = f"least(greatest({value}::numeric, %s::numeric), %s::numeric)::{DOUBLE}"
    text = (
        f"CASE WHEN {value}::numeric > %s::numeric AND {value}::numeric < %s::numeric THEN 0"
        f" WHEN {value}::numeric <> 'NaN'::numeric THEN {bounded} END"
    )
    return Expression(text, (-1 / LARGEST, 1 / LARGEST, -LARGEST, LARGEST))


def elements(column: str, family: str, row: str = "t") -> str:
    """Return a column of arrays as arrays of numbers."""
    name = column_name(column, row)
    return f"{name}::pg_catalog.float4[]" if family == CAST else name


def element(column: str, family: str, place: int, row: str = "t") -> Expression:
    """Return one element of one-dimensional arrays as double precision.

    NULL if the array is shorter, or the element is NULL or NaN. Places begin at 1.
    """
    # A slice begins at 1, wherever the array does.
    return number_of(f"(({elements(column, family, row)})[:])[{place}]", ARRAYS[family])


def date_part(column: str, family: str, part: str, row: str = "t") -> Expression:
    """Return a part of a point or span of time as double precision, in UTC."""
    name = column_name(column, row)
    if family in TEXT_POINTS:
        name = text_formats.text_moment(_plain_text(name), family)
    if family == "timestamptz":
        name = f"({name} AT TIME ZONE 'UTC')"
    return Expression(f"pg_catalog.date_part('{part}', {name})")


def distinct_text(column: str, family: str | None = "text", row: str = "t") -> Expression:
    """Return the text of a column that equal values share; NULL for NaN."""
    return _in_bytes(value_texts.own_text(column_name(column, row), family))


def value_text(column: RawColumn, row: str = "t") -> Expression:
    """Return the text by which equal values of a column are recognized."""
    if column.family in TEXT_NUMBERS:
        return _in_bytes(value_texts.finite_text(number(column.name, column.family, row).text))
    form = value_texts.find_form(column)
    return text_in_form(column.name, column.family, form, row)


def text_in_form(column: str, family: str | None, form: str, row: str = "t") -> Expression:
    """Return the text of a column in a form that its family can be converted to."""
    text = value_texts.text_in_form(column_name(column, row), family, form)
    assert text is not None
    return _in_bytes(text)


def styled_text(column: str, family: str | None, row: str = "t") -> Expression:
    """Return the text of a column as PostgreSQL writes it: classes of earlier versions are such."""
    return _in_bytes(canonical_text.styled_text(column_name(column, row), family))


def known_value(column: RawColumn, row: str = "t") -> str:
    """Return a column; NaN becomes NULL, and so do blank texts that numbers are read from."""
    name = column_name(column.name, row)
    if column.family in TEXT_NUMBERS:
        return f"(CASE WHEN NOT {text_shapes.is_empty(_plain_text(name))} THEN {name} END)"
    if column.family == "real":
        return without_nan(name, DOUBLE)
    if column.family == "numeric":
        return without_nan(name, "numeric")
    return name


def unread_text(column: str, family: str, row: str = "t") -> Expression:
    """Return a text that is neither blank nor in a format; NULL for any other text.

    Args:
        family: a format, or one of values of JSON that are in it.
    """
    name = column_name(column, row)
    text = _plain_text(name)
    if family.startswith(text_formats.RECORD):
        text = text_formats.record_text(name)
        value = text_formats.record_number(name, family)
    elif family in TEXT_POINTS:
        value = text_formats.text_moment(text, family)
    else:
        value = text_formats.text_number(text, family)
    is_read = f"{value} IS NOT NULL OR {text_shapes.is_empty(text)}"
    return Expression(f"CASE WHEN NOT ({is_read}) THEN {text} END")


def without_nan(value: str, type_: str) -> str:
    """Return a value as a type that has NaN, which becomes NULL."""
    return f"nullif({value}::{type_}, 'NaN'::{type_})"


def _in_bytes(text: str) -> Expression:
    """Return a text that is compared by its bytes, whatever the collation of its column."""
    return Expression(f'({text} COLLATE pg_catalog."C")')


def _plain_text(value: str) -> str:
    """Return a value as text, whose letters any pattern can be compared with."""
    return f'({value}::text COLLATE pg_catalog."C")'
