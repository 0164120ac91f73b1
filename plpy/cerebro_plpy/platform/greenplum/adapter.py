"""Greenplum: a trainer belongs to the process of a session on the segment that stores the rows.

A statement with a function of the trainer names the segment by its key, and is sent only there. Its
result must stay on the segment: a row for another segment would be computed in another process,
without the trainer. Therefore a state is stored where it was computed, and hops when a visit on
another segment begins.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from cerebro_plpy.database.platform_protocol import (
    Caller,
    Globals,
    Packers,
    Platform,
    Reader,
    Row,
    SqlParts,
    Table,
    Wait,
    read_value,
)
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import SettingValues
from cerebro_plpy.database.sessions.connection_options import common_options
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import (
    ActiveTransaction,
    CerebroError,
    FeatureNotSupported,
    QueryCanceled,
    SegmentLost,
    ServerGone,
)
from cerebro_plpy.platform.greenplum import backend, packing
from cerebro_plpy.platform.greenplum.distribution import SegmentDistribution
from cerebro_plpy.platform.job import RawRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cerebro_plpy.platform.visits import Visits
    from cerebro_plpy.trainer_client.settings import Settings, TrainerOptions

SESSION_OPTIONS = {
    # The other planner sends statements for one segment to all segments.
    "optimizer": "off",
    "gp_enable_multiphase_agg": "on",
    # A trainer ends with the process that started it, which must not end while idle.
    "gp_vmem_idle_resource_timeout": "0",
    # Nor may processes on other segments end because a session waits for a lock.
    "resource_cleanup_gangs_on_wait": "off",
    "gp_autostats_mode": "none",
    "gp_autostats_mode_in_functions": "none",
    "default_table_access_method": "heap",
    # States are read in the order in which they were written.
    "synchronize_seqscans": "off",
}
# A state of megabytes arrives in a third of the time of udpifc; short statements take a little
# longer.
TCP_OPTIONS = {"gp_interconnect_type": "tcp"}
CLAUSES = {
    "distributed_by_mst_key": "DISTRIBUTED BY (mst_key)",
    "distributed_by_dist_key": "DISTRIBUTED BY (__dist_key__)",
    "distributed_by_window_id": "DISTRIBUTED BY (window_id)",
    "distributed_replicated": "DISTRIBUTED REPLICATED",
    "distributed_randomly": "DISTRIBUTED RANDOMLY",
}
SEGMENT_LOST = "58M01"  # a segment does not answer, or answers as another process
# Messages of errors without their own code (XX000): the segment of a transaction is lost, or the
# end of a transaction did not reach all segments. The server never translates these messages.
RECONFIGURED = (
    "gang was lost due to cluster reconfiguration",
    "required segment is unavailable",
    "one phase commit notification failed",
    "The distributed transaction 'Prepare' broadcast failed to one or more segments",
    "dispatching subtransaction internal command failed",
)
INTERNAL_ERROR = "XX000"
ENDED = "57P"
# The server appends the segment to the message of its error.
_SEGMENT = re.compile(r"  \(seg\d+ [^()]*pid=\d+\)$")


class Greenplum(SegmentDistribution, Platform):
    """See `platform_protocol.Platform` for the laws."""

    clauses: SqlParts = CLAUSES
    # A transaction that has written on a segment is lost with the segment, and a later statement
    # of it can end the server: see `check_interrupts`.
    writes_during_run = False
    # If a session reads the log while such a transaction ends, the old version of the row may stay
    # visible besides the new one, permanently, on some segments or all.
    logs_with_output = False
    caller_holds_run_lock = False
    stores_features = False
    binds_workers = True

    @property
    def name(self) -> str:
        """The product's name.

        Only Apache Cloudberry can run without segments. Products based on PostgreSQL 12 behave the
        same.
        """
        if hasattr(ctypes.CDLL(None), "gp_internal_is_singlenode"):
            return "Apache Cloudberry"
        return "Greenplum"

    def session_options(self, db: Caller) -> SettingValues:
        """Return the settings of a worker session; an interconnect with proxies is kept."""
        options = {**common_options(db), **SESSION_OPTIONS}
        if db.value(sql("greenplum.interconnect")) != "proxy":
            options.update(TCP_OPTIONS)
        return options

    def park(self, session: Reader, seconds: int) -> None:
        """Begin a transaction: the server limits idle transactions, but not idle sessions."""
        session.run(sql("greenplum.rest"), (f"{seconds}s",))
        session.run(sql("greenplum.wait"))

    def wake(self, session: Reader, label: str) -> None:
        """End the transaction that `park` began."""
        session.run(sql("greenplum.wake"))
        session.run(sql("greenplum.busy"), (label,))

    def clean_message(self, text: str) -> str:
        """Return the message without the segment that it came from."""
        return _SEGMENT.sub("", text)

    def translate_loss(self, sqlstate: str, message: str) -> CerebroError | None:
        """Return SegmentLost if a segment was lost, or if another process took its place.

        The end of a process on a segment (57P01 and similar) ends only the statement. Its message
        contains the segment.
        """
        has_ended = sqlstate.startswith(ENDED) and _SEGMENT.search(message)
        is_reconfigured = sqlstate == INTERNAL_ERROR and message.startswith(RECONFIGURED)
        if not (sqlstate == SEGMENT_LOST or has_ended or is_reconfigured):
            return None
        return SegmentLost(f"a segment was lost: {self.clean_message(message).splitlines()[0]}")

    def wait_for_segments(self, session: Reader) -> None:
        """Run a statement on all segments; the session repeats it for a time until it succeeds."""
        session.run(sql("greenplum.every_segment"))

    def check_interrupts(self, db: Caller) -> None:
        """Check the server's flags in this process, without a statement.

        Every statement of a function begins a subtransaction on all segments. If a segment has been
        restarted meanwhile, that can end the whole coordinator. A cancel usually arrives as a
        KeyboardInterrupt.
        """
        if backend.is_flag_set("ProcDiePending"):
            raise ServerGone("this session was told to end while its statement ran")
        if backend.is_flag_set("QueryCancelPending"):
            raise QueryCanceled("the statement was cancelled")

    def uninterrupted(self) -> AbstractContextManager[None]:
        """Hold off interrupts.

        A cancel at the beginning of a statement of PL/Python leaves Python frames behind, and the
        next call may crash.
        """
        return backend.uninterrupted()

    def check_process(self, module: str | None = None) -> None:
        """Refuse calls for the rows of a table, and those on segments that read tables.

        While segments work for a statement, its process can send them no other statement; an
        attempt blocks forever. A process that works for a session's process, on a segment or the
        coordinator, cannot read tables of the cluster.
        """
        if backend.has_busy_segments() or (module and backend.serves_another_process()):
            prefix = f"{module} error: " if module else ""
            raise FeatureNotSupported(
                f"{prefix}on {self.name} a function that reads "
                "tables cannot be called for the rows of one, nor where a statement has begun to "
                "read others.",
                hint="Predict the rows of a table with cerebro.predict(). For another call read "
                "the rows first, as one array of a subselect. Read what a function returns with "
                "jsonb_to_recordset() from one jsonb_agg() of it.",
            )

    def refuse_private_tables(self, names: Sequence[str], reason: str) -> None:
        """Refuse the tables: no trainer belongs to the caller's own session."""
        raise ActiveTransaction(
            f"worker sessions cannot use {', '.join(names)}: {reason}",
            hint="COMMIT first, and use no temporary table.",
        )

    def find_waits(
        self, db: Caller, watch: Callable[[], Reader | None], pids: Sequence[int]
    ) -> Sequence[Wait]:
        """Find the waits in a separate session: see `check_interrupts`."""
        session = watch()
        if session is None:
            return []
        return [Wait(*row) for row in session.run(sql("session.waits"), (pids, os.getpid()))]

    def refresh_activity(self, db: Caller) -> None:
        """Clear the statistics snapshot that the transaction would otherwise keep."""
        db.value(sql("session.look_anew"))

    def check_groups(self, module: str) -> None:
        """Refuse groups: each segment divides rows into buffers by their numbers only."""
        raise FeatureNotSupported(
            f"{module} error: group_by is not there on {self.name}: its segments pack rows without "
            "regard to groups.",
            hint="Train a model of each group by a call of its own, over a view that has its rows.",
        )

    def check_grants(self, module: str) -> None:
        """Refuse grants.

        Weights reach a segment's trainer through a temporary table of the calling role, which that
        role could read. Moreover, Greenplum 7 is based on PostgreSQL 12, which has no functions
        with a body that is parsed at their creation.
        """
        raise FeatureNotSupported(
            f"{module} error: on {self.name} nobody can predict with a model table without reading "
            "it: its weights pass to the segments through tables of the session that predicts.",
            hint="Give the model a name by cerebro.register, and grant that; or grant or revoke "
            "SELECT on the model table and those beside it: _info, _summary.",
        )

    def read_granting_function(self, db: Caller, model: int, name: str) -> Sequence[Row]:
        """Return no function."""
        return []

    def grant_hint(self, model: str) -> str:
        """Return '': predictions alone cannot be granted."""
        return ""

    def dispatch_clause(self, segment_id: int | None) -> str:
        """Return the clause that sends a statement to the process on the segment."""
        return sql("greenplum.at", key=str(segment_id))

    def assign_segments(self, segments: Sequence[int], workers: int) -> Sequence[int | None]:
        """Assign one worker to each segment."""
        return list(segments)

    def default_workers(self, segments: int) -> int:
        """Return the number of segments."""
        return segments

    def trainer_threads(self, workers: int) -> Mapping[int, int]:
        """Return nothing: each segment has one worker."""
        return {}

    def count_machines(self, db: Caller) -> int:
        """Return the number of machines with segments."""
        return len(db.rows(sql("greenplum.gpu_hosts")))

    def read_hosts(self, session: Reader, segments: Mapping[int, int | None]) -> Mapping[int, str]:
        """Return the machine of each worker's segment."""
        hosts = dict(session.run(sql("greenplum.hosts"), (list(segments.values()),)))
        return {number: hosts[segment] for number, segment in segments.items()}

    def list_gpus(
        self, db: Caller, source: str, list_local: Callable[[], Iterable[str]]
    ) -> Iterator[tuple[str, str]]:
        """Yield the GPUs that one segment of each host lists."""
        hosts = {row["content"]: row["hostname"] for row in db.rows(sql("greenplum.gpu_hosts"))}
        with db.configured(optimizer="off"):
            for row in db.rows(sql("greenplum.gpus"), source, list(hosts)):
                yield from ((hosts[row["content"]], gpu) for gpu in json.loads(row["gpus"]))

    def ordered_rows_sql(self, output: str, rows: SqlParts) -> str:
        """Return the statement that writes rows in order on the segment that their number names."""
        return sql("spread.ordered", output=output, **rows)

    @contextmanager
    def open_packers(
        self, db: Caller, gd: Globals, source: Table, columns: Sequence[str]
    ) -> Iterator[Packers]:
        """Return packers of all segments, each of which starts with its first buffer."""
        with packing.stopped_packers(db), packing.locate_rows(db, source, columns) as rows:
            yield packing.GreenplumPackers(db, rows)

    def ensure_packer(self, is_running: bool, has_rows: bool, start: Callable[[], object]) -> bool:
        """Start a packer if the process has rows: on a segment, none is running at first."""
        if has_rows and not is_running:
            start()
        return is_running or has_rows

    def state_table_sql(self, name: str) -> str:
        """Return the statement for a table with states of several segments, stored on each."""
        return sql("greenplum.state_table", state=name, literal=literal(name))

    def state_rows_sql(self, table: str, segment_id: int | None, base: str | None = None) -> str:
        """Return the query for the rows on a segment, or for all rows if they are on one.

        States are complete here: another segment could not read shared chunks.
        """
        if segment_id is None:
            return sql("greenplum.only_state_rows", state=table)
        return sql("greenplum.state_rows", state=table, key=str(segment_id))

    def state_range_sql(self, table: str, segment_id: int | None) -> str | None:
        """Return None: states of several segments are stored in one table."""
        return None

    def copy_state_sql(
        self, table: str, segment_id: int | None, base: str | None, copy: str
    ) -> str:
        """Return the statement that copies a state on its own segment."""
        if segment_id is None:
            return sql("greenplum.only_state_copy", state=table, copy=copy)
        return sql("greenplum.state_copy", state=table, key=str(segment_id), copy=copy)

    def state_from_rows_sql(self, rows: str, table: str) -> str:
        """Return the statement that stores all chunks on one segment."""
        return sql("greenplum.state_of_rows", rows=rows, state=table)

    def visits(
        self,
        trainers: Sequence[TrainerOptions],
        settings: Settings,
        workers: int,
        note: Callable[[str], None],
    ) -> Visits:
        """Return the visits of workers; each worker determines the memory of its host."""
        from cerebro_plpy.platform.greenplum.visits import GreenplumVisits

        return GreenplumVisits(trainers, None, note)

    def scoring_trainers(self, trainers: int, is_local: bool) -> int:
        """Return the actual number of trainers."""
        return trainers

    def raw_rows(self, session: Reader, table: int, rows: RawRows) -> RawRows:
        """Assign rows to workers of the segments that store them, or else to one worker.

        The segments of the rows of a subselect are unknown.
        """
        contents = {key: content for key, content, _ in session.run(sql("spread.segments"))}
        is_table = not rows.table.startswith("(")
        if is_table and read_value(session, sql("greenplum.lies_on_segments"), (table,)):
            return RawRows(rows.table, rows.id, rows.data, list(contents), contents)
        return RawRows(rows.table, rows.id, rows.data, list(contents)[:1])
