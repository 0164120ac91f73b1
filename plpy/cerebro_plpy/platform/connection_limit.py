"""The sessions of calls: what others see of them, and how many a server may have of them
(max_workers_total).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sessions.worker_sessions import no_slot_error

BACKGROUND = "background"
# the role of the session that writes the log; other roles are of workers: session_role()
CONTROL = "control"
WATCH = "watch"  # of a session that looks for waits
PATIENCE_SECONDS = 60.0
END_SECONDS = 5.0
PAUSE_SECONDS = 0.05


def label(role: str, run_id: int | None = None) -> str:
    """What others see of a session in pg_stat_activity."""
    of_run = "" if run_id is None else f" run {run_id}"
    return f"cerebro_db{of_run} {role if role in (CONTROL, BACKGROUND, WATCH) else 'worker'}"


class Room:
    """The room that one call has for sessions; `ask` is a query about those that there are, and
    `check` may raise.
    """

    def __init__(
        self,
        db: Database,
        most: int | None,
        ask: Callable[..., Sequence[Any]],
        check: Callable[[], None],
    ) -> None:
        self._db, self._most, self._ask, self._check = db, most, ask, check

    def make(self, end_waiting: Callable[[], bool], *, background: bool) -> None:
        """Raise where no further session is allowed, also when those that wait for a call have
        ended.

        Nobody waits for what is done in the background, so that waits for a while until others have
        ended.
        """
        until = time.monotonic() + (
            PATIENCE_SECONDS if background or self._db.in_procedure else 0.0
        )
        full = self._full(background=background)
        if full is not None and end_waiting():
            full = self._full(background=background)
        while full is not None and time.monotonic() < until:
            self._check()
            time.sleep(PAUSE_SECONDS)
            full = self._full(background=background)
        if full is not None:
            raise no_slot_error(full)

    def left(self, pids: Sequence[int]) -> None:
        """Wait until the sessions of these backends are gone."""
        deadline = time.monotonic() + END_SECONDS
        while (
            pids and time.monotonic() < deadline and self._ask("session.still_there", list(pids))[0]
        ):
            time.sleep(PAUSE_SECONDS)

    def _full(self, *, background: bool) -> str | None:
        """Why no further session is allowed; None where one is. Those in the background leave a
        quarter to the sessions that they, and others, are to open."""
        found, usual = self._ask("session.workers_total")
        most = self._most or usual
        if found < (most * 3 // 4 if background else most):
            return None
        return f"{found} sessions of calls of cerebro_db are open on this server, of at most {most}"
