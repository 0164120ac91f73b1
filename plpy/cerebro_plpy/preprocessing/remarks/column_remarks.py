"""Remarks about columns that may not be what their types say, for `cerebro.plan` and notices."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.literals import quote_text
from cerebro_plpy.preprocessing.values.columns import RawColumn


class ColumnRemark(NamedTuple):
    """A remark about a column."""

    column: str
    text: str  # what was found, and what to type
    is_notice: bool = True  # training gives a notice; else only the plan has the remark


def types_argument(column: str, kind: str) -> str:
    """Return the argument that gives a column a kind, as a person would type it.

    >>> types_argument("Ann's", "number")
    'types => \\'{"Ann\\'\\'s": "number"}\\''
    """
    return f"types => {quote_text(json.dumps({column: kind}, ensure_ascii=False))}"


def columns_argument(column: str) -> str:
    """Return the argument that leaves a column out, as a person would type it.

    >>> columns_argument("Ann's")
    'columns => \\'* except "Ann\\'\\'s"\\''
    """
    return f"columns => {quote_text(f'* except {quote_identifier(column)}')}"


def view_column(column: str, expression: str) -> str:
    """Return the item of a view's SELECT that has an expression under the name of a column."""
    return f"{expression} AS {quote_identifier(column)}"


def remark_collations(
    columns: Sequence[RawColumn], compared: Collection[str | None]
) -> Iterator[ColumnRemark]:
    """Yield the remarks about columns whose values are compared, by letters."""
    for column in columns:
        if column.is_folded and column.name in compared:
            lower = view_column(column.name, f"lower({quote_identifier(column.name)})")
            yield ColumnRemark(
                column.name,
                "its texts are compared letter by letter, although its collation takes some for "
                f"equal. A view with {lower} makes one value of capital and small letters",
            )
