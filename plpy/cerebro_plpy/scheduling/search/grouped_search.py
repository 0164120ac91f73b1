"""Several model selections in one run, one for each group of rows, each by a rule that knows no
others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.search.promotion_rules import Decision, Room, Rule, Trial, Trials


@dataclass(frozen=True)
class Selections:
    """The rule of each selection by its group, None for that of all rows. Where there is room for
    few configs, those that have begun with the fewest go first, so that none has nothing when the
    time is over."""

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
        """See `Rule`: who has news is asked first, and then the others, as long as there is
        room.
        """
        now, found = self._apart(trials), list[Decision]()
        if latest is not None:
            group = trials[latest].group
            found += _taken(
                now[group],
                self.rules[group].decide(now[group], _room(room, group, room.free), latest),
            )
        more = True
        while more:
            more = False
            for group, rule in sorted(self.rules.items(), key=lambda each: _begun(now[each[0]])):
                left = min(1, max(0, room.free - len(found)))
                made = _taken(now[group], rule.decide(now[group], _room(room, group, left), None))
                found += made
                more = more or bool(made)
        return found

    def ended(self, trials: Trials) -> bool:
        """See `Rule`: whether all selections of which there are trials have ended."""
        return all(
            self.rules[group].ended(own) for group, own in self._apart(trials).items() if own
        )

    def losers(self, trials: Trials) -> Sequence[int]:
        """See `Rule`: those of one selection after those of another."""
        return [
            key
            for group, own in self._apart(trials).items()
            for key in self.rules[group].losers(own)
        ]

    def _apart(self, trials: Trials) -> dict[str | None, dict[int, Trial]]:
        """The trials of each selection, by their keys."""
        found: dict[str | None, dict[int, Trial]] = {group: {} for group in self.rules}
        for key in sorted(trials):
            found[trials[key].group][key] = trials[key]
        return found


def of_group(trials: Trials, group: str | None) -> Mapping[int, Trial]:
    """The trials of one selection."""
    return {key: trials[key] for key in sorted(trials) if trials[key].group == group}


def _room(room: Room, group: str | None, free: int) -> Room:
    return room._replace(free=free, more=group in room.groups)


def _begun(own: Trials) -> int:
    return sum(trial.limit > 0 for trial in own.values())


def _taken(own: dict[int, Trial], decisions: Sequence[Decision]) -> Sequence[Decision]:
    """The decisions, which hold from now on."""
    for each in decisions:
        trial = own[each.mst_key]
        own[each.mst_key] = trial._replace(
            limit=each.limit, over=trial.over or each.action in ("hold", "stop")
        )
    return decisions
