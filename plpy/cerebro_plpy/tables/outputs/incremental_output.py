"""Output tables that are written while a run is live, as its configurations finish.

They are written in the caller's transaction, like all output tables, but concurrently with the
workers and in short pieces.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.tables.chunked_work import PIECE_SECONDS, ChunkedWork
from cerebro_plpy.tables.outputs import fit_output, logged_run
from cerebro_plpy.tables.outputs.fit_output import OutputTables, PartialOutput, WrittenModel
from cerebro_plpy.tables.outputs.logged_run import LoggedRun

LOCK_TIMEOUT = "1s"
"""Longest wait for another session that creates a table of such a name.

At the end of the run, when no worker waits for this session, there is no limit.
"""
START_SECONDS = PIECE_SECONDS / 4
"""Time after which no further piece is started; the last one may take the remaining time."""


class IncrementalOutput:
    """New output tables of a run; an error is reported only at the end of the run."""

    def __init__(self, db: Database, output: Relation) -> None:
        self._db = db
        self._output = output
        self._run_id = 0
        self._trained: list[int] = []
        self._finished: list[int] = []
        self._work: Iterator[None] | None = None
        self._tables: OutputTables | None = None
        self._run: LoggedRun | None = None
        self._models: dict[int, WrittenModel] = {}
        self._stopped = False
        self._error: Exception | None = None

    def report_trained(self, run_id: int, mst_key: int) -> None:
        """Add a configuration whose training is finished and whose state is stored."""
        self._run_id = run_id
        self._trained.append(mst_key)

    def report_finished(self, mst_key: int) -> None:
        """Add such a configuration whose metrics are computed, too."""
        self._finished.append(mst_key)

    def do_piece(self) -> bool:
        """Write for some 20 ms; return False if there is nothing to write.

        A cancel is raised; an error is kept for the end of the run.
        """
        if self._stopped or not (self._trained or self._finished or self._work):
            return False
        error = self._db.find_error(self._write_piece if self._tables else self._create_tables)
        if error is not None:
            self._stopped = True
            if self._tables:  # without tables, everything is written at the end of the run
                self._error = error
        return True

    def complete(self) -> PartialOutput | None:
        """Write all configurations that were added; return None if no tables were created.

        Raises:
            Exception: an error of an earlier piece.
        """
        if self._error is not None:
            raise self._error
        if self._tables is None:
            return None
        for _ in self._work or self._write():
            pass
        return PartialOutput(self._tables, self._models)

    def _create_tables(self) -> None:
        run = logged_run.read_run(self._db, self._run_id)
        with self._db.atomic(lock_timeout=LOCK_TIMEOUT):
            tables = fit_output.create(self._db, self._output, run)
        self._run = run
        self._tables = tables

    def _write_piece(self) -> None:
        end = time.monotonic() + START_SECONDS
        self._work = self._work or self._write()
        for _ in self._work:
            if time.monotonic() >= end:
                return
        self._work = None

    def _write(self) -> ChunkedWork[None]:
        assert self._tables is not None and self._run is not None
        run_id = self._run.run_id
        while self._trained or self._finished:
            is_new = bool(self._trained)
            mst_key = (self._trained or self._finished).pop(0)
            config = logged_run.read_newest_state(self._db, run_id, mst_key)
            if is_new:
                self._models[mst_key] = yield from fit_output.write_model(
                    self._db, self._tables, self._run, config
                )
            else:
                self._models[mst_key] = fit_output.write_metrics(
                    self._db, self._tables, self._run, config, self._models[mst_key]
                )
            yield
