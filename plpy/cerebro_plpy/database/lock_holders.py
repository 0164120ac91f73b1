"""Advisory locks that count: those of sessions whose role could do what the lock announces.

PostgreSQL has no grants for advisory locks, so any role can take any of them. A lock that another
role's session holds must not prevent what that role could not do itself.
"""

from __future__ import annotations

import time
from typing import Optional

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.identifiers import quote_qualified

# Processes that hold a lock. None is a prepared transaction: its role is unknown, so it counts.
Pids = list[Optional[int]]
MOST_TRIES = 200
TRY_SECONDS = 0.02
"""Tries to reserve the name of a model, which takes others a few milliseconds."""


def reserve(db: Database, schema: str, name: str) -> bool:
    """Reserve the name of a new table until the transaction ends.

    Returns:
        False if another session is creating a table of this name.
    """
    quoted = quote_qualified((schema, name))
    if db.lock("reserve", quoted):
        return True
    return not _could_any(db, "create", _read_holders(db, "reserving", quoted), schema)


def reserve_model(db: Database, control: Reader, model: str, table: str) -> bool:
    """Announce until the transaction ends that a version of a model is trained on a table.

    Sessions announce and look one after another: of two that begin at once, one finds the other.

    Args:
        control: a session of this call alone, so that the order does not outlive the call.
        table: the quoted name.

    Returns:
        False if another session trains a version of the model on another table.
    """
    has_order = _take_order(db, control, model)
    lock = "pg_try_advisory_lock_shared" if db.in_procedure else "pg_try_advisory_xact_lock_shared"
    db.value(sql("session.train_model", lock=lock), model, table)
    pids = _read_holders(db, "training", model, table)
    if has_order:
        control.run(sql("session.name_model", lock="pg_advisory_unlock"), (model,))
    return not _could_any(db, "be_caller", pids)


def _take_order(db: Database, control: Reader, model: str) -> bool:
    """Wait until no other session reserves a model, but only for sessions of the caller's role."""
    statement = sql("session.name_model", lock="pg_try_advisory_lock")
    for _ in range(MOST_TRIES):
        if control.run(statement, (model,))[0][0]:
            return True
        if not _could_any(db, "be_caller", _read_holders(db, "naming", model)):
            return False
        db.check_interrupts()
        time.sleep(TRY_SECONDS)
    return False


def is_owner_at_work(db: Database, run_id: int) -> bool:
    """Return True if a session that holds the lock of an own run could have the caller's role."""
    return _could_any(db, "be_caller", _read_holders(db, "at_work", run_id))


def describe_holders(db: Database, run_id: int) -> str:
    """Return the sessions that hold the lock of a run, as a part of a sentence, or ''."""
    pids = [pid for pid in _read_holders(db, "at_work", run_id) if pid is not None]
    rows = db.rows(sql("locks.roles"), pids)
    return ", ".join(f"session {row['pid']} of role {row['role']!r}" for row in rows)


def _read_holders(db: Database, lock: str, *key: object) -> Pids:
    """Read the holders in a separate statement: Greenplum cannot join locks with a table."""
    return [row["pid"] for row in db.rows(sql(f"locks.{lock}"), *key)]


def _could_any(db: Database, action: str, pids: Pids, *values: object) -> bool:
    return None in pids or bool(db.value(sql(f"locks.could_{action}"), pids, *values))
