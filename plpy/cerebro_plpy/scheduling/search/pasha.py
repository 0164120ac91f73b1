"""Progressive successive halving: configs train only until their ranking is stable.

The algorithm is PASHA (Bohdal et al., ICLR 2023, openreview.net/forum?id=syfgJE6nFRW). Promotions
are those of `Asha`, but only up to a ceiling, at first the end of the second rung. The ceiling
rises by a rung if the configs in the two rungs below it are ranked differently. Values that differ
by at most epsilon count as equal.

As in the paper, epsilon is the difference of two configs whose curves cross repeatedly; a curve has
every epoch whose metrics were computed. The rule receives the value of an epoch when its config
reaches the end of the rung, so that the decisions do not depend on time. The authors' program uses
epochs as they arrive.

The ceiling, too, depends on the trials alone. It has risen if a config was allowed to train above
it, or may now. An unused rise is undone if further values make the rankings equal again.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import isfinite
from statistics import quantiles

from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.search.promotion_rules import (
    Asha,
    Capacity,
    Decision,
    Decisions,
    Trials,
    finite_or_worst,
    rank_trials,
)

MAX_COMPARED = 25
"""Number of configs from which the noise of a rung is estimated."""


@dataclass(frozen=True)
class Pasha(Asha):
    """`Asha` up to a ceiling, which rises while rankings change from rung to rung.

    When all other configs are done, the best of the highest rung continues to the ceiling.
    """

    def decide(self, trials: Trials, capacity: Capacity, latest: int | None) -> Decisions:
        """See `Rule`."""
        top = self._find_top(trials)
        ceiling = self.decision_epochs[top]
        decisions = list(Asha(ceiling, self.eta, self.first_rung).decide(trials, capacity, latest))
        if latest is not None and trials[latest].max_epoch == ceiling < self.epochs:
            reason = (
                f"nobody goes on: after epochs {self.decision_epochs[top - 1]} and {ceiling} "
                "the order is the same"
            )
            decisions.append(Decision(latest, "rest", ceiling, reason))
        return decisions

    def estimate_epsilon(self, trials: Trials, rung: int) -> float:
        """Return the difference up to which two values in a rung count as equal.

        Epsilon is the 90th percentile of the differences between two configs at the end of the
        rung, over pairs whose curves have crossed and crossed back. Without such pairs, it is that
        of the rung below. Only the best configs are compared, because the number of pairs grows
        quadratically.
        """
        end = self.decision_epochs[rung]
        best = (trials[key].curve for key in rank_trials(trials, end)[:MAX_COMPARED])
        curves = [
            {epoch: finite_or_worst(value) for epoch, value in curve.items() if epoch <= end}
            for curve in best
        ]
        differences = [
            abs(one[end] - other[end])
            for one, other in combinations(curves, 2)
            if _crossed_back(one, other, end)
        ]
        finite = [difference for difference in differences if isfinite(difference)]
        if not finite:
            return self.estimate_epsilon(trials, rung - 1) if rung else 0.0
        if len(finite) == 1:
            return finite[0]
        return quantiles(finite, n=10, method="inclusive")[-1]

    def _find_top(self, trials: Trials) -> int:
        """Return the rung whose end is the ceiling."""
        ends = self.decision_epochs
        top = min(1, len(ends) - 1)
        while top + 1 < len(ends):
            if not self._is_entered(trials, ends[top + 1]) and self._is_stable(trials, top):
                break
            top += 1
        return top

    def _is_entered(self, trials: Trials, end: int) -> bool:
        return any(trial.max_epoch == end or end in trial.values for trial in trials.values())

    def _is_stable(self, trials: Trials, rung: int) -> bool:
        """Return True if the ranking agrees with that of the rung below: the paper's soft ranking.

        Configs may exchange ranks with those whose values were equal, up to epsilon.
        """
        previous = self.decision_epochs[rung - 1]
        end = self.decision_epochs[rung]
        compared = {
            key: trial
            for key, trial in trials.items()
            if previous in trial.values and end in trial.values
        }
        values = {key: finite_or_worst(trial.values[previous]) for key, trial in compared.items()}
        pairs = [
            (values[old], values[new])
            for old, new in zip(rank_trials(compared, previous), rank_trials(compared, end))
        ]
        if all(old == new for old, new in pairs):
            return True
        epsilon = self.estimate_epsilon(trials, rung)
        return all(old == new or abs(old - new) <= epsilon for old, new in pairs)


def _crossed_back(one: Mapping[int, float], other: Mapping[int, float], end: int) -> bool:
    """Return True if two curves have crossed twice, and differ at the end."""
    epochs = sorted(epoch for epoch in one.keys() & other.keys() if one[epoch] != other[epoch])
    if epochs[-1:] != [end]:
        return False
    orders = [one[epoch] > other[epoch] for epoch in epochs]
    return sum(order != following for order, following in zip(orders, orders[1:])) > 1
