"""The workers of a run, the task of each, and the states that trainers have still to store."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.database.sessions.async_dispatcher import Dispatcher, drive
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.platform.job import Dataset
from cerebro_plpy.platform.visit_protocol import (
    BatchResult,
    EvaluateVisit,
    Worker,
)
from cerebro_plpy.platform.visits import Visits
from cerebro_plpy.records import replace
from cerebro_plpy.run.workers.events import WorkerEvent, make_event
from cerebro_plpy.run.workers.run_context import RunContext
from cerebro_plpy.run.workers.tasks import (
    BestStateTask,
    ConfigTask,
    FollowUp,
    FusedTask,
    MetricsTask,
    StoreTask,
    Task,
    VisitTask,
)
from cerebro_plpy.scheduling.schedule.schedule import VisitBatch

PAUSE_SECONDS = 0.1


class LostTasks(NamedTuple):
    """The tasks of a trainer that is gone."""

    charged: VisitTask | FollowUp  # the one that may be to blame
    unstored: StoreTask | None  # whose state is lost as well


class WorkerPool:
    """The workers of a run by number and framework, and their tasks.

    Args:
        stores_at_once: store states before the next visits begin. Needed if the next visits may be
            cancelled or may be the last, or if visits do not start from the state before.
    """

    def __init__(
        self,
        visits: Visits,
        workers: Sequence[Worker],
        context: RunContext,
        *,
        stores_at_once: bool,
    ) -> None:
        self._visits = visits
        self._stores_at_once = stores_at_once
        self._workers: dict[tuple[int, str], Worker] = {}
        self.add_workers(workers)
        self.numbers = {worker.number for worker in workers}  # that may get tasks
        self._dispatcher: Dispatcher[Any] = Dispatcher(context.check, context.side_work.do_piece)
        self._tasks: dict[int, tuple[Worker, Task]] = {}
        self._unstored: dict[int, StoreTask] = {}
        self._queue: list[FollowUp] = []  # without a worker

    def get_worker(self, number: int, framework: str) -> Worker:
        """Return the worker with a number and a framework."""
        return self._workers[number, framework]

    def add_workers(self, workers: Sequence[Worker]) -> None:
        """Add workers, which get tasks as soon as their numbers are in `numbers`."""
        self._workers.update({(worker.number, worker.framework): worker for worker in workers})

    def report_cost(self, worker: Worker) -> None:
        """Log what an idle worker has cost, before it leaves."""
        drive(worker.session, self._visits.report_cost(worker))

    @property
    def is_finished(self) -> bool:
        """Return True if there is nothing to wait for."""
        return not (self._queue or self._unstored or self._dispatcher.busy())

    @property
    def busy_count(self) -> int:
        """Return how many workers have a task, or a state to store."""
        return len(self._tasks.keys() | self._unstored.keys())

    def is_busy(self, number: int) -> bool:
        """Return True if a worker has a task, or a state to store."""
        return number in self._tasks or number in self._unstored

    @property
    def idle(self) -> set[int]:
        """Return the numbers of the workers without a task."""
        return self.numbers - self._tasks.keys()

    @property
    def unstored(self) -> Collection[StoreTask]:
        """Return the tasks of storing states that have not begun."""
        return self._unstored.values()

    def find_unstored(self, mst_key: int) -> VisitBatch | None:
        """Return the batch of a configuration whose state is still to be stored."""
        batches = (task.batch for task in self.unstored if task.mst_key == mst_key)
        return next(batches, None)

    def wait(self, until: float) -> Iterator[WorkerEvent]:
        """Yield events of tasks that have ended.

        Waits for at least one while any task is running, but not beyond the moment `until`.
        """
        for outcome in self._dispatcher.wait(until):
            worker, task = self._tasks.pop(outcome.worker)
            yield make_event(worker, task, outcome)

    def cancel(self, error: CerebroError) -> None:
        """Cancel all tasks except those that retain best states."""
        self._queue = [task for task in self._queue if isinstance(task, BestStateTask)]
        numbers = {
            number
            for number, (_, task) in self._tasks.items()
            if not isinstance(task, BestStateTask)
        }
        self._dispatcher.cancel(numbers, error)

    def queue_follow_up(self, task: FollowUp) -> None:
        """Let any idle worker do a task."""
        self._queue.append(task)

    def start_follow_ups(self, framework_of: Callable[[int], str]) -> None:
        """Start queued tasks on idle workers.

        Args:
            framework_of: returns the framework of a configuration.
        """
        while self._queue:
            free = self.idle - self._unstored.keys()
            if not free:
                return
            task = self._queue.pop()
            self.start_follow_up(self.get_worker(min(free), framework_of(task.mst_key)), task)

    def start_follow_up(self, worker: Worker, task: FollowUp) -> None:
        """Start a task that follows an evaluation."""
        if isinstance(task, MetricsTask):
            self._start(worker, task, self._visits.compute_metrics(worker, task.sums))
        else:
            self._start(worker, task, self._visits.retain(worker, task.best))

    def evaluate(self, worker: Worker, batch: VisitBatch, visit: EvaluateVisit) -> None:
        """Start an evaluation."""
        task = VisitTask(batch, time.monotonic())
        self._start(worker, task, self._visits.evaluate(worker, visit))

    def may_start(self, worker: Worker, batch: VisitBatch, datasets: Sequence[Dataset]) -> bool:
        """Return True if a worker may start a batch now, without storing its last state before."""
        unstored = self._unstored.get(worker.number)
        if unstored is None:
            return True
        if self._stores_at_once or unstored.is_evaluated_next or unstored.worker is not worker:
            return False
        if batch[0].kind != "train":
            return False
        return self._visits.can_overlap(worker, unstored.result, datasets)

    def train(self, worker: Worker, task: VisitTask) -> None:
        """Start visits that `may_start` allows."""
        if worker.number in self._unstored:
            self._start(worker, task, self._visits.begin(worker, task.visits))
        else:
            self._start(worker, task, self._visits.train(worker, task.visits))

    def train_fused(self, worker: Worker, task: FusedTask) -> None:
        """Start batches of several configurations in one job."""
        batches: Any = [each.visits for each in task.tasks]
        self._start(worker, task, self._visits.train_fused(worker, batches))

    def finish(self, worker: Worker, task: VisitTask) -> None:
        """Let a worker finish visits that it has begun."""
        self._start(worker, task, self._visits.finish(worker, task.visits))

    def hold_states(
        self, worker: Worker, task: VisitTask, result: BatchResult, *, is_evaluated_next: bool
    ) -> None:
        """Note that a trainer holds states that are still to be stored."""
        seconds = time.monotonic() - task.started_at
        self._unstored[worker.number] = StoreTask(
            task.batch, result, worker, seconds, is_evaluated_next
        )

    def store_states(self) -> None:
        """Start to store the states of workers that cannot make other visits meanwhile."""
        for number in self._unstored.keys() - self._tasks.keys():
            self._store(number, None)

    def store_during(self, worker: Worker, task: VisitTask) -> None:
        """Start to store a state while the trainer makes the visits of a task."""
        self._store(worker.number, task)

    def stop_trainers(self) -> None:
        """Stop all trainers of a paused run when nothing is running, and wait a little."""
        if self.is_finished:
            for worker in self._workers.values():
                drive(worker.session, self._visits.stop_trainer(worker))
            time.sleep(PAUSE_SECONDS)

    def drop_tasks(self, worker: Worker, task: ConfigTask) -> LostTasks:
        """Drop the tasks of a trainer that was lost during a task."""
        unstored = self._unstored.pop(worker.number, None)
        if not isinstance(task, StoreTask):
            return LostTasks(task, unstored)
        if task.next_task:
            return LostTasks(task.next_task, task)
        return LostTasks(VisitTask(task.batch, task.started_at, task.result.visits), None)

    def _store(self, number: int, next_task: VisitTask | None) -> None:
        task = replace(self._unstored.pop(number), started_at=time.monotonic(), next_task=next_task)
        self._start(task.worker, task, self._visits.store(task.worker, task.result))

    def _start(self, worker: Worker, task: Task, steps: Any) -> None:
        self._tasks[worker.number] = (worker, task)
        self._dispatcher.begin(worker.number, worker.session, steps)
