"""The label of a row as SQL, the text of its class or a number; and rows of unknown labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.errors import DatatypeMismatch, UndefinedColumn
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.unknown_values import count_values
from cerebro_plpy.preprocessing.remarks.column_remarks import ColumnRemark
from cerebro_plpy.preprocessing.rows.class_counts import UnknownTargets, count_unknown
from cerebro_plpy.preprocessing.rows.opened_source import OpenedSource
from cerebro_plpy.preprocessing.rows.weight_column import find_column
from cerebro_plpy.preprocessing.values import column_values
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import NUMBERS, TEXT, TEXT_NUMBERS
from cerebro_plpy.preprocessing.values.value_texts import find_form, fits


class Labels(NamedTuple):
    """The labels that a model learns or predicts."""

    task: str
    form: str | None = None  # of the classes; None if an earlier version knows them as texts
    classes: Sequence[str] = ()
    text_format: str | None = None  # of texts that numbers are read from

    def expression(self, column: RawColumn) -> Expression:
        """Return the label from the target column; NULL if the column is NULL or NaN.

        The label is NULL as well for a text that is not a number in the format of the labels.
        """
        if self.task != CLASSIFICATION:
            return column_values.number(column.name, self.find_family(column))
        if self.form is None:
            return column_values.styled_text(column.name, column.family)
        return column_values.text_in_form(column.name, column.family, self.form)

    def find_family(self, column: RawColumn) -> str:
        """Return the family that the numbers of a column are read as."""
        if self.text_format is not None and column.family == TEXT:
            return self.text_format
        return column.family or ""

    def is_usable(self, column: RawColumn) -> Expression:
        """Return the condition that a row has a label that can be trained on."""
        label = self.expression(column)
        if self.task == CLASSIFICATION:
            return Expression(f"{label.text} IS NOT NULL")
        return Expression(
            f"pg_catalog.abs({label.text}) < 'Infinity'::double precision", label.values
        )

    def is_known(self, column: RawColumn) -> Expression:
        """Return the condition that the label is a class of training rows, or a finite number."""
        if self.task == CLASSIFICATION:
            text = f"{self.expression(column).text} = ANY (%s::text[])"
            return Expression(text, (list(self.classes),))
        return self.is_usable(column)

    def unknown_label(self, column: RawColumn) -> Expression | None:
        """Return the text of a label that the model does not know, else NULL.

        Such a label is a class that was not trained on, or a text that is not a number in the
        format of the labels. The result is None if the model knows every label.
        """
        if self.task != CLASSIFICATION:
            family = self.find_family(column)
            if family not in TEXT_NUMBERS:
                return None
            return column_values.unread_text(column.name, family)
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
            if column.family in NUMBERS or self.find_family(column) in TEXT_NUMBERS:
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
    if task == CLASSIFICATION:
        return Labels(task, find_form(column), classes)
    text_format = column.family if column.family in TEXT_NUMBERS else None
    return Labels(task, text_format=text_format)


def restore_labels(task: str, recipe: Recipe, classes: Sequence[str]) -> Labels:
    """Return the labels of a version, as its recipe has them."""
    return Labels(task, recipe.label, classes, recipe.target_format)


def find_target(module: str, columns: Sequence[RawColumn], name: str) -> RawColumn:
    """Return the target in another table; raises UndefinedColumn if the table does not have it."""
    column = next((column for column in columns if column.name == name), None)
    if column is None:
        raise UndefinedColumn(
            f"{module} error: there is no column {name!r}, which the model predicts.",
            hint="Name a table or view that has it, beside the columns that the model needs.",
        )
    return column


def count_unknown_targets(
    reader: Reader, table: str, side: Expression, labels: Labels, column: RawColumn
) -> UnknownTargets:
    """Count the rows of a side whose target is missing, and those whose target is not known."""
    label = labels.expression(column)
    if labels.find_family(column) in TEXT_NUMBERS:
        label = labels.unknown_label(column) or label
    return count_unknown(reader, table, side, label, labels.is_known(column))


def remark_holdout(
    reader: Reader, module: str, held_back: tuple[OpenedSource, Table], labels: Labels, target: str
) -> Iterator[ColumnRemark]:
    """Yield the remark about rows of a table held back whose target is not known.

    Args:
        held_back: the rows of the table, and the table.
        target: the name of the target.
    """
    opened, table = held_back
    label = labels.unknown_label(find_column(module, opened.columns, target, "target"))
    if label is None:
        return
    counted = count_values(reader, opened.table, Expression("true"), {target: label})
    for name, values in counted.describe():
        unknown = "are not trained on" if labels.classes else "are not numbers"
        yield ColumnRemark(
            name,
            f"in {table.spelling} it has {values}, which {unknown}: rows with them are left out",
        )
