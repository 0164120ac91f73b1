"""Remarks about columns that may not be what their types say, for `cerebro.plan` and notices."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import quote_text
from cerebro_plpy.preprocessing.values.columns import RawColumn

BLANKS = "blanks"
LETTERS = "letters"
EMPTY = "empty"
CLEANING = {BLANKS: "btrim({})", LETTERS: "lower({})", EMPTY: "nullif({}, '')"}
"""Functions that clean a text, in the order in which they are applied."""
PURPOSES = {LETTERS: "make them one", EMPTY: "make blanks NULL"}


class ColumnRemark(NamedTuple):
    """A remark about a column."""

    column: str
    text: str  # what was found, and what to type
    is_notice: bool = True  # training gives a notice; else only the plan has the remark
    is_cast: bool = False  # it reads texts as other values, so that how they are written is moot
    cleaning: tuple[str, ...] = ()  # keys of CLEANING, of an expression that the text lacks yet


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


def merge_remarks(remarks: Iterable[ColumnRemark]) -> tuple[ColumnRemark, ...]:
    """Return remarks that show at most one expression for each column.

    Remarks about how texts are written become one, with the expression that answers all of them.
    They are left out if another remark reads the texts as other values.
    """
    remarks = list(remarks)
    cast_columns = {remark.column for remark in remarks if remark.is_cast and remark.is_notice}
    merged = [remark for remark in remarks if not remark.cleaning]
    by_column: dict[str, list[ColumnRemark]] = {}
    for remark in remarks:
        if remark.cleaning and remark.column not in cast_columns:
            by_column.setdefault(remark.column, []).append(remark)
    for column, written in by_column.items():
        steps = {step for remark in written for step in remark.cleaning}
        findings = "; ".join(remark.text for remark in written)
        purposes = " and ".join(PURPOSES[step] for step in PURPOSES if step in steps)
        cleaned = view_column(column, _clean(column, steps))
        text = f"{findings}. To {purposes}, write {cleaned} in a view, and train on that"
        merged.append(ColumnRemark(column, text))
    return tuple(merged)


def _clean(column: str, steps: Collection[str]) -> str:
    """Return the expression that cleans the texts of a column."""
    expression = quote_identifier(column)
    for step, function in CLEANING.items():
        if step in steps:
            expression = function.format(expression)
    return expression


def remark_collations(
    columns: Sequence[RawColumn], compared: Collection[str | None]
) -> Iterator[ColumnRemark]:
    """Yield the remarks about columns whose values are compared, by letters."""
    for column in columns:
        if column.is_folded and column.name in compared:
            yield ColumnRemark(
                column.name,
                "its texts are compared letter by letter, although its collation takes some for "
                "equal",
                cleaning=(LETTERS,),
            )
