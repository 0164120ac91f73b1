"""Arithmetic on repeated measurements: medians, and ratios within each repetition."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """The middle and the ends of some numbers.

    >>> Span.of([3.0, 1.0, 2.0])
    Span(middle=2.0, least=1.0, most=3.0)
    """

    middle: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Span:
        """Of at least one number."""
        return cls(statistics.median(values), min(values), max(values))

    def text(self, digits: int = 2) -> str:
        """Middle (least to most)."""
        if self.least == self.most:
            return f"{self.middle:.{digits}f}"
        return f"{self.middle:.{digits}f} ({self.least:.{digits}f} to {self.most:.{digits}f})"


def ratios(above: Mapping[int, float], below: Mapping[int, float]) -> Span | None:
    """Quotients of what was measured in the same repetition; None where no repetition has both.

    >>> ratios({0: 4.0, 1: 9.0}, {0: 2.0, 1: 3.0, 2: 1.0})
    Span(middle=2.5, least=2.0, most=3.0)
    """
    both = [above[number] / below[number] for number in above if number in below]
    return Span.of(both) if both else None


def best(contenders: Mapping[str, Mapping[int, float]]) -> str | None:
    """The contender with the smallest median.

    >>> best({"slow": {0: 3.0}, "fast": {0: 1.0, 1: 2.0}})
    'fast'
    """
    measured = {
        name: statistics.median(values.values()) for name, values in contenders.items() if values
    }
    return min(measured, key=lambda name: measured[name]) if measured else None
