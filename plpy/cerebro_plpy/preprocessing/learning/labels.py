"""The label of a row as SQL: the text of its class, or a number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.errors import DatatypeMismatch, UndefinedColumn
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION
from cerebro_plpy.preprocessing.values import column_values
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import NUMBERS
from cerebro_plpy.preprocessing.values.value_texts import find_form, fits


class Labels(NamedTuple):
    """The labels that a model learns or predicts."""

    task: str
    form: str | None = None  # of the classes; None if an earlier version knows them as texts
    classes: Sequence[str] = ()

    def expression(self, column: RawColumn) -> Expression:
        """Return the label from the target column; NULL if the column is NULL or NaN."""
        if self.task != CLASSIFICATION:
            return column_values.number(column.name, column.family or "")
        if self.form is None:
            return column_values.styled_text(column.name, column.family)
        return column_values.text_in_form(column.name, column.family, self.form)

    def is_usable(self, column: RawColumn) -> Expression:
        """Return the condition that a row has a label that can be trained on."""
        label = self.expression(column)
        if self.task == CLASSIFICATION:
            return Expression(f"{label.text} IS NOT NULL")
        assert column.family in NUMBERS
        return Expression(
            f"pg_catalog.abs({label.text}) < 'Infinity'::double precision", label.values
        )

    def is_known(self, column: RawColumn) -> Expression:
        """Return the condition that the label is a class of training rows, or a finite number."""
        if self.task == CLASSIFICATION:
            text = f"{self.expression(column).text} = ANY (%s::text[])"
            return Expression(text, (list(self.classes),))
        return self.is_usable(column)

    def unknown_class(self, column: RawColumn) -> Expression | None:
        """Return the text of a class that is none of those trained on, else NULL.

        The result is None if there are no classes.
        """
        if self.task != CLASSIFICATION:
            return None
        label = self.expression(column)
        text = f"CASE WHEN {label.text} <> ALL (%s::text[]) THEN {label.text} END"
        return Expression(text, (*label.values, list(self.classes), *label.values))

    def usable_expression(self, column: RawColumn) -> Expression:
        """Return the label; NULL also for a number that is not finite."""
        label = self.expression(column)
        if self.task == CLASSIFICATION:
            return label
        finite = f"pg_catalog.abs({label.text}) < 'Infinity'::double precision"
        return Expression(f"CASE WHEN {finite} THEN {label.text} END", label.values * 2)

    def check_column(self, module: str, column: RawColumn, place: str = "") -> None:
        """Raise DatatypeMismatch if the values of a column cannot be compared with the labels.

        Args:
            place: the table, for the message.
        """
        if self.task != CLASSIFICATION:
            if column.family in NUMBERS:
                return
            expected = "the model predicts a number"
        elif self.form is None or fits(column.family, self.form, self.classes):
            return
        else:
            expected = f"the model predicts classes such as {self.classes[0]!r}"
        raise DatatypeMismatch(
            f"{module} error: column {column.name!r}{place} has type {column.type}; {expected}.",
            hint="Cast it in a view, and use that.",
        )


def learn_labels(column: RawColumn, task: str, classes: Sequence[str] = ()) -> Labels:
    """Return the labels of a column that a model is to learn."""
    if task != CLASSIFICATION:
        return Labels(task)
    return Labels(task, find_form(column), classes)


def find_target(module: str, columns: Sequence[RawColumn], name: str) -> RawColumn:
    """Return the target in another table; raises UndefinedColumn if the table does not have it."""
    column = next((column for column in columns if column.name == name), None)
    if column is None:
        raise UndefinedColumn(
            f"{module} error: there is no column {name!r}, which the model predicts.",
            hint="Name a table or view that has it, beside the columns that the model needs.",
        )
    return column
