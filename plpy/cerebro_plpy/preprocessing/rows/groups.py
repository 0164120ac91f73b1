"""The groups of a raw table: values of a column that have enough rows for a model of their own.

The model of all rows alone learns from all other rows, those with NULL among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Optional

from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter
from cerebro_plpy.preprocessing.rows.row_subset import RowSubset
from cerebro_plpy.preprocessing.rows.weight_column import find_column
from cerebro_plpy.preprocessing.values import column_values
from cerebro_plpy.preprocessing.values.column_hints import group_expressions, suggest_view
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import TEXT

FAMILIES = (TEXT, "integer", "date")
"""Families of columns whose values have one text each."""
LEAST_ROWS = 100
"""Training rows that a group must have by default."""
MOST_GROUPS = 1000


class GroupRequest(NamedTuple):
    """The groups that a call asks for."""

    column: str
    least: int  # training rows that a group must have
    classes: tuple[str, ...] = ()  # of the target, if it has classes
    family: str | None = TEXT


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
    family: str | None = TEXT

    @property
    def value(self) -> Expression:
        """The text of the group of a row."""
        return column_values.distinct_text(self.column, self.family)

    @property
    def order(self) -> Expression:
        """The position of the group of a row; NULL, which is last, if it has none."""
        values = [group.value for group in self.rows_by_group]
        text = f"pg_catalog.array_position(%s::text[], {self.value.text})"
        return Expression(text, (values,))


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
            f"{module} error: group_by is {request.column!r}, but none of its {len(values)} values "
            f"has {request.least} rows that are trained on, and one that is held back.",
            hint="Lower min_group_rows, or leave group_by out.",
        )
    if len(groups) > MOST_GROUPS:
        raise InvalidParameter(
            f"{module} error: group_by is {request.column!r}, of which {len(groups)} values have "
            f"{request.least} rows or more; expected at most {MOST_GROUPS} groups.",
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
        family=request.family,
    )


CountsByGroup = dict[Optional[str], Counter[Optional[str]]]
"""The number of rows by group and class."""


def _totals(counts: CountsByGroup) -> dict[str | None, int]:
    return {value: sum(rows.values()) for value, rows in counts.items()}


def _count_by_group(reader: Reader, part: RowSubset, request: GroupRequest) -> CountsByGroup:
    """Count the rows of one side by group and class."""
    value = column_values.distinct_text(request.column, request.family)
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
