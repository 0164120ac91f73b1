"""Visits as all platforms do them; each platform defines how states pass to and from a trainer.

A training visit is three transactions: the log row; the job in the trainer, which reads the old
state; the new state and the log row with its table. The visits of a batch share these transactions.
The first two of the worker's next visit may come before the third one: the trainer then works on
the next visit while the state is stored.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Statement, Steps
from cerebro_plpy.database.sql import strict_json
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import CerebroError
from cerebro_plpy.platform import log_rows
from cerebro_plpy.platform.fused_visits import FusedVisits
from cerebro_plpy.platform.job import Dataset, Filling, Job, RawRows, StateSource, Sums
from cerebro_plpy.platform.resource_usage import Cost, total
from cerebro_plpy.platform.state_tables import StoredState
from cerebro_plpy.platform.state_writer import (
    check_cached,
    first_visit,
    list_datasets,
    log_evaluations,
    log_failure,
    select_first,
    visit_results,
)
from cerebro_plpy.platform.statements import PART_BYTES, call, join, parse_result, store_outputs
from cerebro_plpy.platform.visit_protocol import (
    BatchResult,
    BatchVisit,
    BestState,
    EvaluateVisit,
    TrainVisit,
    VisitResult,
    Worker,
)

T = TypeVar("T")
# Free memory, in states, that a trainer needs for one more: its copies are freed late.
STATES_IN_ROOM = 2


class Visits(FusedVisits):
    """The work of a call's workers. Steps generate statements for the session of one worker.

    Laws:
    1. `store` commits the last state of a batch, its best state if that is to be retained, and all
       log rows and metrics of the batch, or nothing.
    2. The log row of the first visit is committed as running before training starts. No log row
       is completed before the state in the last visit's `state_table` is committed.
    3. A visit starts from exactly the state that the visit before it created. A batch starts from
       a committed state, or from a state in its worker's trainer. It is committed after the batch
       that created that state, or not at all.
    4. An evaluation changes no state.
    5. All rows of a segment reach the trainer once, in the order of buffer_id.
    6. Steps may be abandoned at any statement. Uncommitted work then leaves no trace but a log row
       that says running.
    7. Between `begin` and `finish` of a batch its worker only stores the batch before it, if that
       is not stored yet. That batch is stored as it was when the other one began.
    """

    def train(self, worker: Worker, visits: Sequence[BatchVisit]) -> Steps[BatchResult]:
        """Do visits of one configuration, of which the first trains, or averages states.

        Only the first visits are done if not all segments are cached in the trainer's memory, or
        if an evaluation finds a loss that is not a number.

        Raises:
            ConfigFailure: trees would grow over segments that are not cached.
        """
        datasets = list_datasets(visits)
        yield from self._prepare(worker, datasets)
        if not worker.memory.has_cached(datasets):
            visits = select_first(visits)
            check_cached(worker, visits)
        first = first_visit(visits)
        yield self._log_start(worker, first)
        return (yield from self._log_errors(worker, first, self._do_jobs(worker, visits)))

    def can_overlap(self, worker: Worker, batch: BatchResult, datasets: Sequence[Dataset]) -> bool:
        """Return True if visits to these partitions can begin before the batch is stored."""
        if not worker.memory.has_cached(datasets):
            return False
        _, result = batch.training[-1]
        free_bytes = result["room"]
        return free_bytes is None or free_bytes >= STATES_IN_ROOM * result["state_bytes"]

    def begin(self, worker: Worker, visits: Sequence[BatchVisit]) -> Steps[None]:
        """Begin to train visits; `can_overlap` must have returned True."""
        first = first_visit(visits)
        yield self._log_start(worker, first)
        begin = self._begin(worker, first.job, first.datasets, first.state)
        statement = join([*begin, call(worker, "visit.job_start")])
        yield from self._log_errors(worker, first, _run(statement))

    def finish(self, worker: Worker, visits: Sequence[BatchVisit]) -> Steps[BatchResult]:
        """Finish visits that `begin` began."""
        steps = self._finish_jobs(worker, visits, [])
        return (yield from self._log_errors(worker, first_visit(visits), steps))

    def store(self, worker: Worker, batch: BatchResult) -> Steps[list[VisitResult]]:
        """Store the states of visits and log the visits as completed; return training results."""
        first, _ = batch.training[0]
        steps = self._store(worker, [batch])
        (stored,) = yield from self._log_errors(worker, first, steps, batch.results)
        worker.account.charge(total(map(Cost.from_result, batch.results)))
        return visit_results(batch, stored)

    def _log_errors(
        self,
        worker: Worker,
        first: TrainVisit,
        steps: Steps[T],
        results: Sequence[JsonObject] = (),
    ) -> Steps[T]:
        """Run steps; log an error for the first visit, which was logged as running.

        Args:
            results: results whose cost is included in the cost of the failed visit.
        """
        try:
            return (yield from steps)
        except CerebroError as error:
            worker.memory.lose_state()
            costs = [*map(Cost.from_result, results), (yield from self._read_cost(worker))]
            yield log_failure(first, error.message, worker.account.charge(total(costs)))
            raise

    def _do_jobs(self, worker: Worker, visits: Sequence[BatchVisit]) -> Steps[BatchResult]:
        """Do the jobs of a batch, from the first on."""
        first = visits[0]
        begin = self._begin(worker, first.job, first.datasets, first.state)
        rows = self._stream_uncached(worker, first.job, first.datasets)
        return (yield from self._finish_jobs(worker, visits, [*begin, *rows]))

    def _finish_jobs(
        self, worker: Worker, visits: Sequence[BatchVisit], parts: Sequence[Statement]
    ) -> Steps[BatchResult]:
        """Finish the jobs of a batch in one transaction; return their results.

        Each further job starts from the state of the job before, which the trainer has.

        Args:
            parts: statements that begin the first job.
        """
        memory = worker.memory
        specs = []
        candidates = []
        for previous, visit in zip(visits, visits[1:]):
            memory.finish_job(previous.job)
            if isinstance(previous, EvaluateVisit) and previous.is_candidate:
                candidates.append(previous.state.key)
            memory.unstored = tuple(candidates)
            specs.append(memory.job_spec(visit.job, visit.state, visit.datasets))
        if specs:
            end = call(worker, "visit.job_series", json.dumps({"jobs": specs}))
            results = list(parse_result((yield join([*parts, end])))["results"])
        else:
            results = [parse_result((yield join([*parts, call(worker, "visit.job_finish")])))]
        for result in results:
            worker.account.report(result)
        finished = visits[: len(results)]
        last_job = finished[-1].job
        memory.finish_job(last_job, results[-1].get("lent_base"))
        memory.unstored = tuple(dict.fromkeys([*candidates, last_job.result_key]))
        return BatchResult(finished, results)

    def evaluate(self, worker: Worker, visit: EvaluateVisit) -> Steps[dict[int, JsonObject]]:
        """Evaluate a visit; only its first segment if not all are cached in the trainer's memory.

        Returns:
            Rows and sums by segment and data set (training, validation).
        """
        yield from self._prepare(worker, visit.datasets)
        if not worker.memory.has_cached(visit.datasets):
            visit = visit.first_segment()
        key = (visit.run_id, visit.epoch, visit.mst_key, visit.segments[0], visit.attempt)
        yield Statement(sql("visit.evaluation_begin"), key)
        try:
            result = yield from self._job(worker, visit.job, visit.datasets, visit.state)
        except CerebroError as error:
            worker.memory.lose_state()
            cost = worker.account.charge((yield from self._read_cost(worker)))
            values = ("failed", error.message, None, None, *cost, *key)
            yield Statement(sql("visit.evaluation_end"), values)
            raise
        worker.account.charge(Cost.from_result(result))
        yield join(self._log_evaluation(visit, result))
        return log_rows.group_by_segment(visit, result)

    def _log_evaluation(self, visit: EvaluateVisit, result: JsonObject) -> list[Statement]:
        """Log an evaluation as done; its first segment was logged as running."""
        first, *others = log_rows.evaluations(visit, result, None)
        ended_at = None
        if others:
            ended_at = first["ended_at"]
        cost = Cost.from_result(result)
        key = (visit.run_id, visit.epoch, visit.mst_key, first["segment_id"], visit.attempt)
        values = ("completed", None, first["rows"], ended_at, *cost, *key)
        statements = [Statement(sql("visit.evaluation_end"), values)]
        if others:
            statements.append(log_evaluations(visit, others))
        return statements

    def probe(
        self, worker: Worker, dataset: Dataset, state: StateSource, job: Job
    ) -> Steps[JsonObject]:
        """Time a configuration on the first buffer of a partition; log and store nothing."""
        return (yield from self._run_unlogged(worker, job, (dataset,), state))

    def check_state(self, worker: Worker, state: StateSource, job: Job) -> Steps[bool]:
        """Return True if the whole state fits the program of a job.

        Raises:
            ConfigFailure: not even its weights fit.
        """
        result = yield from self._run_unlogged(worker, job, (), state)
        return bool(result["whole"])

    def inspect(self, worker: Worker, state: StateSource, job: Job) -> Steps[JsonObject]:
        """Return the result of a job that inspects the network of a state, without rows.

        Nothing is logged or stored.
        """
        return (yield from self._run_unlogged(worker, job, (), state))

    def _run_unlogged(
        self, worker: Worker, job: Job, datasets: Sequence[Dataset], state: StateSource
    ) -> Steps[JsonObject]:
        """Do a job whose state is not stored."""
        yield from self._prepare(worker, datasets)
        worker.memory.lose_state()
        return (yield from self._job(worker, job, datasets, state))

    def store_features(
        self, worker: Worker, state: StateSource, job: Job, fillings: Sequence[Filling]
    ) -> Steps[None]:
        """Fill tables with the outputs of layers for partitions; fill all of them or none."""
        yield from self._prepare(worker, ())
        worker.memory.lose_state()
        begin = self._begin(worker, job, (), state)
        parts = [*begin, *map(store_outputs, fillings), call(worker, "visit.job_finish")]
        worker.account.report(parse_result((yield join(parts))))

    def measure(
        self, worker: Worker, datasets: tuple[Dataset, ...], state: StateSource, job: Job
    ) -> Steps[JsonObject]:
        """Evaluate outside a run, without a log; return rows and sums by key of the data set."""
        yield from self._prepare(worker, () if state.sealed else datasets)
        result = yield from self._job(worker, job, datasets, state)
        return dict(result["datasets"])

    def read_outputs(
        self, worker: Worker, dataset: Dataset, state: StateSource, job: Job
    ) -> Steps[Sequence[bytes]]:
        """Return the target and the outputs of each row of a partition, as float32.

        This is done outside a run.
        """
        yield from self._prepare(worker, (dataset,))
        yield from self._job(worker, job, (dataset,), state)
        (target,) = job.program["targets"]
        rows = yield call(worker, "visit.row_outputs", target.get("classes", 1), PART_BYTES)
        return [bytes(chunk) for (chunk,) in rows]

    def _open_prediction(
        self, worker: Worker, state: StateSource, job: Job, request: JsonObject
    ) -> Steps[None]:
        """Open a prediction job for rows in blocks."""
        yield from self._prepare(worker, ())
        begin = self._begin(worker, job, (), state)
        yield join([*begin, call(worker, "score.collect", json.dumps(request))])
        worker.memory.lose_state()

    @abstractmethod
    def predict(
        self,
        worker: Worker,
        rows: RawRows,
        state: StateSource,
        job: Job,
        request: JsonObject,
    ) -> Steps[str | None]:
        """Open a prediction job for rows.

        Args:
            request: describes the blocks of rows.

        Returns:
            The statement that declares the cursor over the blocks; None if the worker has no rows.
        """

    def end_prediction(self, worker: Worker) -> Statement:
        """Return the statement that ends a prediction job whose blocks have been fetched."""
        return call(worker, "visit.job_finish")

    def compute_metrics(self, worker: Worker, sums: Sums) -> Steps[JsonObject]:
        """Return final metrics from sums over segments: loss and metrics by data set."""
        yield from self._prepare(worker, ())
        request = strict_json.dumps(sums.to_json(worker.memory.has_program(sums.program_key)))
        return parse_result((yield call(worker, "visit.metric_results", request)))

    def retain(self, worker: Worker, best: BestState) -> Steps[StoredState]:
        """Copy a state and log it as the best, or do neither; return the location of the copy."""
        assert best.state.stored is not None
        own_chunks = best.state.stored._replace(base=None)
        copy = worker.session.platform.copy_state_sql(*own_chunks, best.table)
        yield join([*self._log_best(worker, best), Statement(copy)])
        if best.replaced_table:
            yield from self._drop_table(best.run_id, best.replaced_table)
        return best.stored


def _run(statement: Statement) -> Steps[None]:
    yield statement
