"""How long a call waits for a source that another session has locked, and what it then says.

A call waits as long as the caller's lock_timeout says. Where that is 0, and the call has a budget,
it waits for what is left of the budget. It waits before a transaction of one snapshot begins: rows
that a table got by an ALTER TABLE are not to be seen by a snapshot that is older.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cerebro_plpy.database.definitions import relations
from cerebro_plpy.database.platform_protocol import Reader, Table, Wait
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import DeadlockDetected, LockNotAvailable
from cerebro_plpy.records import dataclass

FOR_EVER = "0"
LEAST_SECONDS = 0.001  # The server takes 0 for ever.
IDLE = "idle in transaction"


@dataclass(frozen=True)
class WaitLimit:
    """How long a source is waited for.

    Attributes:
        seconds: None for as long as it takes.
        reason: what says so, as in an error.
    """

    seconds: float | None
    reason: str

    @property
    def setting(self) -> str:
        """Return the limit as a value of lock_timeout."""
        return (
            FOR_EVER if self.seconds is None else f"{max(LEAST_SECONDS, self.seconds) * 1000:.0f}ms"
        )


def wait_limit(db: Database, budget_left: float | None = None) -> WaitLimit:
    """Return how long the caller waits for a lock: by lock_timeout, or so many seconds that are
    left of a budget.
    """
    seconds = float(db.value(sql("session.patience"), 0.0))
    if seconds:
        return WaitLimit(seconds, "as long as lock_timeout says")
    if budget_left is None:
        return WaitLimit(None, "")
    return WaitLimit(max(0.0, budget_left), "as long as its budget lasts")


def wait_for_source(db: Database, session: Reader, source: Table, limit: WaitLimit) -> None:
    """Wait until a source, and all that it reads, can be read.

    Call this before the transaction that reads begins. It holds no lock afterwards. Without a limit
    it returns at once: the statement that reads waits.

    Args:
        db: the caller's session, which looks for the holder of a lock.
        session: the session that reads.
        source: the relation that it reads.
        limit: how long it waits.

    Raises:
        LockNotAvailable: another session has locked it for longer.
    """
    if limit.seconds is None:
        return
    oids = _relations(db, source)
    with _translation(db, source, limit, lambda: None, oids):
        session.run(sql("behind.wait"), (limit.setting, oids))


@contextmanager
def bounded_waits(
    db: Database,
    session: Reader,
    source: Table,
    limit: WaitLimit,
    blocker: Callable[[], Wait | None] = lambda: None,
) -> Iterator[None]:
    """Within, and until the transaction ends, its statements wait for locks no longer than the
    limit.

    Args:
        db: the caller's session, which looks for the holder of a lock.
        session: the session that reads, within a transaction.
        source: the relation that it reads.
        limit: how long it waits.
        blocker: returns the session that was seen to be waited for: see `Workplace.blocker`.

    Raises:
        LockNotAvailable: another session has locked the source, or what it reads, for longer.
    """
    with _translation(db, source, limit, blocker):
        session.run(sql("behind.bound"), (limit.setting,))
        yield


def _relations(db: Database, source: Table) -> list[int]:
    """Return the oids of the relations that a SELECT on a source reads."""
    return sorted({row["oid"] for row in db.rows(relations(), [source.oid])})


@contextmanager
def _translation(
    db: Database,
    source: Table,
    limit: WaitLimit,
    blocker: Callable[[], Wait | None],
    oids: Sequence[int] = (),
) -> Iterator[None]:
    """Say of a lock that was waited for in vain whose it is."""
    try:
        yield
    except LockNotAvailable as error:
        if error.detail is not None:
            raise
        relation_oids = oids or _relations(db, source)
        db.platform.look_anew(db)
        rows = db.rows(sql("behind.holder"), relation_oids)
        wait = blocker()
        holder = (
            rows[0]
            if rows
            else wait and {**wait._asdict(), "relation": wait.table, "granted": True}
        )
        if holder and holder["pid"] == os.getpid():
            raise own_lock(f"It has locked {holder['relation']} against readers.") from error
        raise locked_source(source, limit, holder or None) from error


def locked_source(
    source: Table, limit: WaitLimit, holder: Mapping[str, Any] | None
) -> LockNotAvailable:
    """Return the error of a source that another session has locked; `holder` is None if that has
    let go meanwhile.
    """
    waited = f"this call has waited {limit.reason}" if limit.reason else "it was waited for in vain"
    if limit.seconds is not None and limit.reason:
        waited = f"this call has waited {limit.seconds:.3g} s, {limit.reason}"
    if holder is None:
        return LockNotAvailable(
            f"{source.spelling} was locked by another session: {waited}",
            detail="That session has let go of it meanwhile.",
            hint="Call again. SET lock_timeout to wait longer.",
        )
    who = "a prepared transaction" if holder["pid"] is None else f"process {holder['pid']}"
    role = f" of role {holder['role']!r}" if holder["role"] else ""
    holds = "holds" if holder["granted"] else "waits for"
    what = (
        f"Its statement: {holder['query']}"
        if holder["query"]
        else "Its statement is not shown to this role."
    )
    return LockNotAvailable(
        f"{source.spelling} is locked by another session, {who}{role}: {waited}",
        detail=f"It {holds} a lock on {holder['relation']} that lets nobody read. {what}",
        hint=f"Call again when that is done. {_ending(holder)} SET lock_timeout to wait longer.",
    )


def own_lock(detail: str) -> DeadlockDetected:
    """Return the error of a lock of the caller's transaction that its own worker sessions wait
    for.
    """
    return DeadlockDetected(
        "this transaction holds a lock that its own worker sessions wait for",
        detail=detail,
        hint="COMMIT before the call: a lock on the table, or even a read of it, is held to the "
        "end of a transaction, and a queued ALTER TABLE then stops the workers behind it.",
    )


def _ending(holder: Mapping[str, Any]) -> str:
    """Return how the transaction of a holder is ended."""
    if holder["pid"] is None:
        return "SELECT gid FROM pg_prepared_xacts names it; ROLLBACK PREPARED ends it."
    idle = (holder.get("state") or "").startswith(IDLE)
    function = "pg_terminate_backend" if idle else "pg_cancel_backend"
    return f"Its owner, or an administrator, can end it: SELECT {function}({holder['pid']});"
