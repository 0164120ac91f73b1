"""Visits on Greenplum: a state is stored on the segment where it was computed.

It hops to another segment when a visit there begins.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Statement, Steps
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.strict_json import JsonObject
from cerebro_plpy.platform import log_rows
from cerebro_plpy.platform.job import Dataset, Job, RawRows, StateSource
from cerebro_plpy.platform.statements import (
    dispatch_clause,
    join,
    read_chunks,
    select_sample,
)
from cerebro_plpy.platform.visits import Visits
from cerebro_plpy.records import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cerebro_plpy.platform.state_tables import StoredState
    from cerebro_plpy.platform.visit_protocol import BatchResult, BatchVisit, TrainVisit, Worker


class GreenplumVisits(Visits):
    """See `Visits` for the laws."""

    def start(self, worker: Worker) -> Steps[None]:
        """Start the trainer, unless it has started, and create the table to which states hop."""
        if not worker.memory.started:
            yield Statement(sql("greenplum.hop_table"))
        yield from super().start(worker)

    def predict(
        self,
        worker: Worker,
        rows: RawRows,
        state: StateSource,
        job: Job,
        request: JsonObject,
    ) -> Steps[str | None]:
        """Predict the rows of the worker's segment.

        A cursor would read the rows in another process, without the trainer. Therefore a temporary
        table takes the blocks. Each segment is read as of the beginning of its own statement.
        """
        key = _key(worker)
        yield Statement(sql("greenplum.blocks_tables"))
        if rows.contents:
            condition = sql("greenplum.lying_at", number=str(rows.contents[int(key)]))
        else:
            yield Statement(
                sql("greenplum.bring_rows", key=key, id=rows.id, data=rows.data, table=rows.table)
            )
            rows = RawRows("pg_temp.cerebro_rows", "t.id", "t.data")
            condition = sql("greenplum.brought_to", key=key)
        if not (yield Statement(sql("greenplum.some_row", table=rows.table, place=condition))):
            return None
        yield from self._open_prediction(worker, state, job, request)
        names = {"id": rows.id, "data": rows.data, "table": rows.table, "place": condition}
        collect = sql("greenplum.collect_blocks", **names)
        remaining = sql("greenplum.rest_blocks", at=dispatch_clause(worker))
        yield Statement("; ".join((collect, remaining, remaining)))
        return sql("greenplum.declare")

    def _finish_jobs(
        self, worker: Worker, visits: Sequence[BatchVisit], parts: Sequence[Statement]
    ) -> Steps[BatchResult]:
        """Finish the jobs; convert the ends to the coordinator's clock, which the log uses.

        Clocks of hosts differ. The last visit has ended now.
        """
        batch = yield from super()._finish_jobs(worker, visits, parts)
        offset = time.time() - log_rows.end_time(batch.results[-1])
        results = [log_rows.shift_ends(result, offset) for result in batch.results]
        return batch._replace(results=results)

    def end_prediction(self, worker: Worker) -> Statement:
        """End the job, and empty the tables of its blocks."""
        return join([super().end_prediction(worker), Statement(sql("greenplum.empty_blocks"))])

    def _bring_rows(self, worker: Worker, dataset: Dataset) -> tuple[list[Statement], Dataset]:
        """Copy the partition of another segment, which boosted trees need, to the worker's own.

        Only the session's process on that segment has the trainer.
        """
        key = worker.segment_id
        if key is None or dataset.segment_id == key:
            return [], dataset
        table = dataset.table
        name = f"cerebro_buffers_{table.relation.oid}_{dataset.segment_id}"
        copy = Relation(name, "pg_temp", name, 0, f"pg_temp.{name}")
        columns = table.independent + table.copied_columns
        arrays = [quote_identifier(column) for column in columns]
        shapes = [quote_identifier(f"{column}_shape") for column in columns]
        create = sql(
            "greenplum.buffers_table",
            table=copy.name,
            columns=", ".join(f"{array} bytea" for array in arrays),
            shapes=", ".join(f"{shape} integer[]" for shape in shapes),
        )
        external = (sql("pack.external", output=copy.quoted, column=array) for array in arrays)
        bring = sql(
            "greenplum.bring_buffers",
            copy=copy.quoted,
            key=str(key),
            columns=", ".join(f"t.{column}" for column in [*arrays, *shapes]),
            table=table.relation.quoted,
            segment=table.key,
            some=select_sample(dataset),
        )
        statements = [*map(Statement, [create, *external]), Statement(bring, (dataset.segment_id,))]
        all_rows = replace(table, relation=copy, key="t.__dist_key__")
        return statements, replace(dataset, table=all_rows, segment_id=key, period=1)

    def _pass_state(self, worker: Worker, state: StateSource, is_first: bool) -> list[Statement]:
        """Let the state hop to the trainer's segment first, through a table that must be empty."""
        key = _key(worker)
        hop = "greenplum.hop_weights" if state.source == "weights" else "greenplum.hop"
        chunks = read_chunks(worker, state)
        statements = [
            Statement(sql(hop, key=key, source=chunks.sql), chunks.values),
            Statement(sql("visit.state_read", source=sql("greenplum.hopped", key=key))),
        ]
        if not is_first:
            statements.insert(0, Statement(sql("greenplum.empty")))
        return statements

    def _visit_end(self, visit: TrainVisit, stored: StoredState) -> str:
        """Store the state, and empty the table only if necessary.

        A table may contain states of several segments. Emptying it ends the session's processes on
        other segments. The next hop would start them again, which takes longer than the rest of a
        short visit.
        """
        end = sql("greenplum.visit_end", state=stored.table, key=str(visit.dataset.segment_id))
        if not visit.must_empty:
            return end
        empty = sql("greenplum.empty_state", state=stored.table)
        return f"{empty}; {end}"

    def _base(self, worker: Worker, visit: TrainVisit, digest: str | None) -> Steps[str | None]:
        """Return None: a segment cannot read weights that are stored on another one."""
        yield from ()
        return None

    def _store_state(self, stored: StoredState, key: str) -> Statement:
        return Statement(
            sql("greenplum.state_store", state=stored.table, key=str(stored.segment_id)), (key,)
        )


def _key(worker: Worker) -> str:
    """Return the key of a worker's segment, for a statement."""
    return str(worker.segment_id)
