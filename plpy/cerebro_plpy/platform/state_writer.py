"""Storage of the states that visits create, in one transaction with the log rows of the visits."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Statement, Steps
from cerebro_plpy.database.sql import strict_json
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import (
    LOCK_NOT_AVAILABLE,
    CerebroError,
    ConfigFailure,
    ConnectionFailure,
)
from cerebro_plpy.platform import log_rows, state_tables
from cerebro_plpy.platform.job import Dataset
from cerebro_plpy.platform.resource_usage import Cost
from cerebro_plpy.platform.state_tables import StoredState, drop_values
from cerebro_plpy.platform.statements import join, log_metrics
from cerebro_plpy.platform.trainer_jobs import TrainerJobs
from cerebro_plpy.platform.visit_protocol import (
    BatchResult,
    BatchVisit,
    BestState,
    EvaluateVisit,
    TrainVisit,
    VisitResult,
    Worker,
)


class PendingState(NamedTuple):
    """The state of a batch that is to be stored."""

    visit: TrainVisit  # the visit that has created it
    base: str | None  # table of its frozen weights
    store: Callable[[str], Statement]  # returns the statement that stores it in a table


class StateWriter(TrainerJobs):
    """The part of `visits.Visits` that stores states."""

    @abstractmethod
    def _visit_end(self, visit: TrainVisit, stored: StoredState) -> str:
        """Return the statement that stores the new state and logs its table."""

    @abstractmethod
    def _store_state(self, stored: StoredState, key: str) -> Statement:
        """Return the statement that stores a state of the trainer in an empty table.

        The base of the state is left out.
        """

    @abstractmethod
    def _base(self, worker: Worker, visit: TrainVisit, digest: str | None) -> Steps[str | None]:
        """Return the table with the shared frozen weights of a state.

        None if the state is to contain these weights itself.
        """

    def _log_start(self, worker: Worker, visit: TrainVisit) -> Statement:
        """Return the statement that logs a visit as running."""
        values = (*list_row_values(visit), worker.session.pid, visit.job.kind)
        return Statement(sql("visit.visit_begin"), values)

    def _store(
        self,
        worker: Worker,
        batches: Sequence[BatchResult],
        more: Sequence[Statement] = (),
    ) -> Steps[list[StoredState]]:
        """Write new states, best states and log rows in one transaction.

        Args:
            more: further statements of the transaction.

        Returns:
            The locations of the new states.
        """
        pending = []
        for batch in batches:
            pending.append((yield from self._prepare_state(worker, batch)))
        tables = yield from self._write(worker, pending, more)
        worker.memory.unstored = ()
        for state, table, batch in zip(pending, tables, batches):
            visit = state.visit
            best = batch.best
            if visit.replaced_table and table == visit.state_table:
                yield from self._drop_table(visit.run_id, visit.replaced_table)
            if best and best.replaced_table:
                yield from self._drop_table(best.run_id, best.replaced_table)
        return [
            StoredState(table, state.visit.dataset.segment_id, state.base)
            for state, table in zip(pending, tables)
        ]

    def _prepare_state(self, worker: Worker, batch: BatchResult) -> Steps[PendingState]:
        visit, result = batch.training[-1]
        earlier = self._log_earlier_visits(worker, batch)
        later = [*self._log_evaluations(batch)]
        base = yield from self._base(worker, visit, result.get("base"))
        owned = Statement(sql("visit.visit_owned"), list_row_values(visit))
        best = batch.best
        if best:
            later += self._log_best(worker, best)
            later.append(self._store_state(best.stored._replace(base=base), best.state.key))
        if base:
            first_visit_no = batch.training[0][0].visit_no
            values = (base, visit.run_id, visit.mst_key, first_visit_no, visit.visit_no)
            later.append(Statement(sql("visit.visits_with_base"), values))

        def store(table: str) -> Statement:
            row = (visit.job.result_key, *log_rows.result_values(result), table, *row_key(visit))
            stored = StoredState(table, visit.dataset.segment_id, base)
            end = Statement(self._visit_end(visit, stored), row)
            return join([*earlier, end, owned, *later])

        return PendingState(visit, base, store)

    def _write(
        self, worker: Worker, pending: Sequence[PendingState], more: Sequence[Statement]
    ) -> Steps[list[str]]:
        """Store states in the tables whose turn it is, or in new ones; return the tables.

        A session that reads a state table for long, such as a backup, must not stop the run. After
        a short wait for its lock, the states are stored in new tables.
        """

        def store_all(tables: Sequence[str]) -> Statement:
            stores = [state.store(table) for state, table in zip(pending, tables)]
            return join([*stores, *more])

        visits = [state.visit for state in pending]
        try:
            for visit in visits:
                if visit.replaced_table:
                    yield create_table(worker, visit.run_id, visit.mst_key, visit.state_table)
            tables = [visit.state_table for visit in visits]
            yield store_all(tables)
        except CerebroError as error:
            if error.sqlstate != LOCK_NOT_AVAILABLE:
                raise
            tables = [
                state_tables.spare_table(visit.run_id, visit.mst_key, visit.visit_no, visit.attempt)
                for visit in visits
            ]
            for visit, table in zip(visits, tables):
                yield create_table(worker, visit.run_id, visit.mst_key, table)
            yield store_all(tables)
        return tables

    def _log_earlier_visits(self, worker: Worker, batch: BatchResult) -> list[Statement]:
        """Log the visits before the last training visit as done, and that one as running."""
        first, result = batch.training[0]
        if len(batch.training) == 1:
            return []
        values = (*log_rows.result_values(result), *row_key(first))
        rows = strict_json.dumps(log_rows.later_visits(batch))
        later = (first.run_id, first.mst_key, worker.session.pid, rows)
        return [
            Statement(sql("visit.visit_passed"), values),
            Statement(sql("visit.visits_following"), later),
        ]

    def _log_evaluations(self, batch: BatchResult) -> Iterator[Statement]:
        """Log the evaluations of a batch and their metrics.

        Each evaluation starts at the end of the visit before it.
        """
        for visit, previous, result in zip(batch.visits[1:], batch.results, batch.results[1:]):
            if isinstance(visit, EvaluateVisit):
                rows = log_rows.evaluations(visit, result, log_rows.end_time(previous))
                yield log_evaluations(visit, rows)
                key = (visit.run_id, visit.mst_key, visit.epoch)
                ended_at = log_rows.end_time(result)
                yield log_metrics(key, result["metrics"], visit.metrics, ended_at)

    def _drop_table(self, run_id: int, name: str) -> Steps[None]:
        try:
            yield Statement(sql("run.drop_state_tables", states=name), drop_values(run_id, [name]))
        except CerebroError as error:
            # It is dropped at the end of the run; a lost session is noticed when it is used next.
            if error.sqlstate != LOCK_NOT_AVAILABLE and not isinstance(error, ConnectionFailure):
                raise

    def _log_best(self, worker: Worker, best: BestState) -> list[Statement]:
        """Return the statements that create the table of a best state and log its epoch."""
        return [
            create_table(worker, best.run_id, best.mst_key, best.table),
            Statement(sql("run.best_epoch"), (best.epoch, best.run_id, best.mst_key)),
        ]


def create_table(worker: Worker, run_id: int, mst_key: int, name: str) -> Statement:
    """Return the statement that creates a table for states and logs it.

    An earlier attempt may have created the table.
    """
    create = f"{worker.session.platform.state_table_sql(name)}; {sql('run.add_state_table')}"
    return Statement(create, (name, run_id, mst_key, name))


def row_key(visit: TrainVisit) -> tuple[int, int, int, int]:
    """Return the key of a visit's log row."""
    return (visit.run_id, visit.mst_key, visit.visit_no, visit.attempt)


