"""The course of a search: which results a rule has heard of, in what order, and what it has
decided.

Where visits have a fixed order, results reach the rule in an order that no clock decides: by epochs
that would have passed if each took the same time and all that are under way went side by side, and
then by mst_key. A result waits for those before it. Otherwise they reach it as they come.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cerebro_plpy.scheduling.search.grouped_search import of_group
from cerebro_plpy.scheduling.search.promotion_rules import Decision, Room, Rule, Trial


class Heard(NamedTuple):
    """What was decided at once: after the config `cause` had come to its limit or to its end; None
    at the beginning.

    The first decision is about that config. So many others are `wanted` to join, which are to be
    drawn now, of a group where the run is over groups. An `act` is what somebody asked for, where
    no rule has decided.
    """

    cause: int | None
    decisions: tuple[Decision, ...]
    wanted: int = 0
    group: str | None = None
    act: str | None = None


def by_result(decisions: Iterable[tuple[int | None, str | None, Decision]]) -> tuple[Heard, ...]:
    """Decisions in their order, each with its cause and its act, as they were made at once."""
    found: list[tuple[int | None, str | None, list[Decision]]] = []
    for cause, act, decision in decisions:
        if cause is None or decision.mst_key == cause:
            found.append((cause, act, []))
        found[-1][2].append(decision)
    return tuple(Heard(cause, tuple(made), act=act) for cause, act, made in found)


class Outcome(NamedTuple):
    """What became of a config that was under way: its value at its limit, and why it goes no
    further, if so: it may have `failed`."""

    value: float | None
    ended: str | None = None
    failed: bool = False


class Groups(NamedTuple):
    """Of which groups configs are, where a run is over groups, and how many may be drawn of
    each.
    """

    of: Mapping[int, str] = {}
    draws: Mapping[str, int] = {}


NO_GROUPS = Groups()


class Course:
    """The trials of a search, of which so many (`width`) are to be under way where the rule leaves
    that open.

    So many more (`draws`) may be drawn, each when there is room for it; so they may be of `groups`.
    """

    def __init__(
        self,
        rule: Rule,
        mst_keys: Iterable[int],
        width: int,
        *,
        fixed: bool,
        draws: int = 0,
        groups: Groups = NO_GROUPS,
    ) -> None:
        self.rule = rule
        self.trials: dict[int, Trial] = {
            key: Trial(group=groups.of.get(key)) for key in sorted(mst_keys)
        }
        self._draws: dict[str | None, int] = {None: draws, **dict(sorted(groups.draws.items()))}
        self._width, self._fixed = width, fixed
        self._begun: dict[
            int, int
        ] = {}  # where nothing but epochs passed: when each would have begun with its first
        self._waiting: dict[int, Outcome] = {}  # what the rule has not heard of yet
        self._curves: dict[int, dict[int, float]] = defaultdict(
            dict
        )  # of which it hears when limits are come to
        self._last: dict[int, int] = {}  # the last epoch of configs whose epochs somebody has set
        self._moment, self._opened = 0, False
        self._wide = 0  # so many are to be under way now, beyond the usual width
        self._asked_again = (
            False  # whether others may take the place of one that somebody else has stopped
        )

    @property
    def under_way(self) -> bool:
        """Whether anything is still to come that the rule could hear of."""
        return any(trial.under_way for trial in self.trials.values())

    @property
    def draws(self) -> int:
        """How many may still be drawn."""
        return sum(self._draws.values())

    def draw_no_more(self, group: str | None) -> None:
        """There are no others of a group, or of all rows."""
        self._draws[group] = 0

    @property
    def limits(self) -> Mapping[int, int]:
        """The last epoch that each config may train for now."""
        return {key: trial.limit for key, trial in self.trials.items()}

    def recall(self, past: Iterable[Heard], values: Mapping[int, Mapping[int, float]]) -> None:
        """Take up what was decided before, in its order; `values` are those of every epoch, by
        mst_key.

        What the rule had not heard of when it was interrupted it hears next.
        """
        for key, curve in values.items():
            self._curves[key].update(curve)
        for heard in past:
            self._opened, cause = True, heard.cause
            if cause is not None:
                self._hear(cause, values.get(cause, {}).get(self.trials[cause].limit))
            for decision in heard.decisions:
                self._take(decision, heard.act)
        self._asked_again = self._opened
        for key in self.trials:
            self._await(key)

    def _await(self, mst_key: int) -> None:
        """The rule hears next of a value that is known already at the limit of a config."""
        trial, curve = self.trials[mst_key], self._curves[mst_key]
        if trial.under_way and trial.limit in curve:
            self._waiting[mst_key] = Outcome(curve[trial.limit])

    def heard(self, mst_key: int, epoch: int, value: float) -> None:
        """A config has a value after an epoch."""
        self._curves[mst_key][epoch] = value
        if epoch == self.trials[mst_key].limit:
            self._await(mst_key)

    def over(self, mst_key: int, why: str, *, failed: bool = False) -> None:
        """A config goes no further, whatever a rule says."""
        if self.trials[mst_key].under_way:
            before = self._waiting.get(mst_key, Outcome(None))
            self._waiting[mst_key] = before._replace(ended=why, failed=failed)
        else:
            self.trials[mst_key] = self.trials[mst_key]._replace(over=True, failed=failed)

    def enter(self, mst_key: int, group: str | None = None) -> None:
        """A config joins, about which the rule is asked like about the others."""
        self.trials[mst_key] = Trial(group=group)
        self._asked_again = True

    def settle(self, decision: Decision, act: str | None = None) -> None:
        """Somebody else has decided about a config, by an act or not."""
        self._waiting.pop(decision.mst_key, None)
        self._take(decision, act)
        self._await(decision.mst_key)
        self._asked_again = True

    def make_room(self, idle: int) -> None:
        """So many workers have nothing to do with those that are under way: others begin, unless
        the order is fixed.
        """
        if not self._fixed:
            self._wide = idle + sum(trial.under_way for trial in self.trials.values())
            self._asked_again = True

    def due(self) -> Iterator[Heard]:
        """What the rule decides now, result by result."""
        while True:
            if self._asked_again or not self._opened:
                self._asked_again, self._opened = False, True
                if (first := self._decided(None, None)).decisions:
                    yield first
            elif heard := self._wanted():
                self._draws[heard.group] -= heard.wanted
                yield heard
            elif (key := self._next()) is not None:
                value, ended, failed = self._waiting.pop(key)
                self._hear(key, value)
                if ended:
                    self.trials[key] = self.trials[key]._replace(over=True, failed=failed)
                yield self._decided(key, ended)
            else:
                self._wide = 0
                return

    @property
    def _free(self) -> int:
        return max(self._width, self._wide) - sum(trial.under_way for trial in self.trials.values())

    def _wanted(self) -> Heard | None:
        """How many configs there is room for, beside those that could begin as well; of several
        selections the one with the fewest has one more."""
        new = sum(not (trial.limit or trial.over) for trial in self.trials.values())
        most = min(1, self._free - new) if len(self._draws) > 1 else self._free - new
        if most < 1:
            return None
        own = {group: of_group(self.trials, group) for group, left in self._draws.items() if left}
        for group, trials in sorted(own.items(), key=lambda each: len(each[1])):
            if not self.rule.ended(trials):
                return Heard(None, (), min(self._draws[group], most), group)
        return None

    def _decided(self, cause: int | None, ended: str | None) -> Heard:
        groups = frozenset(group for group, left in self._draws.items() if left)
        room, over = (
            Room(self._free, bool(groups), groups),
            cause is not None and self.trials[cause].over,
        )
        found = list(self.rule.decide(self.trials, room, None if over else cause))
        if cause is not None:
            own = next((each for each in found if each.mst_key == cause), None) or self._end(
                cause, ended
            )
            found = [own, *(each for each in found if each is not own)]
        for decision in found:
            self._take(decision)
        return Heard(cause, tuple(found))

    def _end(self, mst_key: int, ended: str | None) -> Decision:
        limit = self.trials[mst_key].limit
        if ended:
            return Decision(mst_key, "stop", limit, ended)
        last = (
            self.trials[mst_key].over or self.trials[mst_key].before + limit == self.rule.asked[-1]
        )
        return Decision(
            mst_key,
            "rest",
            limit,
            "it was trained to the end" if last else "others go on before it",
        )

    def _take(self, decision: Decision, act: str | None = None) -> None:
        key = decision.mst_key
        if decision.action == "clone" and decision.of is not None:
            parent = self.trials[decision.of]
            self.trials[key] = Trial(before=parent.before + max(parent.values), group=parent.group)
        trial = self.trials[key]
        if decision.limit > trial.limit:
            self._begun[key] = self._moment - trial.limit
        over = decision.action in ("hold", "stop") or (trial.over and decision.action == "rest")
        self.trials[key] = trial._replace(limit=decision.limit, over=over)
        if act == "set_epochs":
            self._last[key] = decision.limit
            self._conclude(key)

    def _conclude(self, mst_key: int) -> None:
        """No rule lets a config go on for more epochs than somebody has set."""
        trial = self.trials[mst_key]
        if trial.limit in trial.values and trial.limit >= self._last.get(mst_key, math.inf):
            self.trials[mst_key] = trial._replace(over=True)

    def _hear(self, mst_key: int, value: float | None) -> None:
        trial, self._moment = self.trials[mst_key], self._when(mst_key)
        if value is not None:
            curve = {
                epoch: each for epoch, each in self._curves[mst_key].items() if epoch <= trial.limit
            }
            self.trials[mst_key] = trial._replace(
                values={**trial.values, trial.limit: value}, curve=curve
            )
            self._conclude(mst_key)

    def _next(self) -> int | None:
        """Whose result is next for the rule; None where that is still to come."""
        if not self._fixed:
            return next(iter(self._waiting), None)
        under_way = [key for key, trial in self.trials.items() if trial.under_way]
        first = min(under_way, key=lambda key: (self._when(key), key), default=None)
        return first if first in self._waiting else None

    def _when(self, mst_key: int) -> int:
        """When a config comes to its limit, in epochs."""
        return self._begun[mst_key] + self.trials[mst_key].limit
