"""Limits on the cost of a run: a pure rule over its usage so far, which is passed as data."""

from __future__ import annotations

import math
from typing import NamedTuple

from cerebro_plpy.nouns import count_nouns

HOUR = 3600.0
"""Seconds."""
GB_MONTH = 1e9 * 30 * 86400
"""Bytes of states, times the seconds that they are stored."""


class Usage(NamedTuple):
    """The resources that a run has used."""

    cpu_seconds: float = 0.0  # processor seconds of trainers and backends
    gpu_seconds: float = 0.0  # seconds of visits on GPUs
    byte_seconds: float = 0.0  # bytes of states, times the seconds that they were stored


class Prices(NamedTuple):
    """Prices of resources; 0 for a free one.

    >>> Prices(0.5, 2.0, 0.1).cost_of(Usage(7200.0, 1800.0, 1e9 * 30 * 86400))
    2.1
    """

    core_hour: float = 0.0
    gpu_hour: float = 0.0
    gb_month: float = 0.0  # of 10^9 bytes

    def cost_of(self, usage: Usage) -> float:
        """Return the cost, computed as in the view cerebro.cost."""
        hours = usage.cpu_seconds / HOUR * self.core_hour + usage.gpu_seconds / HOUR * self.gpu_hour
        return hours + usage.byte_seconds / GB_MONTH * self.gb_month


class ExceededLimit(NamedTuple):
    """A limit that a run has reached."""

    limit: str  # name of the argument
    reason: str


class CostLimits(NamedTuple):
    """The limits of one run; None for no limit."""

    max_cpu: float | None  # processor seconds
    max_cost: float | None
    prices: Prices = Prices()

    @property
    def max_cpu_seconds(self) -> float:
        """Return the largest number of processor seconds that the run can use.

        >>> CostLimits(60.0, 0.5, Prices(core_hour=90.0)).max_cpu_seconds
        20.0
        >>> CostLimits(None, 0.5, Prices(0.0, 2.0)).max_cpu_seconds
        inf
        """
        seconds = math.inf
        if self.max_cost is not None and self.prices.core_hour:
            seconds = self.max_cost / self.prices.core_hour * HOUR
        if self.max_cpu is None:
            return seconds
        return min(seconds, self.max_cpu)

    def find_exceeded(self, usage: Usage) -> ExceededLimit | None:
        """Return the limit that is reached; no training visit may start any more.

        >>> CostLimits(60.0, None).find_exceeded(Usage(59.9))
        >>> CostLimits(60.0, None).find_exceeded(Usage(61.234))
        ExceededLimit(limit='max_cpu', reason='61.23 of 60 processor seconds are used')
        >>> CostLimits(None, 0.5, Prices(gpu_hour=2.0)).find_exceeded(Usage(gpu_seconds=900.0))
        ExceededLimit(limit='max_cost', reason='0.5 of 0.5 is spent')
        """
        if self.max_cpu is not None and usage.cpu_seconds >= self.max_cpu:
            limit = count_nouns(self.max_cpu, "processor second", "is")
            return ExceededLimit("max_cpu", f"{usage.cpu_seconds:.4g} of {limit} used")
        if self.max_cost is None:
            return None
        cost = self.prices.cost_of(usage)
        if cost >= self.max_cost:
            return ExceededLimit("max_cost", f"{cost:.4g} of {self.max_cost:g} is spent")
        return None
