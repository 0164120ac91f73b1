"""The caller's own session as a worker session: for tables that other sessions cannot see.

A table that the caller's transaction made or changed, or a temporary one, is visible here only. The same
statements then run through SPI, one after another, in the caller's transaction.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from cerebro_plpy.database.dispatch import DONE, Rows
from cerebro_plpy.database.platform import Caller

# What statements need of a worker session, here for as long as each of them takes.
SETTINGS = {"enable_hashagg": "off", "lock_timeout": "0", "cursor_tuple_fraction": "1"}


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
