"""Progress of a long statement, for other sessions and for the caller.

An SQL statement that reads rows cannot report its progress. It therefore calls our function, though
at most once a second and not for every row.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from cerebro_plpy.database.platform_protocol import Caller, Globals
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import ObjectNotReady
from cerebro_plpy.nouns import count_nouns

KEY = "cerebro_progress"
RUN_LABEL = "cerebro_db run "
"""Start of the labels of sessions that work for a run: see `connection_limit`."""
UPDATE_SECONDS = 1.0  # between two updates for other sessions
FIRST_NOTICE_SECONDS = 5.0  # a short call reports nothing to its caller
MAX_PAUSE_SECONDS = 60.0  # between two notices of a call that takes hours


class Progress:
    """Progress of one call.

    Args:
        task: the work on the table, such as "packing".
        name: name of the table.
        run_label: label of the session if the work belongs to a run, which the label keeps naming.
    """

    def __init__(self, task: str, name: str, run_label: str | None = None) -> None:
        self._task = task
        self._name = name
        self._run_label = run_label
        self._activity = ""
        self._total: int | None = None
        self._rows = 0
        self._pause = FIRST_NOTICE_SECONDS
        self._next_update = 0.0
        self._next_notice = time.monotonic() + self._pause

    def begin(self, db: Caller, activity: str, total: int | None = None) -> None:
        """Begin a part of the task; `activity` is a participle, such as "read"."""
        self._activity = activity
        self._total = total
        self._rows = 0
        self.report(db, 0)

    def report(self, db: Caller, rows: int) -> None:
        """Show the number of finished rows to other sessions, and sometimes to the caller."""
        now = time.monotonic()
        self._next_update = now + UPDATE_SECONDS
        total = "" if self._total is None else f" of {self._total}"
        text = f"{self._activity} {rows}{count_nouns(total, 'row')}"
        label = f"{self._task}: {text} ({self._name})"
        if self._run_label is not None:
            label = f"{self._run_label}: {text}"
        db.rows(sql("session.progress"), label, str(time.time() + UPDATE_SECONDS))
        if now >= self._next_notice:
            db.notice(f"{self._task} {self._name}: {text}")
            self._pause = min(2 * self._pause, MAX_PAUSE_SECONDS)
            self._next_notice = now + self._pause

    def add(self, db: Caller, activity: str, rows: int) -> None:
        """Add finished rows; `activity` is a participle, such as "packed"."""
        self._activity = activity
        self._rows += rows
        if time.monotonic() >= self._next_update:
            self.report(db, self._rows)


@contextmanager
def shown_progress(db: Caller, gd: Globals, task: str, name: str) -> Iterator[Progress]:
    """Show the progress of a call in place of the session's application_name."""
    run_label = None
    label = db.value(sql("session.setting"), "application_name")
    if label.startswith(RUN_LABEL):
        run_label = label
    with db.configured(application_name=run_label or f"{task} ({name})"):
        progress = gd[KEY] = Progress(task, name, run_label)
        try:
            yield progress
        finally:
            gd.pop(KEY, None)


def current_progress(gd: Globals) -> Progress:
    """Return the progress of the current call in this session."""
    progress: Progress | None = gd.get(KEY)
    if progress is None:
        raise ObjectNotReady(
            "no rows are read in this session whose number somebody wants",
            hint="cerebro calls this function itself, while it packs.",
        )
    return progress
