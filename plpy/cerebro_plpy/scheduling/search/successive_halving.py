"""Successive halving, in one bracket or in several concurrent ones: rules over whole rungs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate

from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.search.promotion_rules import (
    BaseRule,
    Capacity,
    Decision,
    Decisions,
    Trials,
    compute_rungs,
    list_paused,
    rank_trials,
)


@dataclass(frozen=True)
class Brackets(BaseRule):
    """Successive halving in brackets side by side, as in Hyperband (Li et al., JMLR 2018, alg. 1).

    Once all configs of a bracket have reached the end of a rung, `1/eta` of those that began with
    the bracket are promoted, at least one. With a single bracket, this is successive halving.
    """

    brackets: Sequence[tuple[Collection[int], Sequence[int]]]  # configs, and ends of the rungs
    eta: int

    @property
    def decision_epochs(self) -> Sequence[int]:
        """Return all epochs at which rungs end."""
        return tuple(sorted({epoch for _, ends in self.brackets for epoch in ends}))

    def decide(self, trials: Trials, capacity: Capacity, latest: int | None) -> Decisions:
        """See `Rule`."""
        return [
            decision
            for keys, ends in self.brackets
            for decision in self._decide_bracket(trials, keys, ends)
        ]

    def list_losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`; list the configs that were left behind in a decided rung."""
        return list_left_behind(trials, self.brackets)

    def _decide_bracket(
        self, trials: Trials, keys: Collection[int], ends: Sequence[int]
    ) -> list[Decision]:
        bracket_trials = {key: trials[key] for key in keys if key in trials}
        new = [key for key, trial in bracket_trials.items() if trial.is_startable]
        if new:
            reason = f"one of {len(bracket_trials)} of its bracket"
            return [Decision(key, "start", ends[0], reason) for key in new]
        if any(trial.is_running for trial in bracket_trials.values()):
            return []
        for number, (rung, max_epoch) in enumerate(zip(ends, ends[1:]), 1):
            ranked = [
                key
                for key in rank_trials(bracket_trials, rung)
                if bracket_trials[key].is_paused_at(rung)
            ]
            if ranked and all(trial.max_epoch <= rung for trial in bracket_trials.values()):
                best = ranked[: max(1, len(keys) // self.eta**number)]
                reason = f"among the best {len(best)} of {len(ranked)} after epoch {rung}"
                return [Decision(key, "promote", max_epoch, reason) for key in best]
        return []


def make_hyperband(mst_keys: Sequence[int], epochs: int, eta: int) -> Brackets:
    """Return the brackets of Hyperband over configs, in the proportions of the algorithm.

    The largest bracket has the shortest first rung.

    >>> [(len(keys), ends) for keys, ends in make_hyperband(range(143), 81, 3).brackets]
    [(81, (1, 3, 9, 27, 81)), (34, (3, 9, 27, 81)), (15, (9, 27, 81)), (8, (27, 81)), (5, (81,))]
    >>> [(len(keys), ends) for keys, ends in make_hyperband(range(10), 9, 3).brackets]
    [(5, (1, 3, 9)), (3, (3, 9)), (2, (9,))]
    """
    all_rungs = compute_rungs(epochs, eta, 1)
    depth = len(all_rungs)
    sizes = [-(-depth * eta**s // (s + 1)) for s in range(depth - 1, -1, -1)]
    total = sum(sizes)
    bounds = [round(len(mst_keys) * size / total) for size in accumulate(sizes, initial=0)]
    brackets = []
    for number, (start, stop) in enumerate(zip(bounds, bounds[1:])):
        keys = tuple(mst_keys[start:stop])
        if keys:
            brackets.append((keys, all_rungs[number:]))
    return Brackets(tuple(brackets), eta)


def make_halving(mst_keys: Sequence[int], epochs: int, eta: int, first_rung: int) -> Brackets:
    """Return successive halving of all configs."""
    return Brackets(((tuple(mst_keys), compute_rungs(epochs, eta, first_rung)),), eta)


def list_left_behind(
    trials: Trials, brackets: Iterable[tuple[Collection[int], Sequence[int]]]
) -> list[int]:
    """List the configs paused at a rung from which others of their bracket were promoted.

    Those at shorter rungs come first.
    """
    left_behind: list[tuple[int, int, int]] = []
    for keys, ends in brackets:
        bracket_trials = {key: trials[key] for key in keys if key in trials}
        highest = max((trial.max_epoch for trial in bracket_trials.values()), default=0)
        for rung in ends:
            if rung < highest:
                left_behind += [
                    (rung, rank, key) for rank, key in enumerate(list_paused(bracket_trials, rung))
                ]
    return [key for _, _, key in sorted(left_behind)]
