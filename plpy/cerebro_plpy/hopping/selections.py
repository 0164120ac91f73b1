"""Several model selections in one run, one for each group of rows, each by a rule that knows no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from cerebro_plpy.hopping.rules import Decision, Room, Rule, Trial, Trials
from cerebro_plpy.records import dataclass


@dataclass(frozen=True)
class Selections:
    """The configs of each selection, and its rule. Where there is room for few configs, those that have begun with the
    fewest go first, so that none has nothing when the time is over."""

    takes_more: ClassVar[bool] = False
    rules: Sequence[tuple[frozenset[int], Rule]]

    @property
    def asked(self) -> Sequence[int]:
        """See `Rule`."""
        return tuple(sorted({epoch for _, rule in self.rules for epoch in rule.asked}))

    def decide(self, trials: Trials, room: Room, latest: int | None) -> Sequence[Decision]:
        """See `Rule`: who has news is asked first, and then the others, as long as there is room."""
        now, found = dict(trials), list[Decision]()
        for keys, rule in self.rules:
            if latest in keys:
                found += _taken(now, rule.decide(_own(now, keys), room, latest))
        more = True
        while more:
            more = False
            for keys, rule in sorted(self.rules, key=lambda each: _begun(now, each[0])):
                left = min(1, max(0, room.free - len(found)))
                made = _taken(now, rule.decide(_own(now, keys), room._replace(free=left), None))
                found += made
                more = more or bool(made)
        return found

    def ended(self, trials: Trials) -> bool:
        """See `Rule`."""
        return all(rule.ended(_own(trials, keys)) for keys, rule in self.rules)

    def losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`: those of one selection after those of another."""
        return [key for keys, rule in self.rules for key in rule.losers(_own(trials, keys))]


def _own(trials: Trials, keys: frozenset[int]) -> Mapping[int, Trial]:
    return {key: trials[key] for key in sorted(keys) if key in trials}


def _begun(trials: Trials, keys: frozenset[int]) -> int:
    return sum(trial.limit > 0 for trial in _own(trials, keys).values())


def _taken(now: dict[int, Trial], decisions: Sequence[Decision]) -> Sequence[Decision]:
    """The decisions, which hold from now on."""
    for each in decisions:
        trial = now[each.mst_key]
        now[each.mst_key] = trial._replace(limit=each.limit, over=trial.over or each.action in ("hold", "stop"))
    return decisions
