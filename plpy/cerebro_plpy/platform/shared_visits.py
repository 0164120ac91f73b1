"""Visits as every platform makes them; how a state passes to and from a trainer is left to each.

Each training visit is three transactions: the log row; the job in the trainer, which reads the old
state; the new state with the log row that says which table holds it. The visits of a tour share
them. The first two of the worker's next visit may come before the third of this one: the trainer
has begun with it when the state is stored.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Statement, Steps
from cerebro_plpy.database.sql import strict_json
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.platform import log_rows
from cerebro_plpy.platform.fused_visits import FusedVisits
from cerebro_plpy.platform.job import Dataset, Filling, Job, RawRows, StateSource, Sums
from cerebro_plpy.platform.resource_usage import Cost, total
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.state_writer import (
    completed,
    datasets_of,
    evaluations_following,
    failed,
    first_visit,
)
from cerebro_plpy.platform.statements import PART_BYTES, call, fill, job_result, join
from cerebro_plpy.platform.trainer_jobs import passes
from cerebro_plpy.platform.visit_protocol import (
    BestState,
    EvaluateVisit,
    JoinedState,
    TourVisit,
    Trained,
    TrainVisit,
    VisitResult,
    Worker,
)

T = TypeVar("T")
STATES_BESIDE = 2
"""States that must fit into a trainer's memory for it to hold one more: what it copies of it is
freed late.
"""


class SharedVisits(FusedVisits):
    """See `protocol.Visits` for the laws."""

    @abstractmethod
    def predict(
        self,
        worker: Worker,
        rows: RawRows,
        state: StateSource,
        job: Job,
        request: Mapping[str, Any],
    ) -> Steps[str | None]:
        """See `Visits.predict`."""

    def train(self, worker: Worker, tour: Sequence[TourVisit]) -> Steps[Trained]:
        """See `Visits.train`."""
        yield from self._prepare(worker, datasets_of(tour))
        made = tour if worker.memory.keeps(datasets_of(tour)) else tour[:1]
        first = first_visit(tour)
        yield self._running(worker, first)
        return (yield from self._or_failed(worker, first, self._done(worker, made)))

    def stores_beside(self, worker: Worker, trained: Trained, datasets: Sequence[Dataset]) -> bool:
        """Whether a tour over these partitions can begin before what was trained is stored."""
        room, size = (trained.trained[-1][1][name] for name in ("room", "state_bytes"))
        return worker.memory.keeps(datasets) and (room is None or room >= STATES_BESIDE * size)

    def begin(self, worker: Worker, tour: Sequence[TourVisit]) -> Steps[None]:
        """Let the first of these visits be trained, while the state of the one before is still to
        be stored.
        """
        first = first_visit(tour)
        yield self._running(worker, first)
        begin = self._begin(worker, first.job, first.datasets, first.state)
        yield from self._or_failed(
            worker, first, _statement(join([*begin, call(worker, "visit.job_start")]))
        )

    def finish(self, worker: Worker, tour: Sequence[TourVisit]) -> Steps[Trained]:
        """Train to its end what was begun."""
        return (
            yield from self._or_failed(worker, first_visit(tour), self._results(worker, tour, []))
        )

    def store(self, worker: Worker, trained: Trained) -> Steps[list[VisitResult]]:
        """See `Visits.store`."""
        steps = self._store(worker, [trained])
        (stored,) = yield from self._or_failed(
            worker, trained.trained[0][0], steps, trained.results
        )
        worker.account.charge(total(map(Cost.of, trained.results)))
        return completed(trained, stored)

    def _or_failed(
        self,
        worker: Worker,
        first: TrainVisit,
        steps: Steps[T],
        results: Sequence[Mapping[str, Any]] = (),
    ) -> Steps[T]:
        """Do these steps; where they fail, the log says so of the first visit, which was logged as
        begun, with all that these `results` have cost as well."""
        try:
            return (yield from steps)
        except CerebroError as error:
            worker.memory.lost_state()
            cost = total([*map(Cost.of, results), (yield from self._spent(worker))])
            yield failed(first, error.message, worker.account.charge(cost))
            raise

    def _done(self, worker: Worker, tour: Sequence[TourVisit]) -> Steps[Trained]:
        """Do the jobs of a tour, from the first on."""
        first = tour[0]
        begin = self._begin(worker, first.job, first.datasets, first.state)
        return (
            yield from self._results(
                worker, tour, [*begin, *passes(worker, first.job, first.datasets)]
            )
        )

    def _results(
        self, worker: Worker, tour: Sequence[TourVisit], parts: Sequence[Statement]
    ) -> Steps[Trained]:
        """End the jobs of a tour in one transaction, of which these `parts` begin the first; what
        they have come to.

        Each of the others begins from the state of the one before, which the trainer holds.
        """
        memory, specs, candidates = worker.memory, list[Mapping[str, Any]](), list[str]()
        for before, visit in zip(tour, tour[1:]):
            memory.did(before.job)
            if isinstance(before, EvaluateVisit) and before.candidate:
                candidates.append(before.state.key)
            memory.unstored = tuple(candidates)
            specs.append(memory.spec(visit.job, visit.state, visit.datasets))
        if specs:
            end = call(worker, "visit.job_series", json.dumps({"jobs": specs}))
            results = list(job_result((yield join([*parts, end])))["results"])
        else:
            results = [job_result((yield join([*parts, call(worker, "visit.job_finish")])))]
        for found in results:
            worker.account.tell(found)
        made = tour[: len(results)]
        memory.did(made[-1].job, results[-1].get("lent_base"))
        memory.unstored = tuple(dict.fromkeys([*candidates, made[-1].job.result_key]))
        return Trained(made, results)

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
            cost = worker.account.charge((yield from self._spent(worker)))
            yield Statement(
                sql("visit.evaluation_end"), ("failed", error.message, None, None, *cost, *first)
            )
            raise
        worker.account.charge(Cost.of(done))
        yield join(self._evaluated(visit, done))
        return log_rows.by_segment(visit, done)

    def _evaluated(self, visit: EvaluateVisit, done: Mapping[str, Any]) -> list[Statement]:
        """What logs an evaluation of which the first segment is logged as begun."""
        first, *others = log_rows.evaluations(visit, done, None)
        result = (
            "completed",
            None,
            first["rows"],
            first["ended_at"] if others else None,
            *Cost.of(done),
        )
        of = (visit.run_id, visit.epoch, visit.mst_key, first["segment_id"], visit.attempt)
        ended = Statement(sql("visit.evaluation_end"), (*result, *of))
        return [ended, evaluations_following(visit, others)] if others else [ended]

    def probe(
        self, worker: Worker, dataset: Dataset, state: StateSource, job: Job
    ) -> Steps[dict[str, Any]]:
        """Time a configuration on the first buffer of a partition; nothing is logged or kept."""
        yield from self._prepare(worker, (dataset,))
        worker.memory.lost_state()
        return (yield from self._job(worker, job, (dataset,), state))

    def restore(self, worker: Worker, state: StateSource, job: Job) -> Steps[bool]:
        """Whether all of a state fits the program of a job; ConfigFailure where not even its
        weights do.
        """
        yield from self._prepare(worker, ())
        worker.memory.lost_state()
        done = yield from self._job(worker, job, (), state)
        return bool(done["whole"])

    def told(self, worker: Worker, state: StateSource, job: Job) -> Steps[dict[str, Any]]:
        """What a trainer says of the network of a state."""
        yield from self._prepare(worker, ())
        worker.memory.lost_state()
        return (yield from self._job(worker, job, (), state))

    def store_features(
        self, worker: Worker, state: StateSource, job: Job, fillings: Sequence[Filling]
    ) -> Steps[None]:
        """Fill tables with what layers give for partitions, in one transaction."""
        yield from self._prepare(worker, ())
        worker.memory.lost_state()
        begin = self._begin(worker, job, (), state)
        parts = [*begin, *map(fill, fillings), call(worker, "visit.job_finish")]
        worker.account.tell(job_result((yield join(parts))))

    def join(self, worker: Worker, joined: JoinedState, job: Job) -> Steps[StoredState]:
        """Make a state of the weights of several, in a table of its own."""
        yield from self._prepare(worker, ())
        yield from self._job(worker, job, (), joined.state)
        made = (
            sql("run.add_state_table"),
            (joined.table, joined.run_id, joined.mst_key, joined.table),
        )
        stored = StoredState(joined.table, joined.segment_id)
        table = Statement(worker.session.platform.state_table_sql(joined.table))
        yield join([table, Statement(*made), self._stored(stored, job.result_key)])
        return stored

    def measure(
        self, worker: Worker, datasets: tuple[Dataset, ...], state: StateSource, job: Job
    ) -> Steps[dict[str, Any]]:
        """Evaluate outside a run, without a log; per data set key its rows and sums."""
        yield from self._prepare(worker, () if state.sealed else datasets)
        done = yield from self._job(worker, job, datasets, state)
        return dict(done["datasets"])

    def outputs(
        self, worker: Worker, dataset: Dataset, state: StateSource, job: Job
    ) -> Steps[Sequence[bytes]]:
        """See `Visits.outputs`."""
        yield from self._prepare(worker, (dataset,))
        yield from self._job(worker, job, (dataset,), state)
        (target,) = job.program["targets"]
        rows = yield call(worker, "visit.row_outputs", target.get("classes", 1), PART_BYTES)
        return [bytes(chunk) for (chunk,) in rows]

    def _collect(
        self, worker: Worker, state: StateSource, job: Job, request: Mapping[str, Any]
    ) -> Steps[None]:
        """Open a prediction job for rows in blocks."""
        yield from self._prepare(worker, ())
        yield join(
            [
                *self._begin(worker, job, (), state),
                call(worker, "score.collect", json.dumps(request)),
            ]
        )
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
        assert best.state.stored is not None
        own = best.state.stored._replace(base=None)
        copy = worker.session.platform.copy_state_sql(*own, best.table)
        yield join([*self._best(worker, best), Statement(copy)])
        if best.replaced_table:
            yield from self._drop_table(best.run_id, best.replaced_table)
        return best.kept


def _statement(statement: Statement) -> Steps[None]:
    yield statement
