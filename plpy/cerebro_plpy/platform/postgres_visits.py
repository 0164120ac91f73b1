"""Visits on PostgreSQL: the trainer is the session's own, and so is what it reads and stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cerebro_plpy.database.dispatch import Statement, Steps
from cerebro_plpy.database.queries import sql
from cerebro_plpy.platform.shared_visits import SharedVisits
from cerebro_plpy.platform.statements import chunks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cerebro_plpy.platform.job import Job, RawRows, StateSource
    from cerebro_plpy.platform.protocol import TrainVisit, Worker
    from cerebro_plpy.platform.state_tables import StoredState


class PostgresVisits(SharedVisits):
    """See `protocol.Visits` for the laws."""

    def predict(
        self, worker: Worker, rows: RawRows, state: StateSource, job: Job, request: Mapping[str, Any]
    ) -> Steps[str | None]:
        """Predict all rows, as they are read from their table."""
        yield from self._collect(worker, state, job, request)
        return sql("score.declare", id=rows.id, data=rows.data, table=rows.table)

    def _pass_state(self, worker: Worker, state: StateSource, first: bool) -> list[Statement]:
        read = chunks(worker, state)
        return [Statement(sql("visit.state_read", source=read.sql), read.values)]

    def _visit_end(self, visit: TrainVisit, table: str) -> str:
        fresh = visit.fresh and table == visit.state_table
        taken = sql("visit.hold_state" if fresh else "visit.empty_state", state=table)
        return sql("visit.visit_end", state=table, taken=taken)

    def _stored(self, stored: StoredState, key: str) -> Statement:
        return Statement(sql("visit.state_store", state=stored.table), (key,))
