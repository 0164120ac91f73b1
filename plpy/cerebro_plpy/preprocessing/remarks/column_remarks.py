"""Remarks about columns that may not be what their types say, for `cerebro.plan` and notices."""

from __future__ import annotations

import json
from typing import NamedTuple

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.literals import quote_text


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
