"""Successive halving, in one bracket or in several side by side: rules that compare whole rungs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from typing import ClassVar

from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.search.promotion_rules import (
    Decision,
    Room,
    Trials,
    ranking,
    resting,
    rungs,
)


@dataclass(frozen=True)
class Brackets:
    """Successive halving in brackets side by side, as in Hyperband (Li et al., JMLR 2018, algorithm
    1).

    A bracket is its configs and the epochs at which its rungs end: once all of its configs have
    come there, `1/eta` of those that began with it go on, at least one. One bracket is successive
    halving.
    """

    takes_more: ClassVar[bool] = False
    brackets: Sequence[tuple[Collection[int], Sequence[int]]]
    eta: int

    @property
    def asked(self) -> Sequence[int]:
        """All epochs at which rungs end."""
        return tuple(sorted({epoch for _, ends in self.brackets for epoch in ends}))

    def decide(self, trials: Trials, room: Room, latest: int | None) -> Sequence[Decision]:
        """See `Rule`."""
        return [
            each for keys, ends in self.brackets for each in self._of_bracket(trials, keys, ends)
        ]

    def ended(self, trials: Trials) -> bool:
        """See `Rule`."""
        return False

    def losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`: those that were left behind in a rung that is decided."""
        return left_behind(trials, self.brackets)

    def _of_bracket(
        self, trials: Trials, keys: Collection[int], ends: Sequence[int]
    ) -> list[Decision]:
        own = {key: trials[key] for key in keys if key in trials}
        new = [key for key, trial in own.items() if not (trial.limit or trial.over)]
        found = [
            Decision(key, "start", ends[0], f"one of {len(own)} of its bracket") for key in new
        ]
        if new or any(trial.under_way for trial in own.values()):
            return found
        for number, (rung, limit) in enumerate(zip(ends, ends[1:]), 1):
            ranked = [key for key in ranking(own, rung) if own[key].goes_on_from(rung)]
            if ranked and all(trial.limit <= rung for trial in own.values()):
                best = ranked[: max(1, len(keys) // self.eta**number)]
                why = f"among the best {len(best)} of {len(ranked)} after epoch {rung}"
                return [Decision(key, "promote", limit, why) for key in best]
        return []


def hyperband(mst_keys: Sequence[int], epochs: int, eta: int) -> Brackets:
    """The brackets of Hyperband over configs: theirs are the proportions of the algorithm, whose
    largest bracket has the shortest first rung.

    >>> [(len(keys), ends) for keys, ends in hyperband(range(143), 81, 3).brackets]
    [(81, (1, 3, 9, 27, 81)), (34, (3, 9, 27, 81)), (15, (9, 27, 81)), (8, (27, 81)), (5, (81,))]
    >>> [(len(keys), ends) for keys, ends in hyperband(range(10), 9, 3).brackets]
    [(5, (1, 3, 9)), (3, (3, 9)), (2, (9,))]
    """
    depth = len(rungs(epochs, eta, 1))
    sizes = [-(-depth * eta**s // (s + 1)) for s in range(depth - 1, -1, -1)]
    bounds = [
        round(len(mst_keys) * reached / sum(sizes)) for reached in accumulate(sizes, initial=0)
    ]
    ends = [rungs(epochs, eta, 1)[depth - 1 - s :] for s in range(depth - 1, -1, -1)]
    dealt = [mst_keys[start:stop] for start, stop in zip(bounds, bounds[1:])]
    return Brackets(tuple((tuple(keys), end) for keys, end in zip(dealt, ends) if keys), eta)


def halving(mst_keys: Sequence[int], epochs: int, eta: int, first: int) -> Brackets:
    """Successive halving of all configs."""
    return Brackets(((tuple(mst_keys), rungs(epochs, eta, first)),), eta)


def left_behind(
    trials: Trials, brackets: Iterable[tuple[Collection[int], Sequence[int]]]
) -> list[int]:
    """The configs that rest after a rung from which others of their bracket have gone on; of
    shorter rungs first.
    """
    found: list[tuple[int, int, int]] = []
    for keys, ends in brackets:
        own = {key: trials[key] for key in keys if key in trials}
        highest = max((trial.limit for trial in own.values()), default=0)
        for rung in ends:
            if rung < highest:
                found += [(rung, place, key) for place, key in enumerate(resting(own, rung))]
    return [key for _, _, key in sorted(found)]
