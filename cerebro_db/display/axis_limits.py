"""Choose the limits of a metric's axis, so that a diverging config does not flatten the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median_low
from typing import NamedTuple

OUTLIER_FACTOR = 10
"""A config this many times larger than the median is outside the limits."""
MIN_LOG_RATIO = 100
"""The axis is logarithmic if the largest value is more than this many times the smallest."""


class AxisLimits(NamedTuple):
    """The limits of an axis; `low` and `high` are None if all values are inside."""

    low: float | None
    high: float | None
    outside: tuple[int, ...]  # the mst_keys of configs that leave the limits
    is_logarithmic: bool


def choose_limits(values: Mapping[int, Sequence[float]], best: int | None) -> AxisLimits:
    """Return limits that contain the best config and the lower half of all configs.

    Args:
        values: the values of a metric, by mst_key.
        best: the mst_key of the best config.

    >>> choose_limits({1: [0.9, 0.5], 2: [0.8, 0.6], 3: [2.0, 3e9]}, 1)
    AxisLimits(low=0.48, high=0.92, outside=(3,), is_logarithmic=False)
    """
    sizes = {key: max(map(abs, numbers)) for key, numbers in values.items() if numbers}
    max_size = 1.0
    if sizes:
        best_size = sizes.get(best or 0, 0.0)
        max_size = max(1.0, OUTLIER_FACTOR * median_low(sizes.values()), best_size)
    outside = tuple(sorted(key for key, size in sizes.items() if size > max_size))
    inside = [value for key, numbers in values.items() if key not in outside for value in numbers]
    low = min(inside, default=0.0)
    high = max(inside, default=0.0)
    is_logarithmic = low > 0 and high > 1 and high / low > MIN_LOG_RATIO
    if not outside:
        return AxisLimits(None, None, (), is_logarithmic)
    if is_logarithmic:
        return AxisLimits(low * 0.9, high * 1.1, outside, True)
    margin = (high - low) / 20 or 0.5
    return AxisLimits(low - margin, high + margin, outside, False)
