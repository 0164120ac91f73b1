"""The caller's own session as a worker session, for tables that other sessions cannot see.

A temporary table, and a table that the caller's transaction created or changed, is visible only in
the caller's session. The same statements then run through SPI, one after another, in the caller's
transaction.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence

from cerebro_plpy.database.platform_protocol import Caller
from cerebro_plpy.database.sessions.async_dispatcher import DONE, Rows
from cerebro_plpy.errors import OutOfTime

# Settings of worker sessions that statements rely on; the caller's lock_timeout stays.
SETTINGS = {"enable_hashagg": "off", "cursor_tuple_fraction": "1"}


class LocalSession:
    """See `async_dispatcher.Session`; `start` runs each statement to its end.

    Args:
        settings: further settings for the statements.
    """

    def __init__(self, db: Caller, **settings: str) -> None:
        self._db = db
        self._settings = {**SETTINGS, **settings}
        self._rows: Rows = []
        self.pid = os.getpid()
        self.platform = db.platform

    def start(self, statement: str, values: Sequence[object] = ()) -> None:
        """Run statements; errors are raised here."""
        with self._db.configured(**self._settings):
            self._rows = [tuple(row.values()) for row in self._db.guarded_rows(statement, *values)]

    def poll(self) -> int:
        """Return DONE: no statement is ever running."""
        return DONE

    def fetch(self) -> Rows:
        """Return the rows of the last statement."""
        return self._rows

    def fileno(self) -> int:
        """Return -1: there is no socket to wait for."""
        return -1

    def cancel(self) -> None:
        """Do nothing: no statement is ever running."""

    def run(self, statement: str, values: Sequence[object] = ()) -> Rows:
        """Run statements; return the rows of the last one."""
        self.start(statement, values)
        return self.fetch()

    def close(self) -> None:
        """Do nothing: the caller's session stays open."""


class BudgetedSession(LocalSession):
    """A session that starts statements only within a time budget, but completes each of them.

    Args:
        seconds: the budget.
    """

    def __init__(self, db: Caller, module: str, seconds: float, **settings: str) -> None:
        super().__init__(db, **settings)
        self._module = module
        self._seconds = seconds
        self._start = time.monotonic()

    def start(self, statement: str, values: Sequence[object] = ()) -> None:
        """Run the statements, or raise OutOfTime."""
        elapsed = time.monotonic() - self._start
        if elapsed > self._seconds:
            raise OutOfTime(
                f"{self._module} error: budget is {self._seconds:g} s, and after {elapsed:.1f} s "
                "the source is not read.",
                hint="Read fewer columns or rows, or give it more time: "
                f"budget => '{math.ceil(2 * elapsed)} s'.",
            )
        super().start(statement, values)
