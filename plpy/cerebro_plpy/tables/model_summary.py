"""The targets of a model in its summary table, in the forms of our and of MADlib's versions."""

from __future__ import annotations

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.platform_protocol import read_value
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import NullNotAllowed, UndefinedColumn
from cerebro_plpy.packing.packed_summary import (
    OLD_CLASSES,
    ClassCounts,
    ClassValues,
    find_classes_column,
    parse_class_values,
    read_summary_row,
)

NAME_COLUMNS = ("dependent_varname", "independent_varname")
REQUIRED_COLUMNS = (*NAME_COLUMNS, "normalizing_const", "dependent_vartype")


def read(reader: Session, summary: Relation, *columns: str) -> Row:
    """Return the row of a model's summary table.

    Args:
        columns: required columns beside those with the inputs and targets of the model.

    Raises:
        UndefinedColumn: a required column is missing.
        NullNotAllowed: the inputs or targets have no names.
    """
    row = read_summary_row(reader, summary)
    missing = [name for name in (*REQUIRED_COLUMNS, *columns) if name not in row]
    if missing:
        raise UndefinedColumn(
            f"One or more expected columns missing in model summary table ('{summary.name}').",
            detail=f"Missing: {', '.join(missing)}.",
        )
    for name in NAME_COLUMNS:
        if not row[name]:
            raise NullNotAllowed(f"{name} is NULL or empty in model summary table '{summary.name}'")
    return row


def read_class_counts(row: Row, target: str) -> ClassCounts:
    """Return the number of classes of each target.

    MADlib has no float targets, and before 1.18 left the numbers out if the user encoded the
    target.
    """
    counts: ClassCounts = row.get("num_classes")
    if counts is None and find_classes_column(row, target) == OLD_CLASSES:
        return []
    return counts


def read_class_values(
    reader: Session, summary: Relation, row: Row, target: str
) -> ClassValues | None:
    """Return the classes of a target as PostgreSQL's texts; None if they are unknown."""
    column = find_classes_column(row, target)
    if not row.get(column):
        return None
    query = sql("read.class_values", table=summary.quoted, column=quote_identifier(column))
    return parse_class_values(read_value(reader, query))


def find_float_targets(
    classes: tuple[ClassValues | None, ...], counts: ClassCounts
) -> tuple[bool, ...]:
    """Return for each target whether it is a float; see `class_columns.count_classes`.

    >>> (find_float_targets((None,), None), find_float_targets((None,), []),
    ...  find_float_targets((("a", "b"), None, None), [2, None, 3]))
    ((True,), (False,), (False, True, False))
    """
    if len(classes) == 1 or counts is None:
        return tuple(values is None and counts is None for values in classes)
    return tuple(values is None and count is None for values, count in zip(classes, counts))
