"""The groups of a raw table: values of a column that have enough rows for a model of their own.

The model of all rows alone learns from all other rows, those with NULL among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple, Optional

from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.rows.row_subset import RowSubset
from cerebro_plpy.preprocessing.rows.weight_column import find_column
from cerebro_plpy.preprocessing.values import column_values
from cerebro_plpy.preprocessing.values.column_hints import group_expressions, suggest_view
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import BIT, BOOLEAN, CITEXT, TEXT
from cerebro_plpy.preprocessing.values.value_texts import find_form, fits

FAMILIES = (TEXT, BOOLEAN, BIT, CITEXT, "integer", "date")
"""Families of columns whose values have one text each."""
LEAST_ROWS = 100
"""Training rows that a group must have by default."""
MOST_GROUPS = 1000
UNKNOWN_GROUPS = ("",)
"""Stands for groups that must not be known."""


class GroupRequest(NamedTuple):
    """The groups that a call asks for."""

    column: str
    least: int  # training rows that a group must have
    classes: tuple[str, ...] = ()  # of the target, if it has classes
    family: str | None = TEXT
    form: str | None = None  # of the values; None if an earlier version has them

    @property
    def value(self) -> Expression:
        """The text of the group of a row."""
        return group_text(self.column, self.family, self.form)


class GroupRows(NamedTuple):
    """The rows of one group."""

    value: str
    training: int
    validation: int
    classes: tuple[int, ...] = ()  # training rows by class


class Groups(NamedTuple):
    """The groups of a table by the values of a column, the largest first."""

    column: str
    least: int  # training rows that a group must have
    rows_by_group: tuple[GroupRows, ...]
    small_values: int  # number of values with fewer rows
    ungrouped_rows: tuple[int, int]  # training and validation rows without a group
    value: Expression  # the text of the group of a row

    @property
    def order(self) -> Expression:
        """The position of the group of a row; NULL, which is last, if it has none."""
        values = [group.value for group in self.rows_by_group]
        text = f"pg_catalog.array_position(%s::text[], {self.value.text})"
        return Expression(text, (values,))


def make_group_request(
    columns: Sequence[RawColumn],
    group_by: str,
    least: int,
    classes: tuple[str, ...],
    form: str | None,
) -> GroupRequest:
    """Return the request of the groups of a column; for the arguments see `GroupRequest`."""
    families = {column.name: column.family for column in columns}
    return GroupRequest(group_by, least, classes, families[group_by], form)


def find_group_form(columns: Sequence[RawColumn], group_by: str | None) -> str | None:
    """Return the form of the values that rows are grouped by; None without groups."""
    return next((find_form(column) for column in columns if column.name == group_by), None)


def group_text(column: str, family: str | None, form: str | None, row: str = "t") -> Expression:
    """Return the text of the group of a row.

    Args:
        form: the form of the groups that are known; None for those of an earlier version.
    """
    if form is None:
        return column_values.styled_text(column, family, row)
    return column_values.text_in_form(column, family, form, row)


def check_group_values(
    module: str, column: RawColumn, form: str | None, groups: Collection[str] | None
) -> None:
    """Raise DatatypeMismatch if values of a column cannot be compared with those of groups.

    Args:
        form: the form of the known groups; None for those of an earlier version.
        groups: the groups; None if only the owner of the model may know them.
    """
    if groups is None:
        groups = UNKNOWN_GROUPS
    if form is None or fits(column.family, form, groups):
        return
    raise DatatypeMismatch(
        f"{module} error: column {column.name!r} has type {column.type}, and cannot be compared "
        "with the groups that have a model of their own.",
        hint="Cast it in a view to the type that it had in training, and use that.",
    )


def check_group_column(
    module: str, columns: Sequence[RawColumn], name: str, target: str, table: Table
) -> None:
    """Raise an error if rows cannot be grouped by a column."""
    column = find_column(module, columns, name, "group_by", table=table)
    if name == target:
        raise InvalidParameter(
            f"{module} error: group_by is {name!r}, which is the target.",
            hint="Name another column.",
        )
    if column.family not in FAMILIES:
        expressions = group_expressions(column)
        raise DatatypeMismatch(
            f"{module} error: group_by names column {name!r} of type {column.type}; expected "
            "texts, whole numbers, dates or booleans.",
            hint=suggest_view(table, expressions, {"group_by": next(iter(expressions))}),
        )


def read_groups(
    reader: Reader, module: str, parts: tuple[RowSubset, RowSubset], request: GroupRequest
) -> Groups:
    """Return the groups of training and validation rows.

    Raises InvalidParameter if there is no group, or if there are too many.
    """
    training_part, validation_part = parts
    classes_by_value = _count_by_group(reader, training_part, request)
    training = _totals(classes_by_value)
    validation = _totals(_count_by_group(reader, validation_part, request))
    groups = [
        GroupRows(
            value=value,
            training=rows,
            validation=validation[value],
            classes=tuple(classes_by_value[value][name] for name in request.classes),
        )
        for value, rows in training.items()
        if value is not None and rows >= request.least and validation.get(value)
    ]
    values = {*training, *validation} - {None}
    if not groups:
        raise InvalidParameter(
            f"{module} error: group_by is {request.column!r}, but none of its "
            f"{count_nouns(len(values), 'value')} has "
            f"{count_nouns(request.least, 'training row')}, and one that is held back.",
            hint="Lower min_group_rows, or leave group_by out.",
        )
    if len(groups) > MOST_GROUPS:
        raise InvalidParameter(
            f"{module} error: group_by is {request.column!r}, of which "
            f"{count_nouns(len(groups), 'value', 'has')} "
            f"{count_nouns(request.least, 'row')} or more; expected at most {MOST_GROUPS} groups.",
            hint="Raise min_group_rows: the rows of smaller groups have the model of all rows.",
        )
    groups.sort(key=lambda group: (-group.training, group.value))
    ungrouped_training = sum(training.values()) - sum(group.training for group in groups)
    ungrouped_validation = sum(validation.values()) - sum(group.validation for group in groups)
    return Groups(
        column=request.column,
        least=request.least,
        rows_by_group=tuple(groups),
        small_values=len(values) - len(groups),
        ungrouped_rows=(ungrouped_training, ungrouped_validation),
        value=request.value,
    )


CountsByGroup = dict[Optional[str], Counter[Optional[str]]]
"""The number of rows by group and class."""


def _totals(counts: CountsByGroup) -> dict[str | None, int]:
    return {value: sum(rows.values()) for value, rows in counts.items()}


def _count_by_group(reader: Reader, part: RowSubset, request: GroupRequest) -> CountsByGroup:
    """Count the rows of one side by group and class."""
    value = request.value
    label = part.label if request.classes else Expression("NULL::text")
    statement = sql(
        "features.groups",
        value=value.text,
        label=label.text,
        source=part.table,
        side=part.side.text,
    )
    counts: CountsByGroup = {}
    for group, name, rows in reader.run(statement, (*label.values, *part.side.values)):
        counts.setdefault(group, Counter())[name] += int(rows)
    return counts
