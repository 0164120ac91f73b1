"""The state of one configuration: its model state, its attempts, and results still incomplete.

`RunState` alone changes it. Everybody else reads.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.configs.architecture.boosted_trees import is_boosted_trees
from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.platform import state_tables
from cerebro_plpy.platform.job import StateSource
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.visit_protocol import (
    VisitResult,
    Worker,
)
from cerebro_plpy.records import dataclass, field
from cerebro_plpy.run.log.form_timings import TimingKey, hash_program, make_compilation_key
from cerebro_plpy.run.request.early_stopping import find_best_epoch
from cerebro_plpy.run.request.run_request import Evaluation, FitRequest
from cerebro_plpy.run.request.state_routing import Route, make_route
from cerebro_plpy.run.request.visit_jobs import (
    describe_program,
    make_initial_state,
    make_later_state,
)
from cerebro_plpy.run.workers.tasks import AttemptKey
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Plan, Visit, VisitBatch
from cerebro_plpy.scheduling.schedule.scheduling_policies import count_remaining_visits

Part = Mapping[str, Any]


class RetainedState(NamedTuple):
    """The state that was retained as the best of a configuration."""

    epoch: int
    stored: StoredState


class LostVisit(NamedTuple):
    """A visit of which nobody knows if the log has it."""

    visit: Visit
    visit_no: int  # 0 for an evaluation
    attempt: int


class ConfigHistory(NamedTuple):
    """The history of a configuration before its run was interrupted; empty for a new run."""

    visits: Sequence[tuple[Visit, VisitResult]] = ()  # completed, in order
    evaluations: Sequence[Evaluation] = ()
    attempts: Mapping[AttemptKey, int] = {}  # successful or not
    best: RetainedState | None = None
    released: bool = False  # its states were dropped

    def completed_visits(self, segments: Collection[int]) -> Iterator[Visit]:
        """Yield the visits that need not be made again.

        An incomplete evaluation does not count: the parts of its segments are lost.
        """
        for visit, _ in self.visits:
            yield visit
        keys = {(evaluation.mst_key, evaluation.epoch) for evaluation in self.evaluations}
        for mst_key, epoch in keys:
            for segment in segments:
                yield Visit(epoch, mst_key, segment, "evaluate")


@dataclass
class ConfigState:
    """One configuration while it trains."""

    request: FitRequest
    config: Config
    run_id: int
    program: str  # digest of the program
    state: StateSource  # start of the next visit
    route: Route
    earlier_attempts: Mapping[AttemptKey, int]  # that do not count towards max_attempts
    attempts: dict[AttemptKey, int]
    epochs: int  # last epoch to train, unless a decision stops the configuration
    visits: int = 0  # stored visits that leave a state
    unstored: int = 0  # trained visits that are not stored yet
    epoch: int = 0  # of the newest state
    stored: StoredState | None = None  # the newest state
    stored_states: int = 0
    seconds: float = 0.0  # training time of all stored visits
    losses: dict[int, list[tuple[int, float | None]]] = field(default_factory=dict)
    """Rows and mean loss of each training visit, by epoch; None if rows were only collected."""
    table_segments: dict[str, set[int]] = field(default_factory=dict)
    """Segments with rows in each state table; tables of unknown content are missing."""
    parts: dict[int, dict[int, Part]] = field(default_factory=dict)
    """Sums of incomplete evaluations, by epoch and segment."""
    evaluations: list[Evaluation] = field(default_factory=list)
    best: RetainedState | None = None
    released: bool = False  # its states are dropped, or will be

    @classmethod
    def restore(
        cls, history: ConfigHistory, request: FitRequest, config: Config, run_id: int
    ) -> ConfigState:
        """Return the state of a configuration after its history."""
        route = make_route(request, config)
        recorded_epochs = request.replay.completed_epochs.get(config.mst_key, request.spec.epochs)
        state = cls(
            request=request,
            config=config,
            run_id=run_id,
            program=hash_program(describe_program(request, config)),
            state=make_initial_state(request, config, run_id),
            route=route,
            earlier_attempts=history.attempts,
            attempts=dict(history.attempts),
            epochs=min(request.spec.epochs, recorded_epochs),
            evaluations=list(history.evaluations),
            best=history.best,
        )
        for visit, result in history.visits:
            state.add_visit(visit, result)
        if history.released:
            state.release()
        state.table_segments = {}
        # A run that ended early may have left rows that its log does not mention.
        if not history.attempts:
            for table in state_tables.state_tables(run_id, config.mst_key, route.table_count):
                state.table_segments[table] = set()
        return state

    @property
    def mst_key(self) -> int:
        return self.config.mst_key

    @property
    def learns_from_whole_epochs(self) -> bool:
        """Return True if it learns from the rows of all segments at once."""
        return is_boosted_trees(self.request.architectures[self.config.model_id].json)

    @property
    def framework(self) -> str:
        """Return the framework that trains the configuration."""
        return self.request.backends[self.mst_key]

    @property
    def compilation(self) -> str:
        """Return the key of its compiled code: a program, for batches of one size."""
        return make_compilation_key(self.program, self.config.fit.batch_size)

    @property
    def is_completed(self) -> bool:
        """Return True if all visits are stored."""
        return self.is_completed_after(self.epochs)

    def is_completed_after(self, epochs: int) -> bool:
        """Return True if all visits are stored of a configuration that trains so many epochs."""
        return self.visits == self.route.count_visits(epochs)

    @property
    def is_evaluated(self) -> bool:
        """Return True if the newest epoch that was trained has metrics."""
        return bool(self.evaluations) and self.evaluations[-1].epoch == self.epoch

    @property
    def model_state(self) -> StoredState | None:
        """Return the stored state that is the model so far: the best one, else the newest."""
        return self.best.stored if self.best else self.stored

    @property
    def has_tried_evaluation(self) -> bool:
        """Return True if an evaluation that is still to be made was tried before."""
        newest = self.evaluations[-1].epoch if self.evaluations else 0
        return any(isinstance(key, Visit) and key.epoch > newest for key in self.attempts)

    @property
    def mean_visit_seconds(self) -> float | None:
        """Return the mean training time of a visit; None before the first one."""
        return self.seconds / self.visits if self.visits else None

    def timing_key(self, worker: Worker) -> TimingKey:
        """Return the key of timings that are valid for this configuration on a worker."""
        return TimingKey(
            worker.memory.machine, self.program, self.config.fit.batch_size, worker.memory.threads
        )

    def remaining_rows(self, plan: Plan, progress: ConfigProgress) -> int:
        """Return how many rows its visits have still to go through."""
        rows = self.request.source.rows
        if self.config.group is not None:
            rows = self.request.groups[self.config.group].rows
        visits = count_remaining_visits(plan, progress).train
        return visits * self.config.fit.passes * rows // len(plan.segments_of(self.mst_key))

    # The budget of the run that a replay repeats.

    @property
    def visits_before_recorded_end(self) -> int:
        """Return how many visits may begin until the recorded budget has to be looked at again."""
        ending = self.request.replay.endings.get(self.mst_key)
        if ending is None:
            return sys.maxsize
        return ending.visits - self.visits - self.unstored

    @property
    def ends_unevaluated(self) -> bool:
        """Return True if the recorded run did not evaluate the last state."""
        ending = self.request.replay.endings.get(self.mst_key)
        return ending is not None and not ending.evaluated

    @property
    def is_at_recorded_end(self) -> bool:
        """Return True if the budget of the recorded run ended the configuration here."""
        ending = self.request.replay.endings.get(self.mst_key)
        return ending is not None and self.visits >= ending.visits

    @property
    def visits_before_clone(self) -> int:
        """Return how many visits may begin until a clone of the recorded run needs the state."""
        begun_visits = self.visits + self.unstored
        distances = (
            start.visits - begun_visits
            for start in self.request.replay.clone_starts.values()
            if start.parent == self.mst_key and start.visits > begun_visits
        )
        return min(distances, default=sys.maxsize)

    def free_tables(self, visit: Visit) -> set[str]:
        """Return the tables without rows of a visit's segment, or of a lost attempt at it."""
        if self.attempts.get(self.route.visit_number(visit, self.visits), 0) > 1:
            return set()
        return {
            table
            for table, segments in self.table_segments.items()
            if visit.segment_id not in segments
        }

    # Attempts.

    def visit_no(self, visit: Visit) -> int:
        """Return the number in the log of the next visit that leaves a state."""
        return self.route.visit_number(visit, self.visits + self.unstored)

    def attempt_key(self, batch: VisitBatch) -> AttemptKey:
        """Return the key under which attempts at a batch count: its first visit."""
        if batch[0].kind == "evaluate":
            return batch[0]
        return self.visit_no(batch[0])

    def count_new_attempts(self, key: AttemptKey) -> int:
        """Return how many attempts count towards max_attempts."""
        return self.attempts[key] - self.earlier_attempts.get(key, 0)

    def must_visit_singly(self, progress: ConfigProgress) -> bool:
        """Return True if the next visits must be made one by one.

        One of them was tried before, or writes files of its segment alone.
        """
        if progress.kind != "evaluate":
            is_retry = self.visits + self.unstored + 1 in self.attempts
            return progress.kind == "average" or bool(progress.copies) or is_retry
        if self.config.fit.callbacks.tensorboard is not None:
            return True
        return any(
            Visit(progress.epoch, progress.mst_key, segment, "evaluate") in self.attempts
            for segment in progress.waiting_segments
        )

    @property
    def visits_before_retry(self) -> int:
        """Return how many next visits come before one that was tried from a state now lost."""
        following = self.visits + self.unstored + 1
        retries = (
            key - following for key in self.attempts if isinstance(key, int) and key > following
        )
        return min(retries, default=sys.maxsize)

    def list_lost(self, batch: VisitBatch, first: AttemptKey) -> list[LostVisit]:
        """Return the visits of a batch of which nobody knows if the log has them.

        Args:
            batch: visits of one job whose session is lost.
            first: the key of the first visit.
        """
        lost = []
        for visit, key in zip(batch, _attempt_keys(batch, first)):
            # All training visits of a job are the same attempt.
            attempt = self.attempts[first] if visit is batch[0] or isinstance(key, int) else 1
            lost.append(LostVisit(visit, key if isinstance(key, int) else 0, attempt))
        return lost

    def mean_loss(self, epoch: int) -> float:
        """Return the mean training loss per row in an epoch."""
        losses = [(count, loss) for count, loss in self.losses[epoch] if loss is not None]
        rows = sum(count for count, _ in losses)
        return sum(count * loss for count, loss in losses) / max(1, rows)

    def find_epoch_to_retain(self) -> int | None:
        """Return the epoch whose state is to be retained now; None if there is nothing to do."""
        best = find_best_epoch(self.config, self.request, self.evaluations)
        if best is None or (self.best and self.best.epoch == best):
            return None
        return best

    # Changes.

    def count_attempt(self, batch: VisitBatch) -> None:
        """Count a new attempt at a batch."""
        key = self.attempt_key(batch)
        self.attempts[key] = self.attempts.get(key, 0) + 1

    def mark_lost(self, batch: VisitBatch, first: AttemptKey, *, charged: bool) -> None:
        """Count the attempts of lost visits.

        Args:
            batch: visits of one job whose session is lost.
            first: the key of the first visit.
            charged: the first visit may be to blame; its attempt counts towards max_attempts.
        """
        for visit, key in zip(batch, _attempt_keys(batch, first)):
            if visit is not batch[0]:
                self.attempts[key] = self.attempts[first] if isinstance(key, int) else 1
            if visit is not batch[0] or not charged:
                earlier = self.earlier_attempts.get(key, 0)
                self.earlier_attempts = {**self.earlier_attempts, key: earlier + 1}

    def add_visit(self, visit: Visit, result: VisitResult) -> None:
        """Add a stored visit, whose state the next visit starts from or averages."""
        stored = None
        if result.state_table:
            stored = StoredState(result.state_table, visit.segment_id, result.base_table)
            segments = {visit.segment_id}
            if stored.table in self.free_tables(visit):
                segments |= self.table_segments.get(stored.table, set())
            self.table_segments[stored.table] = segments
            self.stored_states += 1
        visit_no = self.route.visit_number(visit, self.visits)
        state = make_later_state(self.run_id, visit.mst_key, visit_no, stored)
        self.visits += 1
        self.unstored = max(0, self.unstored - 1)
        if visit.kind == "train":
            self.seconds += result.seconds
            self.losses.setdefault(visit.epoch, []).append((result.rows, result.loss))
        if self.route.record_state(visit, state, result.rows):
            self.state = state
            self.stored = stored
            self.epoch = visit.epoch

    def release(self) -> None:
        """Drop the states: the configuration can train no further."""
        self.released = True
        self.stored = None
        self.best = None


