"""Visits on PostgreSQL: the trainer is the session's own, and so is what it reads and stores."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Statement, Steps
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import MADE_MEANWHILE, CerebroError
from cerebro_plpy.platform import state_tables
from cerebro_plpy.platform.shared_visits import SharedVisits
from cerebro_plpy.platform.statements import chunks, join

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cerebro_plpy.platform.job import Job, RawRows, StateSource
    from cerebro_plpy.platform.state_tables import StoredState
    from cerebro_plpy.platform.visit_protocol import TrainVisit, Worker


class PostgresVisits(SharedVisits):
    """See `protocol.Visits` for the laws."""

    def predict(
        self,
        worker: Worker,
        rows: RawRows,
        state: StateSource,
        job: Job,
        request: Mapping[str, Any],
    ) -> Steps[str | None]:
        """Predict all rows, as they are read from their table."""
        yield from self._collect(worker, state, job, request)
        return sql("score.declare", id=rows.id, data=rows.data, table=rows.table)

    def _pass_state(self, worker: Worker, state: StateSource, first: bool) -> list[Statement]:
        read = chunks(worker, state)
        return [Statement(sql("visit.state_read", source=read.sql), read.values)]

    def _visit_end(self, visit: TrainVisit, stored: StoredState) -> str:
        fresh = visit.fresh and stored.table == visit.state_table
        taken = sql("visit.hold_state" if fresh else "visit.empty_state", state=stored.table)
        return sql("visit.visit_end", state=stored.table, taken=taken, part=_part(stored))

    def _stored(self, stored: StoredState, key: str) -> Statement:
        return Statement(sql("visit.state_store", state=stored.table, part=_part(stored)), (key,))

    def _base(self, worker: Worker, visit: TrainVisit, digest: str | None) -> Steps[str | None]:
        """Frozen weights are stored by whoever comes to them first; another worker, which does so
        at once, waits for that and finds them."""
        table = state_tables.base_table(visit.run_id, digest) if digest else None
        if table is None or table in self._bases:
            return table
        stored = Statement(
            sql("visit.state_store", state=table, part="base"), (visit.job.result_key,)
        )
        known = Statement(sql("visit.base_known"), (visit.run_id, table))
        if not (yield known)[0][0]:
            try:
                # One that is there already is not dropped: states refer to it.
                yield from _together(
                    worker,
                    Statement(sql("run.new_state_table", state=table, literal=literal(table))),
                    stored,
                )
            except CerebroError as error:
                if error.sqlstate not in MADE_MEANWHILE:
                    raise
                if not (yield known)[0][0]:
                    return None  # it is somebody else's
        self._bases.add(table)
        return table


def _together(worker: Worker, made: Statement, filled: Statement) -> Steps[None]:
    """Make a table and fill it in one transaction; the caller's own session, which is in one, knows
    it only then.
    """
    if worker.session.pid != os.getpid():
        yield join([made, filled])
    else:
        yield made
        yield filled


def _part(stored: StoredState) -> str:
    """What of a state its own table has."""
    return "whole" if stored.base is None else "own"
