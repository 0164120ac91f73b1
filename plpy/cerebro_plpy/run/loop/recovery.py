"""Recovery: lost trainers and sessions, visits that are made again, and failed configurations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cerebro_plpy.database.sessions.async_dispatcher import Statement
from cerebro_plpy.errors import CerebroError, ConfigFailure, ConnectionFailure
from cerebro_plpy.platform.visit_protocol import Worker
from cerebro_plpy.records import replace
from cerebro_plpy.run.loop.run_objects import Run
from cerebro_plpy.run.loop.search import report_end
from cerebro_plpy.run.loop.step import Effect, Step
from cerebro_plpy.run.loop.stopping import BudgetOver
from cerebro_plpy.run.state.config_state import LostVisit
from cerebro_plpy.run.state.run_state import RunState
from cerebro_plpy.run.workers.events import FusionFailed, TaskFailed
from cerebro_plpy.run.workers.tasks import (
    RETRYABLE_ERRORS,
    BestStateTask,
    ConfigTask,
    FollowUp,
    FusedTask,
    StoreTask,
    VisitTask,
)
from cerebro_plpy.run.workers.worker_pool import LostTasks
from cerebro_plpy.scheduling.schedule.schedule import VisitBatch


def on_task_failed(run: Run, event: TaskFailed) -> Iterator[Step]:
    """Retry the task of a configuration, or fail the configuration.

    Raises:
        CerebroError: the error is not about a configuration.
    """
    worker, task, error = event
    if isinstance(error, RETRYABLE_ERRORS):
        yield from recover(run, event)
        return
    if isinstance(error, BudgetOver):
        worker.memory.forget()
    elif not isinstance(error, ConfigFailure):
        raise error
    if is_awaited(run.state, task):
        yield fail_config(run, task.mst_key, error.message)


def recover(run: Run, event: TaskFailed) -> Iterator[Step]:
    """Make the visits of a lost trainer again, as long as the charged ones have attempts left."""
    worker, task, error = event
    state = run.state
    worker.memory.forget()
    lost = run.pool.drop_tasks(worker, task)
    charged = lost.charged
    is_taken_back = lost.unstored is not None and state.is_ahead(charged.mst_key)
    yield lose_tasks(run, event, lost)
    if isinstance(error, ConnectionFailure) and not run.context.reopen(worker):
        yield run.scaling.remove_lost(worker, error)
    if not is_taken_back and not is_awaited(state, charged):
        return
    if has_attempts_left(run, charged):
        yield retry(run, worker, charged)
    else:
        yield fail_config(run, charged.mst_key, error.message)


def lose_tasks(run: Run, event: TaskFailed, lost: LostTasks) -> Step:
    """Return the step that logs lost visits, and returns configurations to stored states."""
    _, task, error = event
    state = run.state
    charged, unstored = lost
    visits: list[LostVisit] = []
    changes: list[Effect] = [partial(state.drop_unstored, charged.mst_key)]
    if unstored:
        changes += [
            partial(state.drop_unstored, unstored.mst_key),
            partial(state.take_back, charged.mst_key),
        ]
    if isinstance(charged, VisitTask) and (unstored or isinstance(error, ConnectionFailure)):
        batch = select_lost(charged.batch, error)
        visits += state.configs[charged.mst_key].list_lost(batch, charged.attempt_key)
        changes.append(partial(state.lose_visits, batch, charged.attempt_key, charged=True))
    if unstored:
        batch = select_lost(unstored.batch, error)
        first = unstored.result.training[0][0].visit_no
        visits += state.configs[unstored.mst_key].list_lost(batch, first)
        changes += [
            partial(state.lose_visits, batch, first, charged=False),
            partial(state.abandon_if_running, unstored.batch),
        ]
    log = run.log.log_lost_attempts(visits, error.message)
    if isinstance(task, StoreTask) and task.result.best:
        best = state.configs[task.mst_key].best
        log.append(run.log.log_best_epoch(task.mst_key, best.epoch if best else None))
    return Step(log=log, changes=changes)


def select_lost(batch: VisitBatch, error: CerebroError | None) -> VisitBatch:
    """Return the visits of a batch that the log may lack.

    After a connection failure nobody knows which visits were logged. Otherwise the log has the
    failure of the first one, and no others.
    """
    return batch if isinstance(error, ConnectionFailure) else batch[:1]


def has_attempts_left(run: Run, task: VisitTask | FollowUp) -> bool:
    """Return True if a task may be tried again."""
    attempts = count_attempts(run.state, task)
    return attempts < run.request.spec.max_attempts


def count_attempts(state: RunState, task: VisitTask | FollowUp) -> int:
    """Return how many attempts at a task count so far."""
    if isinstance(task, VisitTask):
        return state.configs[task.mst_key].count_new_attempts(task.attempt_key)
    return task.attempt


def retry(run: Run, worker: Worker, task: VisitTask | FollowUp) -> Step:
    """Return the step that tries a task again: visits wait, other tasks begin at once."""
    if isinstance(task, VisitTask):
        return Step(changes=[partial(run.state.abandon_if_running, task.batch)])
    task = replace(task, attempt=task.attempt + 1)
    if worker.number in run.pool.numbers:
        return Step(tasks=[partial(run.pool.start_follow_up, worker, task)])
    return Step(tasks=[partial(run.pool.queue_follow_up, task)])


def is_awaited(state: RunState, task: ConfigTask) -> bool:
    """Return True if a configuration still waits for a task: it has not failed or ended."""
    if isinstance(task, BestStateTask):
        return task.mst_key in state.progress
    return state.is_running(task.batch)


def on_fusion_failed(run: Run, event: FusionFailed) -> Iterator[Step]:
    """Let configurations that could not train together train alone.

    Raises:
        CerebroError: the error is not about configurations.
    """
    worker, fused, error = event
    if isinstance(error, BudgetOver):
        for task in fused.tasks:
            yield from on_task_failed(run, TaskFailed(worker, task, error))
        return
    if not isinstance(error, (*RETRYABLE_ERRORS, ConfigFailure)):
        raise error
    yield abandon_fused(run, worker, fused, error)
    if isinstance(error, ConnectionFailure) and not run.context.reopen(worker):
        yield run.scaling.remove_lost(worker, error)


def abandon_fused(run: Run, worker: Worker, fused: FusedTask, error: CerebroError | None) -> Step:
    """Return the step that abandons fused visits: nobody is charged, and each trains alone."""
    state = run.state
    visits: list[LostVisit] = []
    changes: list[Effect] = [partial(run.fusion.note_unfit, worker, fused.tasks[0].mst_key)]
    if isinstance(error, RETRYABLE_ERRORS):
        changes.append(worker.memory.forget)
    for task in fused.tasks:
        batch = select_lost(task.batch, error)
        visits += state.configs[task.mst_key].list_lost(batch, task.attempt_key)
        changes += [
            partial(state.lose_visits, batch, task.attempt_key, charged=False),
            partial(state.abandon_if_running, task.batch),
        ]
    log: list[Statement] = []
    if isinstance(error, ConnectionFailure):
        log = run.log.log_lost_attempts(visits, error.message)
    return Step(log=log, changes=changes)


def fail_config(run: Run, mst_key: int, reason: str) -> Step:
    """Return the step that gives a configuration up."""
    return Step(
        log=[run.log.log_config_failed(mst_key, reason)],
        changes=[
            partial(run.state.fail, mst_key, reason),
            *report_end(run, mst_key, f"it failed: {reason}", failed=True),
        ],
        notes=[partial(run.context.report_failure, mst_key, reason)],
    )


def fail_orphans(run: Run) -> Iterator[Step]:
    """Fail the clones of a replay that wait for the state of a failed parent."""
    state = run.state
    while True:
        key = state.find_orphan()
        if key is None:
            return
        reason = (
            f"its parent, mst_key={state.waiting[key].parent}, failed before its state could be "
            "copied"
        )
        step = fail_config(run, key, reason) if key in state.progress else Step()
        yield step._replace(changes=[partial(state.forget_waiting, key), *step.changes])
