"""Where the configurations of a run stand, also those that have gone on from a state which is still
to be stored.

A trainer that holds a state can train on from it at once. What it leaves is committed after that
state, or not at all: until then it is known where the configuration stood before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from cerebro_plpy.records import replace
from cerebro_plpy.scheduling.schedule import schedule
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Plan, VisitBatch
from cerebro_plpy.scheduling.schedule.worker_affinity import WorkerAffinity


class Positions:
    """Of all configurations that have not failed, by mst_key; with a `residence` they stay with
    workers.
    """

    def __init__(
        self,
        plan: Plan,
        progress: Mapping[int, ConfigProgress],
        residence: WorkerAffinity | None = None,
    ) -> None:
        self.plan, self.residence = plan, residence
        self.progress = dict(progress)
        self._before: dict[int, ConfigProgress] = {}  # of those that have gone on

    @property
    def committed(self) -> Mapping[int, ConfigProgress]:
        """Where they stand as far as all is stored."""
        return {**self.progress, **self._before}

    def running(self, tour: VisitBatch) -> bool:
        """Whether a configuration is still to make a tour that it has begun."""
        progress = self.progress.get(tour[0].mst_key)
        return progress is not None and tour[0].segment_id in progress.running_segments

    def holds(self, tour: VisitBatch) -> bool:
        """Whether a configuration that has made a tour, which is not stored, has not gone on
        yet.
        """
        return tour[0].mst_key not in self._before and self.running(tour)

    def gone_on(self, mst_key: int) -> bool:
        """Whether a configuration has gone on from a state that is still to be stored."""
        return mst_key in self._before

    def after(self, tour: VisitBatch) -> ConfigProgress:
        """Where a configuration will stand when a tour that runs is stored."""
        return schedule.complete(self.plan, self.progress[tour[0].mst_key], tour)

    def begin(self, tour: VisitBatch, unstored: VisitBatch | None) -> None:
        """A tour begins, where there is one that is `unstored` from what that has left."""
        key = tour[0].mst_key
        if unstored:
            self._before[key], self.progress[key] = self.progress[key], self.after(unstored)
        self.progress[key] = schedule.begin(self.progress[key], tour)

    def complete(self, tour: VisitBatch) -> None:
        """A tour was made, and is stored."""
        self.progress[tour[0].mst_key] = self.after(tour)

    def stored(self, mst_key: int) -> bool:
        """A tour is stored; whether its configuration has gone on before that."""
        return self._before.pop(mst_key, None) is not None

    def abandon(self, tour: VisitBatch) -> None:
        """A tour was not made: its visits wait again."""
        key = tour[0].mst_key
        self.progress[key] = schedule.abandon(self.progress[key], tour)

    def take_back(self, mst_key: int) -> bool:
        """What a configuration may have gone on from is lost, and what followed with it; whether it
        had gone on.
        """
        before = self._before.pop(mst_key, None)
        if before is None or mst_key not in self.progress:
            return False
        stopping = self.progress[mst_key].stopping
        self.progress[mst_key] = schedule.stop(self.plan, before) if stopping else before
        return True

    def limit(self, mst_key: int, epoch: int) -> None:
        """A configuration may train until the end of that epoch."""
        self._change(mst_key, lambda progress: replace(progress, max_epoch=epoch))

    def grow(self, epochs: int, evaluate_epochs: Iterable[int]) -> dict[int, int]:
        """Let the plan have more epochs, with evaluations after these; return the limits, by
        mst_key, of those that would go on by themselves, and are not to."""
        plan, limits = self.plan, dict[int, int]()
        for key, progress in list(self.progress.items()):
            if progress.max_epoch is None:
                self.limit(key, plan.epochs)
                if not (progress.stopping or progress.paused):
                    limits[key] = plan.epochs
        self.plan = replace(
            plan, epochs=epochs, evaluate_epochs=plan.evaluate_epochs.union(evaluate_epochs)
        )
        return limits

    def extend(self, mst_key: int, epoch: int) -> None:
        """A configuration may train until the end of that epoch, also where it had come to its
        end.
        """
        segments = frozenset(self.plan.segments)

        def extended(progress: ConfigProgress) -> ConfigProgress:
            ended = progress.finished and not progress.stopping and progress.epoch <= epoch
            return replace(
                progress,
                max_epoch=epoch,
                waiting_segments=segments if ended else progress.waiting_segments,
            )

        self._change(mst_key, extended)

    def hold(self, mst_key: int) -> None:
        """A configuration begins no visit to train, until it is revived."""
        self._change(mst_key, lambda progress: replace(progress, paused=True))

    def let_go(self, mst_key: int) -> None:
        """A configuration that was held may begin visits again."""
        self._change(mst_key, lambda progress: replace(progress, paused=False))

    def revive(self, mst_key: int, limit: int) -> None:
        """A configuration that was held or has stopped trains on, until the end of an epoch."""
        self._change(mst_key, lambda progress: schedule.revive(self.plan, progress, limit))

    def _change(self, mst_key: int, change: Callable[[ConfigProgress], ConfigProgress]) -> None:
        """Also where it stood before, which may come back."""
        for each in (self.progress, self._before):
            if mst_key in each:
                each[mst_key] = change(each[mst_key])

    def stop(self, mst_key: int) -> None:
        """A configuration trains no further."""
        self.progress[mst_key] = schedule.stop(self.plan, self.progress[mst_key])

    def end(self, mst_key: int) -> None:
        """A configuration has nothing left to do."""
        self.progress[mst_key] = schedule.end(self.progress[mst_key])

    def give_up(self, mst_key: int) -> None:
        """A configuration has failed."""
        del self.progress[mst_key]
        self._before.pop(mst_key, None)
