"""The rounds of Hyperband: brackets of successive halving, trained together in diagonals.

As in MADlib, the size of a bracket is rounded down before it is multiplied by a power of eta.
Brackets are halved side by side: all rounds with the same number of iterations are one round of
training, a diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import isfinite
from typing import NamedTuple

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.schedule.schedule import Epochs
from cerebro_plpy.scheduling.search.promotion_rules import (
    BaseRule,
    Capacity,
    Decision,
    Decisions,
    Trials,
    rank_trials,
)
from cerebro_plpy.scheduling.search.successive_halving import list_left_behind


class Round(NamedTuple):
    """Round `i` of bracket `s`."""

    s: int
    i: int
    configs: int
    iterations: int  # further iterations of each of its configurations


@dataclass(frozen=True)
class Hyperband:
    """The parameters of MADlib's Hyperband.

    >>> Hyperband(6, 3, 0).schedule()[0]
    Round(s=1, i=0, configs=3, iterations=2)
    """

    R: int  # largest number of iterations of a round
    eta: int  # one in eta configurations is promoted
    skip_last: int  # number of last rounds to leave out

    def check(self, module: str) -> None:
        """Check the parameters; the error texts are MADlib's.

        Raises:
            InvalidParameter: there is no schedule with these parameters.
        """
        if self.eta <= 1:
            raise InvalidParameter(
                f"{module}: eta must be greater than 1", detail=f"Received {self.eta}."
            )
        if self.eta > self.R:
            raise InvalidParameter(
                f"{module}: R should not be less than eta",
                detail=f"Received R={self.R} and eta={self.eta}.",
            )
        if not 0 <= self.skip_last <= self.s_max:
            raise InvalidParameter(
                f"{module}: skip_last must be non-negative and less than {self.s_max + 1}",
                detail=f"Received {self.skip_last}; R={self.R} and eta={self.eta} make brackets of "
                f"at most {count_nouns(self.s_max + 1, 'round')}.",
            )

    @property
    def s_max(self) -> int:
        """Return the number of the largest bracket: log R to the base eta, rounded down."""
        powers = 0
        quotient = self.R // self.eta
        while quotient:
            powers += 1
            quotient //= self.eta
        return powers

    def schedule(self) -> tuple[Round, ...]:
        """Return all rounds in order, bracket by bracket, beginning with the largest one."""
        return tuple(
            Round(s, i, self._size(s) // self.eta**i, round(Fraction(self.R, self.eta ** (s - i))))
            for s in range(self.s_max, -1, -1)
            for i in range(s + 1 - self.skip_last)
        )

    def diagonals(self) -> tuple[tuple[Round, ...], ...]:
        """Return the rounds of each diagonal, in the order of training."""
        depth = self.s_max + 1 - self.skip_last
        return tuple(
            tuple(
                round_ for round_ in self.schedule() if self.s_max - round_.s + round_.i == number
            )
            for number in range(depth)
        )

    def brackets(self) -> tuple[tuple[int, range], ...]:
        """Return the brackets that have a round, each with the keys of its configurations.

        The largest bracket comes first; keys count from 1.
        """
        brackets = []
        first_key = 1
        for round_ in self.schedule():
            if round_.i == 0:
                brackets.append((round_.s, range(first_key, first_key + round_.configs)))
                first_key += round_.configs
        return tuple(brackets)

    @property
    def configs(self) -> int:
        """Return the number of configurations."""
        return sum(len(keys) for _, keys in self.brackets())

    @property
    def epochs(self) -> int:
        """Return the largest number of iterations that a configuration makes."""
        return max(ends[-1] for ends in self.ends().values())

    def ends(self) -> dict[int, Epochs]:
        """Return by bracket the total iterations of a configuration at the end of each round.

        >>> Hyperband(6, 3, 0).ends()
        {1: (2, 8), 0: (6,)}
        """
        rounds = self.schedule()
        brackets = dict.fromkeys(round_.s for round_ in rounds)
        return {
            s: tuple(accumulate(round_.iterations for round_ in rounds if round_.s == s))
            for s in brackets
        }

    def locate(self, mst_key: int, iterations: int) -> tuple[int, int]:
        """Return the bracket and the round of a configuration after, or in, some iterations."""
        ends = self.ends()
        s = next(s for s, keys in self.brackets() if mst_key in keys)
        return s, next(i for i, end in enumerate(ends[s]) if iterations <= end)

    def _size(self, s: int) -> int:
        size: int = (self.s_max + 1) // (s + 1) * self.eta**s
        return size


@dataclass(frozen=True)
class Diagonals(BaseRule):
    """The rule of MADlib's Hyperband: a diagonal begins when the previous one is complete.

    The configs with the lowest values of a round are promoted, but never those with NaN.
    """

    hyperband: Hyperband
    mst_keys: Sequence[int]  # the brackets take configs in this order

    @property
    def decision_epochs(self) -> Sequence[int]:
        """See `Rule`."""
        return tuple(sorted({end for ends in self.hyperband.ends().values() for end in ends}))

    def decide(self, trials: Trials, capacity: Capacity, latest: int | None) -> Decisions:
        """See `Rule`."""
        if any(trial.is_running for trial in trials.values()):
            return []
        ends = self.hyperband.ends()
        brackets = self._brackets
        for diagonal in self.hyperband.diagonals():
            has_begun = any(
                trials[key].max_epoch >= ends[round_.s][round_.i]
                for round_ in diagonal
                for key in brackets[round_.s]
            )
            if has_begun:
                continue
            decisions = [
                decision
                for round_ in diagonal
                for decision in _begin_round(trials, brackets[round_.s], round_, ends[round_.s])
            ]
            if decisions:
                return decisions
        return []

    def list_losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`; list the configs that were left behind."""
        ends = self.hyperband.ends()
        return list_left_behind(trials, [(keys, ends[s]) for s, keys in self._brackets.items()])

    @property
    def _brackets(self) -> dict[int, list[int]]:
        return {
            s: [self.mst_keys[key - 1] for key in keys] for s, keys in self.hyperband.brackets()
        }


def _begin_round(
    trials: Trials, keys: Sequence[int], round_: Round, ends: Sequence[int]
) -> list[Decision]:
    max_epoch = ends[round_.i]
    reason = f"bracket {round_.s}, round {round_.i}"
    if round_.i == 0:
        return [
            Decision(key, "start", max_epoch, reason) for key in keys if trials[key].is_startable
        ]
    previous = ends[round_.i - 1]
    bracket_trials = {key: trials[key] for key in keys}
    eligible = [
        key
        for key in rank_trials(bracket_trials, previous)
        if bracket_trials[key].is_paused_at(previous)
        and isfinite(bracket_trials[key].values[previous])
    ]
    best = eligible[: round_.configs]
    return [
        Decision(
            key, "promote", max_epoch, f"{reason}: among the best {len(best)} of {len(eligible)}"
        )
        for key in best
    ]
