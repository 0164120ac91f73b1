"""The platform protocol on Greenplum: a worker for each segment, whose trainer is that of the segment's own process.

What a statement computes on a segment must stay there (a row for another segment would be computed in another process,
without the trainer), so a state is stored where it was made, and hops when a visit elsewhere begins.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from cerebro_plpy.database.dispatch import Rows, Statement
from cerebro_plpy.database.queries import sql
from cerebro_plpy.platform.postgres import PostgresPlatform
from cerebro_plpy.platform.protocol import RawRows, StateSource, TrainVisit, Worker
from cerebro_plpy.platform.statements import at, joined


class GreenplumPlatform(PostgresPlatform):
    """See `platform.Platform` for the laws."""

    def start(self, worker: Worker) -> Generator[Statement, Rows, None]:
        """Start the trainer of a worker that has none, and make the tables to which states hop."""
        if not worker.started:
            yield Statement(sql("greenplum.hop_tables"))
        yield from super().start(worker)

    def predict(
        self, worker: Worker, rows: RawRows, state: StateSource, job: dict[str, Any], request: dict[str, Any]
    ) -> Generator[Statement, Rows, str | None]:
        """Predict the rows of the worker's segment; what declares a cursor over the blocks.

        A cursor would read the rows in another process, without the trainer: a temporary table takes the blocks. Each
        segment is read as of the moment when its own statement begins.
        """
        key = str(worker.segment_id)
        yield Statement(sql("greenplum.blocks_tables"))
        if rows.places:
            place = sql("greenplum.lying_at", number=str(rows.places[int(key)]))
        else:
            yield Statement(sql("greenplum.bring_rows", key=key, id=rows.id, data=rows.data, table=rows.table))
            rows = RawRows("pg_temp.cerebro_rows", "t.id", "t.data")
            place = sql("greenplum.brought_to", key=key)
        if not (yield Statement(sql("greenplum.some_row", table=rows.table, place=place))):
            return None
        yield from super().predict(worker, rows, state, job, request)
        rest = sql("greenplum.rest_blocks", at=at(worker))
        names = {"id": rows.id, "data": rows.data, "table": rows.table, "place": place}
        yield Statement("; ".join((sql("greenplum.collect_blocks", **names), rest, rest)))
        return sql("greenplum.declare")

    def predicted(self, worker: Worker) -> Statement:
        """End a prediction job whose blocks have been fetched."""
        return joined([super().predicted(worker), Statement(sql("greenplum.empty_blocks"))])

    def _visit_end(self, visit: TrainVisit, table: str) -> str:
        """See the method of PostgreSQL; states of several segments may lie in one table.

        To empty a table ends the processes that read for the session on other segments: the next hop starts them anew,
        which takes longer than all else in a short visit.
        """
        end = sql("greenplum.visit_end", state=table, key=str(visit.dataset.segment_id))
        return "; ".join((sql("greenplum.empty_state", state=table), end)) if visit.emptied else end
