"""The caller's own session as a worker session: for tables that other sessions cannot see.

A table that the caller's transaction made or changed, or a temporary one, is visible here only. The
same statements then run through SPI, one after another, in the caller's transaction.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from cerebro_plpy.database.platform_protocol import Caller
from cerebro_plpy.database.sessions.async_dispatcher import DONE, Rows
from cerebro_plpy.errors import OutOfTime

# What statements need of a worker session, here for as long as each of them takes. Locks are waited
# for as long as the caller's own statements wait for them.
SETTINGS = {"enable_hashagg": "off", "cursor_tuple_fraction": "1"}


class LocalSession:
    """See `dispatch.Session`; `start` does all the work, under these further settings."""

    def __init__(self, db: Caller, **settings: str) -> None:
        self._db = db
        self._settings = {**SETTINGS, **settings}
        self._rows: Rows = []
        self.pid = os.getpid()
        self.platform = db.platform

    def start(self, statement: str, values: Sequence[object] = ()) -> None:
        """Run the statements; an error is raised here."""
        with self._db.configured(**self._settings):
            self._rows = [tuple(row.values()) for row in self._db.guarded_rows(statement, *values)]

    def wants(self) -> int:
        """Nothing is ever under way."""
        return DONE

    def result(self) -> Rows:
        """The rows of the last statement."""
        return self._rows

    def fileno(self) -> int:
        """No socket to wait for."""
        return -1

    def cancel(self) -> None:
        """Nothing is ever under way: what was begun is done."""

    def run(self, statement: str, values: Sequence[object] = ()) -> Rows:
        """Run the statements; the rows of the last one."""
        self.start(statement, values)
        return self.result()

    def close(self) -> None:
        """The caller's session stays."""


class BudgetedSession(LocalSession):
    """A session whose statements begin only while there is time; one that has begun comes to its
    end.
    """

    def __init__(self, db: Caller, module: str, seconds: float, **settings: str) -> None:
        super().__init__(db, **settings)
        self._module = module
        self._seconds = seconds
        self._began = time.monotonic()

    def start(self, statement: str, values: Sequence[object] = ()) -> None:
        """Run the statements, or raise OutOfTime."""
        spent = time.monotonic() - self._began
        if spent > self._seconds:
            raise OutOfTime(
                f"{self._module} error: budget is {self._seconds:g} s, and after {spent:.1f} s the "
                "source is not read.",
                hint="Name fewer columns, such as columns => 'a, b'; or give it more time: budget "
                f"=> '{2 * spent:.0f} s'.",
            )
        super().start(statement, values)