def list_row_values(visit: TrainVisit) -> tuple[int, ...]:
    """Return the values of a visit's log row that never change, in the order of its columns."""
    run_id, mst_key, visit_no, attempt = row_key(visit)
    return (run_id, visit.epoch, mst_key, visit.dataset.segment_id, visit_no, attempt)


def first_visit(visits: Sequence[BatchVisit]) -> TrainVisit:
    """Return the first visit of a batch, a training visit that represents it until it is stored."""
    (first,) = (visit for visit in visits[:1] if isinstance(visit, TrainVisit))
    return first


def list_datasets(visits: Sequence[BatchVisit]) -> list[Dataset]:
    """Return the partitions of visits."""
    return [dataset for visit in visits for dataset in visit.datasets]


def select_first(visits: Sequence[BatchVisit]) -> Sequence[BatchVisit]:
    """Return the first visits of a batch that cannot be divided: one, or those that trees need."""
    for count, visit in enumerate(visits, 1):
        if isinstance(visit, TrainVisit) and visit.job.grows:
            return visits[:count]
    return visits[:1]


def check_cached(worker: Worker, visits: Sequence[BatchVisit]) -> None:
    """Check that a trainer has cached all rows over which trees grow.

    Raises:
        ConfigFailure: it has not.
    """
    last = visits[-1]
    grows = isinstance(last, TrainVisit) and last.job.grows
    if grows and not worker.memory.has_cached(list_datasets(visits)):
        raise ConfigFailure(
            "boosted trees learn from all rows at once, but these do not fit into the trainer's "
            "memory for rows; raise cache_mb or trainer_memory_mb in cerebro.setting, or use fewer "
            "workers"
        )


def log_failure(visit: TrainVisit, message: str, cost: Cost) -> Statement:
    """Return the statement that logs a visit as failed."""
    return Statement(sql("visit.visit_failed"), (message, *cost, *row_key(visit)))


def log_evaluations(visit: EvaluateVisit, rows: Sequence[JsonObject]) -> Statement:
    """Return the statement that logs segments of an evaluation as done."""
    key = (visit.run_id, visit.epoch, visit.mst_key, visit.attempt)
    return Statement(sql("visit.evaluations_following"), (*key, json.dumps(rows)))


def visit_results(batch: BatchResult, stored: StoredState) -> list[VisitResult]:
    """Return the results of the training visits of a batch, the last of which has its state."""
    results = [
        VisitResult(result["rows"], result["loss"], result["seconds"], state_table=None)
        for _, result in batch.training
    ]
    last = results.pop()
    stored_result = VisitResult(last.rows, last.loss, last.seconds, stored.table, stored.base)
    return [*results, stored_result]
