"""Locks that the sessions of a call wait for: no deadlock detector sees a backend that waits for
its own sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cerebro_plpy.database.lock_waits import own_lock_error
from cerebro_plpy.database.platform_protocol import Wait
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.spi import LOCK_WAIT_SECONDS, Database, locked_log_error
from cerebro_plpy.database.sessions.worker_sessions import WorkerSession
from cerebro_plpy.errors import ConnectionFailure


class LockWatch:
    """The waits of one call's sessions.

    Attributes:
        blocker: what a session was last seen to wait for that is not of schema cerebro.
    """

    def __init__(
        self,
        db: Database,
        local: bool,
        open_session: Callable[[], WorkerSession],
        end_session: Callable[[Sequence[Session]], None],
    ) -> None:
        """Watch the sessions of a call.

        Args:
            db: the caller's session.
            local: whether the call works in that session alone.
            open_session: opens a session that can look while the others are at work.
            end_session: ends it after it was lost.
        """
        self.blocker: Wait | None = None
        self._db, self._local = db, local
        self._open, self._end = open_session, end_session
        self._session: WorkerSession | None = None
        self._patience = float(db.value(sql("session.patience"), float(LOCK_WAIT_SECONDS)))
        self._waits_since: float | None = None  # for a table of schema cerebro

    def look(self, pids: Sequence[int], now: float) -> None:
        """Look for what these processes wait for, at a time by time.monotonic().

        Raises:
            DeadlockDetected: One waits for the caller's own transaction.
            ObjectInUse: One has waited too long for a table of schema cerebro.
        """
        waits = self._waits(pids) if pids else ()
        for wait in waits:
            if wait.table is None and not self._local:
                statement = wait.query or "its statement is not shown"
                raise own_lock_error(f"Process {wait.pid} waits for this one: {statement}")
        self.blocker = next((wait for wait in waits if not wait.is_log), self.blocker)
        held = next((wait for wait in waits if wait.table is not None and wait.is_log), None)
        self._waits_since = None if held is None else self._waits_since or now
        if held and self._waits_since is not None and now - self._waits_since >= self._patience:
            raise locked_log_error(held._asdict())

    def _waits(self, pids: Sequence[int]) -> Sequence[Wait]:
        """See `Platform.waiting`; none where the session that looks is lost: another one looks next
        time, if it can.
        """
        try:
            return self._db.platform.find_waits(self._db, self._watching, pids)
        except ConnectionFailure:
            self._end([self._session] if self._session else [])
            self._session = None
            return ()

    def _watching(self) -> Session | None:
        """Return the session that looks for waits; None while it is at work."""
        if self._session is None:
            self._session = self._open()
        return self._session if self._session.idle else None
