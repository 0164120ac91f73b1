"""Columns that are compared with a value that a log keeps as a text, such as the one where the last
rows begin.

SPI binds such a value as a text, the driver as a literal of no type: only a cast makes both mean
the same.
"""

from __future__ import annotations

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.values.canonical_text import MONEY, amount
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression


def comparable(column: RawColumn, row: str = "t") -> str:
    """Return SQL for a column as a type of PostgreSQL's own, if it is not of a type that somebody
    has made.
    """
    name = f"{row}.{quote_identifier(column.name)}"
    return amount(name) if column.family == MONEY else f"{name}::{column.compared}"


def compare(column: RawColumn, operator: str, value: str | None, row: str = "t") -> Expression:
    """Return the condition that compares a column with a value, by one of PostgreSQL's own
    operators.
    """
    compared = column.compared
    if column.family == MONEY:
        compared = "numeric"
        value = value and value.replace("$", "").replace(",", "")  # as amounts were written before
    return Expression(
        f"{comparable(column, row)} OPERATOR(pg_catalog.{operator}) %s::text::{compared}", (value,)
    )
