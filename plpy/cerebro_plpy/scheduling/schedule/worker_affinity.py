"""Task parallelism: configs stay at their workers, if every worker can hold and read all rows.

The program of a config that stays is compiled once, instead of on each worker. Its state is read
only if its worker has trained another config in between. A config still visits its segments in the
order of its policy, so its bits are those of hopping. However, two configs may train on the rows of
one segment at once, each in its own worker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from cerebro_plpy.scheduling.schedule.schedule import (
    ConfigProgress,
    Configs,
    Plan,
    VisitBatch,
    has_begun_epoch,
)
from cerebro_plpy.scheduling.schedule.scheduling_policies import FOREMOST, Programs
from cerebro_plpy.scheduling.schedule.visit_batches import (
    NOT_PINNED,
    Batches,
    BatchLimit,
    LimitOf,
    Policy,
    Preference,
    build_batch,
    build_whole_batch,
)

Compiled = Mapping[int, Collection[object]]  # programs, by worker
NOT_COMPILED: Compiled = {}


class WorkerAffinity:
    """The home of each config: the worker that trained it last.

    Without `programs`, a worker trains one config to its end before it begins another, and configs
    never move. With programs, all configs advance side by side as their policy decides. A worker
    first continues an epoch that it has begun. Then it takes a config of its own, or a new config
    whose program is compiled here or nowhere. Only then does it take a config from elsewhere.

    An urgent config goes before all of that, though it never moves without `programs` either.

    Args:
        programs: the program of each config, by mst_key.
        compiled: programs that workers have from earlier runs, by worker.
    """

    def __init__(
        self,
        programs: Programs | None = None,
        compiled: Compiled = NOT_COMPILED,
    ) -> None:
        self._programs = programs
        self._homes: dict[int, int] = {}
        self._compiled: dict[object, set[int]] = {}  # workers that have a program
        for worker, worker_programs in compiled.items():
            for program in worker_programs:
                self._compiled.setdefault(program, set()).add(worker)

    def workers_per_program(self, workers: int) -> int:
        """Return how many of the workers train with the same program."""
        if not self._programs:
            return 1
        return max(1, workers // len(set(self._programs.values())))

    def choose_batches(
        self,
        plan: Plan,
        configs: Configs,
        idle_workers: Iterable[int],
        policy: Policy,
        limit_of: LimitOf,
        pinned: Mapping[int, int] = NOT_PINNED,
    ) -> Batches:
        """Return the visits to start now, at most one batch for each worker.

        The arguments are those of `visit_batches.choose_batches`.
        """
        busy_homes = {
            self._homes[key]
            for key, progress in configs.items()
            if key in self._homes and not progress.finished
        }
        preference = policy.prefer(plan, configs)
        free = [progress for progress in preference.ranked if progress.startable_segments]
        batches: list[tuple[int, VisitBatch]] = []
        for worker in sorted(set(idle_workers)):
            reachable = [
                progress for progress in free if pinned.get(progress.mst_key, worker) == worker
            ]
            urgent = [
                progress
                for progress in reachable
                if progress.mst_key in preference.urgent
                and (
                    self._programs is not None
                    or self._homes.get(progress.mst_key, worker) == worker
                )
            ]
            nearest = next(iter(urgent), None) or self._find_nearest(
                plan, worker, reachable, vacant=worker not in busy_homes
            )
            if nearest is None:
                continue
            free.remove(nearest)
            self.assign(nearest.mst_key, worker)
            limit = limit_of(nearest)
            batches.append((worker, _build_batch(plan, nearest, preference, limit)))
        return tuple(batches)

    def add_config(self, mst_key: int, program: object) -> None:
        """Add a config that trains with a program."""
        if self._programs is not None:
            self._programs = {**self._programs, mst_key: program}

    def release(self, mst_key: int) -> None:
        """Let a config continue on any worker, as it may be paused for long."""
        self._homes.pop(mst_key, None)

    def remove_worker(self, worker: int) -> None:
        """Let the configs of a lost worker continue on any worker."""
        self._homes = {key: home for key, home in self._homes.items() if home != worker}
        for workers in self._compiled.values():
            workers.discard(worker)

    def home_of(self, mst_key: int) -> int | None:
        """Return the worker that trained a config last, if any."""
        return self._homes.get(mst_key)

    def assign(self, mst_key: int, worker: int) -> None:
        """Make a worker the home of a config."""
        self._homes[mst_key] = worker
        if self._programs:
            self._compiled.setdefault(self._programs[mst_key], set()).add(worker)

    def _find_nearest(
        self, plan: Plan, worker: int, free: Iterable[ConfigProgress], *, vacant: bool
    ) -> ConfigProgress | None:
        """Return the first of the free configs that are nearest to a worker.

        Args:
            vacant: the worker has no config of its own to finish.
        """
        if self._programs is None:
            default_home = worker if vacant else None
            local = (p for p in free if self._homes.get(p.mst_key, default_home) == worker)
            return min(
                local, key=lambda progress: progress.mst_key not in self._homes, default=None
            )
        return min(free, key=lambda progress: self._distance(plan, worker, progress), default=None)

    def _distance(self, plan: Plan, worker: int, progress: ConfigProgress) -> int:
        assert self._programs is not None
        home = self._homes.get(progress.mst_key)
        if home == worker:
            has_begun = progress.kind == "evaluate" or has_begun_epoch(plan, progress)
            return int(not has_begun)
        workers = self._compiled.get(self._programs[progress.mst_key])
        if home is None and (not workers or worker in workers):
            return 1
        return 2


def _build_batch(
    plan: Plan, progress: ConfigProgress, preference: Preference, limit: BatchLimit
) -> VisitBatch:
    """Return the next visits of a config at a worker that serves all segments."""
    if progress.mst_key in plan.whole_epoch_keys:
        return build_whole_batch(plan, progress, limit)
    startable = [segment for segment in plan.segments if segment in progress.startable_segments]
    segment = preference.pick(progress, startable)
    return build_batch(plan, progress, segment, plan.segments, preference.pick, limit)


def make_affinity(schedule: str, programs: Programs, compiled: Compiled) -> WorkerAffinity:
    """Return the affinity of configs to workers under a schedule.

    Args:
        programs: the program of each config, by mst_key.
        compiled: programs that workers have already, by worker.
    """
    return WorkerAffinity() if schedule == FOREMOST else WorkerAffinity(programs, compiled)
