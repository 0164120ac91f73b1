"""The epoch loop: the schedule says which visit comes next, the platform does it, the log keeps it.

There is no barrier: whenever a worker is free, it gets the next visit that the schedule allows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cerebro_plpy.database.dispatch import Dispatcher
from cerebro_plpy.errors import CerebroError, ConfigFailure, ConnectionFailure
from cerebro_plpy.hopping import schedule
from cerebro_plpy.hopping.policies import Longest, foremost, front, remaining_visits, replay, rotation
from cerebro_plpy.hopping.schedule import ConfigProgress, Visit
from cerebro_plpy.platform.protocol import VisitResult, Visits, Worker
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.run.budget import BUDGET_OVER, Budget, BudgetOver, reasons
from cerebro_plpy.run.log import RunLog
from cerebro_plpy.run.request import Evaluation, FitRequest
from cerebro_plpy.run.tasks import PASSING, Further, Keeping, Results, Surroundings, Task
from cerebro_plpy.run.training import ConfigTraining, Kept, Past
from cerebro_plpy.run.verdicts import stop_reason, verdict


class Orchestrator:
    """Trains the configurations of one request, from where an interrupted run left them, if there was one."""

    def __init__(
        self,
        visits: Visits,
        request: FitRequest,
        workers: Sequence[Worker],
        log: RunLog,
        around: Surroundings,
        past: Mapping[int, Past],
    ) -> None:
        self._visits, self._request, self._log, self._around = visits, request, log, around
        self._workers = {(worker.number, worker.framework): worker for worker in workers}
        self._numbers = {worker.number for worker in workers}
        segments = request.source.segments
        self._plan = schedule.Plan(
            request.spec.epochs,
            segments,
            schedule.share_segments(segments, self._numbers),
            frozenset(request.spec.evaluate_epochs),
            averaging=request.spec.schedule == schedule.AVERAGING,
        )
        known = {c.mst_key: past.get(c.mst_key, Past()) for c in request.configs}
        self._training = {
            c.mst_key: ConfigTraining.after(known[c.mst_key], request, c, log.run_id) for c in request.configs
        }
        self._timings = log.known_timings(sorted({s.program for s in self._training.values()}))
        self._progress: dict[int, ConfigProgress] = {
            key: schedule.resume(self._plan, key, found.completed(segments)) for key, found in known.items()
        }
        self._tasks: dict[int, tuple[Worker, Task]] = {}
        self._homeless: list[Further] = []  # they have no worker yet, or none any more
        self._keeping: set[int] = set()  # whose state is being kept, and must not change
        self._began = self._epoch_began = time.monotonic()
        self._budget = Budget(request)
        self._deadline = self._began + (math.inf if request.max_runtime is None else request.max_runtime)
        self._announced = min((progress.epoch - 1 for progress in self._progress.values()), default=0)
        self._noted: set[str] = set()  # what the caller was told of: programs, warnings
        self.evaluations = [evaluation for found in known.values() for evaluation in found.evaluations]
        self.failed: dict[int, str] = {}
        self.stopped: set[int] = set()  # those that max_runtime or the budget kept from their last epoch
        self._last: dict[int, int] = {}  # of those that EarlyStopping ended, the epoch

    @property
    def states(self) -> dict[int, StoredState]:
        """Where the state of each configuration lies that has one and did not fail: the newest, or the best."""
        return {key: s.outcome for key, s in self._training.items() if s.outcome and key not in self.failed}

    def run(self) -> None:
        """Train until every configuration is done or has failed, or the time is over."""
        self._complete()
        dispatcher: Dispatcher[Any] = Dispatcher(self._around.check)
        while not schedule.run_finished(self._progress) or self._homeless or dispatcher.busy():
            self._around.check()
            self._keep_to_budget(dispatcher)
            self._start_visits(dispatcher)
            for outcome in dispatcher.wait(self._budget.next_moment):
                worker, task = self._tasks.pop(outcome.worker)
                if outcome.error is None:
                    self._succeed(dispatcher, worker, task, outcome.value)
                else:
                    self._fail(dispatcher, worker, task, outcome.error)
            self._stop_in_time()
            self._announce()
        if not self._progress:
            raise ConfigFailure(f"all {len(self.failed)} configurations failed", detail=reasons(self.failed))
        self._budget.check_trained(self._plan, len(self.states), self.failed)

    def _complete(self) -> None:
        """Log what was trained to the end before, which a server that crashed could not say any more."""
        for mst_key, training in self._training.items():
            if training.completed():
                self._log.config_completed(mst_key)
            keeping = self._best(training)
            if keeping:
                self._homeless.append(keeping)
            else:
                self._stop_early(training)

    def _best(self, training: ConfigTraining) -> Keeping | None:
        """The task of keeping the newest state of a configuration, where it is the best so far and that is wanted."""
        best = verdict(training.config, training.evaluations).best if training.config.fit.callbacks.keeps_best else None
        if best is None or (training.best and training.best.epoch == best):
            return None
        self._keeping.add(training.config.mst_key)
        return Keeping(training.best_state(best))

    def _kept(self, training: ConfigTraining, task: Keeping, stored: StoredState) -> None:
        training.best = Kept(task.best.epoch, stored)
        self._keeping.remove(task.mst_key)
        self._stop_early(training)

    def _stop_early(self, training: ConfigTraining) -> None:
        """Let a configuration go no further, where its metrics say so."""
        config, found = training.config, verdict(training.config, training.evaluations)
        if found.stopped in (None, self._plan.epochs) or config.mst_key in self.stopped:
            return
        self._last[config.mst_key] = found.stopped
        self._progress[config.mst_key] = schedule.stop(self._plan, self._progress[config.mst_key])
        self._log.config_stopped(config.mst_key, stop_reason(config, found))

    def _stop_in_time(self) -> None:
        """When the time of the run is over, let what is under way be the last that each configuration trains."""
        if time.monotonic() < self._deadline:
            return
        self._deadline = math.inf
        for mst_key, progress in self._progress.items():
            self._progress[mst_key] = stopping = schedule.stop(self._plan, progress)
            before, after = (remaining_visits(self._plan, p).train for p in (progress, stopping))
            if after < before:
                self.stopped.add(mst_key)
                self._log.config_stopped(mst_key, "max_runtime was over")

    def _keep_to_budget(self, dispatcher: Dispatcher[Any]) -> None:
        """When the budget is over, take the configurations to their ends; at last cancel what is under way of that.

        A best state is kept all the same, because the log has the metrics that make it the best.
        """
        for mst_key, progress in self._progress.items():
            self._progress[mst_key] = ending = self._budget.rest(self._plan, self._training[mst_key], progress)
            dropped = remaining_visits(self._plan, ending) != remaining_visits(self._plan, progress)
            if dropped and mst_key not in self.stopped:
                self.stopped.add(mst_key)
                self._log.config_stopped(mst_key, BUDGET_OVER)
        if self._budget.cancels():
            self._homeless = [task for task in self._homeless if isinstance(task, Keeping)]
            visits = {number for number, (_, task) in self._tasks.items() if not isinstance(task, Keeping)}
            dispatcher.cancel(visits, BudgetOver(BUDGET_OVER))

    def _start_visits(self, dispatcher: Dispatcher[Any]) -> None:
        idle = self._numbers - self._tasks.keys()
        while self._homeless and idle:
            task = self._homeless.pop()
            self._follow(dispatcher, self._workers[idle.pop(), self._request.backends[task.mst_key]], task)
        room = self._request.workers - len(self._tasks)  # there may be more of them, each with a segment of its own
        for number, visit in schedule.choose(self._plan, self._eligible(), idle, self._policy())[: max(0, room)]:
            training = self._training[visit.mst_key]
            self._progress[visit.mst_key] = schedule.begin(self._progress[visit.mst_key], visit)
            attempt = training.begin(visit)
            if not training.visits and attempt == 1 and visit.kind == "train":
                self._log.config_running(visit.mst_key)
            worker = self._workers[number, self._request.backends[visit.mst_key]]
            self._tasks[number] = (worker, visit)
            dispatcher.begin(number, worker.session, self._steps(worker, visit, training, attempt))

    def _eligible(self) -> dict[int, ConfigProgress]:
        """The configurations that may be visited now."""
        free = {key: progress for key, progress in self._progress.items() if key not in self._keeping}
        if self._request.spec.schedule != "foremost":
            return free
        first = front(self._progress, min(self._request.workers, len(self._numbers)))
        return {key: progress for key, progress in free.items() if key in first}

    def _steps(self, worker: Worker, visit: Visit, training: ConfigTraining, attempt: int) -> Any:
        if visit.kind == "evaluate":
            return self._visits.evaluate(worker, training.evaluate_visit(visit, attempt))
        known = self._timings.of(training.situation(worker))
        return self._visits.train(worker, training.train_visit(visit, attempt, self._rows_ahead(training), known))

    def _rows_ahead(self, training: ConfigTraining) -> int:
        """The rows that a worker is still to train with this configuration's program and batch size."""
        visits = sum(
            remaining_visits(self._plan, self._progress[key]).train * other.config.fit.passes
            for key, other in self._training.items()
            if key in self._progress and other.shares_forms(training)
        )
        return visits * self._request.source.rows // len(self._plan.segments) // len(self._numbers)

    def _policy(self) -> schedule.Policy:
        if self._request.spec.schedule == "rotation":
            return rotation(list(self._training), self._plan.segments)
        if self._request.spec.schedule == "foremost":
            return foremost(list(self._training), self._plan.segments)
        if self._request.spec.schedule == "replay":
            return replay(self._request.repeat.orders)
        return Longest({(key, "train"): s.seconds / s.visits for key, s in self._training.items() if s.visits})

    def _succeed(self, dispatcher: Dispatcher[Any], worker: Worker, task: Task, value: Any) -> None:
        training = self._training[task.mst_key]
        if task.mst_key not in self._progress:
            return  # failed meanwhile, in another task
        if isinstance(task, Keeping):
            return self._kept(training, task, value)
        if not self._awaited(task):
            if isinstance(task, Visit) and task.kind != "evaluate":
                self._trained(worker, training, task, value)  # the log has it
            return
        if isinstance(task, Results):
            return self._record(dispatcher, worker, task, value)
        if task.kind == "evaluate":
            training.parts.setdefault(task.epoch, {})[task.segment_id] = value
            if len(training.parts[task.epoch]) == len(self._plan.segments):
                # Not completed before its metrics are logged: what goes on from the log must find them or the state.
                return self._follow(dispatcher, worker, Results(task, training.sums(task.epoch)))
        self._progress[task.mst_key] = schedule.complete(self._plan, self._progress[task.mst_key], task)
        if task.kind != "evaluate":
            self._trained(worker, training, task, value)

    def _awaited(self, task: Task) -> bool:
        """Whether anything follows a task: not where its configuration failed meanwhile, or ended without the visit."""
        progress = self._progress.get(task.mst_key)
        if progress is None or isinstance(task, Keeping):
            return progress is not None
        return (task if isinstance(task, Visit) else task.visit).segment_id in progress.running

    def _follow(self, dispatcher: Dispatcher[Any], worker: Worker, task: Further) -> None:
        self._tasks[worker.number] = (worker, task)
        visits = self._visits
        steps: Any = visits.keep(worker, task.best) if isinstance(task, Keeping) else visits.results(worker, task.sums)
        dispatcher.begin(worker.number, worker.session, steps)

    def _trained(self, worker: Worker, training: ConfigTraining, visit: Visit, result: VisitResult) -> None:
        if result.timings:
            self._timings.add(training.situation(worker), result.timings)
            self._log.add_timings(training.situation(worker), result.timings)
        if result.fallback:
            slow = f"mst_key={visit.mst_key} and its like need Keras' own, slower loop: {result.fallback}"
            self._note_once(training.program, slow)
        for text in result.warnings:
            self._note_once(text, f"mst_key={visit.mst_key}: {text}")
        training.trained(visit, result)
        if training.completed() and visit.mst_key not in self.stopped:
            self._log.config_completed(visit.mst_key)

    def _note_once(self, subject: str, text: str) -> None:
        if subject not in self._noted:
            self._noted.add(subject)
            self._around.note(text)

    def _record(self, dispatcher: Dispatcher[Any], worker: Worker, task: Results, found: dict[str, Any]) -> None:
        training = self._training[task.mst_key]
        elapsed = time.monotonic() - self._began
        made = [
            Evaluation(task.mst_key, task.visit.epoch, dataset, value["loss"], tuple(value["metrics"]), elapsed)
            for dataset, value in found.items()
        ]
        self._log.metrics(made, [name for name, _ in training.config.metrics])
        loss = found["training"]["loss"] if "training" in found else None
        if loss is not None and not math.isfinite(loss):
            self._give_up(task.mst_key, f"the loss over the training set was {loss} after epoch {task.visit.epoch}")
            return
        self.evaluations += made
        training.evaluations += made
        self._progress[task.mst_key] = schedule.complete(self._plan, self._progress[task.mst_key], task.visit)
        keeping = self._best(training)
        if keeping:
            self._follow(dispatcher, worker, keeping)
        else:
            self._stop_early(training)

    def _fail(self, dispatcher: Dispatcher[Any], worker: Worker, task: Task, error: CerebroError) -> None:
        if isinstance(error, PASSING):
            worker.memory.forget()
            if isinstance(error, ConnectionFailure):
                self._log_lost(task, error)
                if not self._around.reopen(worker):
                    self._dismiss(worker, error)
        elif isinstance(error, BudgetOver):
            worker.memory.forget()
        elif not isinstance(error, ConfigFailure):
            raise error
        if not self._awaited(task):
            return
        if not isinstance(error, PASSING) or not self._again(dispatcher, worker, task):
            self._give_up(task.mst_key, error.message)

    def _dismiss(self, worker: Worker, error: CerebroError) -> None:
        """Go on without a worker that is lost for good, as long as there is another one."""
        if len(self._numbers) == 1 or not worker.replaceable:
            raise error
        self._numbers.remove(worker.number)
        self._plan = replace(self._plan, workers=schedule.share_segments(self._plan.segments, self._numbers))
        self._around.note(f"going on with {len(self._numbers)} workers: no new session could be opened for a lost one")

    def _log_lost(self, task: Task, error: CerebroError) -> None:
        if isinstance(task, Visit):
            training = self._training[task.mst_key]
            self._log.attempt_lost(task, training.number(task), training.attempts_at(task), error.message)

    def _again(self, dispatcher: Dispatcher[Any], worker: Worker, task: Task) -> bool:
        """Let a task be tried again; False when it has been tried often enough."""
        attempts = self._training[task.mst_key].tried(task) if isinstance(task, Visit) else task.attempt
        if attempts >= self._request.spec.max_attempts:
            return False
        if isinstance(task, Visit):
            self._progress[task.mst_key] = schedule.abandon(self._progress[task.mst_key], task)
        elif worker.number in self._numbers:
            self._follow(dispatcher, worker, replace(task, attempt=attempts + 1))
        else:
            self._homeless.append(replace(task, attempt=attempts + 1))
        return True

    def _give_up(self, mst_key: int, reason: str) -> None:
        del self._progress[mst_key]
        self.failed[mst_key] = reason
        self._log.config_failed(mst_key, reason)
        self._around.failed(mst_key, reason)

    def _announce(self) -> None:
        """Tell about each epoch that every configuration has completed, results included."""
        while self._announced < self._request.spec.epochs and self._progress and not self.stopped:
            epoch = self._announced + 1
            trained = [key for key in self._progress if self._last.get(key, epoch) >= epoch]
            if not trained or not schedule.epoch_completed(self._progress, epoch):
                return
            if epoch in self._request.spec.evaluate_epochs:
                done = {e.mst_key for e in self.evaluations if e.epoch == epoch}
                if not done.issuperset(trained):
                    return
            now = time.monotonic()
            losses = {key: self._training[key].mean_loss(epoch) for key in trained}
            alive = [e for e in self.evaluations if e.mst_key in self._progress]
            self._around.epoch(epoch, now - self._epoch_began, alive, losses)
            self._epoch_began, self._announced = now, epoch
