"""Choose the axes of parallel coordinates that explain most of the metric, and their ticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from cerebro_db.display.axes import MISSING, Axis, Tick

MAX_AXES = 8
"""Largest number of axes that a page shows, with those of the template and the metric."""
MAX_VALUES = 8
"""Largest number of distinct values that are compared one by one."""
QUARTERS = 4
"""Number of groups of more values than that."""
TEMPLATE = "template"


def choose_axes(axes: Sequence[Axis], most: int = MAX_AXES) -> list[Axis]:
    """Return at most `most` axes in their order, with those of the template and the metric.

    The others are those of the parameters that explain most of the metric, whose axis is the last.
    """
    *fields, metric = axes
    scores = {key: place for key, place in metric.positions.items() if place != MISSING}

    def sort_key(axis: Axis) -> tuple[bool, float]:
        return (axis.name != TEMPLATE, -measure_share(axis.positions, scores))

    names = {axis.name for axis in sorted(fields, key=sort_key)[: most - 1]}
    return [*(axis for axis in fields if axis.name in names), metric]


def measure_share(positions: Mapping[int, float], scores: Mapping[int, float]) -> float:
    """Return the share of the differences in the ranks of scores that a parameter explains.

    It is the epsilon squared of Kruskal and Wallis, from 0 to 1, which does not favour parameters
    of many values. Configurations without a score, or without the parameter, do not count.

    >>> measure_share({1: 0.0, 2: 0.0, 3: 1.0, 4: 1.0}, {1: 0.1, 2: 0.1, 3: 0.9, 4: 0.9})
    1.0
    """
    keys = [key for key in scores if positions.get(key, MISSING) != MISSING]
    groups = _group_values([positions[key] for key in keys])
    ranks = _rank([scores[key] for key in keys])
    count = len(keys)
    group_count = len(set(groups))
    if count <= group_count or group_count < 2:
        return 0.0
    total = _sum_squares(ranks)
    if total == 0:
        return 0.0
    within = 0.0
    for group in set(groups):
        members = [rank for rank, label in zip(ranks, groups, strict=True) if label == group]
        within += _sum_squares(members)
    return max(0.0, 1 - within / (count - group_count) / (total / (count - 1)))


def _group_values(places: Sequence[float]) -> list[int]:
    """Return the group of each place: its value if values are few, else its quarter."""
    values = sorted(set(places))
    if len(values) <= MAX_VALUES:
        return [values.index(place) for place in places]
    return [int(rank * QUARTERS / len(places)) for rank in _rank(places)]


def _rank(values: Sequence[float]) -> list[float]:
    """Return the ranks of values from 0; equal values have the mean of their ranks.

    >>> _rank([5.0, 1.0, 5.0])
    [1.5, 0.0, 1.5]
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    first = 0
    for _, group in groupby(order, key=values.__getitem__):
        places = list(group)
        for place in places:
            ranks[place] = first + (len(places) - 1) / 2
        first += len(places)
    return ranks


def _sum_squares(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values)


def thin_ticks(ticks: Sequence[Tick], distance: float) -> list[Tick]:
    """Return ticks of which no two are nearer than a distance: the ends first, then from below.

    >>> [tick.text for tick in thin_ticks([Tick(0, "a"), Tick(0.9, "b"), Tick(1, "c")], 0.2)]
    ['a', 'c']
    """
    by_place = sorted(ticks)
    visible: list[Tick] = []
    for tick in [*by_place[-1:], *by_place]:
        if all(abs(tick.position - neighbour.position) >= distance for neighbour in visible):
            visible.append(tick)
    return sorted(visible)
