"""What the epoch loop knows of one configuration: its state, its attempts, and numbers that it
still adds up.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, groupby
from typing import Any, NamedTuple

from cerebro_plpy.configs.params.config import Config
from cerebro_plpy.platform import state_tables
from cerebro_plpy.platform.job import Dataset, StateSource, Sums
from cerebro_plpy.platform.state_tables import StoredState, best_table
from cerebro_plpy.platform.visit_protocol import (
    BatchResult,
    BatchVisit,
    BestState,
    EvaluateVisit,
    VisitResult,
    Worker,
)
from cerebro_plpy.records import dataclass, field
from cerebro_plpy.run.log.form_timings import TimingKey, hash_program, make_compilation_key
from cerebro_plpy.run.request.early_stopping import find_best_epoch
from cerebro_plpy.run.request.run_request import Evaluation, FitRequest
from cerebro_plpy.run.request.state_routing import Route, make_route
from cerebro_plpy.run.request.visit_jobs import (
    Attempt,
    describe_program,
    make_batch_evaluation,
    make_evaluate_visit,
    make_initial_state,
    make_later_state,
    make_program_key,
    make_train_visit,
    select_evaluation_rows,
    select_training_rows,
)
from cerebro_plpy.run.workers.tasks import Step
from cerebro_plpy.scheduling.schedule.schedule import ConfigProgress, Plan, Visit, VisitBatch
from cerebro_plpy.scheduling.schedule.scheduling_policies import count_remaining_visits

Part = Mapping[str, Any]


class Kept(NamedTuple):
    """The epoch of which a state was kept as the best, and where that lies."""

    epoch: int
    stored: StoredState


class Past(NamedTuple):
    """What a configuration did before its run was interrupted; nothing, where the run only begins.

    `visits` are those completed, in order; `attempts` are all that were made, whatever became of
    them; `best` is the state that was kept. The states of one that was `released` are gone.
    """

    visits: Sequence[tuple[Visit, VisitResult]] = ()
    evaluations: Sequence[Evaluation] = ()
    attempts: Mapping[Step, int] = {}
    best: Kept | None = None
    released: bool = False

    def completed(self, segments: Collection[int]) -> Iterator[Visit]:
        """All that need not be done again; what segments found for an evaluation that was not
        completed is lost.
        """
        yield from (visit for visit, _ in self.visits)
        for key, epoch in {
            (evaluation.mst_key, evaluation.epoch) for evaluation in self.evaluations
        }:
            yield from (Visit(epoch, key, segment, "evaluate") for segment in segments)


@dataclass
class ConfigTraining:
    """One configuration while it trains: nobody else knows the numbers of its visits, or its
    tables.

    `program` is the digest of its program, `state` what its next visit starts from, `stored` where
    that lies; `earlier` are the attempts that were made before the run was resumed; `best` is the
    state that is kept, `epoch` that of the newest. So many visits are trained, but `unstored` yet.
    It is trained for so many `epochs`, unless it is stopped: as many as the call said, or as
    somebody has said since.
    """

    request: FitRequest
    config: Config
    run_id: int
    program: str
    state: StateSource
    route: Route
    earlier: Mapping[Step, int]
    attempts: dict[Step, int]
    epochs: int
    visits: int = 0
    unstored: int = 0
    epoch: int = 0
    stored: StoredState | None = None
    states: int = 0  # that were stored
    losses: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    seconds: float = 0.0
    holding: dict[str, set[int]] = field(
        default_factory=dict
    )  # tables of which is known whose states they have
    parts: dict[int, dict[int, Part]] = field(default_factory=dict)  # by epoch and segment
    evaluations: list[Evaluation] = field(default_factory=list)
    best: Kept | None = None
    released: bool = False

    @classmethod
    def after(cls, past: Past, request: FitRequest, config: Config, run_id: int) -> ConfigTraining:
        """A configuration with that past."""
        key, state = (
            hash_program(describe_program(request, config)),
            make_initial_state(request, config, run_id),
        )
        route, attempts = make_route(request, config), dict(past.attempts)
        epochs = min(
            request.spec.epochs,
            request.replay.completed_epochs.get(config.mst_key, request.spec.epochs),
        )
        training = cls(request, config, run_id, key, state, route, past.attempts, attempts, epochs)
        training.evaluations, training.best = list(past.evaluations), past.best
        for visit, result in past.visits:
            training.trained(visit, result)
        if past.released:
            training.release()
        # A run that ended early may have left more in its tables than its log tells.
        tables = (
            []
            if past.attempts
            else state_tables.state_tables(run_id, config.mst_key, route.table_count)
        )
        training.holding = {table: set() for table in tables}
        return training

    def release(self) -> None:
        """Its states are dropped: it can be trained no further."""
        self.released, self.stored, self.best = True, None, None

    def rows_ahead(self, plan: Plan, progress: ConfigProgress) -> int:
        """How many rows its visits will still go through."""
        group, visits = self.config.group, count_remaining_visits(plan, progress).train
        rows = self.request.source.rows if group is None else self.request.groups[group].rows
        return visits * self.config.fit.passes * rows // len(plan.segments_of(self.config.mst_key))

    @property
    def framework(self) -> str:
        """What it is trained with."""
        return self.request.backends[self.config.mst_key]

    @property
    def compilation(self) -> str:
        """What is compiled for it: a program, for batches of one size."""
        return make_compilation_key(self.program, self.config.fit.batch_size)

    def situation(self, worker: Worker) -> TimingKey:
        """What a timing of this configuration's visits on that worker is valid for."""
        return TimingKey(
            worker.memory.machine, self.program, self.config.fit.batch_size, worker.memory.threads
        )

    def tour_visits(
        self, tour: VisitBatch, attempt: int, remaining_rows: int, known: Mapping[str, Any]
    ) -> Iterator[BatchVisit]:
        """This attempt at visits of which the first one leaves a state; `known` are timings of
        forms.
        """
        key, turn = (
            tour[0].mst_key,
            self.route.state_number(tour[0], self.states + bool(self.unstored)),
        )
        source = (
            make_later_state(self.run_id, key, self.visits + self.unstored, None)
            if self.unstored
            else self.route.state_before(tour[0], self.state)
        )
        numbers = count(self.number(tour[0]))
        for kind, group in groupby(tour, lambda visit: visit.kind):
            if kind == "evaluate":
                evaluation = make_evaluate_visit(
                    self.request, self.config, self.run_id, tuple(group), 1, source
                )
                yield make_batch_evaluation(self.request, self.config, evaluation)
                continue
            for visit, number in zip(group, numbers):
                free = set() if self.unstored else self._free(visit)
                fresh = {table for table in free if not self.holding[table]}
                tables = self.route.table_count
                told = Attempt(
                    number,
                    attempt,
                    remaining_rows,
                    known,
                    turn,
                    free,
                    fresh,
                    tables,
                    self.compilation,
                )
                yield make_train_visit(self.request, self.config, self.run_id, visit, told, source)
                source = make_later_state(self.run_id, key, number, None)

    def partitions(self, tour: VisitBatch) -> Iterator[Dataset]:
        """What a trainer must have for a tour."""
        for visit in tour:
            yield select_training_rows(self.request, self.config, visit.segment_id)
            if visit.kind == "evaluate":
                yield from (
                    rows for _, rows in select_evaluation_rows(self.request, self.config, visit)
                )

    def evaluate_visit(self, tour: VisitBatch, attempt: int) -> EvaluateVisit:
        """This attempt at an evaluation over segments."""
        return make_evaluate_visit(
            self.request, self.config, self.run_id, tour, attempt, self.state
        )

    def sums(self, epoch: int) -> Sums:
        """What all segments found in an epoch, which is asked for once."""
        parts = self.parts.pop(epoch)
        # In an order that is always the same: sums depend on it, and who is stopped on them.
        total, key = (
            add_parts(parts[segment] for segment in sorted(parts)),
            make_program_key(self.run_id, self.config.mst_key),
        )
        return Sums(describe_program(self.request, self.config), total["sums"], total["rows"], key)

    def number(self, visit: Visit) -> int:
        """The number in the log of a visit that leaves a state, the next one to begin."""
        return self.route.visit_number(visit, self.visits + self.unstored)

    def completed(self) -> bool:
        """Whether all visits have left their states."""
        return self.visits == self.route.count_visits(self.epochs)

    def begin(self, tour: VisitBatch) -> int:
        """The number of a new attempt at these visits, of which the first stands for all."""
        step = self._step(tour[0])
        self.attempts[step] = self.attempts.get(step, 0) + 1
        return self.attempts[step]

    def alone(self, progress: ConfigProgress) -> bool:
        """Whether its next visits are to be made one by one: one was tried before, or writes of its
        segment alone.
        """
        if progress.kind == "evaluate":
            steps = [
                Visit(progress.epoch, progress.mst_key, segment, "evaluate")
                for segment in progress.waiting_segments
            ]
            return self.config.fit.callbacks.tensorboard is not None or any(
                step in self.attempts for step in steps
            )
        return (
            progress.kind == "average"
            or bool(progress.copies)
            or self.visits + self.unstored + 1 in self.attempts
        )

    def before_tried(self) -> int:
        """How many of its next visits come before one that was tried, too: begun from a state that
        was never stored.
        """
        following = self.visits + self.unstored + 1
        tried = (
            step - following for step in self.attempts if isinstance(step, int) and step > following
        )
        return min(tried, default=sys.maxsize)

    @property
    def evaluation_tried(self) -> bool:
        """Whether an evaluation was tried before that is still to be made."""
        newest = self.evaluations[-1].epoch if self.evaluations else 0
        return any(isinstance(step, Visit) and step.epoch > newest for step in self.attempts)

    def lost(
        self, tour: VisitBatch, first: Step, *, charged: bool
    ) -> Iterator[tuple[Visit, int, int]]:
        """Visits of which nobody heard whether they were logged, with their numbers, and those of
        the attempts; none but the `first` is `charged` with one, and that only where it may be to
        blame."""
        numbers = count(0 if isinstance(first, Visit) else first)
        for visit in tour:
            number = 0 if visit.kind == "evaluate" else next(numbers)
            step: Step = number or visit
            if visit is not tour[0]:
                self.attempts[step] = 1
            if visit is not tour[0] or not charged:
                self.earlier = {**self.earlier, step: self.earlier.get(step, 0) + 1}
            yield visit, number, self.attempts[step]

    def tried(self, step: Step) -> int:
        """How often this was tried since the run began or was resumed."""
        return self.attempts[step] - self.earlier.get(step, 0)

    def trained(self, visit: Visit, result: VisitResult) -> None:
        """A visit was made; what it left is what the next one starts from, or is to be averaged."""
        stored = None
        if result.state_table:
            stored = StoredState(result.state_table, visit.segment_id, result.base_table)
            others = (
                self.holding.get(stored.table, set())
                if stored.table in self._free(visit)
                else set()
            )
            self.holding[stored.table] = {*others, visit.segment_id}
            self.states += 1
        left = make_later_state(
            self.run_id, visit.mst_key, self.route.visit_number(visit, self.visits), stored
        )
        self.visits += 1
        self.unstored = max(0, self.unstored - 1)
        if visit.kind == "train":
            self.seconds += result.seconds
            self.losses.setdefault(visit.epoch, []).append((result.rows, result.loss))
        if self.route.record_state(visit, left, result.rows):
            self.state, self.stored, self.epoch = left, stored, visit.epoch

    @property
    def evaluated(self) -> bool:
        """Whether metrics were computed of the newest state, or of one of its epoch after which
        none was trained.
        """
        return bool(self.evaluations) and self.evaluations[-1].epoch == self.epoch

    @property
    def outcome(self) -> StoredState | None:
        """Where the state lies that the configuration has come to so far."""
        return self.best.stored if self.best else self.stored

    def best_state(self, epoch: int) -> BestState:
        """The newest state, as that to keep of an epoch."""
        assert self.stored is not None
        return self._best_state(epoch, self.state, self.stored.segment_id)

    def best_of(self, trained: BatchResult) -> BestState | None:
        """The state that is to be kept of those that were evaluated in a tour, if one is better
        than all before.
        """
        key, told = self.config.mst_key, trained.evaluations
        found = [
            each
            for visit, result in told
            for each in evaluations(key, visit.epoch, result["metrics"], 0.0)
        ]
        best = find_best_epoch(self.config, self.request, [*self.evaluations, *found])
        segments = [
            visit.dataset.segment_id
            for visit, _ in trained.training
            if best and visit.epoch <= best
        ]
        states = [visit.state for visit, _ in trained.evaluations if visit.epoch == best]
        return (
            self._best_state(best, states[0], segments[-1]) if best is not None and states else None
        )

    def _best_state(self, epoch: int, state: StateSource, segment_id: int | None) -> BestState:
        key, replaced = self.config.mst_key, self.best.stored.table if self.best else None
        table = best_table(self.run_id, key, epoch)
        return BestState(self.run_id, key, epoch, state, segment_id, table, replaced)

    def _free(self, visit: Visit) -> set[str]:
        """Tables that are known to have nothing of that visit's segment, nor of an attempt at it
        that was lost.
        """
        if self.attempts.get(self.route.visit_number(visit, self.visits), 0) > 1:
            return set()
        return {
            table for table, segments in self.holding.items() if visit.segment_id not in segments
        }

    def mean_loss(self, epoch: int) -> float:
        """Mean training loss per row of the visits of an epoch, which is asked for once."""
        losses = self.losses.pop(epoch)
        rows = sum(count for count, _ in losses)
        return sum(count * loss for count, loss in losses) / max(1, rows)

    def _step(self, visit: Visit) -> Step:
        return visit if visit.kind == "evaluate" else self.number(visit)


