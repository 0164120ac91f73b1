"""How much of a metric's values a panel shows, so that one config that diverged does not flatten
all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median_low
from typing import NamedTuple

OUTLYING = 10
"""So many times the usual size is out of the frame."""
WIDE = 100
"""So much between the smallest and the largest value, and the axis is logarithmic."""


class Frame(NamedTuple):
    """The range of values that is shown, None where it is that of all; which configs leave it; the
    kind of axis.
    """

    low: float | None
    high: float | None
    outside: tuple[int, ...]
    logarithmic: bool


def frame(values: Mapping[int, Sequence[float]], best: int | None) -> Frame:
    """The frame for a metric of some configs: the best one is always within, and so is the lower
    half of them.

    >>> frame({1: [0.9, 0.5], 2: [0.8, 0.6], 3: [2.0, 3e9]}, 1)
    Frame(low=0.48, high=0.92, outside=(3,), logarithmic=False)
    """
    sizes = {key: max(map(abs, its)) for key, its in values.items() if its}
    limit = (
        max(1.0, OUTLYING * median_low(sizes.values()), sizes.get(best or 0, 0.0)) if sizes else 1.0
    )
    outside = tuple(sorted(key for key, size in sizes.items() if size > limit))
    shown = [value for key, its in values.items() if key not in outside for value in its]
    low, high = min(shown, default=0.0), max(shown, default=0.0)
    logarithmic = low > 0 and high > 1 and high / low > WIDE
    if not outside:
        return Frame(None, None, (), logarithmic)
    margin = (high - low) / 20 or 0.5
    low, high = (low * 0.9, high * 1.1) if logarithmic else (low - margin, high + margin)
    return Frame(low, high, outside, logarithmic)
