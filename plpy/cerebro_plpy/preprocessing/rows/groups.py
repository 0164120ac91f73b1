"""The groups of a raw table: which values of a column have so many rows that a model of their own
is worth it.

All other rows, those whose value is NULL among them, are learned from by the model of all rows
alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import DatatypeMismatch, InvalidParameter
from cerebro_plpy.preprocessing.rows.row_subset import RowSubset
from cerebro_plpy.preprocessing.rows.weight_column import find_column
from cerebro_plpy.preprocessing.values import column_values
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import TEXT

FAMILIES = (TEXT, "integer", "date")
"""Of columns whose values have one text each."""
LEAST_ROWS, MOST_GROUPS = 100, 1000
"""Rows that a group is trained on at the least, where nobody says it; and groups of a run, at the
most.
"""


class GroupRequest(NamedTuple):
    """By which column a call wants groups, of how many rows at the least; and the classes of the
    target, if any.
    """

    column: str
    least: int
    classes: tuple[str, ...] = ()
    family: str | None = TEXT


class GroupRows(NamedTuple):
    """A group, and how many of its rows are trained on, and held back; and the former by classes,
    if there are any.
    """

    value: str
    training: int
    validation: int
    classes: tuple[int, ...] = ()


class Groups(NamedTuple):
    """The groups of a table by the values of a column, the largest first; values of fewer than
    `least` rows have none.

    `small` are those values, as many as there are, and `loose` all rows without a group, on both
    sides.
    """

    column: str
    least: int
    found: tuple[GroupRows, ...]
    small: int
    loose: tuple[int, int]
    family: str | None = TEXT

    @property
    def value(self) -> Expression:
        """The text of the group of a row."""
        return column_values.distinct_text(self.column, self.family)

    @property
    def order(self) -> Expression:
        """What puts rows in the order of groups, those without one last."""
        return Expression(
            f"pg_catalog.array_position(%s::text[], {self.value.text})",
            ([each.value for each in self.found],),
        )


def check_group_column(module: str, columns: Sequence[RawColumn], name: str, target: str) -> None:
    """Raises where rows cannot be grouped by a column."""
    column = find_column(module, columns, name, "group_by")
    if name == target:
        raise InvalidParameter(
            f"{module} error: group_by is {name!r}, which is the target.",
            hint="Name another column.",
        )
    if column.family not in FAMILIES:
        raise DatatypeMismatch(
            f"{module} error: group_by names column {name!r} of type {column.type}; expected "
            "texts, whole numbers, dates or booleans.",
            hint="A view may have another form of it, such as date_trunc('month', …)::date; name "
            "that.",
        )


def read_groups(
    reader: Reader, module: str, parts: tuple[RowSubset, RowSubset], asked: GroupRequest
) -> Groups:
    """The groups of rows on both sides; raises InvalidParameter where there is none, or too
    many.
    """
    column, least, classes, family = asked
    labelled, held = (_count_by_group(reader, part, asked) for part in parts)
    training, validation = (
        {value: sum(rows.values()) for value, rows in side.items()} for side in (labelled, held)
    )
    worth = [
        GroupRows(value, rows, validation[value], tuple(labelled[value][name] for name in classes))
        for value, rows in training.items()
        if value is not None and rows >= least and validation.get(value)
    ]
    values = {*training, *validation} - {None}
    if not worth:
        raise InvalidParameter(
            f"{module} error: group_by is {column!r}, but none of its {len(values)} values has "
            f"{least} rows that are trained on, and one that is held back.",
            hint="Lower min_group_rows, or leave group_by out.",
        )
    if len(worth) > MOST_GROUPS:
        raise InvalidParameter(
            f"{module} error: group_by is {column!r}, of which {len(worth)} values have {least} "
            f"rows or more; expected at most {MOST_GROUPS} groups.",
            hint="Raise min_group_rows: the rows of smaller groups have the model of all rows.",
        )
    found = tuple(sorted(worth, key=lambda each: (-each.training, each.value)))
    small = len(values) - len(found)
    loose = (
        sum(training.values()) - sum(each.training for each in found),
        sum(validation.values()) - sum(each.validation for each in found),
    )
    return Groups(column, least, found, small, loose, family)


def _count_by_group(
    reader: Reader, part: RowSubset, asked: GroupRequest
) -> dict[str | None, Counter[str | None]]:
    """The rows of each group on a side, by their classes."""
    value, label = (
        column_values.distinct_text(asked.column, asked.family),
        part.label if asked.classes else Expression("NULL::text"),
    )
    texts = {"value": value.text, "label": label.text, "source": part.table, "side": part.side.text}
    found: dict[str | None, Counter[str | None]] = {}
    for group, name, rows in reader.run(
        sql("features.groups", **texts), (*label.values, *part.side.values)
    ):
        found.setdefault(group, Counter())[name] += int(rows)
    return found
