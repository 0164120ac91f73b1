"""Comparison of a column with a value that a log keeps as text.

SPI binds such a value as text, the driver as a literal without a type: only a cast makes both mean
the same.
"""

from __future__ import annotations

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.values.canonical_text import MONEY, amount
from cerebro_plpy.preprocessing.values.column_values import without_nan
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression

WITH_NAN = ("real", "numeric")
"""Families that have NaN, which PostgreSQL sorts behind all numbers."""


def comparable(column: RawColumn, row: str = "t") -> str:
    """Return a column as a type of PostgreSQL's own, which has operators of PostgreSQL's own.

    NaN becomes NULL: it is not greater than any number.
    """
    name = f"{row}.{quote_identifier(column.name)}"
    if column.family == MONEY:
        return amount(name)
    if column.family in WITH_NAN:
        return without_nan(name, column.compared)
    return f"{name}::{column.compared}"


def compare(column: RawColumn, operator: str, value: str | None, row: str = "t") -> Expression:
    """Return the condition that compares a column with a value."""
    type_ = column.compared
    if column.family == MONEY:
        type_ = "numeric"
        value = value and value.replace("$", "").replace(",", "")  # older logs have amounts
    operation = f"OPERATOR(pg_catalog.{operator})"
    return Expression(f"{comparable(column, row)} {operation} %s::text::{type_}", (value,))
