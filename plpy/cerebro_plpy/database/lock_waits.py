"""Waiting for a source that another session has locked, and the error if it takes too long.

A call waits as long as the caller's lock_timeout. If that is 0 and the call has a budget, it waits
for the remaining budget. It waits before a transaction with a single snapshot begins: such a
snapshot would not see rows that an ALTER TABLE rewrote later.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Optional

from cerebro_plpy.database.definitions import relations_query
from cerebro_plpy.database.platform_protocol import Reader, Table, Wait
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import DeadlockDetected, LockNotAvailable
from cerebro_plpy.records import dataclass

FindBlocker = Callable[[], Optional[Wait]]
"""Return the process that was observed to block the session that reads, if any."""
UNLIMITED = "0"
MIN_SECONDS = 0.001  # The server reads 0 as unlimited.
IDLE = "idle in transaction"


@dataclass(frozen=True)
class WaitLimit:
    """Limit of the time to wait for a source."""

    seconds: float | None  # None: unlimited
    reason: str  # the origin of the limit, as in an error message

    @property
    def setting(self) -> str:
        """Return the limit as a value of lock_timeout."""
        if self.seconds is None:
            return UNLIMITED
        return f"{max(MIN_SECONDS, self.seconds) * 1000:.0f}ms"


def read_wait_limit(db: Database, remaining_budget: float | None = None) -> WaitLimit:
    """Return the caller's lock_timeout; if it is 0, the remaining seconds of a budget."""
    seconds = float(db.value(sql("session.patience"), 0.0))
    if seconds:
        return WaitLimit(seconds, "as long as lock_timeout says")
    if remaining_budget is None:
        return WaitLimit(None, "")
    return WaitLimit(max(0.0, remaining_budget), "as long as its budget lasts")


def wait_for_source(db: Database, session: Reader, source: Table, limit: WaitLimit) -> None:
    """Wait until a source, and all that it reads, can be read.

    Call this before the transaction that reads begins. It holds no lock afterwards. Without a limit
    it returns immediately: the statement that reads waits.

    Args:
        db: the caller's session, which looks for the holder of a lock.
        session: the session that reads.

    Raises:
        LockNotAvailable: another session held a lock beyond the limit.
    """
    if limit.seconds is None:
        return
    oids = _read_relations(db, source)
    if not oids:
        return
    with _translate_lock_error(db, source, limit, lambda: None, oids):
        session.run(sql("behind.wait"), (limit.setting, oids))


@contextmanager
def bounded_waits(
    db: Database,
    session: Reader,
    source: Table,
    limit: WaitLimit,
    blocker: FindBlocker = lambda: None,
) -> Iterator[None]:
    """Limit the waits for locks within this context, and until the transaction ends.

    Args:
        db: the caller's session, which looks for the holder of a lock.
        session: the session that reads, within a transaction.
        blocker: returns the session that was observed to block it, see `CallContext.blocker`.

    Raises:
        LockNotAvailable: another session has locked the source, or what it reads, for longer.
    """
    with _translate_lock_error(db, source, limit, blocker):
        session.run(sql("behind.bound"), (limit.setting,))
        yield


def _read_relations(db: Database, source: Table) -> list[int]:
    """Return the oids of the relations that a SELECT on a source reads."""
    if source.query is not None:
        return list(source.query.relations)
    return sorted({row["oid"] for row in db.rows(relations_query(), [source.oid])})


@contextmanager
def _translate_lock_error(
    db: Database,
    source: Table,
    limit: WaitLimit,
    blocker: FindBlocker,
    oids: Sequence[int] = (),
) -> Iterator[None]:
    """Raise a lock timeout again, with the session that holds the lock."""
    try:
        yield
    except LockNotAvailable as error:
        if error.detail is not None:
            raise
        holder = _find_holder(db, oids or _read_relations(db, source), blocker)
        if holder and holder["pid"] == os.getpid():
            raise own_lock_error(f"It has locked {holder['relation']} against readers.") from error
        raise locked_source_error(source, limit, holder) from error


def _find_holder(
    db: Database, oids: Sequence[int], blocker: FindBlocker
) -> Mapping[str, Any] | None:
    """Return the session that has locked one of these relations, or else the observed blocker."""
    db.platform.refresh_activity(db)
    rows = db.rows(sql("behind.holder"), oids)
    wait = blocker()
    if rows:
        return rows[0]
    if wait is None:
        return None
    return {**wait._asdict(), "relation": wait.table, "granted": True}


def locked_source_error(
    source: Table, limit: WaitLimit, holder: Mapping[str, Any] | None
) -> LockNotAvailable:
    """Return the error for a locked source; `holder` is None if the lock was released meanwhile."""
    waited = "it was waited for in vain"
    if limit.reason:
        waited = f"this call has waited {limit.reason}"
    if limit.seconds is not None and limit.reason:
        waited = f"this call has waited {limit.seconds:.3g} s, {limit.reason}"
    if holder is None:
        return LockNotAvailable(
            f"{source.spelling} was locked by another session: {waited}",
            detail="That session has let go of it meanwhile.",
            hint="Call again. SET lock_timeout to wait longer.",
        )
    process = "a prepared transaction" if holder["pid"] is None else f"process {holder['pid']}"
    role = f" of role {holder['role']!r}" if holder["role"] else ""
    verb = "holds" if holder["granted"] else "waits for"
    statement = "Its statement is not shown to this role."
    if holder["query"]:
        statement = f"Its statement: {holder['query']}"
    return LockNotAvailable(
        f"{source.spelling} is locked by another session, {process}{role}: {waited}",
        detail=f"It {verb} a lock on {holder['relation']} that lets nobody read. {statement}",
        hint=f"Call again when that is done. {_ending_hint(holder)} SET lock_timeout to wait "
        "longer.",
    )


def own_lock_error(detail: str) -> DeadlockDetected:
    """Return the error for a lock of the caller's transaction that blocks its own workers."""
    return DeadlockDetected(
        "this transaction holds a lock that its own worker sessions wait for",
        detail=detail,
        hint="COMMIT before the call. A transaction that has only read a table also holds a lock "
        "to its end, and an ALTER TABLE that waits for it stops the workers.",
    )


def _ending_hint(holder: Mapping[str, Any]) -> str:
    """Return how to end the transaction of a holder, as a sentence."""
    if holder["pid"] is None:
        return "SELECT gid FROM pg_prepared_xacts names it; ROLLBACK PREPARED ends it."
    is_idle = (holder.get("state") or "").startswith(IDLE)
    function = "pg_terminate_backend" if is_idle else "pg_cancel_backend"
    return f"Its owner, or an administrator, can end it: SELECT {function}({holder['pid']});"
