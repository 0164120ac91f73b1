"""Draw a learning curve as a line of text."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_db.display.boards import is_finite

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
    halves = [value / 2 for value in newest if is_finite(value)]
    low = min(halves, default=0.0)
    high = max(halves, default=0.0)

    def choose_letter(value: float | None) -> str:
        if not is_finite(value):
            return GAP
        share = (value / 2 - low) / (high - low) if high > low else 0.5
        return levels[round(share * (len(levels) - 1))]

    return "".join(map(choose_letter, newest))
