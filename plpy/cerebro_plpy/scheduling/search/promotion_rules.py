"""Which configurations of a search go on, and which rest: pure rules, asked whenever a result
comes.

A config may train until the end of an epoch, its limit. When its value there is known, a rule says
what follows: for this config, for those that rest, and for those that have not begun. Who rests
keeps its state and may go on later. A rule knows nothing but these values, and draws nothing: the
same results in the same order come to the same decisions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import ClassVar, Literal, NamedTuple, Protocol

from cerebro_plpy.records import dataclass

Action = Literal["start", "continue", "promote", "rest", "hold", "stop", "clone"]


class Trial(NamedTuple):
    """What a rule knows of a config: the last epoch that it may train, 0 before it begins, and its
    values by epoch.

    Smaller values are better; one that is not finite is the worst. A config that is `over` was
    ended by something else, or has `failed`. A clone goes on from those it descends from, which had
    made so many epochs `before`. Its `values` are those at limits that it came to; its `curve` has
    the epochs on the way, too. It may be of a `group`.
    """

    limit: int = 0
    values: Mapping[int, float] = {}
    over: bool = False
    failed: bool = False
    before: int = 0
    curve: Mapping[int, float] = {}
    group: str | None = None

    @property
    def under_way(self) -> bool:
        """Whether its value at its limit is still to come."""
        return not self.over and self.limit > 0 and self.limit not in self.values

    def goes_on_from(self, epoch: int) -> bool:
        """Whether it rests after an epoch and could be trained on."""
        return not self.over and self.limit == epoch and epoch in self.values


Trials = Mapping[int, Trial]


class Decision(NamedTuple):
    """What becomes of a config, until which epoch it may train from now on, and why; a clone begins
    from the state `of` another one, and has the next key."""

    mst_key: int
    action: Action
    limit: int
    why: str
    of: int | None = None


class Room(NamedTuple):
    """So many configs are `free` to begin or to go on; whether `more` could be drawn to begin, of
    which `groups`.
    """

    free: int
    more: bool = False
    groups: frozenset[str | None] = frozenset()


class Rule(Protocol):
    """What decides. `asked` are the epochs after which it wants values, the last one of the run
    among them.

    It `takes_more` configs than it was made for, or not.
    """

    @property
    def takes_more(self) -> bool: ...

    @property
    def asked(self) -> Sequence[int]: ...

    def decide(self, trials: Trials, room: Room, latest: int | None) -> Sequence[Decision]:
        """What follows after the value of the config `latest` at its limit; None at the beginning,
        or after a failure.

        What is not said of a config leaves it as it is: where `latest` is not spoken of, it rests.
        """
        ...

    def ended(self, trials: Trials) -> bool:
        """Whether nothing begins any more."""
        ...

    def losers(self, trials: Trials) -> Sequence[int]:
        """The configs that rest and will not go on, or hardly; the one that would be missed least
        comes first.
        """
        ...


@dataclass(frozen=True)
class Asha:
    """Asynchronous successive halving by promotion (Li et al., MLSys 2020, algorithm 2).

    Whoever is free takes, from the highest rung down, a config that is among the best `1/eta` of
    those that have come so far and was not promoted yet; where there is none, a config that has not
    begun. With fewer configs than it takes to fill the rungs nobody would reach the last epoch:
    when nothing else is left, the best of the highest rung goes on alone.
    """

    takes_more: ClassVar[bool] = True
    epochs: int
    eta: int = 3
    first: int = 1

    @property
    def asked(self) -> Sequence[int]:
        """The epochs at which rungs end.

        >>> Asha(27).asked, Asha(10).asked, Asha(9, eta=4, first=2).asked, Asha(1).asked
        ((1, 3, 9, 27), (1, 3, 10), (2, 9), (1,))
        """
        return rungs(self.epochs, self.eta, self.first)

    def decide(self, trials: Trials, room: Room, latest: int | None) -> Sequence[Decision]:
        """See `Rule`."""
        found, now = list[Decision](), dict(trials)
        while room.free > len(found) and (job := self._job(now, room.more)):
            found.append(job)
            now[job.mst_key] = now[job.mst_key]._replace(limit=job.limit)
        return found

    def ended(self, trials: Trials) -> bool:
        """See `Rule`."""
        return False

    def losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`: those two rungs below the highest one that anybody trains for."""
        ends = self.asked
        highest = max(
            (ends.index(trial.limit) for trial in trials.values() if trial.limit in ends), default=0
        )
        return [key for rung in ends[: max(0, highest - 1)] for key in resting(trials, rung)]

    def _job(self, trials: Trials, more: bool) -> Decision | None:
        steps = list(zip(self.asked, self.asked[1:]))
        for rung, limit in reversed(steps):
            ranked = ranking(trials, rung)
            for place, key in enumerate(ranked[: len(ranked) // self.eta], 1):
                if trials[key].goes_on_from(rung):
                    why = (
                        f"place {place} of {len(ranked)} after epoch {rung}, of which 1 in "
                        f"{self.eta} goes on"
                    )
                    return Decision(key, "promote", limit, why)
        new = min(
            (key for key, trial in trials.items() if not (trial.limit or trial.over)), default=None
        )
        if new is not None:
            return Decision(new, "start", self.asked[0], "no configuration can be promoted")
        return (
            None
            if more or any(trial.under_way for trial in trials.values())
            else self._last(trials, steps)
        )

    def _last(self, trials: Trials, steps: Iterable[tuple[int, int]]) -> Decision | None:
        if any(trial.limit == self.epochs and not trial.failed for trial in trials.values()):
            return None  # also where it got no better before, and ended
        for rung, limit in reversed(list(steps)):
            for place, key in enumerate(ranking(trials, rung), 1):
                if trials[key].goes_on_from(rung):
                    return Decision(
                        key,
                        "promote",
                        limit,
                        f"place {place} after epoch {rung}, and no other is left",
                    )
        return None


@dataclass(frozen=True)
class Stepwise:
    """All configs go on from one evaluation to the next; nobody is stopped but by a target."""

    takes_more: ClassVar[bool] = True
    asked: Sequence[int]

    def decide(self, trials: Trials, room: Room, latest: int | None) -> Sequence[Decision]:
        """See `Rule`."""
        new = [key for key, trial in trials.items() if not (trial.limit or trial.over)]
        return [
            *(Decision(key, "start", self.asked[0], "all begin") for key in new),
            *self._further(trials, latest),
        ]

    def ended(self, trials: Trials) -> bool:
        """See `Rule`."""
        return False

    def losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`: nobody rests."""
        return ()

    def _further(self, trials: Trials, latest: int | None) -> list[Decision]:
        if latest is None:
            return []
        following = next((epoch for epoch in self.asked if epoch > trials[latest].limit), None)
        return [] if following is None else [self.verdict(trials, latest, following)]

    def verdict(self, trials: Trials, mst_key: int, following: int) -> Decision:
        """Whether a config that has come to its limit goes on to the epoch that follows."""
        return Decision(mst_key, "continue", following, "nothing speaks against it")


@dataclass(frozen=True)
class Median(Stepwise):
    """The median rule (Golovin et al., KDD 2017, section 3.2.1).

    A config stops where its best value so far is worse than the median of the means of the values
    that each other config had up to this epoch. It needs so many others (`least`) that have come as
    far, and `grace` epochs.
    """

    grace: int = 1
    least: int = 5

    def verdict(self, trials: Trials, mst_key: int, following: int) -> Decision:
        """See `Stepwise`."""
        own, epoch = trials[mst_key], trials[mst_key].limit
        means = [
            _mean([worst(value) for at, value in trial.values.items() if at <= epoch])
            for key, trial in trials.items()
            if key != mst_key and epoch in trial.values
        ]
        if epoch < self.grace or len(means) < self.least:
            return Decision(
                mst_key, "continue", following, f"{len(means)} others have come to epoch {epoch}"
            )
        middle, best = median(means), min(map(worst, own.values.values()))
        if best > middle:
            why = (
                f"its best value so far is worse than the median of {len(means)} others up to "
                f"epoch {epoch}"
            )
            return Decision(mst_key, "stop", epoch, why)
        why = (
            f"its best value so far is not worse than the median of {len(means)} others up to "
            f"epoch {epoch}"
        )
        return Decision(mst_key, "continue", following, why)


@dataclass(frozen=True)
class Bounded:
    """Another rule, which decides unless a bound says otherwise."""

    rule: Rule

    @property
    def takes_more(self) -> bool:
        """See `Rule`."""
        return self.rule.takes_more

    @property
    def asked(self) -> Sequence[int]:
        """See `Rule`."""
        return self.rule.asked

    def decide(self, trials: Trials, room: Room, latest: int | None) -> Sequence[Decision]:
        """See `Rule`."""
        return self.rule.decide(trials, room, latest)

    def ended(self, trials: Trials) -> bool:
        """See `Rule`."""
        return self.rule.ended(trials)

    def losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`."""
        return self.rule.losers(trials)


@dataclass(frozen=True)
class UntilReached(Bounded):
    """Another rule, until a config has a value that is as good as the target: then nothing goes
    on.
    """

    target: float

    def decide(self, trials: Trials, room: Room, latest: int | None) -> Sequence[Decision]:
        """See `Rule`."""
        reached = self._reached(trials)
        if not reached:
            return self.rule.decide(trials, room, latest)
        why = f"the target was reached by mst_key={reached[0]}"
        going = [key for key, trial in trials.items() if trial.under_way or key == latest]
        return [Decision(key, "stop", trials[key].limit, why) for key in going]

    def ended(self, trials: Trials) -> bool:
        """See `Rule`."""
        return bool(self._reached(trials)) or self.rule.ended(trials)

    def _reached(self, trials: Trials) -> list[int]:
        return [
            key
            for key, trial in trials.items()
            if min(trial.values.values(), default=math.inf) <= self.target
        ]


@dataclass(frozen=True)
class Within(Bounded):
    """Another rule, as long as no more than so many epochs are to be trained in all; what would be
    more does not begin.

    Those of a config that ends early, or fails, count as far as they were decided.
    """

    epochs: int

    def decide(self, trials: Trials, room: Room, latest: int | None) -> Sequence[Decision]:
        """See `Rule`."""
        left, found = self._left(trials), list[Decision]()
        for each in self.rule.decide(trials, room, latest):
            more = each.limit - trials.get(each.mst_key, Trial()).limit
            if more <= left:
                left -= more
                found.append(each)
        return found

    def ended(self, trials: Trials) -> bool:
        """See `Rule`."""
        return self._left(trials) < self.asked[0] or self.rule.ended(trials)

    def _left(self, trials: Trials) -> int:
        return self.epochs - sum(trial.limit for trial in trials.values())


@dataclass(frozen=True)
class Settled:
    """Each config goes as far as it went before: the rule of a replay, where no result decides
    anything.
    """

    takes_more: ClassVar[bool] = False
    limits: Mapping[int, int]

    @property
    def asked(self) -> Sequence[int]:
        """Where configs end."""
        return tuple(sorted({epoch for epoch in self.limits.values() if epoch}))

    def decide(self, trials: Trials, room: Room, latest: int | None) -> Sequence[Decision]:
        """See `Rule`."""
        new = [
            key
            for key, trial in trials.items()
            if self.limits[key] and not (trial.limit or trial.over)
        ]
        return [
            Decision(key, "start", self.limits[key], "as in the run that is repeated")
            for key in new
        ]

    def ended(self, trials: Trials) -> bool:
        """See `Rule`."""
        return True

    def losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`: nobody knows who may be steered."""
        return ()


def rungs(epochs: int, eta: int, first: int) -> tuple[int, ...]:
    """Ends of rungs, each `eta` times as long as the one before it; the last one is the last
    epoch.
    """
    ends = [first]
    while ends[-1] * eta <= epochs:
        ends.append(ends[-1] * eta)
    return (*ends[:-1], epochs)


def resting(trials: Trials, epoch: int) -> list[int]:
    """The configs that rest after an epoch, the worst first."""
    return [key for key in reversed(ranking(trials, epoch)) if trials[key].goes_on_from(epoch)]


def ranking(trials: Trials, epoch: int) -> list[int]:
    """The configs that have a value of an epoch, the best first."""
    having = (key for key, trial in trials.items() if epoch in trial.values)
    return sorted(having, key=lambda key: (worst(trials[key].values[epoch]), key))


def worst(value: float) -> float:
    return value if math.isfinite(value) else math.inf


def _mean(values: Sequence[float]) -> float:
    return sum(value / len(values) for value in values)  # the sum of the largest floats overflows
