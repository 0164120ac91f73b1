"""Draw a learning curve as a line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

LEVELS = "▁▂▃▄▅▆▇█"
ASCII_LEVELS = "_.:-=+*#"
GAP = " "


def make_sparkline(values: Sequence[float | None], width: int, levels: str = LEVELS) -> str:
    """Return a letter for each of the newest values, from the lowest to the highest.

    Values that are not finite are gaps.

    >>> make_sparkline([0.0, 0.5, None, 1.0], 3)
    '▁ █'
    >>> make_sparkline([0.0, 0.5, None, 1.0], 4)
    '▁▅ █'
    """
    newest = values[max(len(values) - width, 0) :]
    # Halves, because the difference of two values could overflow.
    halves = [value / 2 if value is not None and math.isfinite(value) else None for value in newest]
    finite_halves = [half for half in halves if half is not None]
    low = min(finite_halves, default=0.0)
    high = max(finite_halves, default=0.0)

    def choose_letter(half: float | None) -> str:
        if half is None:
            return GAP
        share = (half - low) / (high - low) if high > low else 0.5
        return levels[round(share * (len(levels) - 1))]

    return "".join(map(choose_letter, halves))
