"""The summary table of a packed table: its row, the names in it, and the classes of targets.

MADlib wrote these summaries in several forms; all of them can be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Optional

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.database.sql.identifiers import Names

OLD_CLASSES = "class_values"
"""Column with the classes of all targets, in summaries of MADlib before 1.18."""

ClassValues = tuple["str | None", ...]
"""Classes in the order of the one-hot columns; None stands for the class of NULL."""


ClassCounts = Optional[list[Optional[int]]]
"""Number of classes of each target; see `tables.outputs.class_columns.count_classes`."""


def read_summary_row(reader: Session, summary: Relation) -> Row:
    """Return the only row of a summary table; {} if the table is empty."""
    rows = reader.run(sql("read.packed_summary", table=summary.quoted))
    if not rows:
        return {}
    value = rows[0][0]
    if isinstance(value, str):
        value = json.loads(value)
    return dict(value)


def read_names(summary: Row, field: str) -> Names:
    """Return a list of names from a summary row; older summaries hold a single name.

    >>> read_names({"a": "x"}, "a"), read_names({"a": ["x", "y"]}, "a"), read_names({}, "a")
    (('x',), ('x', 'y'), ())
    """
    value = summary.get(field) or ()
    if isinstance(value, str):
        return (value,)
    return tuple(value)


def find_classes_column(columns: Iterable[str], target: str) -> str:
    """Return the name of the summary's column with the classes of a target.

    >>> find_classes_column(["y_class_values"], "y"), find_classes_column(["class_values"], "y")
    ('y_class_values', 'class_values')
    """
    if OLD_CLASSES in columns:
        return OLD_CLASSES
    return f"{target}_class_values"


def parse_class_values(
    values: list[str | None] | None, width: int | None = None
) -> ClassValues | None:
    """Return the classes of a target without padding; None if they are unknown.

    MADlib also writes unknown classes as a single NULL. A target with one column has that NULL as
    its class if it was NULL in all rows.

    Args:
        width: number of the target's one-hot columns, if known.

    >>> (parse_class_values([None, "a", None]), parse_class_values([None], 3),
    ...  parse_class_values([None], 1), parse_class_values(None))
    ((None, 'a'), None, (None,), None)
    """
    if values is None:
        return None
    if values == [None] and width != 1:
        return None
    return strip_padding(values)


def strip_padding(values: list[str | None]) -> ClassValues:
    """Return class values without padding: NULL is a class only in first place.

    >>> strip_padding([None, "a", "b", None, None])
    (None, 'a', 'b')
    """
    classes = list(values)
    while len(classes) > 1 and classes[-1] is None:
        classes.pop()
    return tuple(classes)
