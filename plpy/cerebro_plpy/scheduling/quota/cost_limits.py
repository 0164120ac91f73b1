"""What a run may cost: a pure rule over what it has cost so far, which comes as data."""

from __future__ import annotations

import math
from typing import NamedTuple

HOUR, GB_MONTH = 3600.0, 1e9 * 30 * 86400
"""Seconds, and bytes of states times the seconds that they lie somewhere."""


class Spent(NamedTuple):
    """Processor seconds of trainers and backends, seconds of visits on GPUs, bytes of states times
    seconds.
    """

    cpu_seconds: float = 0.0
    gpu_seconds: float = 0.0
    byte_seconds: float = 0.0


class Prices(NamedTuple):
    """What an hour of a core and of a GPU costs, and a month of 10^9 bytes; 0 for what costs
    nothing.

    >>> Prices(0.5, 2.0, 0.1).of(Spent(7200.0, 1800.0, 1e9 * 30 * 86400))
    2.1
    """

    core_hour: float = 0.0
    gpu_hour: float = 0.0
    gb_month: float = 0.0

    def of(self, spent: Spent) -> float:
        """What that costs, as the view cerebro.cost counts it."""
        hours = spent.cpu_seconds / HOUR * self.core_hour + spent.gpu_seconds / HOUR * self.gpu_hour
        return hours + spent.byte_seconds / GB_MONTH * self.gb_month


class Excess(NamedTuple):
    """Which limit was reached, and how, in words."""

    limit: str
    why: str


class Allowance(NamedTuple):
    """How many processor seconds a run may use, and what it may cost; None for as much as it
    does.
    """

    max_cpu: float | None
    max_cost: float | None
    prices: Prices = Prices()

    @property
    def cpu_seconds(self) -> float:
        """How many processor seconds it can use at most.

        >>> (Allowance(60.0, 0.5, Prices(core_hour=90.0)).cpu_seconds,
        ...  Allowance(None, 0.5, Prices(0.0, 2.0)).cpu_seconds)
        (20.0, inf)
        """
        paid = math.inf
        if self.max_cost is not None and self.prices.core_hour:
            paid = self.max_cost / self.prices.core_hour * HOUR
        return min(paid, math.inf if self.max_cpu is None else self.max_cpu)

    def excess(self, spent: Spent) -> Excess | None:
        """What a run that has spent so much has reached; then no visit to train begins any more.

        >>> Allowance(60.0, None).excess(Spent(59.9)), Allowance(60.0, None).excess(Spent(61.234))
        (None, Excess(limit='max_cpu', why='61.23 of 60 processor seconds are used'))
        >>> Allowance(None, 0.5, Prices(gpu_hour=2.0)).excess(Spent(gpu_seconds=900.0))
        Excess(limit='max_cost', why='0.5 of 0.5 is spent')
        """
        if self.max_cpu is not None and spent.cpu_seconds >= self.max_cpu:
            used = f"{spent.cpu_seconds:.4g} of {self.max_cpu:g}"
            return Excess("max_cpu", f"{used} processor seconds are used")
        if self.max_cost is not None and (cost := self.prices.of(spent)) >= self.max_cost:
            return Excess("max_cost", f"{cost:.4g} of {self.max_cost:g} is spent")
        return None
