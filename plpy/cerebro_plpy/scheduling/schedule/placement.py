"""What lies where: segments at workers, and the rows of groups on segments.

A group has all rows with one value of a column, and a model selection of its own. Its configs visit
the segments that have its rows, while those of other groups visit others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Piece(NamedTuple):
    """So many rows of a group, on a segment by its place."""

    group: int
    segment: int
    rows: int


def share_segments(segments: Sequence[int], workers: Iterable[int]) -> dict[int, int]:
    """The worker of each segment, where these workers share them evenly: neighbours, which a config
    visits in turn.

    >>> share_segments((0, 1, 2), {4, 7})
    {0: 4, 1: 4, 2: 7}
    """
    numbers: Sequence[int] = workers if isinstance(workers, range) else sorted(workers)
    return {
        segment: numbers[index * len(numbers) // len(segments)]
        for index, segment in enumerate(segments)
    }


def copies_of(segments: Sequence[int], copies: int) -> tuple[tuple[int, ...], ...]:
    """The segments that each copy of a config trains on, where so many share them: neighbours, as
    those of a worker.

    >>> copies_of((0, 1, 2, 3, 4), 2)
    ((0, 1, 2), (3, 4))
    """
    shared = share_segments(segments, range(copies))
    return tuple(
        tuple(segment for segment in segments if shared[segment] == copy) for copy in range(copies)
    )


def capacity(groups: Sequence[int], loose: int, segments: int) -> int:
    """The rows of the fullest segment, at the least: a config is in one place at a time, so that an
    epoch over the largest group takes as long wherever its rows lie. `loose` rows are of no group.

    >>> capacity([5, 2, 2], 0, 3), capacity([3, 3, 3], 1, 3)
    (5, 4)
    """
    return max(-(-(sum(groups) + loose) // segments), *groups)


def wrap_around(groups: Sequence[int], loose: int, segments: int) -> list[Piece]:
    """Where the rows of groups of these sizes lie, group by group, and then `loose` ones, of a
    group of their own.

    McNaughton's wrap-around rule (Management Science 6(1), 1959): segments are filled to their
    capacity one after another, and what is left of a group begins the next. No segment has more,
    fewer groups are split than there are segments, and each of them in two.

    >>> for piece in wrap_around([3, 2, 2], 1, 2):
    ...     print(piece)
    Piece(group=0, segment=0, rows=3)
    Piece(group=1, segment=0, rows=1)
    Piece(group=1, segment=1, rows=1)
    Piece(group=2, segment=1, rows=2)
    Piece(group=3, segment=1, rows=1)
    """
    most, found, segment, filled = capacity(groups, loose, segments), list[Piece](), 0, 0
    for group, rows in enumerate((*groups, loose)):
        while rows:
            if filled == most:
                segment, filled = segment + 1, 0
            fitting = min(rows, most - filled)
            found.append(Piece(group, segment, fitting))
            rows, filled = rows - fitting, filled + fitting
    return found


def alongside(pieces: Sequence[Piece], rows: Sequence[int]) -> list[Piece]:
    """Other rows of the same groups, so many of each, spread evenly over the segments that have its
    `pieces`, or over all where there are none.

    >>> alongside([Piece(0, 0, 5), Piece(0, 1, 9), Piece(1, 1, 4)], [3, 0])
    [Piece(group=0, segment=0, rows=1), Piece(group=0, segment=1, rows=2)]
    """
    found = []
    for group, count in enumerate(rows):
        own = [piece.segment for piece in pieces if piece.group == group] or sorted(
            {each.segment for each in pieces}
        )
        for place, segment in enumerate(own):
            share = (place + 1) * count // len(own) - place * count // len(own)
            found += [Piece(group, segment, share)] if share else []
    return found
