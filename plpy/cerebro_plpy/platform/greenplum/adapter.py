"""Greenplum: a trainer belongs to the process that serves a session on one segment, where that
segment's rows lie.

A statement with a function of the trainer names the segment by its key, and is sent there alone.
What it computes there must stay (a row for another segment would be computed in another process,
without the trainer), so a state is stored where it was made, and hops when a visit elsewhere
begins. How rows are packed there is in `spread`.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from cerebro_plpy.database.platform_protocol import (
    Caller,
    Distribution,
    Packers,
    Reader,
    Row,
    Rules,
    Table,
    Wait,
)
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.connection_options import options
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import (
    ActiveTransaction,
    CerebroError,
    FeatureNotSupported,
    QueryCanceled,
    SegmentLost,
    ServerGone,
)
from cerebro_plpy.platform.greenplum import backend, distribution, packing
from cerebro_plpy.platform.job import RawRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cerebro_plpy.platform.visit_protocol import Visits
    from cerebro_plpy.trainer_client.settings import Settings, TrainerOptions

SESSION_OPTIONS = {
    # The other planner sends statements for one segment to all of them.
    "optimizer": "off",
    "gp_enable_multiphase_agg": "on",
    # Trainers live as long as the processes that started them.
    "gp_vmem_idle_resource_timeout": "0",
    # Nor do processes that read on other segments end because a session waits for a lock.
    "resource_cleanup_gangs_on_wait": "off",
    "gp_autostats_mode": "none",
    "gp_autostats_mode_in_functions": "none",
    "default_table_access_method": "heap",
    # States lie in the order in which they were written.
    "synchronize_seqscans": "off",
}
# A state of megabytes arrives in a third of the time of udpifc; each of many short statements takes
# a little longer.
DIRECT = {"gp_interconnect_type": "tcp"}
CLAUSES = {
    "distributed_by_mst_key": "DISTRIBUTED BY (mst_key)",
    "distributed_by_dist_key": "DISTRIBUTED BY (__dist_key__)",
    "distributed_by_window_id": "DISTRIBUTED BY (window_id)",
    "distributed_replicated": "DISTRIBUTED REPLICATED",
    "distributed_randomly": "DISTRIBUTED RANDOMLY",
}
SEGMENT_LOST = "58M01"  # a segment does not answer, or not as the one that it was
# What has no code of its own (XX000): the segment on which a transaction began is gone, or the end
# of a transaction did not reach all of them. These words are never translated.
RECONFIGURED = (
    "gang was lost due to cluster reconfiguration",
    "required segment is unavailable",
    "one phase commit notification failed",
    "The distributed transaction 'Prepare' broadcast failed to one or more segments",
    "dispatching subtransaction internal command failed",
)
INTERNAL_ERROR, ENDED = "XX000", "57P"
_SEGMENT = re.compile(
    r"  \(seg\d+ [^()]*pid=\d+\)$"
)  # what is added to a message that came from a segment


class Greenplum:
    """See `database.platform.Platform` for the laws."""

    clauses: Mapping[str, str] = CLAUSES
    # A transaction that has written on a segment is lost with it, and must not be asked anything
    # any more: see `check_interrupts`.
    works_beside = False
    # A session that reads the log while such a transaction ends may leave the old version of the
    # row visible beside the new one, for good, on some segments or all.
    logs_with_tables = False
    alive_by_lock = False
    stores_features = False

    @property
    def name(self) -> str:
        """Apache Cloudberry alone can do without segments; those made of PostgreSQL 12 work
        alike.
        """
        return (
            "Apache Cloudberry"
            if hasattr(ctypes.CDLL(None), "gp_internal_is_singlenode")
            else "Greenplum"
        )

    def session_options(self, db: Caller) -> Mapping[str, str]:
        """The settings of a worker session; rows that move through proxies go on doing so."""
        proxied = db.value(sql("greenplum.interconnect")) == "proxy"
        usual = options(int(db.value(sql("session.setting"), "server_version_num")))
        return {**usual, **SESSION_OPTIONS, **({} if proxied else DIRECT)}

    def rest(self, session: Reader, seconds: int, at: str | None) -> None:
        """No limit for idle sessions, but one for idle transactions."""
        if at is not None:
            session.run(sql("visit.trainer_rest", at=at))
        session.run(sql("greenplum.rest"), (f"{seconds}s",))
        session.run(sql("greenplum.wait"))

    def wake(self, session: Reader, label: str) -> None:
        """End that transaction."""
        session.run(sql("greenplum.wake"))
        session.run(sql("greenplum.busy"), (label,))

    def message(self, text: str) -> str:
        """Without the segment that it came from."""
        return _SEGMENT.sub("", text)

    def lost(self, sqlstate: str, message: str) -> CerebroError | None:
        """A segment may be lost, and another process may take its place.

        What ends a process on a segment (57P01 and its like) ends the statement only: its message
        names that segment.
        """
        ended = sqlstate.startswith(ENDED) and _SEGMENT.search(message)
        reconfigured = sqlstate == INTERNAL_ERROR and message.startswith(RECONFIGURED)
        if not (sqlstate == SEGMENT_LOST or ended or reconfigured):
            return None
        return SegmentLost(f"a segment was lost: {self.message(message).splitlines()[0]}")

    def settle(self, session: Reader) -> None:
        """All segments answer: what asks repeats it until they do, for a time."""
        session.run(sql("greenplum.every_segment"))

    def check_interrupts(self, db: Caller) -> None:
        """By what the server has noted in this process, without a statement.

        Every statement of a function opens a subtransaction on all segments, and where one of these
        has been restarted meanwhile, that can end the whole coordinator. A cancel mostly comes by
        itself, as a KeyboardInterrupt.
        """
        if backend.noted("ProcDiePending"):
            raise ServerGone("this session was told to end while its statement ran")
        if backend.noted("QueryCancelPending"):
            raise QueryCanceled("the statement was cancelled")

    def uninterrupted(self) -> AbstractContextManager[None]:
        """Where a statement of PL/Python begins, a cancel leaves frames of Python behind; the next
        call may crash.
        """
        return backend.uninterrupted()

    def check_process(self, module: str | None = None) -> None:
        """While segments work for a statement, its process can send them no other; what tries does
        not come back.

        What runs on segments, or beside them, reads no table of the cluster.
        """
        if backend.has_segments_at_work() or (module and backend.serves_another()):
            raise FeatureNotSupported(
                f"{module + ' error: ' if module else ''}on {self.name} a function that reads "
                "tables cannot be called for the rows of one, nor where a statement has begun to "
                "read others.",
                hint="Rows of a table are predicted by cerebro.predict(). Others are found "
                "before: FROM unnest(ARRAY(SELECT to_jsonb(t) FROM … t)) AS record. So is what a "
                "function returns: FROM jsonb_to_recordset((SELECT jsonb_agg(r) FROM "
                "cerebro.evaluate(…) r)) AS r (metric text, value float8).",
            )

    def refuse_held(self, held: Sequence[str], why: str) -> None:
        """No trainer belongs to the caller's own session."""
        raise ActiveTransaction(
            f"worker sessions cannot use {', '.join(held)}: {why}",
            hint="COMMIT first, and use no temporary table.",
        )

    def waiting(
        self, db: Caller, watch: Callable[[], Reader | None], pids: Sequence[int]
    ) -> Sequence[Wait]:
        """Asked from another session: see `check_interrupts`."""
        session = watch()
        return (
            [Wait(*row) for row in session.run(sql("session.waits"), (pids, os.getpid()))]
            if session
            else []
        )

    def look_anew(self, db: Caller) -> None:
        """A transaction that has looked once goes on to see what it saw."""
        db.value(sql("session.look_anew"))

    def check_groups(self, module: str) -> None:
        """Each segment cuts its buffers from the numbers of its rows, which tell nothing of
        groups.
        """
        raise FeatureNotSupported(
            f"{module} error: group_by is not there on {self.name}: its segments pack rows without "
            "regard to groups.",
            hint="Train a model of each group by a call of its own, over a view that has its rows.",
        )

    def check_grants(self, module: str) -> None:
        """Weights reach a segment's trainer through a temporary table of the calling role, which
        that role could read.

        Nor does PostgreSQL 12, of which Greenplum 7 is made, have functions whose body is bound
        when they are made.
        """
        raise FeatureNotSupported(
            f"{module} error: on {self.name} nobody can predict with a model table without reading "
            "it: its weights pass to the segments through tables of the session that predicts.",
            hint="Give the model a name by cerebro.register, and grant that; or grant or revoke "
            "SELECT on the model table and those beside it: _info, _summary.",
        )

    def granting_function(self, db: Caller, model: int, name: str) -> Sequence[Row]:
        """There is none."""
        return []

    def grant_hint(self, model: str) -> str:
        """Nobody can be granted predictions alone."""
        return ""

    def at(self, segment_id: int | None) -> str:
        """To the process on the segment."""
        return sql("greenplum.at", key=str(segment_id))

    def posts(self, segments: Sequence[int], workers: int) -> Sequence[int | None]:
        """A worker for each segment."""
        return list(segments)

    def most_workers(self, segments: int) -> int:
        """All of them."""
        return segments

    def widths(self, workers: int) -> Mapping[int, int]:
        """Each segment has one."""
        return {}

    def machines(self, db: Caller) -> int:
        """Those of the segments."""
        return len(db.rows(sql("greenplum.gpu_hosts")))

    def hosts(self, session: Reader, posts: Mapping[int, int | None]) -> Mapping[int, str]:
        """Those of the segments."""
        found = dict(session.run(sql("greenplum.hosts"), (list(posts.values()),)))
        return {number: found[segment] for number, segment in posts.items()}

    def gpus(
        self, db: Caller, source: str, here: Callable[[], Iterable[str]]
    ) -> Iterator[tuple[str, str]]:
        """One segment of each host is asked."""
        hosts = {row["content"]: row["hostname"] for row in db.rows(sql("greenplum.gpu_hosts"))}
        with db.configured(optimizer="off"):
            for row in db.rows(sql("greenplum.gpus"), source, list(hosts)):
                yield from ((hosts[row["content"]], gpu) for gpu in json.loads(row["gpus"]))

    def distribution(
        self, db: Caller, module: str, rules: Rules, wanted: int | None
    ) -> Distribution:
        """The segments that the rules name, or so many of them."""
        return distribution.choose(db, module, rules, wanted)

    def distribution_along(
        self, db: Caller, module: str, keys: Sequence[int], rules: Rules
    ) -> Distribution:
        """The segments of a training table."""
        return distribution.following(db, module, keys, rules)

    def ordered_rows(self, output: str, rows: Mapping[str, str]) -> str:
        """On each segment one after another; which segment it is follows from the number."""
        return sql("spread.ordered", output=output, **rows)

    @contextmanager
    def packers(
        self, db: Caller, gd: dict[str, Any], source: Table, columns: Sequence[str]
    ) -> Iterator[Packers]:
        """One on each segment, which starts with its first buffer."""
        with packing.packers(db), packing.placed(db, source, columns) as placed:
            yield packing.SpreadPackers(db, placed)

    def packer_ready(self, running: bool, rows: bool, start: Callable[[], object]) -> bool:
        """The process that packs may be one on a segment, where nobody has started a packer."""
        if not running and rows:
            start()
        return running or rows

    def check_distributed(self, session: Reader, module: str, table: Table) -> None:
        """Refuse a packed table whose rows are not found by their key alone."""
        distribution.check_table(session, module, table)

    def check_keys(
        self, session: Reader, module: str, table: Table, segments: Sequence[int]
    ) -> None:
        """Refuse a packed table with keys of which nobody knows where they lie."""
        distribution.check_keys(session, module, table, segments)

    def state_table(self, name: str) -> str:
        """A table for states of several segments, each on its own."""
        return sql("greenplum.state_table", state=name, literal=literal(name))

    def state_rows(self, table: str, segment_id: int | None, base: str | None = None) -> str:
        """The rows on that segment; or all, which lie on one. States are whole here: no other
        segment could read what they shared."""
        if segment_id is None:
            return sql("greenplum.only_state_rows", state=table)
        return sql("greenplum.state_rows", state=table, key=str(segment_id))

    def state_between(self, table: str, segment_id: int | None) -> str | None:
        """States of several segments lie in one table, each on its own."""
        return None

    def state_copy(self, table: str, segment_id: int | None, base: str | None, copy: str) -> str:
        """On its own segment."""
        if segment_id is None:
            return sql("greenplum.only_state_copy", state=table, copy=copy)
        return sql("greenplum.state_copy", state=table, key=str(segment_id), copy=copy)

    def state_of_rows(self, rows: str, table: str) -> str:
        """All of them on one segment."""
        return sql("greenplum.state_of_rows", rows=rows, state=table)

    def visits(
        self,
        trainers: Sequence[TrainerOptions],
        settings: Settings,
        workers: int,
        note: Callable[[str], None],
    ) -> Visits:
        """The visits of workers each of which learns on its host what memory there is."""
        from cerebro_plpy.platform.greenplum.visits import GreenplumVisits

        return GreenplumVisits(trainers, None, note)

    def scoring_trainers(self, together: int, local: bool) -> int:
        """As many as there are."""
        return together

    def raw_rows(self, session: Reader, table: int, rows: RawRows) -> RawRows:
        """On the segments where they lie; or all on one, where that cannot be asked for, as of rows
        of a subselect.
        """
        places = {key: content for key, content, _ in session.run(sql("spread.segments"))}
        whole = not rows.table.startswith("(")
        if whole and session.run(sql("greenplum.lies_on_segments"), (table,))[0][0]:
            return RawRows(rows.table, rows.id, rows.data, list(places), places)
        return RawRows(rows.table, rows.id, rows.data, list(places)[:1])
