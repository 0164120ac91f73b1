"""Which rounds Hyperband makes: brackets of successive halving, and the diagonals in which they are
trained together.

As in MADlib, the size of a bracket is rounded down before it is multiplied by a power of eta.
Brackets are halved side by side: all their rounds of the same length are one round of training, a
diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from math import isfinite
from typing import ClassVar, NamedTuple

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.search.promotion_rules import Decision, Room, Trials, ranking
from cerebro_plpy.scheduling.search.successive_halving import left_behind


class Round(NamedTuple):
    """Round `i` of bracket `s`: so many configurations are trained for so many iterations more."""

    s: int
    i: int
    configs: int
    iterations: int


@dataclass(frozen=True)
class Hyperband:
    """Its three numbers: the most iterations of a round, one in how many goes on, and last rounds
    to leave out.

    >>> Hyperband(6, 3, 0).schedule()[0]
    Round(s=1, i=0, configs=3, iterations=2)
    """

    R: int
    eta: int
    skip_last: int

    def check(self, module: str) -> None:
        """Raises InvalidParameter, with MADlib's texts, for numbers that make no schedule."""
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
                f"at most {self.s_max + 1} rounds.",
            )

    @property
    def s_max(self) -> int:
        """The number of the largest bracket: how often R can be divided by eta."""
        powers, rest = 0, self.R // self.eta
        while rest:
            powers, rest = powers + 1, rest // self.eta
        return powers

    def schedule(self) -> tuple[Round, ...]:
        """All rounds, by bracket from the largest one, and in each bracket in their order."""
        return tuple(
            Round(s, i, self._size(s) // self.eta**i, round(Fraction(self.R, self.eta ** (s - i))))
            for s in range(self.s_max, -1, -1)
            for i in range(s + 1 - self.skip_last)
        )

    def diagonals(self) -> tuple[tuple[Round, ...], ...]:
        """The same rounds, those of the same length together, in the order in which they are
        trained.
        """
        depth = self.s_max + 1 - self.skip_last
        return tuple(
            tuple(found for found in self.schedule() if self.s_max - found.s + found.i == number)
            for number in range(depth)
        )

    def brackets(self) -> tuple[tuple[int, range], ...]:
        """Each bracket that has a round, from the largest one, with the keys of its configurations,
        from 1 on.
        """
        first, found = 1, []
        for begun in self.schedule():
            if begun.i == 0:
                found.append((begun.s, range(first, first + begun.configs)))
                first += begun.configs
        return tuple(found)

    @property
    def configs(self) -> int:
        """How many configurations are tried."""
        return sum(len(keys) for _, keys in self.brackets())

    @property
    def epochs(self) -> int:
        """The most iterations that a configuration makes."""
        return max(ends[-1] for ends in self.ends().values())

    def ends(self) -> dict[int, tuple[int, ...]]:
        """By bracket, the iterations that a configuration has made when each of its rounds ends.

        >>> Hyperband(6, 3, 0).ends()
        {1: (2, 8), 0: (6,)}
        """
        rounds = self.schedule()
        numbers = dict.fromkeys(each.s for each in rounds)
        return {
            s: tuple(accumulate(each.iterations for each in rounds if each.s == s)) for s in numbers
        }

    def place(self, mst_key: int, iterations: int) -> tuple[int, int]:
        """Bracket and round of the configuration of that number, which has come so far or begins
        to.
        """
        ends = self.ends()
        s = next(s for s, keys in self.brackets() if mst_key in keys)
        return s, next(i for i, end in enumerate(ends[s]) if iterations <= end)

    def _size(self, s: int) -> int:
        size: int = (self.s_max + 1) // (s + 1) * self.eta**s
        return size


@dataclass(frozen=True)
class Diagonals:
    """The rule of MADlib's Hyperband: a diagonal begins when all of the one before it have come to
    its end.

    Of a round those with the lowest values go on, NaN never; the brackets are of configs in the
    order of their keys.
    """

    takes_more: ClassVar[bool] = False
    method: Hyperband
    mst_keys: Sequence[int]

    @property
    def asked(self) -> Sequence[int]:
        """See `Rule`."""
        return tuple(sorted({end for ends in self.method.ends().values() for end in ends}))

    def decide(self, trials: Trials, room: Room, latest: int | None) -> Sequence[Decision]:
        """See `Rule`."""
        if any(trial.under_way for trial in trials.values()):
            return []
        ends = self.method.ends()
        brackets = self._brackets
        for diagonal in self.method.diagonals():
            if any(trials[key].limit >= ends[r.s][r.i] for r in diagonal for key in brackets[r.s]):
                continue
            found = [each for r in diagonal for each in _round(trials, brackets[r.s], r, ends[r.s])]
            if found:
                return found
        return []

    def ended(self, trials: Trials) -> bool:
        """See `Rule`."""
        return False

    def losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`: those that were left behind."""
        ends = self.method.ends()
        return left_behind(trials, [(keys, ends[s]) for s, keys in self._brackets.items()])

    @property
    def _brackets(self) -> dict[int, list[int]]:
        return {s: [self.mst_keys[key - 1] for key in keys] for s, keys in self.method.brackets()}


def _round(
    trials: Trials, keys: Sequence[int], found: Round, ends: Sequence[int]
) -> list[Decision]:
    limit, why = ends[found.i], f"bracket {found.s}, round {found.i}"
    if found.i == 0:
        return [
            Decision(key, "start", limit, why)
            for key in keys
            if not (trials[key].limit or trials[key].over)
        ]
    before, own = ends[found.i - 1], {key: trials[key] for key in keys}
    able = [
        key
        for key in ranking(own, before)
        if own[key].goes_on_from(before) and isfinite(own[key].values[before])
    ]
    best = able[: found.configs]
    return [
        Decision(key, "promote", limit, f"{why}: among the best {len(best)} of {len(able)}")
        for key in best
    ]
