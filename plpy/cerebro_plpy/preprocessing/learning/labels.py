"""The label of a row as SQL: the text of its class, or a number."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.errors import DatatypeMismatch, UndefinedColumn
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION
from cerebro_plpy.preprocessing.values import column_values
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import NUMBERS


def label_expression(column: RawColumn, task: str) -> Expression:
    """Return the label from the target column; NULL if the column is NULL."""
    if task == CLASSIFICATION:
        return column_values.distinct_text(column.name, column.family)
    return column_values.number(column.name, column.family or "")


def usable_label_expression(
    module: str, columns: Sequence[RawColumn], name: str, task: str
) -> Expression:
    """Return the label for rows of another table; NULL also for a number that is not finite.

    Raises:
        UndefinedColumn: the table does not have the target.
        DatatypeMismatch: numbers are predicted, and the column does not have numbers.
    """
    column = next((column for column in columns if column.name == name), None)
    if column is None:
        raise UndefinedColumn(
            f"{module} error: there is no column {name!r}, which the model predicts.",
            hint="Name a table or view that has it, beside the columns that the model needs.",
        )
    if task != CLASSIFICATION and column.family not in NUMBERS:
        raise DatatypeMismatch(
            f"{module} error: column {column.name!r} has type {column.type}; the model predicts a "
            "number.",
            hint="Cast it in a view, and use that.",
        )
    label = label_expression(column, task)
    if task == CLASSIFICATION:
        return label
    finite = f"pg_catalog.abs({label.text}) < 'Infinity'::double precision"
    return Expression(f"CASE WHEN {finite} THEN {label.text} END", label.values * 2)


def is_known(target: RawColumn, task: str, classes: Sequence[str]) -> Expression:
    """Return the condition that the label is a class of training rows, or a finite number."""
    if task == CLASSIFICATION:
        return Expression(
            f"{label_expression(target, task).text} = ANY (%s::text[])", (list(classes),)
        )
    return is_usable(target, task)


def is_usable(target: RawColumn, task: str) -> Expression:
    """Return the condition that a row can be trained on, before its classes are known."""
    label = label_expression(target, task)
    if task == CLASSIFICATION:
        return Expression(f"{label.text} IS NOT NULL")
    assert target.family in NUMBERS
    return Expression(f"pg_catalog.abs({label.text}) < 'Infinity'::double precision", label.values)
