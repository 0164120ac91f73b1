"""Blocks of rows, so that the memory of a pass does not depend on how many rows there are."""

from __future__ import annotations

from collections.abc import Iterator

MAX_NUMBERS = 1 << 22
"""Numbers of the largest array of a block: 32 MB in double precision."""


def iterate_blocks(rows: int, width: int, most_rows: int = 1 << 16) -> Iterator[slice]:
    """Yield slices of rows.

    Args:
        width: numbers of a row in the largest array.
        most_rows: rows of a block, however few numbers they have.
    """
    size = max(1, min(most_rows, MAX_NUMBERS // max(1, width)))
    for begin in range(0, rows, size):
        yield slice(begin, min(begin + size, rows))
