"""Visits on Greenplum: a state is stored on the segment where it was made, and hops when a visit
elsewhere begins.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Statement, Steps
from cerebro_plpy.platform import log_rows
from cerebro_plpy.platform.job import Job, RawRows, StateSource
from cerebro_plpy.platform.shared_visits import SharedVisits
from cerebro_plpy.platform.statements import at, chunks, join

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cerebro_plpy.platform.state_tables import StoredState
    from cerebro_plpy.platform.visit_protocol import TourVisit, Trained, TrainVisit, Worker


class GreenplumVisits(SharedVisits):
    """See `protocol.Visits` for the laws."""

    def start(self, worker: Worker) -> Steps[None]:
        """Start the trainer of a worker that has none, and make the table to which states hop."""
        if not worker.memory.started:
            yield Statement(sql("greenplum.hop_table"))
        yield from super().start(worker)

    def predict(
        self,
        worker: Worker,
        rows: RawRows,
        state: StateSource,
        job: Job,
        request: Mapping[str, Any],
    ) -> Steps[str | None]:
        """Predict the rows of the worker's segment.

        A cursor would read the rows in another process, without the trainer: a temporary table
        takes the blocks. Each segment is read as of the moment when its own statement begins.
        """
        key = _key(worker)
        yield Statement(sql("greenplum.blocks_tables"))
        if rows.places:
            place = sql("greenplum.lying_at", number=str(rows.places[int(key)]))
        else:
            yield Statement(
                sql("greenplum.bring_rows", key=key, id=rows.id, data=rows.data, table=rows.table)
            )
            rows = RawRows("pg_temp.cerebro_rows", "t.id", "t.data")
            place = sql("greenplum.brought_to", key=key)
        if not (yield Statement(sql("greenplum.some_row", table=rows.table, place=place))):
            return None
        yield from self._collect(worker, state, job, request)
        rest = sql("greenplum.rest_blocks", at=at(worker))
        names = {"id": rows.id, "data": rows.data, "table": rows.table, "place": place}
        yield Statement("; ".join((sql("greenplum.collect_blocks", **names), rest, rest)))
        return sql("greenplum.declare")

    def _results(
        self, worker: Worker, tour: Sequence[TourVisit], parts: Sequence[Statement]
    ) -> Steps[Trained]:
        """What the log says of beginnings is by the coordinator's clock, so of ends as well: hosts
        have clocks of their own. The last visit has ended now."""
        found, now = (yield from super()._results(worker, tour, parts)), time.time()
        offset = now - log_rows.end(found.results[-1])
        return found._replace(
            results=[log_rows.shift_ends(result, offset) for result in found.results]
        )

    def predicted(self, worker: Worker) -> Statement:
        """End a prediction job whose blocks have been fetched."""
        return join([super().predicted(worker), Statement(sql("greenplum.empty_blocks"))])

    def _pass_state(self, worker: Worker, state: StateSource, first: bool) -> list[Statement]:
        """It hops to the trainer's own segment before, through a table that must be empty then."""
        hop, key = (
            "greenplum.hop_weights" if state.source == "weights" else "greenplum.hop",
            _key(worker),
        )
        read = chunks(worker, state)
        return [
            *([] if first else [Statement(sql("greenplum.empty"))]),
            Statement(sql(hop, key=key, source=read.sql), read.values),
            Statement(sql("visit.state_read", source=sql("greenplum.hopped", key=key))),
        ]

    def _visit_end(self, visit: TrainVisit, stored: StoredState) -> str:
        """States of several segments may lie in one table.

        To empty a table ends the processes that read for the session on other segments: the next
        hop starts them anew, which takes longer than all else in a short visit.
        """
        end = sql("greenplum.visit_end", state=stored.table, key=str(visit.dataset.segment_id))
        return (
            "; ".join((sql("greenplum.empty_state", state=stored.table), end))
            if visit.emptied
            else end
        )

    def _base(self, worker: Worker, visit: TrainVisit, digest: str | None) -> Steps[str | None]:
        """No segment can read what others have, so each state has all of its weights."""
        yield from ()
        return None

    def _stored(self, stored: StoredState, key: str) -> Statement:
        return Statement(
            sql("greenplum.state_store", state=stored.table, key=str(stored.segment_id)), (key,)
        )


def _key(worker: Worker) -> str:
    """The key of a worker's segment, for a statement."""
    return str(worker.segment_id)
