"""Task parallelism: each config stays with a worker that serves all segments, and nothing hops.

Where every worker has room for all rows, and may read them, the program of a config that stays is compiled once,
instead of on each worker. The order in which a config visits its segments is that of its policy, so its bits are those
of hopping.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cerebro_plpy.hopping.schedule import ConfigProgress, Lengths, Plan, Policy, Tour, tour_from


class Residence:
    """Which worker each config stays with: the first that is idle when its turn comes, and has no other to train."""

    def __init__(self) -> None:
        self._homes: dict[int, int] = {}

    def choose(
        self,
        plan: Plan,
        configs: Mapping[int, ConfigProgress],
        idle_workers: Iterable[int],
        policy: Policy,
        lengths: Lengths,
    ) -> tuple[tuple[int, Tour], ...]:
        """The visits to start now, each tour with its worker, at most one for each; see `schedule.choose`."""
        idle = set(idle_workers)
        taken = {self._homes[key] for key, each in configs.items() if key in self._homes and not each.finished}
        vacant = sorted(idle - taken, reverse=True)
        ranked, pick, _ = policy.prefer(plan, configs)
        chosen: list[tuple[int, Tour]] = []
        for progress in ranked:
            key = progress.mst_key
            free = [segment for segment in plan.segments if segment in progress.startable]
            home = self._homes.get(key, vacant[-1] if vacant else None)
            segment = pick(progress, free) if free and home in idle else None
            if home is None or segment is None:
                continue
            if key not in self._homes:
                self._homes[key] = vacant.pop()
            idle.remove(home)
            chosen.append((home, tour_from(progress, segment, plan.segments, pick, lengths(progress))))
        return tuple(chosen)

    def dismiss(self, worker: int) -> None:
        """Let the configs of a worker that is lost find another."""
        self._homes = {key: home for key, home in self._homes.items() if home != worker}
