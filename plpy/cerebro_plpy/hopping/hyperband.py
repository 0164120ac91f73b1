"""Which rounds Hyperband makes: brackets of successive halving, and the diagonals in which they are trained together.

As in MADlib, the size of a bracket is rounded down before it is multiplied by a power of eta. Brackets are halved
side by side: all their rounds of the same length are one round of training, a diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import dataclass


class Round(NamedTuple):
    """Round `i` of bracket `s`: so many configurations are trained for so many iterations more."""

    s: int
    i: int
    configs: int
    iterations: int


@dataclass(frozen=True)
class Hyperband:
    """Its three numbers: the most iterations of a round, one in how many goes on, and last rounds to leave out.

    >>> Hyperband(6, 3, 0).schedule()[0]
    Round(s=1, i=0, configs=3, iterations=2)
    """

    R: int
    eta: int
    skip_last: int

    def check(self, module: str) -> None:
        """Raises InvalidParameter, with MADlib's texts, for numbers that make no schedule."""
        if self.eta <= 1:
            raise InvalidParameter(f"{module}: eta must be greater than 1", detail=f"Received {self.eta}.")
        if self.eta > self.R:
            raise InvalidParameter(
                f"{module}: R should not be less than eta", detail=f"Received R={self.R} and eta={self.eta}."
            )
        if not 0 <= self.skip_last <= self.s_max:
            raise InvalidParameter(
                f"{module}: skip_last must be non-negative and less than {self.s_max + 1}",
                detail=f"Received {self.skip_last}; R={self.R} and eta={self.eta} make brackets of at most"
                f" {self.s_max + 1} rounds.",
            )

    @property
    def s_max(self) -> int:
        """The number of the largest bracket: how often R can be divided by eta."""
        powers, rest = 0, self.R // self.eta
        while rest:
            powers, rest = powers + 1, rest // self.eta
        return powers

    def schedule(self) -> tuple[Round, ...]:
        """All rounds, by bracket from the largest one, and in each bracket in their order."""
        return tuple(
            Round(s, i, self._size(s) // self.eta**i, round(Fraction(self.R, self.eta ** (s - i))))
            for s in range(self.s_max, -1, -1)
            for i in range(s + 1 - self.skip_last)
        )

    def diagonals(self) -> tuple[tuple[Round, ...], ...]:
        """The same rounds, those of the same length together, in the order in which they are trained."""
        depth = self.s_max + 1 - self.skip_last
        return tuple(
            tuple(found for found in self.schedule() if self.s_max - found.s + found.i == number)
            for number in range(depth)
        )

    def brackets(self) -> tuple[tuple[int, range], ...]:
        """Each bracket that has a round, from the largest one, with the keys of its configurations, from 1 on."""
        first, found = 1, []
        for begun in self.schedule():
            if begun.i == 0:
                found.append((begun.s, range(first, first + begun.configs)))
                first += begun.configs
        return tuple(found)

    def _size(self, s: int) -> int:
        size: int = (self.s_max + 1) // (s + 1) * self.eta**s
        return size


def survivors(losses: Mapping[int, float], keys: Iterable[int], count: int) -> list[int]:
    """Those of the keys with the lowest losses, at most so many, in order; NaN, or no loss, is the worst.

    A configuration without a loss has failed, and cannot go on.

    >>> survivors({1: 0.5, 2: float("nan"), 3: 0.1}, [1, 2, 3, 4], 2)
    [1, 3]
    """
    alive = [key for key in keys if not math.isnan(losses.get(key, math.nan))]
    return sorted(sorted(alive, key=lambda key: (losses[key], key))[:count])
