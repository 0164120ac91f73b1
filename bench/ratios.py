"""Compute medians of repeated measurements, and ratios within each repetition."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """The median and the range of some numbers.

    >>> Span.from_values([3.0, 1.0, 2.0])
    Span(middle=2.0, least=1.0, most=3.0)
    """

    middle: float
    least: float
    most: float

    @classmethod
    def from_values(cls, values: Sequence[float]) -> Span:
        """Return the span of at least one number."""
        return cls(statistics.median(values), min(values), max(values))

    def text(self, digits: int = 2) -> str:
        """Return the text "middle (least to most)"."""
        if self.least == self.most:
            return f"{self.middle:.{digits}f}"
        return f"{self.middle:.{digits}f} ({self.least:.{digits}f} to {self.most:.{digits}f})"


def compute_ratios(above: Mapping[int, float], below: Mapping[int, float]) -> Span | None:
    """Return the quotients within the repetitions; None if no repetition has both values.

    >>> compute_ratios({0: 4.0, 1: 9.0}, {0: 2.0, 1: 3.0, 2: 1.0})
    Span(middle=2.5, least=2.0, most=3.0)
    """
    quotients = [above[number] / below[number] for number in above if number in below]
    return Span.from_values(quotients) if quotients else None


def find_best(contenders: Mapping[str, Mapping[int, float]]) -> str | None:
    """Return the contender with the smallest median.

    >>> find_best({"slow": {0: 3.0}, "fast": {0: 1.0, 1: 2.0}})
    'fast'
    """
    medians = {
        name: statistics.median(values.values()) for name, values in contenders.items() if values
    }
    return min(medians, key=lambda name: medians[name]) if medians else None
