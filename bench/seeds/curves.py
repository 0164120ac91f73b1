"""Learning curves: what a configuration came to after each epoch, and when."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bench.job import Job, Result


class Point(NamedTuple):
    """An epoch's end: seconds since 1970, and loss and accuracy on the validation rows."""

    time: float
    loss: float
    accuracy: float


Curves = Mapping[int, Sequence[Point]]
"""By configuration, counted from 1."""
CURVES, AT_REST = "curves", "rows_at_rest"


def result(curves: Mapping[int, Iterable[Sequence[float]]], moved: int, **more: Any) -> Result:
    """What a contender tells: its curves, and bytes that it moved to train, and what else it
    knows.
    """
    points = {number: [Point(*point) for point in curve] for number, curve in curves.items()}
    scores = {number: (curve[-1].loss, curve[-1].accuracy) for number, curve in points.items()}
    return Result(scores=scores, moved=moved, more={CURVES: points, **more})


def told(found: Result) -> Curves:
    """The curves that a contender has told."""
    return {
        int(number): [Point(*point) for point in curve]
        for number, curve in found.more[CURVES].items()
    }


def epochs(curves: Curves, of: Any = statistics.fmean) -> list[float]:
    """The mean accuracy of all configurations after each epoch, or another measure `of` them.

    >>> epochs({1: [Point(0, 0, 0.5), Point(1, 0, 0.6)], 2: [Point(0, 0, 0.7), Point(2, 0, 1.0)]})
    [0.6, 0.8]
    """
    return [
        of([point.accuracy for point in points]) for points in zip(*curves.values(), strict=True)
    ]


def ends(curves: Curves) -> list[float]:
    """When all configurations had done each epoch, in seconds since 1970."""
    return epochs(
        {key: [Point(0, 0, point.time) for point in curve] for key, curve in curves.items()}, max
    )


def reached(curves: Curves, accuracy: float) -> float | None:
    """When the mean accuracy of all configurations was as high; None where it never was.

    >>> reached({1: [Point(5, 0, 0.5), Point(9, 0, 0.6)], 2: [Point(7, 0, 0.7), Point(8, 0, 0.8)]},
    ...     0.61)
    9
    """
    after = (
        end for end, mean in zip(ends(curves), epochs(curves), strict=True) if mean >= accuracy
    )
    return next(after, None)


def most_steps_first(job: Job) -> list[int]:
    """The configurations of a job, from 0, the longest first."""
    return sorted(range(len(job.configs)), key=lambda number: job.configs[number].batch_size)
