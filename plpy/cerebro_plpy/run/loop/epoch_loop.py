"""The epoch loop: it trains the configurations of a run until all have ended.

Workers report events, and a table names the handler of each type. A handler yields steps, and
`EpochLoop.execute` applies each step in a fixed order. There is no barrier: a free worker gets the
next visits that the schedule allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cerebro_plpy.errors import ConfigFailure
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.platform.visits import Visits
from cerebro_plpy.run.log.run_log import RunLog
from cerebro_plpy.run.loop import (
    commands,
    evaluation_events,
    messages,
    recovery,
    search,
    stopping,
    training_events,
)
from cerebro_plpy.run.loop.added_configs import ConfigSource
from cerebro_plpy.run.loop.choice import VisitChooser
from cerebro_plpy.run.loop.fusion import FusionChooser
from cerebro_plpy.run.loop.replanning import Replanner
from cerebro_plpy.run.loop.reporting import Reporter
from cerebro_plpy.run.loop.run_objects import Run
from cerebro_plpy.run.loop.step import Step
from cerebro_plpy.run.loop.worker_scaling import WorkerScaling
from cerebro_plpy.run.request.run_request import Evaluation, FitRequest
from cerebro_plpy.run.state.config_state import ConfigHistory
from cerebro_plpy.run.state.limits import TIME_OVER
from cerebro_plpy.run.state.restore import restore_run
from cerebro_plpy.run.state.runtime_stats import RuntimeStats
from cerebro_plpy.run.workers import events
from cerebro_plpy.run.workers.run_context import RunContext
from cerebro_plpy.run.workers.worker_pool import WorkerPool
from cerebro_plpy.scheduling.schedule import schedule

HANDLERS: Mapping[type, Callable[[Run, Any], Iterator[Step]]] = {
    events.VisitsBegun: training_events.on_visits_begun,
    events.VisitsTrained: training_events.on_visits_trained,
    events.StatesStored: training_events.on_states_stored,
    events.FusedStored: training_events.on_fused_stored,
    events.PartsEvaluated: evaluation_events.on_parts_evaluated,
    events.MetricsComputed: evaluation_events.on_metrics_computed,
    events.BestSaved: evaluation_events.on_best_saved,
    events.TaskFailed: recovery.on_task_failed,
    events.FusionFailed: recovery.on_fusion_failed,
    events.CommandReceived: commands.on_command_received,
}


class EpochLoop:
    """Trains the configurations of one request, from where an interrupted run left them.

    Args:
        history: visits and evaluations of the configurations so far; empty for a new run.
    """

    def __init__(
        self,
        visits: Visits,
        request: FitRequest,
        workers: Sequence[Worker],
        log: RunLog,
        context: RunContext,
        history: Mapping[int, ConfigHistory],
    ) -> None:
        restored = restore_run(request, log.run_id, workers, history)
        state = restored.state
        stores_at_once = bool(request.spec.copy_segments or state.limits.has_budget)
        pool = WorkerPool(visits, workers, context, stores_at_once=stores_at_once)
        timings = log.read_timings(sorted({config.program for config in state.configs.values()}))
        stats = RuntimeStats(timings, request.commit_seconds)
        chooser = VisitChooser(state, stats)
        epochs = min((progress.epoch - 1 for progress in state.progress.values()), default=0)
        self._resting = restored.resting
        self._command_reader = commands.CommandReader()
        self._replanner = Replanner(state, stats, log, workers, epochs, context.notify)
        self._run = Run(
            request=request,
            context=context,
            log=log,
            state=state,
            search=restored.search,
            stats=stats,
            pool=pool,
            chooser=chooser,
            fusion=FusionChooser(state, stats, chooser),
            scaling=WorkerScaling(state, pool, context, workers),
            sources=ConfigSource(state, log, context),
            reporter=Reporter(log, state, context, epochs),
        )

    @property
    def failed(self) -> Mapping[int, str]:
        """Return the reasons of configurations that failed, by mst_key."""
        return self._run.state.failed

    @property
    def stopped(self) -> set[int]:
        """Return the configurations that max_runtime or the budget kept from their last epoch."""
        return self._run.state.stopped

    @property
    def evaluations(self) -> Sequence[Evaluation]:
        """Return all evaluations so far."""
        return self._run.state.evaluations

    @property
    def model_states(self) -> Mapping[int, StoredState]:
        """Return the stored model of each configuration that has one and has not failed."""
        return self._run.state.model_states

    @property
    def remaining(self) -> float:
        """Return the seconds until the budget is over; infinite without one."""
        return self._run.state.limits.remaining

    @property
    def limit(self) -> str:
        """Return the limit that ended configurations before their last epoch."""
        limits = self._run.state.limits
        if limits.has_budget or self._run.request.replay.endings:
            return limits.end_reason
        return TIME_OVER

    def describe_work(self) -> str:
        """Return how many configurations are done, and the best one so far."""
        remaining_samples = 0
        if self._run.search:
            remaining_samples = self._run.search.remaining_samples
        return messages.describe_work(self._run.state, remaining_samples)

    def execute(self, step: Step) -> None:
        """Apply a step: the log, then the state, then the workers' tasks, then the messages.

        If the process ends in between, a resumed run continues from the log.
        """
        self._run.log.write(step.log)
        for change in step.changes:
            change()
        for start in step.tasks:
            start()
        for note in step.notes:
            note()

    def run(self) -> None:
        """Train until all configurations have ended, or the time is over.

        Raises:
            ConfigFailure: all configurations failed, or none has a state.
        """
        run = self._run
        state = run.state
        self._execute_all(self._resume())
        while not self._is_over():
            run.context.check()
            run.context.count_usage()
            for command in self._command_reader.read(run):
                self._handle(command)
            self._execute_all(run.scaling.adjust())
            self._decide()
            self._start_tasks()
            until = min(state.limits.next_moment, run.scaling.next_check)
            for event in run.pool.wait(until):
                self._handle(event)
            self.execute(run.reporter.report_phase(state))
            if state.is_paused:
                run.pool.stop_trainers()
                continue
            self._execute_all(stopping.stop_in_time(run))
            self.execute(self._replanner.check(len(run.pool.numbers)))
            if not state.stopped:
                self._execute_all(run.reporter.report_epochs(state))
            self.execute(run.reporter.report_trained(state))
        if not state.progress:
            raise ConfigFailure(
                messages.describe_all_failed(len(state.failed)),
                detail=stopping.describe_failures(state.failed),
            )
        self._execute_all(stopping.close(run))
        stopping.check_trained(run)

    def _handle(self, event: events.Event) -> None:
        self._execute_all(HANDLERS[type(event)](self._run, event))

    def _execute_all(self, steps: Iterator[Step]) -> None:
        for step in steps:
            self.execute(step)

    def _resume(self) -> Iterator[Step]:
        """Complete what an interrupted run has left: its log may lack what followed the visits."""
        run = self._run
        if self._resting:
            yield Step(log=[run.log.log_configs_resting(self._resting)])
        for config in run.state.configs.values():
            if config.is_completed:
                yield Step(log=[run.log.log_config_completed(config.mst_key)])
            yield from run.sources.start_clones(config)
            yield evaluation_events.follow_metrics(run, config, worker=None)

    def _is_over(self) -> bool:
        """Return True if there is nothing left to do, and nothing left to decide."""
        run = self._run
        state = run.state
        if not (schedule.is_run_finished(state.progress) and run.pool.is_finished):
            return False
        if run.search and not state.is_paused:
            self._decide()  # about the last result, too
        if not schedule.is_run_finished(state.progress):
            return False
        may_sample = run.search and run.search.remaining_samples and not state.is_search_closed
        return not (may_sample and state.is_paused)

    def _decide(self) -> None:
        """Decide which configurations go on, by what has happened since the last time."""
        run = self._run
        state = run.state
        self._execute_all(recovery.fail_orphans(run))
        if state.is_all_paused and not state.is_paused:
            self.execute(commands.pause(run))
        if state.is_paused:
            return
        has_state = state.has_model_state
        self._execute_all(stopping.keep_to_budget(run, has_state=has_state))
        self._execute_all(search.decide(run))
        self.execute(stopping.cancel_at_end(run, has_state=has_state))

    def _start_tasks(self) -> None:
        """Give work to idle workers; without a task, a worker stores the state that it holds."""
        run = self._run
        while True:
            run.pool.start_follow_ups(lambda key: run.state.configs[key].framework)
            if run.state.is_paused or run.scaling.is_waiting:
                run.pool.store_states()
                return
            self._execute_all(training_events.start_visits(run))
            run.pool.store_states()
            decisions = run.state.decisions
            vacant = run.chooser.count_vacant(run.pool.idle, run.pool.busy_count)
            self._execute_all(search.fill_workers(run, vacant))
            if run.state.decisions == decisions:
                return
