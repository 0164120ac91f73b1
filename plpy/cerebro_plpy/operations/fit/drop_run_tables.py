"""The tables that a run has in schema cerebro_state, and that go when nobody goes on with it: its
states, and what was packed for it alone."""

from __future__ import annotations

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.platform.state_tables import PACKED_TABLES, packed_table_name
from cerebro_plpy.run.activation_cache.store import drop_unread

NOBODY = 0
"""No process: what this transaction holds it may drop."""


def drop_states(db: Database, run_id: int) -> None:
    """Remove the states of a run when this transaction commits."""
    packed = [packed_table_name(run_id, name) for name in PACKED_TABLES]
    for row in (
        *db.rows(sql("run.spare_state_tables"), run_id, [], NOBODY),
        *db.rows(sql("features.data_tables"), packed),
    ):
        db.rows(sql("run.drop_table", table=row["name"]))
    db.rows(sql("run.no_state_tables"), run_id)


def drop_packed_tables(session: Session, run_id: int) -> int:
    """Remove the packed tables of a run, if it has any, and return their size in bytes.

    A table that somebody reads for long, such as a backup, stays until a later
    `cerebro.vacuum_runs`.
    """
    names = [packed_table_name(run_id, name) for name in PACKED_TABLES]
    tables = session.run(sql("features.data_tables"), (names,))
    return sum(size for name, size in tables if drop_unread(session, name))
