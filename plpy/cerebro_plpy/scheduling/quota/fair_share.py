"""Fair shares: how many places, each for one trainer, a run has when all runs together want more
than there are.

Each run computes the shares by itself from data that all runs can read, and gets the same result.

Places go one at a time to the role that has the fewest. Among roles with equally many, the one that
has used the least lately comes first, so roles take turns when there are fewer places than roles.
Within a role, the run that arrived first is served first. A run that needs more than the limits
allow anybody delays nobody.

Runs write the numbers of this computation, so its cost depends on the number of runs alone: places
that go round several roles in whole layers are computed, not counted out.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

PATIENCE_SECONDS = 6.0
"""A role with a place keeps it until it has used this much more than others: each change compiles a
program again.
"""


class Entry(NamedTuple):
    """A run that is at work or waits for places."""

    role: int  # the number of its role
    least: int  # with fewer places it cannot work
    most: int  # more places are of no use to it
    configs: int  # how many configurations it trains
    held: int = 0  # the places that it has
    steady: bool = False  # whether it keeps what it has to its end, and takes no more later


class Limit(NamedTuple):
    """A quota; None means no limit."""

    trainers: int | None = None  # how many trainers may work at a time
    configs: int | None = None  # how many configurations the runs with trainers may have together


class Role(NamedTuple):
    """A role with runs that are alive."""

    limit: Limit = Limit()
    used: float = 0.0  # seconds of places that it has used lately
    rests: bool = False  # whether none of its runs may continue


class Step(NamedTuple):
    """A number of places for one entry, and the configurations that begin with them."""

    entry: int
    places: int
    configs: int = 0


def shares(entries: Sequence[Entry], roles: Mapping[int, Role], server: Limit) -> list[int]:
    """Return the places of each entry, in the order of their arrival.

    >>> shares([Entry(0, 1, 4, 9), Entry(1, 1, 4, 9)], {0: Role(used=5.0), 1: Role()},
    ...     Limit(trainers=3))
    [1, 2]
    >>> shares([Entry(0, 1, 2, 9), Entry(0, 1, 2, 9)], {0: Role(Limit(trainers=3))}, Limit())
    [2, 1]
    """
    places = _Division(entries, roles, server).divide()
    held = [entry._replace(held=count) for entry, count in zip(entries, places)]
    return _Division(
        held, roles, server
    ).divide()  # nobody is preferred for places that are not kept


class _Part:
    """The places and configurations taken so far under one limit."""

    def __init__(self, limit: Limit) -> None:
        self._most_places = sys.maxsize if limit.trainers is None else limit.trainers
        self._most_configs = sys.maxsize if limit.configs is None else limit.configs
        self.places = self._configs = 0

    @property
    def free(self) -> int:
        """The places that are left."""
        return self._most_places - self.places

    def fits(self, step: Step) -> bool:
        """Return whether the limit allows a step."""
        enough = not step.configs or self._configs + step.configs <= self._most_configs
        return enough and step.places <= self.free

    def take(self, step: Step) -> None:
        """Count a step."""
        self.places += step.places
        self._configs += step.configs


class _Division:
    """One division of the places while it is computed."""

    def __init__(self, entries: Sequence[Entry], roles: Mapping[int, Role], server: Limit) -> None:
        self._entries = entries
        self._roles = roles
        self._server = server
        self._all = _Part(server)
        self._parts = {role: _Part(roles[role].limit) for role in roles}
        self._queues: dict[int, deque[int]] = {role: deque() for role in roles}
        self._held = dict.fromkeys(roles, 0)
        self._taken = [0] * len(entries)
        for index, entry in enumerate(entries):
            keeps = entry.steady and entry.held
            if keeps or self._is_possible(entry):
                self._queues[entry.role].append(index)
                self._held[entry.role] += entry.held
            if keeps:
                self._take(Step(index, entry.held, entry.configs))

    def divide(self) -> list[int]:
        """Return the places of each entry when no role takes any more."""
        begins = True  # False once an entry did not fit: later ones must not pass it
        while steps := [step for role in self._queues if (step := self._next(role, begins))]:
            step = min(steps, key=self._rank)
            if self._all.fits(step):
                self._take_layers(step, steps)
            elif step.configs:
                begins = False
            else:
                break  # not one more place is left
        return self._taken

    def _is_possible(self, entry: Entry) -> bool:
        """Return whether the entry could work if it were alone."""
        step = Step(0, entry.least, entry.configs)
        return all(
            _Part(limit).fits(step) for limit in (self._server, self._roles[entry.role].limit)
        )

    def _take(self, step: Step) -> None:
        self._taken[step.entry] += step.places
        self._all.take(step)
        self._parts[self._entries[step.entry].role].take(step)

    def _take_layers(self, first: Step, steps: Sequence[Step]) -> None:
        """Take the first step; if others at its level also add single places, as many whole rounds
        of them at once as nothing else comes between."""
        level = self._level(first)
        lowest = [step for step in steps if self._level(step) == level]
        if any(step.configs for step in lowest):
            return self._take(first)
        height = min(self._growth(step) for step in lowest)
        height = min(
            [height, *(self._level(step) - level for step in steps if self._level(step) > level)]
        )
        layers = min(height, self._all.free // len(lowest))
        if not layers:
            return self._take(first)
        for step in lowest:
            self._take(step._replace(places=layers))
        return None

    def _level(self, step: Step) -> int:
        return self._parts[self._entries[step.entry].role].places

    def _growth(self, step: Step) -> int:
        """Return how many single places the entry can take until it, or its role, has all that it
        may have.
        """
        entry = self._entries[step.entry]
        return min(entry.most - self._taken[step.entry], self._parts[entry.role].free)

    def _next(self, role: int, begins: bool) -> Step | None:
        """Return what a role takes next: the begin of an entry, or one more place for the entry
        that began last.
        """
        queue = self._queues[role]
        while queue and self._is_full(queue[0]):
            queue.popleft()
        if self._roles[role].rests or not queue:
            return None
        index = queue[0]
        entry = self._entries[index]
        if not (self._taken[index] or begins):
            return None
        step = Step(index, 1) if self._taken[index] else Step(index, entry.least, entry.configs)
        return step if self._parts[role].fits(step) else None

    def _is_full(self, index: int) -> bool:
        entry = self._entries[index]
        return self._taken[index] >= entry.most or bool(self._taken[index] and entry.steady)

    def _rank(self, step: Step) -> tuple[int, float, int]:
        role = self._entries[step.entry].role
        taken = self._parts[role].places
        kept = PATIENCE_SECONDS if self._held[role] > taken else 0.0
        return taken, self._roles[role].used - kept, step.entry
