"""Compare contenders by pairs of scores on the same rows, and by ranks."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

ERRORS = 2
"""A mean difference of more than this many standard errors is not noise."""
Scores = Mapping[str, Mapping[int, float]]
"""Scores on a table by contender and seed; more is better."""


class Gap(NamedTuple):
    """The differences between a rival and ours on a table, a seed each."""

    differences: Sequence[float]  # the rival's score minus ours

    @property
    def mean(self) -> float:
        """The mean difference; the rival is better if it is positive."""
        return statistics.mean(self.differences)

    @property
    def error(self) -> float | None:
        """The standard error of the mean; None for a single seed, which reveals no noise."""
        return compute_error(self.differences)

    @property
    def is_below(self) -> bool:
        """Return whether the mean of ours is below."""
        return self.mean > 0

    @property
    def is_below_beyond_noise(self) -> bool:
        """Return whether ours is below by more than noise; False for a single seed."""
        return self.error is not None and self.mean > ERRORS * self.error

    @property
    def is_above_beyond_noise(self) -> bool:
        """Return whether ours is above by more than noise; False for a single seed."""
        return self.error is not None and -self.mean > ERRORS * self.error


def compute_error(values: Sequence[float]) -> float | None:
    """Return the standard error of a mean; None for a single value.

    >>> compute_error([1.0, 3.0])
    1.0
    """
    if len(values) < 2:
        return None
    return statistics.stdev(values) / float(len(values) ** 0.5)


def measure_gap(scores: Scores, ours: str, rival: str) -> Gap | None:
    """Return the differences over the seeds of both; None if they have no seed in common."""
    own = scores.get(ours, {})
    other = scores.get(rival, {})
    seeds = sorted(own.keys() & other.keys())
    return Gap([other[seed] - own[seed] for seed in seeds]) if seeds else None


def compute_mean_ranks(
    tables: Sequence[Scores], contenders: Sequence[str]
) -> tuple[dict[str, float], int]:
    """Return the mean rank of each contender, and the number of tables that count.

    Contenders are ranked on a table by their means over the seeds that all of them have; equal
    means share the mean of their ranks. A table without such a seed does not count.

    >>> compute_mean_ranks([{"a": {1: 0.9}, "b": {1: 0.9}, "c": {1: 0.5}}], ["a", "b", "c"])
    ({'a': 1.5, 'b': 1.5, 'c': 3.0}, 1)
    """
    ranks: dict[str, list[float]] = {name: [] for name in contenders}
    for scores in tables:
        seeds = set.intersection(*({*scores.get(name, {})} for name in contenders))
        if not seeds:
            continue
        means = {
            name: statistics.mean(scores[name][seed] for seed in sorted(seeds))
            for name in contenders
        }
        for name, mean in means.items():
            better = sum(other > mean for other in means.values())
            equal = sum(other == mean for other in means.values())
            ranks[name].append(better + (equal + 1) / 2)
    counts = {len(values) for values in ranks.values()}
    count = max(counts, default=0)
    if not count:
        return {}, 0
    return {name: statistics.mean(values) for name, values in ranks.items()}, count