def evaluations(
    mst_key: int, epoch: int, found: Mapping[str, Mapping[str, Any]], elapsed: float
) -> list[Evaluation]:
    """What was found of a configuration after an epoch, by data set, and how long after the run had
    begun.
    """
    return [
        Evaluation(mst_key, epoch, dataset, value["loss"], tuple(value["metrics"]), elapsed)
        for dataset, value in found.items()
    ]


def add_parts(parts: Iterable[Part]) -> dict[str, dict[str, Any]]:
    """What the segments found, per data set: `sums` added element by element, and `rows`.

    >>> add_parts([{"training": {"rows": 1, "sums": [[1.0, 2.0]]}},
    ...     {"training": {"rows": 2, "sums": [[3.0, 4.0]]}}])
    {'sums': {'training': [[4.0, 6.0]]}, 'rows': {'training': 3}}
    """
    sums: dict[str, list[list[float]]] = {}
    rows: dict[str, int] = {}
    for part in parts:
        for name, values in part.items():
            rows[name] = rows.get(name, 0) + values["rows"]
            before = sums.get(name, [[0.0] * len(v) for v in values["sums"]])
            sums[name] = [[a + b for a, b in zip(x, y)] for x, y in zip(before, values["sums"])]
    return {"sums": sums, "rows": rows}
