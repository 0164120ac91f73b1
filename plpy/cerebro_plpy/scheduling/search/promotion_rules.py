"""Promotion rules: pure functions that decide which configurations of a search continue.

A config may train until the end of an epoch, its `max_epoch`. When its value there is known, a rule
decides what follows: for this config, for paused ones, and for those that have not begun. A paused
config keeps its state and may continue later. A rule depends on these values only and draws no
random numbers: the same results in the same order lead to the same decisions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import ClassVar, Literal, NamedTuple, Protocol

from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.schedule.schedule import Epochs

Action = Literal["start", "continue", "promote", "rest", "hold", "stop", "clone"]


class Trial(NamedTuple):
    """The state of a config that rules decide on."""

    max_epoch: int = 0  # last epoch that it may train; 0 before it begins
    values: Mapping[int, float] = {}  # by epoch, at each max_epoch so far; smaller ones are better
    finished: bool = False  # ended by something other than the rule, or failed
    failed: bool = False
    inherited_epochs: int = 0  # epochs that the ancestors of a clone had trained
    curve: Mapping[int, float] = {}  # values by epoch, including epochs before max_epoch
    group: str | None = None

    @property
    def is_startable(self) -> bool:
        return not (self.max_epoch or self.finished)

    @property
    def is_running(self) -> bool:
        """Return True if the value at `max_epoch` is still to come."""
        return not self.finished and self.max_epoch > 0 and self.max_epoch not in self.values

    def is_paused_at(self, epoch: int) -> bool:
        """Return True if the config is paused after an epoch and could continue."""
        return not self.finished and self.max_epoch == epoch and epoch in self.values


Trials = Mapping[int, Trial]
"""Trials by mst_key."""


class Decision(NamedTuple):
    """A decision on one config."""

    mst_key: int  # a clone has the next key
    action: Action
    max_epoch: int  # last epoch that the config may train from now on
    reason: str
    parent: int | None = None  # mst_key of the config whose state a clone starts from


Decisions = Sequence[Decision]


class Capacity(NamedTuple):
    """The configs that may begin or continue at one moment."""

    free_slots: int
    can_add: bool = False  # further configs could be sampled
    groups: frozenset[str | None] = frozenset()  # groups of which configs could be sampled


class Rule(Protocol):
    """A rule that decides when configs start, continue, pause or stop."""

    @property
    def accepts_new_configs(self) -> bool:
        """Return True if configs may be added to those that the rule was made for."""

    @property
    def decision_epochs(self) -> Sequence[int]:
        """Return the epochs after which the rule needs values, up to the last one of the run."""

    def decide(self, trials: Trials, capacity: Capacity, latest: int | None) -> Decisions:
        """Return the decisions after a new value.

        A config without a decision does not change; if that is `latest`, it pauses.

        Args:
            latest: the config that has a value at its `max_epoch`; None at the beginning, or after
                a failure.
        """

    def is_finished(self, trials: Trials) -> bool:
        """Return True if no further config begins."""

    def list_losers(self, trials: Trials) -> Sequence[int]:
        """List paused configs that are unlikely to continue, the most dispensable first."""


class BaseRule:
    """The defaults of rules: configs may begin at any time, but none are added or dispensable."""

    accepts_new_configs: ClassVar[bool] = False

    def is_finished(self, trials: Trials) -> bool:
        """See `Rule`."""
        return False

    def list_losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`; by default no paused config is unlikely to continue."""
        return ()


