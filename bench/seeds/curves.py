"""Learning curves of configurations, with times."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bench.job import Job, Result


class Point(NamedTuple):
    """The end of an epoch, with the metrics on the validation rows."""

    time: float  # seconds since 1970
    loss: float
    accuracy: float


Curves = Mapping[int, Sequence[Point]]
"""By configuration, counted from 1."""
CURVES = "curves"
AT_REST = "rows_at_rest"


def make_result(
    curves: Mapping[int, Iterable[Sequence[float]]], moved_bytes: int, **more: Any
) -> Result:
    """Return the result of a contender: its curves, the bytes that it moved, and extra values."""
    points = {number: [Point(*point) for point in curve] for number, curve in curves.items()}
    scores = {number: (curve[-1].loss, curve[-1].accuracy) for number, curve in points.items()}
    return Result(scores=scores, moved_bytes=moved_bytes, more={CURVES: points, **more})


def read_curves(contender_result: Result) -> Curves:
    """Return the curves of a contender's result."""
    return {
        int(number): [Point(*point) for point in curve]
        for number, curve in contender_result.more[CURVES].items()
    }


def average_epochs(curves: Curves, average: Any = statistics.fmean) -> list[float]:
    """Return the mean accuracy of all configurations after each epoch, or another average.

    >>> curves = {1: [Point(0, 0, 0.5), Point(1, 0, 0.6)], 2: [Point(0, 0, 0.7), Point(2, 0, 1.0)]}
    >>> average_epochs(curves)
    [0.6, 0.8]
    """
    return [
        average([point.accuracy for point in points])
        for points in zip(*curves.values(), strict=True)
    ]


def list_ends(curves: Curves) -> list[float]:
    """Return the time at which all configurations had ended each epoch, in seconds since 1970."""
    return average_epochs(
        {key: [Point(0, 0, point.time) for point in curve] for key, curve in curves.items()}, max
    )


def find_time(curves: Curves, accuracy: float) -> float | None:
    """Return the first time with a mean accuracy of at least `accuracy`; None if there is none.

    >>> curves = {1: [Point(5, 0, 0.5), Point(9, 0, 0.6)], 2: [Point(7, 0, 0.7), Point(8, 0, 0.8)]}
    >>> find_time(curves, 0.61)
    9
    """
    times = (
        end
        for end, mean in zip(list_ends(curves), average_epochs(curves), strict=True)
        if mean >= accuracy
    )
    return next(times, None)


def order_by_steps(job: Job) -> list[int]:
    """Return the configurations of a job, from 0, those with most steps first."""
    return sorted(range(len(job.configs)), key=lambda number: job.configs[number].batch_size)
