"""The epoch loop: the schedule says which visit comes next, the platform does it, the log keeps it.

There is no barrier: whenever a worker is free, it gets the next visit that the schedule allows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from typing import Any

from cerebro_plpy.database.sessions.async_dispatcher import Outcome
from cerebro_plpy.errors import CerebroError, ConfigFailure, ConnectionFailure
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.visit_protocol import BatchResult, VisitResult, Worker
from cerebro_plpy.platform.visits import Visits
from cerebro_plpy.records import replace
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.loop.added_configs import Recruits
from cerebro_plpy.run.loop.budget import Budget, BudgetOver, reasons
from cerebro_plpy.run.loop.dispatch import Choice
from cerebro_plpy.run.loop.fusion import Fusion
from cerebro_plpy.run.loop.recovery import Losses
from cerebro_plpy.run.loop.replanning import Introspection
from cerebro_plpy.run.loop.reporting import Announcer
from cerebro_plpy.run.loop.run_commands import Bounds, Steering
from cerebro_plpy.run.loop.search import Search
from cerebro_plpy.run.loop.stopping import Endings
from cerebro_plpy.run.loop.worker_scaling import Rota
from cerebro_plpy.run.request.early_stopping import find_best_epoch
from cerebro_plpy.run.request.run_request import BUDGET_OVER, FitRequest
from cerebro_plpy.run.state.config_state import ConfigTraining, Kept, Past, evaluations
from cerebro_plpy.run.state.progress_tracker import Positions
from cerebro_plpy.run.state.run_state import Roster
from cerebro_plpy.run.state.runtime_stats import Measurements
from cerebro_plpy.run.workers.tasks import (
    PASSING,
    Fusing,
    Keeping,
    Results,
    Storing,
    Surroundings,
    Task,
    Visiting,
)
from cerebro_plpy.run.workers.worker_pool import Assignments
from cerebro_plpy.run.workers.workers import choose_affinity
from cerebro_plpy.scheduling.schedule import schedule
from cerebro_plpy.scheduling.schedule.placement import assign_segments
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Plan, VisitBatch
from cerebro_plpy.trainer_client import responses


class Orchestrator:
    """Trains the configurations of one request, from where an interrupted run left them, if there
    was one.
    """

    def __init__(
        self,
        visits: Visits,
        request: FitRequest,
        workers: Sequence[Worker],
        log: RunLog,
        around: Surroundings,
        past: Mapping[int, Past],
    ) -> None:
        self._request, self._log, self._around = request, log, around
        copies = request.spec.copy_segments
        at_once = bool(copies or request.deadline or request.cost_limits)
        self._assignments = Assignments(visits, workers, around, at_once=at_once)
        segments, last = request.source.segments, request.last_epoch
        shared, evaluated = (
            assign_segments(segments, self._assignments.numbers),
            request.spec.list_evaluations_until(last),
        )
        plan = Plan(last, segments, shared, frozenset(evaluated), copies, request.segment_subsets)
        known = {c.mst_key: past.get(c.mst_key, Past()) for c in request.configs}
        self._training = {
            c.mst_key: ConfigTraining.after(known[c.mst_key], request, c, log.run_id)
            for c in request.configs
        }
        programs = {training.program for training in self._training.values()}
        self._measurements = Measurements(log, around.note, programs, request.commit_seconds)
        begun = {
            key: schedule.resume(plan, key, found.completed(plan.segments_of(key)))
            for key, found in known.items()
        }
        compilations = {key: training.compilation for key, training in self._training.items()}
        self._positions = Positions(plan, begun, choose_affinity(request, workers, compilations))
        self._keeping: set[int] = set()  # whose state is being kept, and must not change
        self._began = time.monotonic()
        self._budget = Budget(request, around.spent)
        self._choice = Choice(request, self._training, self._measurements, self._budget)
        self._roster = roster = Roster(request, log, self._positions, self._training, self._keeping)
        self._losses = Losses(roster, self._assignments)
        self._fusion = Fusion(
            roster, self._measurements, self._choice, self._assignments, wanted=not copies
        )
        self._rota = Rota(roster, self._assignments, around, workers)
        self._recruits = Recruits(roster, around)
        self._search = Search(roster, self._recruits, around.decided)
        self._endings = Endings(roster, self._budget, self._search)
        announced = min((progress.epoch - 1 for progress in begun.values()), default=0)
        self._announcer = Announcer(log.run_id, request, around, announced)
        self._introspection = Introspection(
            roster, self._measurements, workers, announced, around.note
        )
        bounds = Bounds(self._budget, self._endings, self._announcer.trained)
        self._steering = Steering(roster, self._search, bounds)
        self.evaluations = [
            evaluation for found in known.values() for evaluation in found.evaluations
        ]
        self.failed: dict[int, str] = {}

    @property
    def _plan(self) -> Plan:
        return self._positions.plan

    @property
    def _progress(self) -> dict[int, ConfigProgress]:
        return self._positions.progress

    @property
    def stopped(self) -> Set[int]:
        """The configurations that max_runtime or the budget kept from their last epoch."""
        return self._endings.stopped

    @property
    def states(self) -> dict[int, StoredState]:
        """Where the state of each configuration lies that has one and did not fail: the newest, or
        the best.
        """
        return {
            key: s.outcome
            for key, s in self._training.items()
            if s.outcome and key not in self.failed
        }

    def run(self) -> None:
        """Train until every configuration is done or has failed, or the time is over."""
        self._complete()
        while not self._over():
            self._around.check()
            self._around.count()
            self._steering.listen()
            self._steering.put_off(self._rota.keep(paused=self._steering.paused))
            self._decide()
            self._start_visits()
            until = min(self._budget.next_moment, self._rota.next_look)
            for worker, task, outcome in self._assignments.ended(until):
                if isinstance(task, Fusing):
                    self._fused(worker, task, outcome)
                elif outcome.error is None:
                    self._succeed(worker, task, outcome.value)
                else:
                    self._fail(worker, task, outcome.error)
            if self._steering.paused:
                self._assignments.rest()
                continue
            self._endings.stop_in_time()
            self._introspection.look(len(self._assignments.numbers))
            if not self.stopped:
                self._announcer.tell(
                    self._positions.committed, self._training, self.evaluations, self._endings.last
                )
            self._announcer.tell_trained(
                self._plan, self._positions.committed, self._training, self._keeping
            )
        if not self._progress:
            raise ConfigFailure(
                f"all {len(self.failed)} configurations failed", detail=reasons(self.failed)
            )
        self._endings.close()
        self._budget.check_trained(self._plan, len(self.states), self.failed)

    def _over(self) -> bool:
        """Whether there is nothing left to do, also when all is decided that is known."""
        if not (schedule.is_run_finished(self._progress) and self._assignments.over):
            return False
        if self._search.searches and not self._steering.paused:
            self._decide()  # also about the last result, from which nothing follows
        return schedule.is_run_finished(self._progress) and not (
            self._search.draws and self._steering.paused
        )

    def _decide(self) -> None:
        """Who goes on, by what became known since the last time."""
        while orphan := self._recruits.orphan():
            self._give_up(*orphan)
        if self._search.waits:
            self._steering.wait()
        if self._steering.paused:
            return
        trained = bool(self.states)
        self._endings.keep_to_budget(trained)
        self._search.decide()
        if self._budget.cancels(trained):
            self._assignments.cancel(BudgetOver(BUDGET_OVER))

    def _complete(self) -> None:
        """Log what was trained to the end before, which a server that crashed could not say any
        more.
        """
        for mst_key, training in self._training.items():
            if training.completed():
                self._log.log_config_completed(mst_key)
            self._recruits.begin_clones(training)
            if keeping := self._best(training):
                self._assignments.postpone(keeping)
            else:
                self._endings.stop_early(training)

    def _best(self, training: ConfigTraining) -> Keeping | None:
        """The task of keeping the newest state of a configuration, where it is the best so far and
        that is wanted.
        """
        best = find_best_epoch(training.config, self._request, training.evaluations)
        if best is None or (training.best and training.best.epoch == best):
            return None
        self._keeping.add(training.config.mst_key)
        return Keeping(training.best_state(best))

    def _kept(self, training: ConfigTraining, task: Keeping, stored: StoredState) -> None:
        training.best = Kept(task.best.epoch, stored)
        self._keeping.remove(task.mst_key)
        self._endings.stop_early(training)

    def _start_visits(self) -> None:
        give = self._assignments
        give.catch_up(lambda task: self._training[task.mst_key].framework)
        if self._steering.paused or self._rota.resting:
            return give.store()
        room = (
            self._request.workers - give.count
        )  # there may be more of them, each with a segment of its own
        first = self._steering.first
        found = self._choice.tours(
            self._positions, give.unstored, self._keeping, give.idle, len(give.numbers), first
        )
        taken = {tour[0].mst_key for _, tour in found}
        for number, tour in found:
            worker = give.worker(number, self._training[tour[0].mst_key].framework)
            datasets = [*self._training[tour[0].mst_key].partitions(tour)]
            if fused := self._fusion.of(worker, tour, taken, first, len(give.numbers)):
                room -= self._fusion.start(worker, fused, room)
                continue
            if (room > 0 or give.counted(number)) and give.may_begin(worker, tour, datasets):
                room -= not give.counted(number)
                self._start(worker, tour)
        give.store()
        if self._search.fill(self._choice.vacant(self._positions, give.idle, give.count)):
            self._start_visits()

    def _start(self, worker: Worker, tour: VisitBatch) -> None:
        training = self._training[key := tour[0].mst_key]
        ahead = (
            self._assignments.unstored if training.unstored else ()
        )  # of what is averaged nothing goes on
        attempt = self._roster.begin(
            tour, next((task.tour for task in ahead if task.mst_key == key), None)
        )
        if tour[0].kind == "evaluate":
            return self._assignments.evaluate(worker, tour, training.evaluate_visit(tour, attempt))
        known = self._measurements.forms(training, worker)
        rows = self._choice.rows_ahead(self._positions, training, len(self._assignments.numbers))
        self._assignments.train(worker, tour, [*training.tour_visits(tour, attempt, rows, known)])

    def _fused(self, worker: Worker, task: Fusing, outcome: Outcome[Any]) -> None:
        """What became of configurations that were trained together; where they were not, each goes
        on alone.
        """
        if outcome.error is None:
            for key, reason in self._fusion.made(worker, task, outcome.value or ()):
                self._give_up(key, reason)
            for each in task.tasks:
                self._left(self._training[each.mst_key])
            return
        if isinstance(outcome.error, BudgetOver):
            for each in task.tasks:
                self._fail(worker, each, outcome.error)
            return
        if not isinstance(outcome.error, (*PASSING, ConfigFailure)):
            raise outcome.error
        self._fusion.abandon(worker, task, outcome.error)
        if isinstance(outcome.error, ConnectionFailure) and not self._around.reopen(worker):
            self._rota.lose(worker, outcome.error)

    def _succeed(self, worker: Worker, task: Task, value: Any) -> None:
        if isinstance(task, Storing):
            return self._stored(worker, task, value)
        if isinstance(task, Visiting) and task.trains:
            return self._trained(worker, task, value)
        training = self._training[task.mst_key]
        if task.mst_key not in self._progress:
            return  # failed meanwhile, in another task
        if isinstance(task, Keeping):
            return self._kept(training, task, value)
        if isinstance(task, Visiting):
            task = self._made(task, len(value))
        if not self._losses.awaited(task):
            return
        if isinstance(task, Results):
            return self._record(worker, task, value)
        training.parts.setdefault(task.epoch, {}).update(value)
        if training.parts[task.epoch].keys() >= self._plan.segments_of(task.mst_key):
            # Not completed before its metrics are logged: what goes on from the log must find them
            # or the state.
            return self._assignments.follow(worker, Results(task.tour, training.sums(task.epoch)))
        self._positions.complete(task.tour)

    def _made(self, task: Visiting, count: int) -> Visiting:
        """The visits of a task that were made, the first ones; the others wait again."""
        if self._losses.awaited(task) and task.tour[count:]:
            self._positions.abandon(task.tour[count:])
        return replace(task, tour=task.tour[:count])

    def _trained(self, worker: Worker, task: Visiting, trained: BatchResult | None) -> None:
        """What visits have left is to be stored; where they have only begun, what those before them
        have left.
        """
        if trained is None:
            return self._assignments.begun(worker, task)
        task, training = self._made(task, trained.segment_count), self._training[task.mst_key]
        self._measurements.take(worker, training, trained)
        if not self._plan.is_averaging:
            training.unstored = len(trained.training)
        evaluated = bool(trained.evaluations)
        if evaluated:
            trained = trained._replace(best=training.best_of(trained))
        elif self._losses.awaited(task):
            evaluated = self._positions.after(task.tour).kind == "evaluate"
        self._assignments.trained(worker, task, trained, evaluated=evaluated)

    def _stored(self, worker: Worker, task: Storing, done: list[VisitResult]) -> None:
        """The log has these visits, also where none is awaited any more."""
        training, evaluated = self._training[task.mst_key], task.trained.evaluations
        self._measurements.take_hop(task)
        for visit, result in zip((visit for visit in task.tour if visit.kind != "evaluate"), done):
            training.trained(visit, result)
        if best := task.trained.best:
            training.best = Kept(best.epoch, best.stored._replace(base=done[-1].base_table))
        for evaluation, told in evaluated:
            if task.mst_key in self._progress:
                self._hear(training, evaluation.epoch, told["metrics"])
        if not self._positions.stored(task.mst_key) and self._losses.awaited(task):
            self._positions.complete(task.tour)
        self._left(training)
        if evaluated and task.mst_key in self._progress:
            self._endings.stop_early(training)
        if task.beside:
            self._assignments.finish(worker, task.beside)

    def _left(self, training: ConfigTraining) -> None:
        """Visits of a configuration have left their states."""
        self._recruits.begin_clones(training)
        if training.completed() and training.config.mst_key not in self.stopped:
            self._log.log_config_completed(training.config.mst_key)

    def _record(self, worker: Worker, task: Results, found: dict[str, Any]) -> None:
        training = self._training[task.mst_key]
        made = evaluations(task.mst_key, task.epoch, found, 0.0)
        self._log.log_metrics(made, [name for name, _ in training.config.metrics])
        if not self._hear(training, task.epoch, found):
            return
        self._positions.complete(task.tour)
        if keeping := self._best(training):
            self._assignments.follow(worker, keeping)
        else:
            self._endings.stop_early(training)

    def _hear(self, training: ConfigTraining, epoch: int, found: Mapping[str, Any]) -> bool:
        """Take up what the log has of a configuration after an epoch; whether it goes on."""
        key = training.config.mst_key
        if lost := responses.find_diverged(found):
            self._give_up(
                key, f"the loss over the {lost} set was {found[lost]['loss']} after epoch {epoch}"
            )
            return False
        made = evaluations(key, epoch, found, time.monotonic() - self._began)
        self.evaluations += made
        training.evaluations += made
        self._search.heard(key, made)
        return True

    def _fail(self, worker: Worker, task: Task, error: CerebroError) -> None:
        if isinstance(error, PASSING):
            worker.memory.forget()
            charged, gone = self._losses.lose(worker, task, error)
            if isinstance(error, ConnectionFailure) and not self._around.reopen(worker):
                self._rota.lose(worker, error)
            if (gone or self._losses.awaited(charged)) and not self._losses.again(worker, charged):
                self._give_up(charged.mst_key, error.message)
            return
        if isinstance(error, BudgetOver):
            worker.memory.forget()
        elif not isinstance(error, ConfigFailure):
            raise error
        if self._losses.awaited(task):
            self._give_up(task.mst_key, error.message)

    def _give_up(self, mst_key: int, reason: str) -> None:
        self._positions.give_up(mst_key)
        self.failed[mst_key] = reason
        self._log.log_config_failed(mst_key, reason)
        self._search.failed(mst_key, reason)
        self._around.failed(mst_key, reason)
