"""Removal of a run's tables in schema cerebro_state: its states and its own packed rows."""

from __future__ import annotations

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.platform.state_tables import PACKED_TABLES, packed_table_name
from cerebro_plpy.run.activation_cache.store import drop_unread
from cerebro_plpy.run.log.run_log import RunLog

NO_PROCESS = 0
"""Process id of no session: a table that this transaction has locked may be dropped as well."""


def drop_states(db: Database, run_id: int) -> None:
    """Remove the states of a run when this transaction commits."""
    packed = [packed_table_name(run_id, name) for name in PACKED_TABLES]
    states = db.rows(sql("run.spare_state_tables"), run_id, [], NO_PROCESS)
    for row in (*states, *db.rows(sql("features.data_tables"), packed)):
        db.rows(sql("run.drop_table", table=row["name"]))
    db.rows(sql("run.no_state_tables"), run_id)


def drop_packed_tables(session: Session, run_id: int) -> int:
    """Remove the packed tables of a run, if it has any; return their size in bytes.

    A table that another session reads for long, such as a backup, stays until a later
    `cerebro.vacuum_runs`.
    """
    names = [packed_table_name(run_id, name) for name in PACKED_TABLES]
    tables = session.run(sql("features.data_tables"), (names,))
    return sum(size for name, size in tables if drop_unread(session, name))


def discard_run(session: Session, run_id: int) -> None:
    """Remove a run that has no output, with its packed tables and its states."""
    drop_packed_tables(session, run_id)
    RunLog(session, run_id).discard()
