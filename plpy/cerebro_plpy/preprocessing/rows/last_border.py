"""The border of a split by the last rows: the value from which on rows are held back.

Rows with one value cannot be divided. So the border is the value whose share of rows is nearest to
the requested one, which may be far from it.
"""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.rows.opened_source import OpenedSource
from cerebro_plpy.preprocessing.rows.split import SHARE, Split, find_dividing_column
from cerebro_plpy.preprocessing.rows.value_comparison import comparable
from cerebro_plpy.preprocessing.values.canonical_text import comparable_text

MOST_DISTANCE = 0.25
"""A share differs much from the requested one if it is farther off than this part of it."""


class Border(NamedTuple):
    """The border of the rows of a table that have a target."""

    bound: str  # the text of the value where the validation rows begin
    held_back: int  # rows with this value or a larger one
    rows: int  # rows that have a value
    missing: int  # rows without a value, which are trained on

    @property
    def share(self) -> float:
        """The share of rows that are held back, among those that have a value."""
        return self.held_back / self.rows

    def is_far_from(self, share: float) -> bool:
        """Return whether another number of rows is held back than was requested.

        >>> [Border("x", rows, 100, 0).is_far_from(0.2) for rows in (15, 20, 25, 26, 95)]
        [False, False, False, True, True]
        >>> Border("x", 1, 7, 0).is_far_from(0.2)
        False
        """
        distance = abs(self.held_back - share * self.rows)
        return distance >= 1 and distance > MOST_DISTANCE * share * self.rows


def find_border(
    reader: Reader, module: str, opened: OpenedSource, split: Split, usable: str
) -> Border:
    """Return the border of the usable rows of a table that is nearest to the share of a split.

    Args:
        usable: SQL for the condition that a row counts.

    Raises:
        InvalidParameter: no border divides the rows.
    """
    column = find_dividing_column(split, opened.columns)
    statement = sql(
        "features.bound",
        column=comparable(column),
        written=comparable_text("b.value", column.family),
        source=opened.table,
        usable=usable,
    )
    ((bound, held_back, rows, missing),) = reader.run(statement, (split.share,))
    prefix = f"{module} error: split is '{split}', but column {column.name!r}"
    hint = f"Name another column, or divide the rows at random: split => 'random {SHARE}'."
    if bound is None:
        raise InvalidParameter(f"{prefix} is NULL in all {count_nouns(missing, 'row')}.", hint=hint)
    if held_back == rows:
        raise InvalidParameter(
            f"{prefix} is {bound} in all {count_nouns(rows, 'row')} with a value: no border "
            "divides them.",
            hint=hint,
        )
    return Border(str(bound), int(held_back), int(rows), int(missing))


def describe_distance(split: Split, border: Border) -> str:
    """Return a notice about a border that holds back another share of the rows.

    >>> print(describe_distance(Split("last", 0.2, "day"), Border("2024-06-30", 670, 700, 0)))
    last 0.2 by "day" holds back 670 of 700 rows, a share of 0.957: the border, 2024-06-30, is the \
nearest one, because rows with the same value stay together
    """
    return (
        f"{split} holds back {border.held_back} of {count_nouns(border.rows, 'row')}, a share of "
        f"{border.share:.3g}: the border, {border.bound}, is the nearest one, because rows with "
        "the same value stay together"
    )
