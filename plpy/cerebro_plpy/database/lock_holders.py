"""Advisory locks that count: those of sessions of roles that could do what the lock says.

PostgreSQL has no grants for advisory locks, so any role can take any of them. A lock that a session
of another role holds keeps nobody from anything that this role could not do itself.
"""

from __future__ import annotations

from typing import Optional

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.identifiers import quote_qualified

Pids = list[
    Optional[int]
]  # None: of a prepared transaction, which counts, because nobody knows whose lock it is


def reserve(db: Database, schema: str, name: str) -> bool:
    """Reserve the name of a new table until the transaction ends; return False if another session
    is making one.
    """
    quoted = quote_qualified((schema, name))
    return db.lock("reserve", quoted) or not _could(
        db, "create", _holders(db, "reserving", quoted), schema
    )


def is_owner_at_work(db: Database, run_id: int) -> bool:
    """Check whether a session that holds the lock of an own run could be of the caller's role."""
    return _could(db, "be_caller", _holders(db, "at_work", run_id))


def describe_holders(db: Database, run_id: int) -> str:
    """Return which sessions hold the lock of a run, as words of a sentence; '' if it is free by
    now.
    """
    pids = [pid for pid in _holders(db, "at_work", run_id) if pid is not None]
    rows = db.rows(sql("locks.roles"), pids)
    return ", ".join(f"session {row['pid']} of role {row['role']!r}" for row in rows)


def _holders(db: Database, lock: str, key: object) -> Pids:
    """Read them in a statement of its own: Greenplum cannot look up locks beside a table."""
    return [row["pid"] for row in db.rows(sql(f"locks.{lock}"), key)]


def _could(db: Database, act: str, pids: Pids, *values: object) -> bool:
    return None in pids or bool(db.value(sql(f"locks.could_{act}"), pids, *values))