@dataclass(frozen=True)
class Asha(BaseRule):
    """Asynchronous successive halving by promotion (Li et al., MLSys 2020, algorithm 2).

    A free slot takes, from the highest rung down, a config that is among the best `1/eta` of those
    that have reached the rung, and was not promoted yet; otherwise, a config that has not begun.
    With fewer configs than it takes to fill the rungs, no config would reach the last epoch. When
    all others are done, the best of the highest rung therefore continues alone.
    """

    accepts_new_configs: ClassVar[bool] = True
    epochs: int
    eta: int = 3
    first_rung: int = 1

    @property
    def decision_epochs(self) -> Sequence[int]:
        """Return the epochs at which rungs end.

        >>> Asha(27).decision_epochs, Asha(10).decision_epochs
        ((1, 3, 9, 27), (1, 3, 10))
        >>> Asha(9, eta=4, first_rung=2).decision_epochs, Asha(1).decision_epochs
        ((2, 9), (1,))
        """
        return compute_rungs(self.epochs, self.eta, self.first_rung)

    def decide(self, trials: Trials, capacity: Capacity, latest: int | None) -> Decisions:
        """See `Rule`."""
        decisions = list[Decision]()
        current = dict(trials)
        while len(decisions) < capacity.free_slots:
            decision = self._fill_slot(current, capacity.can_add)
            if decision is None:
                break
            decisions.append(decision)
            trial = current[decision.mst_key]
            current[decision.mst_key] = trial._replace(max_epoch=decision.max_epoch)
        return decisions

    def list_losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`; list the configs at least two rungs below the highest one."""
        ends = self.decision_epochs
        rungs = [
            ends.index(trial.max_epoch) for trial in trials.values() if trial.max_epoch in ends
        ]
        highest = max(rungs, default=0)
        return [key for rung in ends[: max(0, highest - 1)] for key in list_paused(trials, rung)]

    def _fill_slot(self, trials: Trials, can_add: bool) -> Decision | None:
        """Promote or start a config; return None if all have to wait."""
        for rung, max_epoch in self._promotions():
            ranked = rank_trials(trials, rung)
            for place, key in enumerate(ranked[: len(ranked) // self.eta], 1):
                if trials[key].is_paused_at(rung):
                    reason = (
                        f"place {place} of {len(ranked)} after epoch {rung}, "
                        f"of which 1 in {self.eta} goes on"
                    )
                    return Decision(key, "promote", max_epoch, reason)
        startable = [key for key, trial in trials.items() if trial.is_startable]
        if startable:
            reason = "no configuration can be promoted"
            return Decision(min(startable), "start", self.decision_epochs[0], reason)
        if can_add or any(trial.is_running for trial in trials.values()):
            return None
        return self._promote_last(trials)

    def _promote_last(self, trials: Trials) -> Decision | None:
        if any(trial.max_epoch == self.epochs and not trial.failed for trial in trials.values()):
            return None  # a config reached the last epoch, or stopped early on the way to it
        for rung, max_epoch in self._promotions():
            for place, key in enumerate(rank_trials(trials, rung), 1):
                if trials[key].is_paused_at(rung):
                    reason = f"place {place} after epoch {rung}, and no other is left"
                    return Decision(key, "promote", max_epoch, reason)
        return None

    def _promotions(self) -> list[tuple[int, int]]:
        """Return each rung with the end of the next one, the highest rung first."""
        ends = self.decision_epochs
        return list(zip(ends, ends[1:]))[::-1]


@dataclass(frozen=True)
class Stepwise(BaseRule):
    """All configs continue from one evaluation to the next; only a target stops them."""

    accepts_new_configs: ClassVar[bool] = True
    decision_epochs: Sequence[int]

    def decide(self, trials: Trials, capacity: Capacity, latest: int | None) -> Decisions:
        """See `Rule`."""
        decisions = [
            Decision(key, "start", self.decision_epochs[0], "all begin")
            for key, trial in trials.items()
            if trial.is_startable
        ]
        if latest is None:
            return decisions
        following = [epoch for epoch in self.decision_epochs if epoch > trials[latest].max_epoch]
        if following:
            decisions.append(self.decide_config(trials, latest, following[0]))
        return decisions

    def decide_config(self, trials: Trials, mst_key: int, next_epoch: int) -> Decision:
        """Decide if a config at its `max_epoch` continues until `next_epoch`."""
        return Decision(mst_key, "continue", next_epoch, "nothing speaks against it")


@dataclass(frozen=True)
class Median(Stepwise):
    """The median rule (Golovin et al., KDD 2017, section 3.2.1).

    A config stops if its best value so far is worse than the median, over the other configs, of the
    mean of their values up to this epoch.
    """

    grace: int = 1  # epochs before the first stop
    min_others: int = 5  # number of other configs that must have reached the epoch

    def decide_config(self, trials: Trials, mst_key: int, next_epoch: int) -> Decision:
        """See `Stepwise`."""
        trial = trials[mst_key]
        epoch = trial.max_epoch
        means = [
            _mean([finite_or_worst(value) for at, value in other.values.items() if at <= epoch])
            for key, other in trials.items()
            if key != mst_key and epoch in other.values
        ]
        if epoch < self.grace or len(means) < self.min_others:
            reason = f"{len(means)} others have come to epoch {epoch}"
            return Decision(mst_key, "continue", next_epoch, reason)
        best = min(map(finite_or_worst, trial.values.values()))
        comparison = f"worse than the median of {len(means)} others up to epoch {epoch}"
        if best > median(means):
            return Decision(mst_key, "stop", epoch, f"its best value so far is {comparison}")
        return Decision(
            mst_key, "continue", next_epoch, f"its best value so far is not {comparison}"
        )


@dataclass(frozen=True)
class RuleWrapper:
    """A rule that decides like another one, with exceptions."""

    rule: Rule

    @property
    def accepts_new_configs(self) -> bool:
        """See `Rule`."""
        return self.rule.accepts_new_configs

    @property
    def decision_epochs(self) -> Sequence[int]:
        """See `Rule`."""
        return self.rule.decision_epochs

    def list_losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`."""
        return self.rule.list_losers(trials)


@dataclass(frozen=True)
class UntilTarget(RuleWrapper):
    """Another rule, until the value of a config reaches the target; then all configs stop."""

    target: float

    def decide(self, trials: Trials, capacity: Capacity, latest: int | None) -> Decisions:
        """See `Rule`."""
        winners = self._find_winners(trials)
        if not winners:
            return self.rule.decide(trials, capacity, latest)
        reason = f"the target was reached by mst_key={winners[0]}"
        return [
            Decision(key, "stop", trial.max_epoch, reason)
            for key, trial in trials.items()
            if trial.is_running or key == latest
        ]

    def is_finished(self, trials: Trials) -> bool:
        """See `Rule`."""
        return bool(self._find_winners(trials)) or self.rule.is_finished(trials)

    def _find_winners(self, trials: Trials) -> list[int]:
        return [
            key
            for key, trial in trials.items()
            if min(trial.values.values(), default=math.inf) <= self.target
        ]


@dataclass(frozen=True)
class EpochBudget(RuleWrapper):
    """Another rule, without the decisions that would exceed a total number of epochs.

    If a config ends early, or fails, all epochs that were decided for it count.
    """

    epochs: int  # of all configs together

    def decide(self, trials: Trials, capacity: Capacity, latest: int | None) -> Decisions:
        """See `Rule`."""
        remaining = self._count_remaining(trials)
        decisions = list[Decision]()
        for decision in self.rule.decide(trials, capacity, latest):
            trial = trials.get(decision.mst_key, Trial())
            epochs = decision.max_epoch - trial.max_epoch
            if epochs <= remaining:
                remaining -= epochs
                decisions.append(decision)
        return decisions

    def is_finished(self, trials: Trials) -> bool:
        """See `Rule`."""
        if self._count_remaining(trials) < self.decision_epochs[0]:
            return True
        return self.rule.is_finished(trials)

    def _count_remaining(self, trials: Trials) -> int:
        return self.epochs - sum(trial.max_epoch for trial in trials.values())


@dataclass(frozen=True)
class ReplayedEpochs(BaseRule):
    """The rule of a replay: each config trains as long as before, whatever its results."""

    max_epochs: Mapping[int, int]  # last epoch by mst_key; 0 if the config did not begin

    @property
    def decision_epochs(self) -> Sequence[int]:
        """Return the last epochs of configs."""
        return tuple(sorted({epoch for epoch in self.max_epochs.values() if epoch}))

    def decide(self, trials: Trials, capacity: Capacity, latest: int | None) -> Decisions:
        """See `Rule`."""
        return [
            Decision(key, "start", self.max_epochs[key], "as in the run that is repeated")
            for key, trial in trials.items()
            if self.max_epochs[key] and trial.is_startable
        ]

    def is_finished(self, trials: Trials) -> bool:
        """See `Rule`."""
        return True


def compute_rungs(epochs: int, eta: int, first_rung: int) -> Epochs:
    """Return the ends of rungs, each `eta` times the previous one; the last is the last epoch."""
    ends = [first_rung]
    while ends[-1] * eta <= epochs:
        ends.append(ends[-1] * eta)
    return (*ends[:-1], epochs)


def list_paused(trials: Trials, epoch: int) -> list[int]:
    """List the configs that are paused after an epoch, the worst first."""
    return [key for key in reversed(rank_trials(trials, epoch)) if trials[key].is_paused_at(epoch)]


def rank_trials(trials: Trials, epoch: int) -> list[int]:
    """Return the configs that have a value at an epoch, the best first."""
    keys = (key for key, trial in trials.items() if epoch in trial.values)
    return sorted(keys, key=lambda key: (finite_or_worst(trials[key].values[epoch]), key))


def finite_or_worst(value: float) -> float:
    """Return the value; infinity, the worst one, if it is not finite."""
    if not math.isfinite(value):
        return math.inf
    return value


def _mean(values: Sequence[float]) -> float:
    return sum(value / len(values) for value in values)  # the sum of the largest floats overflows
