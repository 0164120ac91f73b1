"""Which worker does what: its task, the state that its trainer is still to hand over, and what
waits for any worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.database.sessions.async_dispatcher import Dispatcher, Outcome, drive
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.platform.job import Dataset
from cerebro_plpy.platform.visit_protocol import (
    BatchResult,
    BatchVisit,
    EvaluateVisit,
    Worker,
)
from cerebro_plpy.platform.visits import Visits
from cerebro_plpy.records import replace
from cerebro_plpy.run.workers.tasks import (
    Further,
    Fusing,
    Keeping,
    Storing,
    Surroundings,
    Task,
    Visiting,
)
from cerebro_plpy.scheduling.schedule.schedule import VisitBatch

PAUSE_SECONDS = 0.1


class Loss(NamedTuple):
    """What a trainer that is gone was to do: the task that may be to blame, and what was to be
    stored beside it.
    """

    charged: Visiting | Further
    unstored: Storing | None


class Assignments:
    """The workers of a run by their numbers, and the tasks that they were given.

    They store what they have trained `at_once` where what is under way may be cancelled, or may be
    the last, or where visits of a configuration do not begin from one another.
    """

    def __init__(
        self, visits: Visits, workers: Sequence[Worker], around: Surroundings, *, at_once: bool
    ) -> None:
        self._visits = visits
        self._at_once = at_once
        self._workers = {(worker.number, worker.framework): worker for worker in workers}
        self.numbers = {worker.number for worker in workers}
        self._dispatcher: Dispatcher[Any] = Dispatcher(around.check, around.beside.piece)
        self._tasks: dict[int, tuple[Worker, Task | Fusing]] = {}
        self._unstored: dict[int, Storing] = {}
        self._homeless: list[Further] = []  # they have no worker yet, or none any more

    def worker(self, number: int, framework: str) -> Worker:
        """The worker of that number for a framework."""
        return self._workers[number, framework]

    def admit(self, workers: Sequence[Worker]) -> None:
        """Others are there, who can be given work as soon as their numbers are among these."""
        self._workers.update({(worker.number, worker.framework): worker for worker in workers})

    def settle(self, worker: Worker) -> None:
        """Hear what an idle worker has cost, before it goes."""
        drive(worker.session, self._visits.report_cost(worker))

    @property
    def over(self) -> bool:
        """Whether there is nothing to wait for."""
        return not (self._homeless or self._unstored or self._dispatcher.busy())

    @property
    def count(self) -> int:
        """How many workers have a task, or are to have one because their trainers have a state."""
        return len(self._tasks.keys() | self._unstored.keys())

    def counted(self, number: int) -> bool:
        """Whether a worker is one of these."""
        return number in self._tasks or number in self._unstored

    @property
    def idle(self) -> set[int]:
        """The workers without a task."""
        return self.numbers - self._tasks.keys()

    def ended(self, until: float) -> Iterator[tuple[Worker, Task | Fusing, Outcome[Any]]]:
        """Tasks that have ended, at least one where any is under way and it is not `until`
        before.
        """
        for outcome in self._dispatcher.wait(until):
            yield *self._tasks.pop(outcome.worker), outcome

    def cancel(self, error: CerebroError) -> None:
        """Cancel what is under way but for the keeping of best states."""
        self._homeless = [task for task in self._homeless if isinstance(task, Keeping)]
        visits = {
            number for number, (_, task) in self._tasks.items() if not isinstance(task, Keeping)
        }
        self._dispatcher.cancel(visits, error)

    def postpone(self, task: Further) -> None:
        """Let any worker do this when it is idle."""
        self._homeless.append(task)

    def catch_up(self, backends: Callable[[Further], str]) -> None:
        """Give idle workers what was postponed; `backends` says with which framework."""
        while self._homeless and (free := self.idle - self._unstored.keys()):
            task = self._homeless.pop()
            self.follow(self.worker(min(free), backends(task)), task)

    def follow(self, worker: Worker, task: Further) -> None:
        """Give a worker what follows an evaluation."""
        do = self._visits
        steps: Any = (
            do.retain(worker, task.best)
            if isinstance(task, Keeping)
            else do.compute_metrics(worker, task.sums)
        )
        self._give(worker, task, steps)

    def evaluate(self, worker: Worker, tour: VisitBatch, visit: EvaluateVisit) -> None:
        """Give a worker an evaluation."""
        self._give(worker, Visiting(tour, time.monotonic()), self._visits.evaluate(worker, visit))

    @property
    def unstored(self) -> Collection[Storing]:
        """What is still to be stored, and nobody stores it yet."""
        return self._unstored.values()

    def may_begin(self, worker: Worker, tour: VisitBatch, datasets: Sequence[Dataset]) -> bool:
        """Whether a worker may begin with a tour now, and not only when it has stored what the one
        before has left.
        """
        unstored = self._unstored.get(worker.number)
        if unstored is None:
            return True
        alone = (
            self._at_once
            or unstored.evaluated
            or unstored.worker is not worker
            or tour[0].kind != "train"
        )
        return not alone and self._visits.can_overlap(worker, unstored.trained, datasets)

    def train(self, worker: Worker, tour: VisitBatch, visits: Sequence[BatchVisit]) -> None:
        """Give a worker a tour, as `may_begin` has allowed."""
        task = Visiting(tour, time.monotonic(), visits)
        begin: Callable[..., Any] = (
            self._visits.begin if worker.number in self._unstored else self._visits.train
        )
        self._give(worker, task, begin(worker, visits))

    def fuse(self, worker: Worker, task: Fusing) -> None:
        """Give a worker tours that it makes in one job."""
        tours: Any = [each.visits for each in task.tasks]
        self._give(worker, task, self._visits.train_fused(worker, tours))

    def trained(
        self, worker: Worker, task: Visiting, done: BatchResult, *, evaluated: bool
    ) -> None:
        """A worker has trained a tour, which is still to be stored; whether it is to be `evaluated`
        then.
        """
        seconds = time.monotonic() - task.since
        self._unstored[worker.number] = Storing(task.tour, done, worker, seconds, evaluated)

    def begun(self, worker: Worker, task: Visiting) -> None:
        """A worker's trainer has begun with a tour: meanwhile what the one before has left is
        stored.
        """
        self._store(worker.number, task)

    def store(self) -> None:
        """Let workers store what nothing else can be done beside."""
        for number in self._unstored.keys() - self._tasks.keys():
            self._store(number, None)

    def rest(self) -> None:
        """Once nothing is under way, end all trainers and wait a little: nothing begins until
        somebody acts.
        """
        if self.over:
            for worker in self._workers.values():
                drive(worker.session, self._visits.stop_trainer(worker))
            time.sleep(PAUSE_SECONDS)

    def finish(self, worker: Worker, task: Visiting) -> None:
        """Let a worker train to its end what it has begun."""
        self._give(worker, task, self._visits.finish(worker, task.visits))

    def lose(self, worker: Worker, task: Task) -> Loss:
        """A worker's trainer is gone, in the midst of a task."""
        unstored = self._unstored.pop(worker.number, None)
        if isinstance(task, Storing):
            own = Visiting(task.tour, task.since, task.trained.visits)
            return Loss(task.beside or own, task if task.beside else None)
        return Loss(task, unstored)

    def _store(self, number: int, beside: Visiting | None) -> None:
        task = replace(self._unstored.pop(number), since=time.monotonic(), beside=beside)
        self._give(task.worker, task, self._visits.store(task.worker, task.trained))

    def _give(self, worker: Worker, task: Task | Fusing, steps: Any) -> None:
        self._tasks[worker.number] = (worker, task)
        self._dispatcher.begin(worker.number, worker.session, steps)
