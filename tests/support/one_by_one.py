"""The division of places as it is defined, one place after another: an oracle for
`hopping.shares`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.scheduling.quota.fair_share import PATIENCE_SECONDS, Demand, Quota, Role


class Step(NamedTuple):
    """What a role would take next: so many places for an entry, by its index, and so many
    configurations with it.
    """

    entry: int
    places: int
    configs: int


def shares_one_by_one(
    entries: Sequence[Demand], roles: Mapping[int, Role], server: Quota
) -> list[int]:
    """Return the places of each entry, in the order of their arrival."""
    taken = _Division(entries, roles, server).made()
    held = [
        entry._replace(current_slots=places) for entry, places in zip(entries, taken, strict=True)
    ]
    return _Division(held, roles, server).made()  # nobody is preferred for places that are not kept


class _Part:
    """What a role has by now, or all have together, of what it may have."""

    def __init__(self, limit: Quota) -> None:
        self._limit = limit
        self.places = self._configs = 0

    def fits(self, step: Step) -> bool:
        """Whether the limit allows a step."""
        most_places, most_configs = (sys.maxsize if most is None else most for most in self._limit)
        fits = self._configs + step.configs <= most_configs or not step.configs
        return fits and self.places + step.places <= most_places

    def take(self, step: Step) -> None:
        """A step was made."""
        self.places += step.places
        self._configs += step.configs


class _Division:
    """One division of the places, while it is made."""

    def __init__(self, entries: Sequence[Demand], roles: Mapping[int, Role], server: Quota) -> None:
        self._entries, self._roles, self._server = entries, roles, server
        self._all, self._parts = _Part(server), {role: _Part(roles[role].quota) for role in roles}
        self._queues: dict[int, list[int]] = {role: [] for role in roles}
        self._held = dict.fromkeys(roles, 0)
        self._taken = [0] * len(entries)
        for index, entry in enumerate(entries):
            keeps = entry.is_static and entry.current_slots
            if keeps or self._possible(entry):
                self._queues[entry.role].append(index)
                self._held[entry.role] += entry.current_slots
            if keeps:
                self._take(Step(index, entry.current_slots, entry.configs))

    def made(self) -> list[int]:
        """The places of each, when nobody takes any more."""
        # whether one that has nothing may begin: it must not be passed by others that fit sooner
        begins = True
        while steps := [step for role in self._queues if (step := self._next(role, begins))]:
            step = min(steps, key=self._rank)
            if self._all.fits(step):
                self._take(step)
            elif step.configs:
                begins = False
            else:
                break  # not one more place is left
        return self._taken

    def _possible(self, entry: Demand) -> bool:
        """Whether it could work if it were alone."""
        step = Step(0, entry.min_slots, entry.configs)
        return all(
            _Part(limit).fits(step) for limit in (self._server, self._roles[entry.role].quota)
        )

    def _take(self, step: Step) -> None:
        self._taken[step.entry] += step.places
        for part in (self._all, self._parts[self._entries[step.entry].role]):
            part.take(step)

    def _next(self, role: int, begins: bool) -> Step | None:
        if self._roles[role].is_paused:
            return None
        for index in self._queues[role]:
            entry, taken = self._entries[index], self._taken[index]
            if taken >= entry.max_slots or (taken and entry.is_static):
                continue
            if not (taken or begins):
                return None
            step = Step(index, 1, 0) if taken else Step(index, entry.min_slots, entry.configs)
            return step if self._parts[role].fits(step) else None
        return None

    def _rank(self, step: Step) -> tuple[int, float, int]:
        role = self._entries[step.entry].role
        taken = self._parts[role].places
        kept = PATIENCE_SECONDS if self._held[role] > taken else 0.0
        return taken, self._roles[role].used - kept, step.entry
