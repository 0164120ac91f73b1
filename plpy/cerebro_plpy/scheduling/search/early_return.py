"""The rule by which a run returns before its budget is over: nothing better is expected."""

from __future__ import annotations

import math
from typing import NamedTuple

MIN_WAIT_SECONDS = 5.0
WAIT_FACTOR = 3
"""A run waits for a gain so many times as long as its best value took."""
MAX_WAIT_SHARE = 1 / 3
"""The largest share of the budget in which a run waits for a gain."""
NOISE_SHARE = 0.25
"""A gain is larger than this share of the standard error of a value."""
MIN_PERFECT_ROWS = 50
"""A perfect value over fewer rows may be chance: the run goes on until its starts have ended."""


class ReturnRule(NamedTuple):
    """The values of a run, and the time that it may wait for better ones."""

    metric: str
    descending: bool  # larger values are better
    rows: int  # on which values are computed
    budget: float  # seconds
    starts: frozenset[int] = frozenset()  # configurations that end before the run returns

    def compute_distance(self, value: float) -> float:
        """Return the distance from the best value that the metric can have.

        >>> ReturnRule("accuracy", True, 100, 60.0).compute_distance(0.75)
        0.25
        """
        return max(0.0, 1.0 - value if self.descending else value)

    def is_gain(self, distance: float, best: float) -> bool:
        """Return True if a distance is smaller than the best one by more than noise.

        >>> rule = ReturnRule("loss", False, 200, 60.0)
        >>> rule.is_gain(0.98, 1.0), rule.is_gain(0.999, 1.0)
        (True, False)
        """
        if not self.metric.endswith("accuracy"):
            return self.is_loss_gain(distance, best)
        noise = math.sqrt(best * max(0.0, 1.0 - best) / max(1, self.rows))
        return distance < best - NOISE_SHARE * noise

    def is_loss_gain(self, loss: float, best: float) -> bool:
        """Return True if a loss is smaller than the best one by more than noise.

        >>> ReturnRule("accuracy", True, 200, 60.0).is_loss_gain(0.98, 1.0)
        True
        """
        if best == math.inf:
            return loss < best
        noise = abs(best) / math.sqrt(2 * max(1, self.rows))
        return loss < best - NOISE_SHARE * noise

    def compute_patience(self, seconds: float) -> float:
        """Return the time without a gain after which the run returns.

        Args:
            seconds: time from the beginning of the call to its best value.

        >>> rule = ReturnRule("loss", False, 200, 60.0)
        >>> [rule.compute_patience(seconds) for seconds in (1.0, 4.0, 30.0)]
        [5.0, 12.0, 20.0]
        """
        return min(max(MIN_WAIT_SECONDS, WAIT_FACTOR * seconds), MAX_WAIT_SHARE * self.budget)
