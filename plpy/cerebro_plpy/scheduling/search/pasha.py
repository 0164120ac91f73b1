"""Progressive successive halving: nobody trains longer than it takes to tell the configs apart.

It is PASHA (Bohdal et al., ICLR 2023, openreview.net/forum?id=syfgJE6nFRW): promotions are those of
`Asha`, but only up to a ceiling, first the end of the second rung. It grows by a rung when the
configs in the two rungs below it stand in different orders, where values that differ by no more
than epsilon count as alike.

As in the paper, epsilon is what the values of one pair of configs differ by while their curves
cross to and fro, and curves have every epoch whose metrics were computed. The rule is told of an
epoch when its config has come to the end of the rung, so that no clock decides; the authors'
program looks at epochs as they come.

The ceiling, too, follows from nothing but the trials: it has grown where somebody was let train
above it, or does so now. Growth that nobody has made use of is undone where further values bring
the orders together again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import isfinite
from statistics import quantiles

from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.search.promotion_rules import (
    Asha,
    Decision,
    Room,
    Trials,
    ranking,
    worst,
)

MOST_COMPARED = 25
"""Configs whose curves tell the noise of a rung."""


@dataclass(frozen=True)
class Pasha(Asha):
    """`Asha` up to a ceiling, which grows from the second rung while orders change from rung to
    rung.

    When nothing else is left, the best of the highest rung goes on to the ceiling, and no further.
    """

    def decide(self, trials: Trials, room: Room, latest: int | None) -> Sequence[Decision]:
        """See `Rule`."""
        top = self._top(trials)
        ceiling = self.asked[top]
        found = list(Asha(ceiling, self.eta, self.first).decide(trials, room, latest))
        if latest is not None and trials[latest].limit == ceiling < self.epochs:
            why = (
                f"nobody goes on: after epochs {self.asked[top - 1]} and {ceiling} the order is "
                "the same"
            )
            found.append(Decision(latest, "rest", ceiling, why))
        return found

    def ceiling(self, trials: Trials) -> int:
        """The epoch after which nobody goes on now."""
        return self.asked[self._top(trials)]

    def epsilon(self, trials: Trials, rung: int) -> float:
        """What a value is not sure by: the 90th percentile of how far two configs that have come to
        the end of this rung are apart there, of those whose curves have crossed and crossed back;
        else that of the rung below. The best of the rung tell it, for there are as many pairs as
        the square of their number."""
        end = self.asked[rung]
        best = (trials[key].curve for key in ranking(trials, end)[:MOST_COMPARED])
        curves = [{e: worst(v) for e, v in curve.items() if e <= end} for curve in best]
        pairs = combinations(curves, 2)
        gaps = [
            abs(one[end] - other[end]) for one, other in pairs if _crossed_back(one, other, end)
        ]
        finite = [gap for gap in gaps if isfinite(gap)]
        if not finite:
            return self.epsilon(trials, rung - 1) if rung else 0.0
        return quantiles(finite, n=10, method="inclusive")[-1] if len(finite) > 1 else finite[0]

    def _top(self, trials: Trials) -> int:
        """The rung whose end is the ceiling."""
        ends = self.asked
        top = min(1, len(ends) - 1)
        while top + 1 < len(ends) and (
            self._entered(trials, ends[top + 1]) or not self._agree(trials, top)
        ):
            top += 1
        return top

    def _entered(self, trials: Trials, end: int) -> bool:
        return any(trial.limit == end or end in trial.values for trial in trials.values())

    def _agree(self, trials: Trials, rung: int) -> bool:
        """Whether nobody has left those that were like it a rung before: the soft ranking of the
        paper.
        """
        before, end = self.asked[rung - 1], self.asked[rung]
        both = {
            key: each
            for key, each in trials.items()
            if before in each.values and end in each.values
        }
        values = {key: worst(trial.values[before]) for key, trial in both.items()}
        places = [
            (values[was], values[now])
            for was, now in zip(ranking(both, before), ranking(both, end))
        ]
        if all(was == now for was, now in places):
            return True
        epsilon = self.epsilon(trials, rung)
        return all(was == now or abs(was - now) <= epsilon for was, now in places)


def _crossed_back(one: Mapping[int, float], other: Mapping[int, float], end: int) -> bool:
    """Whether two curves that differ at the end were once the other way round, and before that as
    at the end.
    """
    epochs = sorted(epoch for epoch in one.keys() & other.keys() if one[epoch] != other[epoch])
    orders = [one[epoch] > other[epoch] for epoch in epochs]
    return end in epochs[-1:] and sum(a != b for a, b in zip(orders, orders[1:])) > 1
