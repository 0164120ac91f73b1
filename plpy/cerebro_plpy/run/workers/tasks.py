"""The tasks of workers: what the epoch loop lets them do, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from cerebro_plpy.errors import ConnectionFailure, OutOfMemory, TrainerFailure
from cerebro_plpy.platform.job import Sums
from cerebro_plpy.platform.visit_protocol import (
    BatchResult,
    BatchVisit,
    BestState,
    TrainVisit,
    Worker,
)
from cerebro_plpy.records import dataclass
from cerebro_plpy.scheduling.schedule.schedule import Visit, VisitBatch

RETRYABLE_ERRORS = (TrainerFailure, OutOfMemory, ConnectionFailure)
"""Errors after which the same task may succeed, with a new trainer or session."""

AttemptKey = Union[int, Visit]
"""What attempts count for: a visit that leaves a state, by its number; or an evaluation."""


class BatchTask:
    """A task that makes visits of one configuration, or follows them."""

    batch: VisitBatch

    @property
    def mst_key(self) -> int:
        return self.batch[0].mst_key

    @property
    def epoch(self) -> int:
        return self.batch[0].epoch


@dataclass(frozen=True)
class VisitTask(BatchTask):
    """Make visits of one configuration.

    If the worker's trainer still holds the state of an earlier batch, the task only begins the
    visits. A second task with the same visits then finishes them.
    """

    batch: VisitBatch
    started_at: float  # on the monotonic clock
    visits: Sequence[BatchVisit] = ()

    @property
    def trains(self) -> bool:
        return self.batch[0].kind != "evaluate"

    @property
    def attempt_key(self) -> AttemptKey:
        """Return what attempts at the task count for."""
        numbers = (visit.visit_no for visit in self.visits if isinstance(visit, TrainVisit))
        return next(numbers, self.batch[0])


@dataclass(frozen=True)
class StoreTask(BatchTask):
    """Store the states that visits have left."""

    batch: VisitBatch
    result: BatchResult
    worker: Worker
    train_seconds: float  # that the worker took for the visits
    is_evaluated_next: bool = False  # the trainer needs the state, and can make no other visits
    started_at: float = 0.0  # on the monotonic clock
    next_task: VisitTask | None = None  # visits that the trainer makes meanwhile

    def worker_seconds(self, now: float) -> float:
        """Return how long the worker did nothing else, if the task has just ended."""
        if self.next_task:
            return self.train_seconds
        return self.train_seconds + now - self.started_at


@dataclass(frozen=True)
class FusedTask:
    """Make visits of several configurations in one job, and store the states that they leave."""

    tasks: Sequence[VisitTask]


@dataclass(frozen=True)
class MetricsTask(BatchTask):
    """Compute the metrics of an epoch from sums over segments."""

    batch: VisitBatch  # the visits that added the last sums
    sums: Sums
    attempt: int = 1


@dataclass(frozen=True)
class BestStateTask:
    """Retain a state as the best; meanwhile nothing else happens to its configuration."""

    best: BestState
    attempt: int = 1

    @property
    def mst_key(self) -> int:
        return self.best.mst_key


FollowUp = Union[MetricsTask, BestStateTask]
"""A task that follows an evaluation; any worker can do it."""
ConfigTask = Union[VisitTask, StoreTask, FollowUp]
Task = Union[ConfigTask, FusedTask]
