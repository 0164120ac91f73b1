"""Visits as every platform makes them; how a state passes to and from a trainer is left to each.

Each training visit is three transactions: the log row; the job in the trainer, which reads the old state;
the new state with the log row that says which table holds it. The visits of a tour share them. The first two of the
worker's next visit may come before the third of this one: the trainer has begun with it when the state is stored.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from cerebro_plpy.database import strict_json
from cerebro_plpy.database.dispatch import Statement, Steps
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import LOCK_NOT_AVAILABLE, CerebroError
from cerebro_plpy.platform import state_tables
from cerebro_plpy.platform.job import Dataset, Job, RawRows, StateSource, Sums
from cerebro_plpy.platform.protocol import (
    BestState,
    EvaluateVisit,
    JoinedState,
    Trained,
    TrainVisit,
    VisitResult,
    Worker,
)
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.statements import call, job_result, join
from cerebro_plpy.platform.trainer_jobs import TrainerJobs, passes

T = TypeVar("T")
LOGGED = ("ended_at", "rows", "form", "threads", "loss", "training_seconds")
STATES_BESIDE = 2
"""States that must fit into a trainer's memory for it to hold one more: what it copies of it is freed late."""


class SharedVisits(TrainerJobs):
    """See `protocol.Visits` for the laws."""

    @abstractmethod
    def _visit_end(self, visit: TrainVisit, table: str) -> str:
        """What stores the new state in this table, and says so in the log."""

    @abstractmethod
    def _stored(self, stored: StoredState, key: str) -> Statement:
        """What stores the state of that name, which the trainer holds, in an empty table."""

    @abstractmethod
    def predict(
        self, worker: Worker, rows: RawRows, state: StateSource, job: Job, request: Mapping[str, Any]
    ) -> Steps[str | None]:
        """See `Visits.predict`."""

    def train(self, worker: Worker, tour: Sequence[TrainVisit]) -> Steps[Trained]:
        """Train one visit, or average what others have left; or train several of one configuration."""
        yield from self._prepare(worker, _datasets(tour))
        made = tour if worker.memory.keeps(_datasets(tour)) else tour[:1]
        yield self._running(worker, tour[0])
        return (yield from self._or_failed(worker, made, self._done(worker, made)))

    def stores_beside(self, worker: Worker, trained: Trained, datasets: Sequence[Dataset]) -> bool:
        """Whether a tour over these partitions can begin before what was trained is stored."""
        room, size = (trained.results[-1][name] for name in ("room", "state_bytes"))
        return worker.memory.keeps(datasets) and (room is None or room >= STATES_BESIDE * size)

    def begin(self, worker: Worker, tour: Sequence[TrainVisit]) -> Steps[None]:
        """Let the first of these visits be trained, while the state of the one before is still to be stored."""
        yield self._running(worker, tour[0])
        yield from self._or_failed(worker, tour, self._started(worker, tour[0]))

    def finish(self, worker: Worker, tour: Sequence[TrainVisit]) -> Steps[Trained]:
        """Train to its end what was begun."""
        return (yield from self._or_failed(worker, tour, self._results(worker, tour, [])))

    def store(self, worker: Worker, trained: Trained) -> Steps[list[VisitResult]]:
        """Store what visits have left, and log them as completed."""
        tour, results = trained
        table = yield from self._or_failed(worker, tour, self._store(worker, tour, results))
        return [
            VisitResult(found["rows"], found["loss"], found["seconds"], table if visit is tour[-1] else None)
            for visit, found in zip(tour, results)
        ]

    def _running(self, worker: Worker, visit: TrainVisit) -> Statement:
        """What logs a visit as begun."""
        row = (visit.run_id, visit.epoch, visit.mst_key, visit.dataset.segment_id, visit.visit_no, visit.attempt)
        return Statement(sql("visit.visit_begin"), (*row, worker.session.pid, visit.job.kind))

    def _or_failed(self, worker: Worker, tour: Sequence[TrainVisit], steps: Steps[T]) -> Steps[T]:
        """Do these steps; where they fail, the log says so of the visit that was logged as begun."""
        try:
            return (yield from steps)
        except CerebroError as error:
            worker.memory.lost_state()
            yield Statement(sql("visit.visit_failed"), (error.message, *_place(tour[0])))
            raise

    def _done(self, worker: Worker, tour: Sequence[TrainVisit]) -> Steps[Trained]:
        """Do the jobs of a tour, from the first on."""
        first = tour[0]
        begin = self._begin(worker, first.job, first.datasets, first.state)
        return (yield from self._results(worker, tour, [*begin, *passes(worker, first.job, first.datasets)]))

    def _started(self, worker: Worker, visit: TrainVisit) -> Steps[None]:
        begin = self._begin(worker, visit.job, visit.datasets, visit.state, unstored=True)
        yield join([*begin, call(worker, "visit.job_start")])

    def _results(self, worker: Worker, tour: Sequence[TrainVisit], parts: Sequence[Statement]) -> Steps[Trained]:
        """End the jobs of a tour in one transaction, of which these `parts` begin the first; what they have come to.

        Each of the others begins from the state of the one before, which the trainer holds.
        """
        specs = []
        for before, visit in zip(tour, tour[1:]):
            worker.memory.did(before.job)
            specs.append(worker.memory.spec(visit.job, visit.state, visit.datasets))
        if specs:
            end = call(worker, "visit.job_series", json.dumps({"jobs": specs}))
            results = list(job_result((yield join([*parts, end])))["results"])
        else:
            results = [job_result((yield join([*parts, call(worker, "visit.job_finish")])))]
        worker.memory.did(tour[-1].job)
        return Trained(tour, results)

    def _store(self, worker: Worker, tour: Sequence[TrainVisit], results: Sequence[Mapping[str, Any]]) -> Steps[str]:
        """Write the new state and the log rows; the table that took the state.

        Someone who reads a state table for long, such as a backup, must not stop the run: after a short
        wait the state goes to a fresh table.
        """
        visit, before = tour[-1], self._visits_before(worker, tour, results)

        def store(table: str) -> Statement:
            logged = (visit.job.result_key, *self._logged(results[-1]), table, *_place(visit))
            return join([*before, Statement(self._visit_end(visit, table), logged)])

        try:
            if visit.replaced_table:
                yield from self._make_table(worker, visit, visit.state_table)
            yield store(visit.state_table)
        except CerebroError as error:
            if error.sqlstate != LOCK_NOT_AVAILABLE:
                raise
            fresh = state_tables.spare_table(visit.run_id, visit.mst_key, visit.visit_no, visit.attempt)
            yield from self._make_table(worker, visit, fresh)
            yield store(fresh)
            return fresh
        if visit.replaced_table:
            yield from self._drop_table(visit.run_id, visit.replaced_table)
        return visit.state_table

    def _visits_before(
        self, worker: Worker, tour: Sequence[TrainVisit], results: Sequence[Mapping[str, Any]]
    ) -> list[Statement]:
        """What logs the visits of a tour up to its last one, and that as begun."""
        first, *others = tour
        if not others:
            return []
        rows = [
            {
                "epoch": visit.epoch,
                "segment_id": visit.dataset.segment_id,
                "visit_no": visit.visit_no,
                "started_at": before["ended_at"],
                **({} if visit is tour[-1] else dict(zip(LOGGED, self._logged(found)))),
            }
            for visit, before, found in zip(others, results, results[1:])
        ]
        passed = Statement(sql("visit.visit_passed"), (*self._logged(results[0]), *_place(first)))
        following = (first.run_id, first.mst_key, worker.session.pid, strict_json.dumps(rows))
        return [passed, Statement(sql("visit.visits_following"), following)]

    def _logged(self, found: Mapping[str, Any]) -> tuple[object, ...]:
        """What the log says of a visit that is completed."""
        return (found["ended_at"], found["rows"], found["form"], found["threads"], found["loss"], found["seconds"])

    def _make_table(self, worker: Worker, visit: TrainVisit, name: str) -> Steps[None]:
        # An earlier attempt may have made it.
        create = f"{worker.session.platform.state_table(name)}; {sql('run.add_state_table')}"
        yield Statement(create, (name, visit.run_id, visit.mst_key, name))

    def _drop_table(self, run_id: int, name: str) -> Steps[None]:
        try:
            yield Statement(sql("run.drop_state_tables", states=name), ([name], run_id, [name]))
        except CerebroError as error:
            if error.sqlstate != LOCK_NOT_AVAILABLE:
                raise  # else it goes at the end of the run

    def evaluate(self, worker: Worker, visit: EvaluateVisit) -> Steps[dict[int, dict[str, Any]]]:
        """Evaluate one visit; by segment, per data set (training, validation) its rows and sums."""
        yield from self._prepare(worker, visit.datasets)
        visit = visit if worker.memory.keeps(visit.datasets) else visit.first()
        first = (visit.run_id, visit.epoch, visit.mst_key, visit.segments[0], visit.attempt)
        yield Statement(sql("visit.evaluation_begin"), first)
        try:
            done = yield from self._job(worker, visit.job, visit.datasets, visit.state)
        except CerebroError as error:
            worker.memory.lost_state()
            yield Statement(sql("visit.evaluation_end"), ("failed", error.message, None, None, *first))
            raise
        found: dict[int, dict[str, Any]] = {}
        for name, dataset in visit.named:
            found.setdefault(dataset.segment_id, {})[name] = done["datasets"][dataset.key]
        yield join(self._evaluated(visit, found, done["ended_at"]))
        return found

    def _evaluated(
        self, visit: EvaluateVisit, found: Mapping[int, Mapping[str, Any]], ended_at: Mapping[str, float]
    ) -> list[Statement]:
        """What logs an evaluation, each segment from the end of the one before it on."""
        place, (first, *others) = (visit.run_id, visit.epoch, visit.mst_key), visit.segments
        rows = {segment: sum(part["rows"] for part in parts.values()) for segment, parts in found.items()}
        ends = {segment: max(ended_at[d.key] for d in visit.datasets if d.segment_id == segment) for segment in rows}
        result = ("completed", None, rows[first], ends[first] if others else None)
        logged = [Statement(sql("visit.evaluation_end"), (*result, *place, first, visit.attempt))]
        if others:
            following = [
                {"segment_id": segment, "started_at": ends[before], "ended_at": ends[segment], "rows": rows[segment]}
                for before, segment in zip(visit.segments, others)
            ]
            more = sql("visit.evaluations_following")
            logged.append(Statement(more, (*place, visit.attempt, json.dumps(following))))
        return logged

    def probe(self, worker: Worker, dataset: Dataset, state: StateSource, job: Job) -> Steps[dict[str, Any]]:
        """Time a configuration on the first buffer of a partition; nothing is logged or kept."""
        yield from self._prepare(worker, (dataset,))
        worker.memory.lost_state()
        return (yield from self._job(worker, job, (dataset,), state))

    def restore(self, worker: Worker, state: StateSource, job: Job) -> Steps[bool]:
        """Whether all of a state fits the program of a job; ConfigFailure where not even its weights do."""
        yield from self._prepare(worker, ())
        worker.memory.lost_state()
        done = yield from self._job(worker, job, (), state)
        return bool(done["whole"])

    def join(self, worker: Worker, joined: JoinedState, job: Job) -> Steps[StoredState]:
        """Make a state of the weights of several, in a table of its own."""
        yield from self._prepare(worker, ())
        yield from self._job(worker, job, (), joined.state)
        made = sql("run.add_state_table"), (joined.table, joined.run_id, joined.mst_key, joined.table)
        stored = StoredState(joined.table, joined.segment_id)
        table = Statement(worker.session.platform.state_table(joined.table))
        yield join([table, Statement(*made), self._stored(stored, job.result_key)])
        return stored

    def measure(
        self, worker: Worker, datasets: tuple[Dataset, ...], state: StateSource, job: Job
    ) -> Steps[dict[str, Any]]:
        """Evaluate outside a run, without a log; per data set key its rows and sums."""
        yield from self._prepare(worker, () if state.sealed else datasets)
        done = yield from self._job(worker, job, datasets, state)
        return dict(done["datasets"])

    def _collect(self, worker: Worker, state: StateSource, job: Job, request: Mapping[str, Any]) -> Steps[None]:
        """Open a prediction job for rows in blocks."""
        yield from self._prepare(worker, ())
        yield join([*self._begin(worker, job, (), state), call(worker, "score.collect", json.dumps(request))])
        worker.memory.lost_state()

    def predicted(self, worker: Worker) -> Statement:
        """End a prediction job whose blocks have been fetched."""
        return call(worker, "visit.job_finish")

    def results(self, worker: Worker, sums: Sums) -> Steps[dict[str, Any]]:
        """Final metrics from sums over segments."""
        yield from self._prepare(worker, ())
        request = strict_json.dumps(worker.memory.sums(sums))
        return job_result((yield call(worker, "visit.metric_results", request)))

    def keep(self, worker: Worker, best: BestState) -> Steps[StoredState]:
        """Copy a state and log it as the best."""
        platform = worker.session.platform
        made = sql("run.add_state_table"), (best.table, best.run_id, best.mst_key, best.table)
        yield join(
            [
                Statement(platform.state_table(best.table)),
                Statement(*made),
                Statement(platform.state_copy(best.state.table, best.state.segment_id, best.table)),
                Statement(sql("run.best_epoch"), (best.epoch, best.run_id, best.mst_key)),
            ]
        )
        if best.replaced_table:
            yield from self._drop_table(best.run_id, best.replaced_table)
        return StoredState(best.table, best.state.segment_id)


def _place(visit: TrainVisit) -> tuple[int, ...]:
    """Which row of the log is a visit's."""
    return (visit.run_id, visit.mst_key, visit.visit_no, visit.attempt)


def _datasets(tour: Sequence[TrainVisit]) -> list[Dataset]:
    """The partitions that a tour goes through."""
    return [dataset for visit in tour for dataset in visit.datasets]
