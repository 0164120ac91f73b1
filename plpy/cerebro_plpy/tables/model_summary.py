"""What the summary table of a model tells of its targets, in our form and in MADlib's of several
versions.
"""

from __future__ import annotations

from typing import Any

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import NullNotAllowed, UndefinedColumn
from cerebro_plpy.packing.packed_table import (
    OLD_CLASSES,
    classes_column,
    known_classes,
    read_summary_row,
)

NAMES = ("dependent_varname", "independent_varname")
NEEDED = (*NAMES, "normalizing_const", "dependent_vartype")


def read(reader: Session, summary: Relation, *more: str) -> dict[str, Any]:
    """The row of a model's summary table, with at least the columns that say what the model takes
    and gives.
    """
    row = read_summary_row(reader, summary)
    missing = [name for name in (*NEEDED, *more) if name not in row]
    if missing:
        raise UndefinedColumn(
            f"One or more expected columns missing in model summary table ('{summary.name}').",
            detail=f"Missing: {', '.join(missing)}.",
        )
    for name in NAMES:
        if not row[name]:
            raise NullNotAllowed(f"{name} is NULL or empty in model summary table '{summary.name}'")
    return row


def numbers(row: dict[str, Any], target: str) -> list[int | None] | None:
    """The numbers of classes. MADlib knows classes only, and before 1.18 left them out where they
    came encoded.
    """
    old = classes_column(row, target) == OLD_CLASSES
    numbers: list[int | None] | None = row.get("num_classes")
    return [] if old and numbers is None else numbers


def class_values(
    reader: Session, summary: Relation, row: dict[str, Any], name: str
) -> tuple[str | None, ...] | None:
    """The classes of a target as PostgreSQL writes them, where they are known."""
    column = classes_column(row, name)
    if not row.get(column):
        return None
    text = sql("read.class_values", table=summary.quoted, column=quote_identifier(column))
    return known_classes(reader.run(text)[0][0])


def float_targets(
    classes: tuple[tuple[str | None, ...] | None, ...], numbers: list[int | None] | None
) -> tuple[bool, ...]:
    """Which targets are floats: see `outputs.num_classes`.

    >>> (float_targets((None,), None), float_targets((None,), []),
    ...  float_targets((("a", "b"), None, None), [2, None, 3]))
    ((True,), (False,), (False, True, False))
    """
    if len(classes) == 1 or numbers is None:
        return tuple(values is None and numbers is None for values in classes)
    return tuple(values is None and number is None for values, number in zip(classes, numbers))
