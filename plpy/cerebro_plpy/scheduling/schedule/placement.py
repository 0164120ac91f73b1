"""The placement of segments at workers, and of the rows of groups on segments.

A group has all rows with one value of a column, and a model selection of its own. Its configs visit
the segments that have its rows, while configs of other groups visit other segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cerebro_plpy.scheduling.schedule.schedule import Copies


class GroupSlice(NamedTuple):
    """Rows of a group on one segment."""

    group: int
    segment: int  # position of the segment
    rows: int


def assign_segments(segments: Sequence[int], workers: Iterable[int]) -> dict[int, int]:
    """Return the worker of each segment, shared evenly.

    A worker gets adjacent segments, which a config visits one after another.

    >>> assign_segments((0, 1, 2), {4, 7})
    {0: 4, 1: 4, 2: 7}
    """
    numbers = sorted(workers)
    return {
        segment: numbers[index * len(numbers) // len(segments)]
        for index, segment in enumerate(segments)
    }


def divide_segments(segments: Sequence[int], copies: int) -> Copies:
    """Return the segments that each of the copies of a config trains on; adjacent ones.

    >>> divide_segments((0, 1, 2, 3, 4), 2)
    ((0, 1, 2), (3, 4))
    """
    copy_of = assign_segments(segments, range(copies))
    return tuple(
        tuple(segment for segment in segments if copy_of[segment] == copy) for copy in range(copies)
    )


def fullest_segment_rows(groups: Sequence[int], ungrouped: int, segments: int) -> int:
    """Return the smallest possible number of rows of the fullest segment.

    A config is in one place at a time. An epoch over the largest group therefore takes equally
    long wherever its rows are, and spreading them would gain nothing.

    Args:
        groups: rows of each group.
        ungrouped: rows that do not belong to a group.
        segments: number of segments.

    >>> fullest_segment_rows([5, 2, 2], 0, 3), fullest_segment_rows([3, 3, 3], 1, 3)
    (5, 4)
    """
    return max(-(-(sum(groups) + ungrouped) // segments), *groups)


def wrap_around(groups: Sequence[int], ungrouped: int, segments: int) -> list[GroupSlice]:
    """Place the rows of groups on segments, group by group, then the ungrouped rows.

    The ungrouped rows are counted as one more group. The method is McNaughton's wrap-around rule
    (Management Science 6(1), 1959): segments are filled to their capacity one after another, and
    the remaining rows of a group begin the next segment. The fullest segment is as small as
    possible. Fewer groups are split than there are segments, and each of those in two.

    >>> for piece in wrap_around([3, 2, 2], 1, 2):
    ...     print(piece)
    GroupSlice(group=0, segment=0, rows=3)
    GroupSlice(group=1, segment=0, rows=1)
    GroupSlice(group=1, segment=1, rows=1)
    GroupSlice(group=2, segment=1, rows=2)
    GroupSlice(group=3, segment=1, rows=1)
    """
    capacity = fullest_segment_rows(groups, ungrouped, segments)
    slices = []
    segment = 0
    room = capacity
    for group, remaining in enumerate((*groups, ungrouped)):
        while remaining:
            if not room:
                segment += 1
                room = capacity
            rows = min(remaining, room)
            slices.append(GroupSlice(group, segment, rows))
            remaining -= rows
            room -= rows
    return slices


def spread_evenly(slices: Sequence[GroupSlice], rows: Sequence[int]) -> list[GroupSlice]:
    """Place further rows of groups evenly over the segments that have slices of the group.

    A group without slices uses all segments.

    Args:
        rows: number of further rows, by group.

    >>> spread_evenly([GroupSlice(0, 0, 5), GroupSlice(0, 1, 9), GroupSlice(1, 1, 4)], [3, 0])
    [GroupSlice(group=0, segment=0, rows=1), GroupSlice(group=0, segment=1, rows=2)]
    """
    placed = []
    all_segments = sorted({piece.segment for piece in slices})
    for group, count in enumerate(rows):
        segments = [piece.segment for piece in slices if piece.group == group] or all_segments
        for index, segment in enumerate(segments):
            share = (index + 1) * count // len(segments) - index * count // len(segments)
            if share:
                placed.append(GroupSlice(group, segment, share))
    return placed
