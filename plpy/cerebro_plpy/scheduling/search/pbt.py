"""Population based training: a population trains in steps, after each of which the worst go on from
the best.

It is that of Jaderberg et al. (arXiv 1711.09846), with truncation selection, in generations: a step
ends when all have come to its end, so that no clock decides. Whoever is among the worst stops, and
a clone of one of the best takes its place: a configuration of its own, with other parameters, which
trains what is left of the epochs of its line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, isfinite
from random import Random
from typing import ClassVar

from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.search.promotion_rules import Decision, Room, Trial, Trials


@dataclass(frozen=True)
class Pbt:
    """Steps of `interval` epochs, the last one with what remains; of so large a part (`quantile`)
    the worst stop.

    Who takes the place of whom is drawn by the seed and the key of the first clone of a step.
    """

    takes_more: ClassVar[bool] = False
    epochs: int
    interval: int = 1
    quantile: float = 0.25
    seed: int = 0

    @property
    def ends(self) -> tuple[int, ...]:
        """The epochs of a line after which its steps end.

        >>> Pbt(9, 3).ends, Pbt(8, 3).ends, Pbt(2, 3).ends
        ((3, 6, 9), (3, 8), (2,))
        """
        return (*range(self.interval, self.epochs - self.interval + 1, self.interval), self.epochs)

    @property
    def asked(self) -> Sequence[int]:
        """See `Rule`: a clone counts its own epochs.

        >>> Pbt(8, 2).asked, Pbt(7, 2).asked
        ((2, 4, 6, 8), (2, 3, 4, 5, 7))
        """
        begun = (0, *self.ends[:-1])
        # Steps before the last are equally long: what lies between two of their ends is itself such
        # an end.
        return tuple(sorted({*self.ends, *(self.epochs - before for before in begun)}))

    def decide(self, trials: Trials, room: Room, latest: int | None) -> Sequence[Decision]:
        """See `Rule`."""
        new = [key for key, trial in trials.items() if not (trial.limit or trial.over)]
        if new:
            return [Decision(key, "start", self.ends[0], "the population begins") for key in new]
        going = {
            key: trial
            for key, trial in trials.items()
            if not trial.over and _reached(trial) < self.epochs
        }
        step = min(map(_reached, going.values()), default=self.epochs)
        members = {key: trial for key, trial in going.items() if _reached(trial) == step}
        if not members or any(trial.under_way for trial in members.values()):
            return []
        return self._generation(members, step, max(trials) + 1)

    def ended(self, trials: Trials) -> bool:
        """See `Rule`."""
        return False

    def losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`: those in whose place others go on."""
        return [
            key
            for key, trial in trials.items()
            if trial.over and not trial.failed and not trial.under_way
        ]

    def _generation(self, members: Mapping[int, Trial], step: int, first: int) -> list[Decision]:
        ranked = sorted(members, key=lambda key: (_value(members[key]), key))
        count = min(ceil(len(ranked) * self.quantile), len(ranked) // 2)
        best = [key for key in ranked[:count] if isfinite(_value(members[key]))]
        worst = ranked[len(ranked) - count :] if best else []
        more = next(end for end in self.ends if end > step) - step
        found = []
        for place, key in enumerate(ranked, 1):
            why = f"place {place} of {len(ranked)} after {step} epochs"
            limit = members[key].limit
            if key in worst:
                found.append(
                    Decision(key, "stop", limit, f"{why}: another one goes on in its place")
                )
            else:
                found.append(Decision(key, "continue", limit + more, why))
        parents = Random(f"{self.seed}/{first}/parents")
        for key, loser in enumerate(worst, first):
            parent = parents.choice(best)
            why = (
                f"in the place of mst_key={loser}, from the state of mst_key={parent}, of the best "
                f"{len(best)}"
            )
            found.append(Decision(key, "clone", more, why, parent))
        return found


def _reached(trial: Trial) -> int:
    return trial.before + trial.limit


def _value(trial: Trial) -> float:
    value = trial.values[trial.limit]
    return value if isfinite(value) else float("inf")
