"""The names of a call's sessions in pg_stat_activity, and their limit, max_workers_total."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from cerebro_plpy.database.platform_protocol import Check
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sessions.worker_sessions import no_slot_error
from cerebro_plpy.nouns import count_nouns, match_verb
from cerebro_plpy.records import dataclass

BACKGROUND = "background"
CONTROL = "control"  # role of the session that writes the log; for workers see session_role()
WATCH = "watch"  # role of the session that looks for waits
WAIT_SECONDS = 60.0
END_SECONDS = 5.0
PAUSE_SECONDS = 0.05


def session_label(role: str, run_id: int | None = None) -> str:
    """Return the application_name of a session."""
    if role not in (CONTROL, BACKGROUND, WATCH):
        role = "worker"
    if run_id is None:
        return f"cerebro_db {role}"
    return f"cerebro_db run {run_id} {role}"


def preparation_label(run_id: int, phase: str) -> str:
    """Return the application_name of the control session of a run that is not in the log yet.

    The view cerebro.progress reads the phase there.
    """
    return f"cerebro_db run {run_id} {phase}"


@dataclass(frozen=True)
class ConnectionLimit:
    """The limit of sessions, as it applies to one call."""

    db: Database
    max_sessions: int | None  # max_workers_total; None for the default
    read_sessions: Callable[..., Sequence[Any]]  # returns the row of a statement about sessions
    check: Check  # called while the call waits

    def check_room(self, end_idle: Callable[[], bool], *, background: bool) -> None:
        """Raise if no further session is allowed.

        Idle sessions of this database session are ended first. A call in the background, whose
        user does not wait, waits for some time until other sessions have ended.

        Args:
            end_idle: ends idle sessions; returns True if there were any.
        """
        deadline = time.monotonic()
        if background or self.db.in_procedure:
            deadline += WAIT_SECONDS
        obstacle = self._find_obstacle(background=background)
        if obstacle is not None and end_idle():
            obstacle = self._find_obstacle(background=background)
        while obstacle is not None and time.monotonic() < deadline:
            self.check()
            time.sleep(PAUSE_SECONDS)
            obstacle = self._find_obstacle(background=background)
        if obstacle is not None:
            raise no_slot_error(obstacle)

    def wait_for_end(self, pids: Sequence[int]) -> None:
        """Wait until these backends have ended."""
        deadline = time.monotonic() + END_SECONDS
        while pids and time.monotonic() < deadline:
            if not self.read_sessions("session.still_there", list(pids))[0]:
                return
            time.sleep(PAUSE_SECONDS)

    def _find_obstacle(self, *, background: bool) -> str | None:
        """Return why no further session is allowed, or None.

        Background sessions may use only three quarters: their calls, and others, open further
        sessions.
        """
        count, default_limit = self.read_sessions("session.workers_total")
        limit = self.max_sessions or default_limit
        if count < (limit * 3 // 4 if background else limit):
            return None
        return (
            f"{count_nouns(count, 'session')} of calls of cerebro_db "
            f"{match_verb(count, 'is')} open on this server, of at most {limit}"
        )
