"""Several model selections in one run, one for each group of rows, each by a rule that knows no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cerebro_plpy.hopping.rules import Decision, Room, Rule, Trial, Trials
from cerebro_plpy.records import dataclass


@dataclass(frozen=True)
class Selections:
    """The rule of each selection by its group, None for that of all rows. Where there is room for few configs, those
    that have begun with the fewest go first, so that none has nothing when the time is over."""

    rules: Mapping[str | None, Rule]

    @property
    def takes_more(self) -> bool:
        """See `Rule`."""
        return all(rule.takes_more for rule in self.rules.values())

    @property
    def asked(self) -> Sequence[int]:
        """See `Rule`."""
        return tuple(sorted({epoch for rule in self.rules.values() for epoch in rule.asked}))

    def decide(self, trials: Trials, room: Room, latest: int | None) -> Sequence[Decision]:
        """See `Rule`: who has news is asked first, and then the others, as long as there is room."""
        now, found = dict(trials), list[Decision]()
        if latest is not None:
            group = now[latest].group
            found += _taken(now, self.rules[group].decide(of_group(now, group), _room(room, group, room.free), latest))
        more = True
        while more:
            more = False
            for group, rule in sorted(self.rules.items(), key=lambda each: _begun(now, each[0])):
                left = min(1, max(0, room.free - len(found)))
                made = _taken(now, rule.decide(of_group(now, group), _room(room, group, left), None))
                found += made
                more = more or bool(made)
        return found

    def ended(self, trials: Trials) -> bool:
        """See `Rule`: whether all selections of which there are trials have ended."""
        there = {trial.group for trial in trials.values()}
        return all(rule.ended(of_group(trials, group)) for group, rule in self.rules.items() if group in there)

    def losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`: those of one selection after those of another."""
        return [key for group, rule in self.rules.items() for key in rule.losers(of_group(trials, group))]


def of_group(trials: Trials, group: str | None) -> Mapping[int, Trial]:
    """The trials of one selection."""
    return {key: trials[key] for key in sorted(trials) if trials[key].group == group}


def _room(room: Room, group: str | None, free: int) -> Room:
    return room._replace(free=free, more=group in room.groups)


def _begun(trials: Trials, group: str | None) -> int:
    return sum(trial.limit > 0 for trial in of_group(trials, group).values())


def _taken(now: dict[int, Trial], decisions: Sequence[Decision]) -> Sequence[Decision]:
    """The decisions, which hold from now on."""
    for each in decisions:
        trial = now[each.mst_key]
        now[each.mst_key] = trial._replace(limit=each.limit, over=trial.over or each.action in ("hold", "stop"))
    return decisions
