"""What a run does when a trainer or a session is gone: what is made again, at whose cost, and by
whom.
"""

from __future__ import annotations

from typing import Union

from cerebro_plpy.errors import CerebroError, ConnectionFailure
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.records import replace
from cerebro_plpy.run.state.run_state import Roster
from cerebro_plpy.run.workers.tasks import Further, Keeping, Storing, Task, Visiting
from cerebro_plpy.run.workers.worker_pool import Assignments
from cerebro_plpy.scheduling.schedule.schedule import Visit

Charged = Union[Visiting, Further]


class Losses:
    """Those of one run."""

    def __init__(self, roster: Roster, assignments: Assignments) -> None:
        self._roster, self._assignments = roster, assignments

    def awaited(self, task: Task) -> bool:
        """Whether anything follows a task: not where its configuration failed meanwhile, or ended
        without the visit.
        """
        positions = self._roster.positions
        return (
            task.mst_key in positions.progress
            if isinstance(task, Keeping)
            else positions.running(task.tour)
        )

    def lose(self, worker: Worker, task: Task, error: CerebroError) -> tuple[Charged, bool]:
        """The trainer is gone: log what of its visits nobody may have logged, and let those that
        are not to blame be made again; the task that is, and whether it had begun from a state that
        is gone as well."""
        training, positions = self._roster.training, self._roster.positions
        charged, unstored = self._assignments.lose(worker, task)
        for key in {charged.mst_key, unstored.mst_key if unstored else charged.mst_key}:
            training[key].unstored = 0
        gone = unstored is not None and positions.take_back(charged.mst_key)
        # Only who does not hear of the session any more does not know what it has logged beyond the
        # first.
        known = None if isinstance(error, ConnectionFailure) else 1
        lost: list[tuple[Visit, int, int]] = []
        if isinstance(charged, Visiting) and (unstored or known is None):
            lost += training[charged.mst_key].lost(charged.tour[:known], charged.step, charged=True)
        if unstored:
            first = unstored.trained.training[0][0].visit_no
            lost += training[unstored.mst_key].lost(unstored.tour[:known], first, charged=False)
            if self.awaited(unstored):
                positions.abandon(unstored.tour)
        if lost:
            self._roster.log.log_lost_attempts(lost, error.message)
        if isinstance(task, Storing) and task.trained.best:
            kept = training[task.mst_key].best
            self._roster.log.log_best_epoch(task.mst_key, kept.epoch if kept else None)
        return charged, gone

    def again(self, worker: Worker, task: Charged) -> bool:
        """Let a task be tried again; False when it has been tried often enough."""
        training = self._roster.training[task.mst_key]
        attempts = training.tried(task.step) if isinstance(task, Visiting) else task.attempt
        if attempts >= self._roster.request.spec.max_attempts:
            return False
        if isinstance(task, Visiting):
            if self.awaited(task):
                self._roster.positions.abandon(task.tour)
        elif worker.number in self._assignments.numbers:
            self._assignments.follow(worker, replace(task, attempt=attempts + 1))
        else:
            self._assignments.postpone(replace(task, attempt=attempts + 1))
        return True
