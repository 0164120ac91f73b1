"""Population based training: after each step, clones of the best configs replace the worst.

The algorithm is that of Jaderberg et al. (arXiv 1711.09846), with truncation selection, in
generations: a step ends when all members have reached its end, so that decisions do not depend on
time. The worst members stop. For each of them, a clone of one of the best trains the remaining
epochs. The clone is a configuration of its own, with other parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, isfinite
from random import Random

from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.schedule.schedule import Epochs
from cerebro_plpy.scheduling.search.promotion_rules import (
    BaseRule,
    Capacity,
    Decision,
    Decisions,
    Trial,
    Trials,
    finite_or_worst,
)


@dataclass(frozen=True)
class Pbt(BaseRule):
    """The rule of population based training.

    Parents are drawn by the seed and the key of the first clone of a step.
    """

    epochs: int
    interval: int = 1  # epochs of a step; the last step has the remaining ones, too
    quantile: float = 0.25  # part of the members that stops after each step
    seed: int = 0

    @property
    def ends(self) -> Epochs:
        """Return the ends of the steps, in epochs including those of the ancestors.

        >>> Pbt(9, 3).ends, Pbt(8, 3).ends, Pbt(2, 3).ends
        ((3, 6, 9), (3, 8), (2,))
        """
        return (*range(self.interval, self.epochs - self.interval + 1, self.interval), self.epochs)

    @property
    def decision_epochs(self) -> Sequence[int]:
        """See `Rule`; a clone counts its own epochs.

        >>> Pbt(8, 2).decision_epochs, Pbt(7, 2).decision_epochs
        ((2, 4, 6, 8), (2, 3, 4, 5, 7))
        """
        starts = (0, *self.ends[:-1])
        # Steps before the last have equal lengths, so the difference of two ends is itself an end.
        return tuple(sorted({*self.ends, *(self.epochs - start for start in starts)}))

    def decide(self, trials: Trials, capacity: Capacity, latest: int | None) -> Decisions:
        """See `Rule`."""
        new = [key for key, trial in trials.items() if trial.is_startable]
        if new:
            return [Decision(key, "start", self.ends[0], "the population begins") for key in new]
        unfinished = {
            key: trial
            for key, trial in trials.items()
            if not trial.finished and _total_epochs(trial) < self.epochs
        }
        step_end = min(map(_total_epochs, unfinished.values()), default=self.epochs)
        members = {
            key: trial for key, trial in unfinished.items() if _total_epochs(trial) == step_end
        }
        if not members or any(trial.is_running for trial in members.values()):
            return []
        return self._select(members, step_end, max(trials) + 1)

    def list_losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`; list the configs that clones have replaced."""
        return [
            key
            for key, trial in trials.items()
            if trial.finished and not trial.failed and not trial.is_running
        ]

    def _select(
        self, members: Mapping[int, Trial], step_end: int, first_key: int
    ) -> list[Decision]:
        """Stop the worst members, continue the others, and clone the best.

        Args:
            first_key: mst_key of the first clone.
        """
        ranked = sorted(members, key=lambda key: (_last_value(members[key]), key))
        count = min(ceil(len(ranked) * self.quantile), len(ranked) // 2)
        best = [key for key in ranked[:count] if isfinite(_last_value(members[key]))]
        worst = ranked[len(ranked) - count :] if best else []
        step_epochs = next(end for end in self.ends if end > step_end) - step_end
        decisions = []
        for rank, key in enumerate(ranked, 1):
            reason = f"place {rank} of {len(ranked)} after {count_nouns(step_end, 'epoch')}"
            max_epoch = members[key].max_epoch
            if key in worst:
                reason = f"{reason}: another one goes on in its place"
                decisions.append(Decision(key, "stop", max_epoch, reason))
            else:
                decisions.append(Decision(key, "continue", max_epoch + step_epochs, reason))
        random = Random(f"{self.seed}/{first_key}/parents")
        for key, loser in enumerate(worst, first_key):
            parent = random.choice(best)
            reason = (
                f"in the place of mst_key={loser}, from the state of mst_key={parent}, of the best "
                f"{len(best)}"
            )
            decisions.append(Decision(key, "clone", step_epochs, reason, parent))
        return decisions


def _total_epochs(trial: Trial) -> int:
    return trial.inherited_epochs + trial.max_epoch


def _last_value(trial: Trial) -> float:
    return finite_or_worst(trial.values[trial.max_epoch])
