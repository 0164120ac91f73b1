"""Visits on PostgreSQL: the session's own process has the trainer, and reads and stores states."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Statement, Steps
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.errors import CREATED_CONCURRENTLY, CerebroError
from cerebro_plpy.platform import state_tables
from cerebro_plpy.platform.statements import join, read_chunks
from cerebro_plpy.platform.visits import Visits

if TYPE_CHECKING:
    from cerebro_plpy.platform.job import Job, RawRows, StateSource
    from cerebro_plpy.platform.state_tables import StoredState
    from cerebro_plpy.platform.visit_protocol import TrainVisit, Worker


class PostgresVisits(Visits):
    """See `Visits` for the laws."""

    def predict(
        self,
        worker: Worker,
        rows: RawRows,
        state: StateSource,
        job: Job,
        request: JsonObject,
    ) -> Steps[str | None]:
        """Predict all rows while they are read from their table."""
        yield from self._open_prediction(worker, state, job, request)
        return sql("score.declare", id=rows.id, data=rows.data, table=rows.table)

    def _pass_state(self, worker: Worker, state: StateSource, is_first: bool) -> list[Statement]:
        chunks = read_chunks(worker, state)
        return [Statement(sql("visit.state_read", source=chunks.sql), chunks.values)]

    def _visit_end(self, visit: TrainVisit, stored: StoredState) -> str:
        prepare = "visit.empty_state"
        if visit.is_fresh and stored.table == visit.state_table:
            prepare = "visit.hold_state"
        taken = sql(prepare, state=stored.table)
        return sql("visit.visit_end", state=stored.table, taken=taken, part=_part(stored))

    def _store_state(self, stored: StoredState, key: str) -> Statement:
        return Statement(sql("visit.state_store", state=stored.table, part=_part(stored)), (key,))

    def _base(self, worker: Worker, visit: TrainVisit, digest: str | None) -> Steps[str | None]:
        """Store frozen weights, unless another worker has done so.

        A worker that stores the same weights concurrently waits for the first one and finds them.
        """
        if not digest:
            return None
        table = state_tables.base_table(visit.run_id, digest)
        if table in self._bases:
            return table
        # An existing table is not dropped: states refer to it.
        create = Statement(sql("run.new_state_table", state=table, literal=literal(table)))
        store = Statement(
            sql("visit.state_store", state=table, part="base"), (visit.job.result_key,)
        )
        exists = Statement(sql("visit.base_known"), (visit.run_id, table))
        if not (yield exists)[0][0]:
            try:
                yield from _create_and_fill(worker, create, store)
            except CerebroError as error:
                if error.sqlstate not in CREATED_CONCURRENTLY:
                    raise
                if not (yield exists)[0][0]:
                    return None  # the table belongs to another role
        self._bases.add(table)
        return table


def _create_and_fill(worker: Worker, create: Statement, fill: Statement) -> Steps[None]:
    """Create and fill a table in one transaction.

    The caller's own session is in a transaction already, and sees the table only in the next
    statement.
    """
    if worker.session.pid != os.getpid():
        yield join([create, fill])
    else:
        yield create
        yield fill


def _part(stored: StoredState) -> str:
    """Return the part of a state that its own table contains."""
    return "whole" if stored.base is None else "own"
