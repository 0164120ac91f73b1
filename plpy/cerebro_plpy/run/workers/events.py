"""The events of a run: what workers report, and what users command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Union

from cerebro_plpy.database.sessions.async_dispatcher import Outcome
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.visit_protocol import BatchResult, FusedResult, VisitResult, Worker
from cerebro_plpy.run.log.step_log import Command
from cerebro_plpy.run.workers.tasks import (
    BestStateTask,
    ConfigTask,
    FusedTask,
    MetricsTask,
    StoreTask,
    Task,
    VisitTask,
)


class VisitsBegun(NamedTuple):
    """A trainer makes visits while the state of those before is still to be stored."""

    worker: Worker
    task: VisitTask


class VisitsTrained(NamedTuple):
    """A trainer has made visits, the first ones of the task at least, and holds their state."""

    worker: Worker
    task: VisitTask
    result: BatchResult


class StatesStored(NamedTuple):
    """A worker has committed visits, their metrics and their state in one transaction."""

    worker: Worker
    task: StoreTask
    results: Sequence[VisitResult]


class FusedStored(NamedTuple):
    """A worker has made and committed visits of several configurations."""

    worker: Worker
    task: FusedTask
    results: Sequence[FusedResult]  # empty if it made none


class PartsEvaluated(NamedTuple):
    """A worker has evaluated segments, the first ones of the task at least."""

    worker: Worker
    task: VisitTask
    parts: Mapping[int, Mapping[str, Any]]  # by segment


class MetricsComputed(NamedTuple):
    """A worker has computed the metrics of an epoch."""

    worker: Worker
    task: MetricsTask
    metrics: Mapping[str, Any]  # by data set


class BestSaved(NamedTuple):
    """A worker has copied and committed the best state of a configuration."""

    worker: Worker
    task: BestStateTask
    stored: StoredState


class TaskFailed(NamedTuple):
    """A task of one configuration has ended with an error."""

    worker: Worker
    task: ConfigTask
    error: CerebroError


class FusionFailed(NamedTuple):
    """A task of several configurations has ended with an error."""

    worker: Worker
    task: FusedTask
    error: CerebroError


class CommandReceived(NamedTuple):
    """A user has written a command into the log."""

    command: Command


WorkerEvent = Union[
    VisitsBegun,
    VisitsTrained,
    StatesStored,
    FusedStored,
    PartsEvaluated,
    MetricsComputed,
    BestSaved,
    TaskFailed,
    FusionFailed,
]
Event = Union[WorkerEvent, CommandReceived]


def make_event(worker: Worker, task: Task, outcome: Outcome[Any]) -> WorkerEvent:
    """Return the event that the outcome of a task is."""
    value: Any = outcome.value
    if isinstance(task, FusedTask):
        if outcome.error is not None:
            return FusionFailed(worker, task, outcome.error)
        return FusedStored(worker, task, value or ())
    if outcome.error is not None:
        return TaskFailed(worker, task, outcome.error)
    if isinstance(task, StoreTask):
        return StatesStored(worker, task, value)
    if isinstance(task, MetricsTask):
        return MetricsComputed(worker, task, value)
    if isinstance(task, BestStateTask):
        return BestSaved(worker, task, value)
    if not task.trains:
        return PartsEvaluated(worker, task, value)
    if value is None:
        return VisitsBegun(worker, task)
    return VisitsTrained(worker, task, value)
