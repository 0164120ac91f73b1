"""Task parallelism: where every worker has room for all rows, and may read them, configs stay where
they are.

The program of a config that stays is compiled once, instead of on each worker, and its state is
read only where its worker has trained another one meanwhile. The order in which a config visits its
segments is that of its policy, so its bits are those of hopping; but two configs may train on the
rows of one segment at once, each in its own worker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Plan, Tour, begun_with_epoch
from cerebro_plpy.scheduling.schedule.scheduling_policies import FOREMOST
from cerebro_plpy.scheduling.schedule.visit_batches import NOBODY, Policy, Reaches, tour_from

NOTHING: Mapping[int, Collection[object]] = {}


class Residence:
    """Which worker each config is at home with: the one that it was given to last.

    Without `programs` a worker trains one config to its end before it begins another, and configs
    never move. Where it is known what is compiled for each config, all advance side by side as
    their policy says: a worker goes on with an epoch that it has begun, then takes what is its own
    or has a program that is nobody else's, and where there is nothing of that, what is at home with
    others.
    """

    def __init__(
        self,
        programs: Mapping[int, object] | None = None,
        compiled: Mapping[int, Collection[object]] = NOTHING,
    ) -> None:
        """`compiled` are programs that workers have from earlier runs."""
        self._programs = programs
        self._homes: dict[int, int] = {}
        self._compiled: dict[object, set[int]] = {}  # the workers that have a program
        for worker, found in compiled.items():
            for program in found:
                self._compiled.setdefault(program, set()).add(worker)

    def sharing(self, workers: int) -> int:
        """How many of so many workers train with the same program."""
        programs = set(self._programs.values()) if self._programs else ()
        return max(1, workers // len(programs)) if programs else 1

    def choose(
        self,
        plan: Plan,
        configs: Mapping[int, ConfigProgress],
        idle_workers: Iterable[int],
        policy: Policy,
        reaches: Reaches,
        held: Mapping[int, int] = NOBODY,
    ) -> tuple[tuple[int, Tour], ...]:
        """The visits to start now, each tour with its worker, at most one for each; see
        `tours.choose`.
        """
        taken = {
            self._homes[key]
            for key, each in configs.items()
            if key in self._homes and not each.finished
        }
        ranked, pick, _ = policy.prefer(plan, configs)
        free = [progress for progress in ranked if progress.startable]
        chosen: list[tuple[int, Tour]] = []
        for worker in sorted(set(idle_workers)):
            reachable = [
                progress for progress in free if held.get(progress.mst_key, worker) == worker
            ]
            nearest = self._nearest(plan, worker, reachable, vacant=worker not in taken)
            if nearest is None:
                continue
            segment = pick(
                nearest, [segment for segment in plan.segments if segment in nearest.startable]
            )
            free.remove(nearest)
            self.settle(nearest.mst_key, worker)
            chosen.append(
                (worker, tour_from(plan, nearest, segment, plan.segments, pick, reaches(nearest)))
            )
        return tuple(chosen)

    def admit(self, mst_key: int, program: object) -> None:
        """A config joins, for which that is compiled."""
        if self._programs is not None:
            self._programs = {**self._programs, mst_key: program}

    def release(self, mst_key: int) -> None:
        """Let a config go on anywhere, as it may rest for long."""
        self._homes.pop(mst_key, None)

    def dismiss(self, worker: int) -> None:
        """Let the configs of a worker that is lost find another."""
        self._homes = {key: home for key, home in self._homes.items() if home != worker}
        for workers in self._compiled.values():
            workers.discard(worker)

    def home(self, mst_key: int) -> int | None:
        """The worker that a config is at home with, if there is one."""
        return self._homes.get(mst_key)

    def settle(self, mst_key: int, worker: int) -> None:
        """A config is given to a worker."""
        self._homes[mst_key] = worker
        if self._programs:
            self._compiled.setdefault(self._programs[mst_key], set()).add(worker)

    def _nearest(
        self, plan: Plan, worker: int, free: Iterable[ConfigProgress], *, vacant: bool
    ) -> ConfigProgress | None:
        """The first of the free configs that are nearest to a worker; it is `vacant` where it has
        none to finish.
        """
        if self._programs is None:
            own = (
                p for p in free if self._homes.get(p.mst_key, worker if vacant else None) == worker
            )
            return min(own, key=lambda progress: progress.mst_key not in self._homes, default=None)
        return min(free, key=lambda progress: self._distance(plan, worker, progress), default=None)

    def _distance(self, plan: Plan, worker: int, progress: ConfigProgress) -> int:
        assert self._programs is not None
        home = self._homes.get(progress.mst_key)
        if home == worker:
            begun = progress.kind == "evaluate" or begun_with_epoch(plan, progress)
            return 0 if begun else 1
        having = self._compiled.get(self._programs[progress.mst_key])
        return 1 if home is None and (not having or worker in having) else 2


def of_schedule(
    schedule: str, programs: Mapping[int, object], compiled: Mapping[int, Collection[object]]
) -> Residence:
    """How configs stay by a schedule of that name, where these programs are for them and workers
    have compiled some.
    """
    return Residence() if schedule == FOREMOST else Residence(programs, compiled)
