"""Fair shares: the slots of each run, if all runs together want more slots than there are.

A slot is for one trainer. Each run computes the shares by itself from data that all runs can read,
and gets the same result.

Slots are granted one at a time to the role that has the fewest. Of roles with equally many, the one
with the least recent use comes first, so that roles take turns if there are fewer slots than roles.
Within a role, the run that arrived first is served first. A run that needs more than any limit
allows does not delay other runs.

Users choose the numbers of this computation, so its cost must depend on the number of runs only.
Slots that are granted to several roles in turn are therefore computed in whole layers, not counted
one by one.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

PATIENCE_SECONDS = 6.0
"""A role keeps its slots until it has used this much more than others, because each change compiles
a program again.
"""


class Demand(NamedTuple):
    """The slots that a running or waiting run can use."""

    role: int  # number of its role
    min_slots: int  # the run cannot work with fewer
    max_slots: int  # the run cannot use more
    configs: int  # number of configurations that it trains
    current_slots: int = 0
    is_static: bool = False  # keeps its slots until it ends, and takes no further ones


class Quota(NamedTuple):
    """A quota; None means no limit."""

    trainers: int | None = None  # number of trainers that may work at a time
    configs: int | None = None  # number of configurations of all runs with trainers together


class Role(NamedTuple):
    """A role with active runs."""

    quota: Quota = Quota()
    used: float = 0.0  # seconds of slots that it has used recently
    is_paused: bool = False  # all of its runs are paused


class Grant(NamedTuple):
    """Further slots for one run."""

    demand: int  # position of the run's demand
    slots: int
    configs: int = 0  # number of configurations that begin with the slots


def divide_slots(demands: Sequence[Demand], roles: Mapping[int, Role], server: Quota) -> list[int]:
    """Return the slots of each run.

    Args:
        demands: in the order of arrival.
        server: quota of all roles together.

    >>> divide_slots([Demand(0, 1, 4, 9), Demand(1, 1, 4, 9)], {0: Role(used=5.0), 1: Role()},
    ...     Quota(trainers=3))
    [1, 2]
    >>> divide_slots([Demand(0, 1, 2, 9), Demand(0, 1, 2, 9)], {0: Role(Quota(trainers=3))},
    ...     Quota())
    [2, 1]
    """
    slots = _Division(demands, roles, server).divide()
    # Divide again, so that roles are not preferred for slots that they will not keep.
    settled = [demand._replace(current_slots=count) for demand, count in zip(demands, slots)]
    return _Division(settled, roles, server).divide()


class _Tally:
    """The slots and configurations granted so far under one quota."""

    def __init__(self, quota: Quota) -> None:
        self._max_slots = sys.maxsize if quota.trainers is None else quota.trainers
        self._max_configs = sys.maxsize if quota.configs is None else quota.configs
        self.slots = 0
        self._configs = 0

    @property
    def free_slots(self) -> int:
        return self._max_slots - self.slots

    def fits(self, grant: Grant) -> bool:
        """Return True if the quota allows a grant."""
        if grant.configs and self._configs + grant.configs > self._max_configs:
            return False
        return grant.slots <= self.free_slots

    def add(self, grant: Grant) -> None:
        """Count a grant."""
        self.slots += grant.slots
        self._configs += grant.configs


class _Division:
    """One division of the slots while it is computed."""

    def __init__(self, demands: Sequence[Demand], roles: Mapping[int, Role], server: Quota) -> None:
        self._demands = demands
        self._roles = roles
        self._server = server
        self._total = _Tally(server)
        self._tallies = {number: _Tally(role.quota) for number, role in roles.items()}
        self._queues: dict[int, deque[int]] = {role: deque() for role in roles}
        self._current_slots = dict.fromkeys(roles, 0)
        self._granted = [0] * len(demands)
        for index, demand in enumerate(demands):
            keeps_slots = demand.is_static and demand.current_slots
            if keeps_slots or self._is_possible(demand):
                self._queues[demand.role].append(index)
                self._current_slots[demand.role] += demand.current_slots
            if keeps_slots:
                self._grant(Grant(index, demand.current_slots, demand.configs))

    def divide(self) -> list[int]:
        """Return the slots of each run when no role takes further ones."""
        may_begin = True  # False once a run did not fit: later ones must not overtake it
        while grants := self._next_grants(may_begin):
            grant = min(grants, key=self._rank)
            if self._total.fits(grant):
                self._grant_layers(grant, grants)
            elif grant.configs:
                may_begin = False
            else:
                break  # all slots are granted
        return self._granted

    def _is_possible(self, demand: Demand) -> bool:
        """Return True if the run could work without other runs."""
        grant = Grant(0, demand.min_slots, demand.configs)
        quotas = (self._server, self._roles[demand.role].quota)
        return all(_Tally(quota).fits(grant) for quota in quotas)

    def _grant(self, grant: Grant) -> None:
        self._granted[grant.demand] += grant.slots
        self._total.add(grant)
        self._tallies[self._demands[grant.demand].role].add(grant)

    def _grant_layers(self, first: Grant, grants: Sequence[Grant]) -> None:
        """Make the first grant, or as many layers of single slots as possible at once.

        A layer is one slot for each role at the lowest level. It must not change the order of
        grants.
        """
        level = self._level(first)
        lowest = [grant for grant in grants if self._level(grant) == level]
        layers = 0
        if not any(grant.configs for grant in lowest):
            limits = [self._count_growth(grant) for grant in lowest]
            limits += [self._level(grant) - level for grant in grants if self._level(grant) > level]
            layers = min(*limits, self._total.free_slots // len(lowest))
        if not layers:
            self._grant(first)
            return
        for grant in lowest:
            self._grant(grant._replace(slots=layers))

    def _level(self, grant: Grant) -> int:
        return self._tallies[self._demands[grant.demand].role].slots

    def _count_growth(self, grant: Grant) -> int:
        """Return how many single slots the run can take until it, or its role, is full."""
        demand = self._demands[grant.demand]
        ungranted = demand.max_slots - self._granted[grant.demand]
        return min(ungranted, self._tallies[demand.role].free_slots)

    def _next_grants(self, may_begin: bool) -> list[Grant]:
        grants = (self._next_grant(role, may_begin) for role in self._queues)
        return [grant for grant in grants if grant is not None]

    def _next_grant(self, role: int, may_begin: bool) -> Grant | None:
        """Return the next grant of a role: the first slots of a run, or one more for the last."""
        queue = self._queues[role]
        while queue and self._is_full(queue[0]):
            queue.popleft()
        if self._roles[role].is_paused or not queue:
            return None
        index = queue[0]
        if self._granted[index]:
            grant = Grant(index, 1)
        elif may_begin:
            demand = self._demands[index]
            grant = Grant(index, demand.min_slots, demand.configs)
        else:
            return None
        if not self._tallies[role].fits(grant):
            return None
        return grant

    def _is_full(self, index: int) -> bool:
        demand = self._demands[index]
        granted = self._granted[index]
        return granted >= demand.max_slots or bool(granted and demand.is_static)

    def _rank(self, grant: Grant) -> tuple[int, float, int]:
        role = self._demands[grant.demand].role
        slots = self._tallies[role].slots
        patience = PATIENCE_SECONDS if self._current_slots[role] > slots else 0.0
        return slots, self._roles[role].used - patience, grant.demand