def _attempt_keys(batch: VisitBatch, first: AttemptKey) -> Iterator[AttemptKey]:
    """Yield the key of each visit of a batch."""
    visit_no = first
    for visit in batch:
        if visit.kind == "evaluate" or isinstance(visit_no, Visit):
            yield visit
        else:
            yield visit_no
            visit_no += 1


def make_evaluations(
    mst_key: int, epoch: int, metrics: Mapping[str, Mapping[str, Any]], elapsed: float
) -> list[Evaluation]:
    """Return the evaluations of a configuration after an epoch.

    Args:
        metrics: loss and metrics by data set.
        elapsed: seconds since the run began.
    """
    return [
        Evaluation(mst_key, epoch, dataset, value["loss"], tuple(value["metrics"]), elapsed)
        for dataset, value in metrics.items()
    ]


def add_parts(parts: Iterable[Part]) -> dict[str, dict[str, Any]]:
    """Add the results of segments: `sums` element by element and `rows`, by data set.

    >>> add_parts([{"training": {"rows": 1, "sums": [[1.0, 2.0]]}},
    ...     {"training": {"rows": 2, "sums": [[3.0, 4.0]]}}])
    {'sums': {'training': [[4.0, 6.0]]}, 'rows': {'training': 3}}
    """
    sums: dict[str, list[list[float]]] = {}
    rows: dict[str, int] = {}
    for part in parts:
        for name, values in part.items():
            rows[name] = rows.get(name, 0) + values["rows"]
            total = sums.get(name, [[0.0] * len(v) for v in values["sums"]])
            sums[name] = [[a + b for a, b in zip(x, y)] for x, y in zip(total, values["sums"])]
    return {"sums": sums, "rows": rows}
