"""How far a long statement has come: what others see of its session, and what its caller is told.

Rows are read by a statement of SQL, which has nothing to say of itself. So it calls a function of
ours, not for every row but when a second has passed since the last time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cerebro_plpy.database.platform_protocol import Caller
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import ObjectNotReady

KEY = "cerebro_progress"
LOOK_SECONDS = 1.0
# Of a call that is soon over its caller hears nothing, and of one that takes hours once a minute.
FIRST_NOTICE_SECONDS, LONGEST_PAUSE_SECONDS = 5.0, 60.0
Globals = dict[str, Any]


class Progress:
    """Of one call: the task, and what of it is done."""

    def __init__(self, task: str, name: str) -> None:
        """`task` is what is done to the table of that name, such as "packing"."""
        self._task = task
        self._name = name
        self._done = ""
        self._total: int | None = None
        self._rows = 0
        self._pause = FIRST_NOTICE_SECONDS
        self._look = 0.0
        self._notice = time.monotonic() + self._pause

    def begin(self, db: Caller, done: str, total: int | None = None) -> None:
        """A part of the task begins; `done` is what is then said of rows, such as "read"."""
        self._done, self._total, self._rows = done, total, 0
        self.reached(db, 0)

    def reached(self, db: Caller, rows: int) -> None:
        """So many rows are done; others see it, and the caller is told now and then."""
        now = time.monotonic()
        self._look = now + LOOK_SECONDS
        of = "" if self._total is None else f" of {self._total}"
        said = f"{self._done} {rows}{of} rows"
        db.rows(
            sql("session.progress"),
            f"{self._task}: {said} ({self._name})",
            str(time.time() + LOOK_SECONDS),
        )
        if now >= self._notice:
            db.notice(f"{self._task} {self._name}: {said}")
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
            self._notice = now + self._pause

    def more(self, db: Caller, done: str, rows: int) -> None:
        """So many rows more are done; what that means is said by `done`."""
        self._done = done
        self._rows += rows
        if time.monotonic() >= self._look:
            self.reached(db, self._rows)


@contextmanager
def shown(db: Caller, gd: Globals, task: str, name: str) -> Iterator[Progress]:
    """The progress of a call, which others see in place of the session's application_name."""
    with db.configured(application_name=f"{task} ({name})"):
        progress = gd[KEY] = Progress(task, name)
        try:
            yield progress
        finally:
            gd.pop(KEY, None)


def current(gd: Globals) -> Progress:
    """The progress of the call that this session is in."""
    progress: Progress | None = gd.get(KEY)
    if progress is None:
        raise ObjectNotReady(
            "no rows are read in this session whose number somebody wants",
            hint="cerebro calls this function itself, while it packs.",
        )
    return progress
