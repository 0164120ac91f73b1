"""How many workers share the cores of a machine: many with narrow trainers, or few with wide ones.

The width of a trainer's pool decides its bits, so it is chosen once, for a whole run. No program makes as much of many
cores as several programs side by side; but a config is in one place at a time, and where one takes most of the work,
the cores beside it have nothing to do for most of the run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

WORTH = 0.8
"""The part of the usual time that another number of workers must promise: hops and evaluations are not known."""
SHORT = 10.0
"""A run of so many seconds is left as it is: what was measured of one is mostly rough, and little can be gained."""

Speeds = Mapping[str, float]
"""Seconds for a row, by the form of the program."""


class Work(NamedTuple):
    """The rows that a config trains in all, and how fast trainers of some widths were."""

    rows: int
    speeds: Mapping[int, Speeds]


def workers(works: Sequence[Work], segments: int, widths: Mapping[int, int], usual: int) -> int:
    """How many workers are expected to train this soonest: the `usual` number, unless another one promises much more.

    `widths` are those of the trainers of so many workers, for each number that there may be.
    """
    promises = {number: promise(works, segments, widths, (usual, number)) for number in widths if number != usual}
    best = min(promises, key=lambda number: (promises[number], -number), default=usual)
    return best if promises.get(best, 1.0) <= WORTH else usual


def promise(works: Sequence[Work], segments: int, widths: Mapping[int, int], change: tuple[int, int]) -> float:
    """The part of the time that a change from one number of workers to another is expected to leave; infinite where
    that cannot be told.

    What is in doubt speaks against the change: before it workers may share the rows of all segments evenly, after it
    each may have segments of its own.
    """
    usual, number = change
    pairs = [fastest(work, widths[usual], widths[number]) for work in works]
    before, after = ([work.rows * pair[side] for work, pair in zip(works, pairs)] for side in (0, 1))
    least = span(before, 1 / usual)
    return span(after, math.ceil(segments / number) / segments) / least if SHORT < least < math.inf else math.inf


def fastest(work: Work, one: int, other: int) -> tuple[float, float]:
    """Seconds for a row at one width and at another, as far as forms were timed at both: else a form that nobody has
    tried there yet would look like a matter of the width."""
    speeds = work.speeds.get(one, {}), work.speeds.get(other, {})
    forms = speeds[0].keys() & speeds[1].keys()
    least = [min((each[form] for form in forms), default=math.inf) for each in speeds]
    return least[0], least[1]


def span(seconds: Sequence[float], share: float) -> float:
    """The least time for configs that take so long each, where a worker has this share of all of them.

    >>> span([6.0, 1.0, 1.0], 1 / 2), span([3.0, 3.0, 3.0], 1 / 2)
    (6.0, 4.5)
    """
    return max(max(seconds, default=0.0), share * sum(seconds))
