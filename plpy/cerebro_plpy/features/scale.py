"""How a number of a raw column becomes one near 0, and in what pieces its range is told: constants of a recipe."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cerebro_plpy.configs.templates.template import FARTHEST

LARGEST = 1e300
"""No constant is larger: then nothing that is computed of it is infinite."""
NEAREST = 2.0**-20
"""How near two edges may be, in widths: a float32 has some further digits."""


@dataclass(frozen=True)
class Scale:
    """How a number becomes one near 0, before it loses digits: (x - center) / width, at most FARTHEST from 0.

    What lies far out is left to the network, which has all digits that a float32 has. Between the `edges` of the column
    about as many training rows lie each.
    """

    center: float
    width: float
    edges: tuple[float, ...] = ()

    @property
    def pieces(self) -> tuple[float, ...]:
        """The edges as the network gets them, as far as it tells them apart.

        >>> Scale(10.0, 2.0, (8.0, 10.0, 10.0 + 1e-9, 1e9)).pieces
        (-1.0, 0.0, 1000000.0)
        """
        found: list[float] = []
        for edge in map(self.apply, self.edges):
            if not found or edge - found[-1] > NEAREST * max(1.0, abs(edge)):
                found.append(edge)
        return tuple(found)

    @property
    def bounds(self) -> tuple[float, float]:
        """Beyond them nothing changes any more, so that numbers of any size can be computed with."""
        reach = FARTHEST * self.width
        return max(-LARGEST, self.center - reach), min(LARGEST, self.center + reach)

    def apply(self, value: float | None) -> float:
        """What becomes of a number; NULL and NaN are in the middle.

        >>> [Scale(10.0, 2.0).apply(value) for value in (None, 11.0, -math.inf)]
        [0.0, 0.5, -1000000.0]
        """
        if value is None or math.isnan(value):
            return 0.0
        low, high = self.bounds
        return (min(max(value, low), high) - self.center) / self.width
