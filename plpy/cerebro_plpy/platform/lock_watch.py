"""Detection of locks that the sessions of a call wait for.

PostgreSQL's deadlock detector cannot see that a backend waits for its own sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cerebro_plpy.database.lock_waits import own_lock_error
from cerebro_plpy.database.platform_protocol import Wait
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.spi import LOCK_WAIT_SECONDS, Database
from cerebro_plpy.database.sessions.worker_sessions import WorkerSession
from cerebro_plpy.errors import ConnectionFailure, locked_log_error


class LockWatch:
    """The waits of one call's sessions.

    Args:
        db: the caller's session.
        is_local: the call works only in that session.
        open_session: opens a session that can look for waits while the others are busy.
        end_session: ends that session after it was lost.

    Attributes:
        blocker: the last process that blocked a session with a lock outside schema cerebro.
    """

    def __init__(
        self,
        db: Database,
        is_local: bool,
        open_session: Callable[[], WorkerSession],
        end_session: Callable[[Sequence[Session]], None],
    ) -> None:
        self.blocker: Wait | None = None
        self._db = db
        self._is_local = is_local
        self._open_session = open_session
        self._end_session = end_session
        self._session: WorkerSession | None = None
        self._wait_seconds = float(db.value(sql("session.patience"), float(LOCK_WAIT_SECONDS)))
        self._log_wait_start: float | None = None  # of a wait for a table of schema cerebro

    def look(self, pids: Sequence[int], now: float) -> None:
        """Check the locks that these processes wait for.

        Args:
            now: time by time.monotonic().

        Raises:
            DeadlockDetected: a process waits for the caller's own transaction.
            ObjectInUse: a process has waited too long for a table of schema cerebro.
        """
        waits = self._find_waits(pids) if pids else ()
        for wait in waits:
            if wait.table is None and not self._is_local:
                statement = wait.query or "its statement is not shown"
                raise own_lock_error(f"Process {wait.pid} waits for this one: {statement}")
        self.blocker = next((wait for wait in waits if not wait.is_log), self.blocker)
        log_waits = [wait for wait in waits if wait.table is not None and wait.is_log]
        if not log_waits:
            self._log_wait_start = None
            return
        self._log_wait_start = self._log_wait_start or now
        if now - self._log_wait_start >= self._wait_seconds:
            raise locked_log_error(log_waits[0]._asdict())

    def _find_waits(self, pids: Sequence[int]) -> Sequence[Wait]:
        """Return the waits, see `Platform.find_waits`; none if the session for it was lost.

        Then the next call opens another session, if it can.
        """
        try:
            return self._db.platform.find_waits(self._db, self._watch_session, pids)
        except ConnectionFailure:
            self._end_session([self._session] if self._session else [])
            self._session = None
            return ()

    def _watch_session(self) -> Session | None:
        """Return the session that looks for waits; None while it is busy."""
        if self._session is None:
            self._session = self._open_session()
        if not self._session.idle:
            return None
        return self._session
