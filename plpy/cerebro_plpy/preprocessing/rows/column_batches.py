"""Statements over several columns at once, as many as PostgreSQL allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from cerebro_plpy.preprocessing.values.expression import Expression, combined_values

MOST_COLUMNS = 100
"""Columns of one statement; PostgreSQL's limit for a result is 1,664."""
MOST_SETS = 30
"""PostgreSQL's limit of arguments of GROUPING."""
Item = TypeVar("Item")


class GroupingSets(NamedTuple):
    """The parts of a statement that groups all rows by one expression after another."""

    clauses: dict[str, str]  # `names`, `columns` and `sets` of a query
    values: tuple[object, ...]  # of the placeholders in `columns`
    numbers: list[int]  # GROUPING(names) in the groups of each expression


def split_batches(items: Sequence[Item], size: int = MOST_COLUMNS) -> Iterator[Sequence[Item]]:
    """Yield the items in batches of at most `size`.

    >>> list(split_batches("abcde", 2))
    ['ab', 'cd', 'e']
    """
    for start in range(0, len(items), size):
        yield items[start : start + size]


def group_by_each(expressions: Sequence[Expression]) -> GroupingSets:
    """Return the parts of a statement that groups rows by at most MOST_SETS expressions.

    >>> group_by_each([Expression("a"), Expression("b")]).numbers
    [1, 2]
    """
    names = [f"c{number}" for number in range(len(expressions))]
    clauses = {
        "names": ", ".join(names),
        "columns": ", ".join(f"{value.text} AS {name}" for name, value in zip(names, expressions)),
        "sets": ", ".join(f"({name})" for name in names),
    }
    # GROUPING sets the bits of the columns that a row is not grouped by; the first is the highest.
    bits = [1 << number for number in reversed(range(len(expressions)))]
    return GroupingSets(clauses, combined_values(expressions), [sum(bits) - bit for bit in bits])
