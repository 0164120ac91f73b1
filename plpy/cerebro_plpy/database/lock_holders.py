"""Advisory locks that count: those of sessions whose role could do what the lock announces.

PostgreSQL has no grants for advisory locks, so any role can take any of them. A lock that another
role's session holds must not prevent what that role could not do itself.
"""

from __future__ import annotations

from typing import Optional

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.identifiers import quote_qualified

# Processes that hold a lock. None is a prepared transaction: its role is unknown, so it counts.
Pids = list[Optional[int]]


def reserve(db: Database, schema: str, name: str) -> bool:
    """Reserve the name of a new table until the transaction ends.

    Returns:
        False if another session is creating a table of this name.
    """
    quoted = quote_qualified((schema, name))
    if db.lock("reserve", quoted):
        return True
    return not _could_any(db, "create", _read_holders(db, "reserving", quoted), schema)


def is_owner_at_work(db: Database, run_id: int) -> bool:
    """Return True if a session that holds the lock of an own run could have the caller's role."""
    return _could_any(db, "be_caller", _read_holders(db, "at_work", run_id))


def describe_holders(db: Database, run_id: int) -> str:
    """Return the sessions that hold the lock of a run, as a part of a sentence, or ''."""
    pids = [pid for pid in _read_holders(db, "at_work", run_id) if pid is not None]
    rows = db.rows(sql("locks.roles"), pids)
    return ", ".join(f"session {row['pid']} of role {row['role']!r}" for row in rows)


def _read_holders(db: Database, lock: str, key: object) -> Pids:
    """Read the holders in a separate statement: Greenplum cannot join locks with a table."""
    return [row["pid"] for row in db.rows(sql(f"locks.{lock}"), key)]


def _could_any(db: Database, action: str, pids: Pids, *values: object) -> bool:
    return None in pids or bool(db.value(sql(f"locks.could_{action}"), pids, *values))
