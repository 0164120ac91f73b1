"""A learning curve in a line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

LEVELS = "▁▂▃▄▅▆▇█"
ASCII_LEVELS = "_.:-=+*#"
GAP = " "


def sparkline(values: Sequence[float | None], width: int, levels: str = LEVELS) -> str:
    """The newest values, a letter each, from the lowest of them to the highest; a gap for what is
    no finite number.

    >>> sparkline([0.0, 0.5, None, 1.0], 3)
    '▄ █'
    >>> sparkline([0.0, 0.5, None, 1.0], 4)
    '▁▅ █'
    """
    shown = [
        value if value is not None and math.isfinite(value) else None
        for value in values[max(len(values) - width, 0) :]
    ]
    known = [
        value / 2 for value in shown if value is not None
    ]  # halves: no difference of two overflows
    low, high = min(known, default=0.0), max(known, default=0.0)

    def letter(value: float | None) -> str:
        if value is None:
            return GAP
        share = (value / 2 - low) / (high - low) if high > low else 0.5
        return levels[round(share * (len(levels) - 1))]

    return "".join(map(letter, shown))
