"""Output tables as far as they can be written while a run goes on: what configurations have come to
that are trained.

It is done in the caller's transaction, as for all output tables, but beside the workers, a piece at
a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.tables.chunked_work import PIECE_SECONDS, Pieces
from cerebro_plpy.tables.outputs import fit_output
from cerebro_plpy.tables.outputs.fit_output import Begun, LoggedRun, OutputTables, Written

# Somebody may be about to make a table of such a name: that is waited for when no worker waits for
# this session.
LOCK_TIMEOUT = "1s"
BEGINNING = (
    PIECE_SECONDS / 4
)  # what is begun just before its end may take the rest: see pieces.next_size()


class EarlyOutput:
    """New output tables of a run, of which nobody hears before its end that they could not be
    written.
    """

    def __init__(self, db: Database, output: Relation) -> None:
        self._db, self._output = db, output
        self._run_id = 0
        self._trained: list[int] = []
        self._finished: list[int] = []
        self._pieces: Iterator[None] | None = None
        self._place: tuple[OutputTables, LoggedRun] | None = None
        self._written: dict[int, Written] = {}
        self._stopped = False
        self._error: Exception | None = None

    def trained(self, run_id: int, mst_key: int) -> None:
        """Hear of a configuration that is trained no further, and of which a state is stored."""
        self._run_id = run_id
        self._trained.append(mst_key)

    def finished(self, mst_key: int) -> None:
        """Hear of such a configuration of which the metrics are known, too."""
        self._finished.append(mst_key)

    def piece(self) -> bool:
        """Write for some 20 ms; False where there is nothing to write. A cancel is raised, an error
        is kept.
        """
        if self._stopped or not (self._trained or self._finished or self._pieces):
            return False
        error = self._db.find_error(self._go_on if self._place else self._begin)
        if error is not None:
            self._stopped = True
            self._error = error if self._place else None  # without tables all is written at the end
        return True

    def begun(self) -> Begun | None:
        """The tables with all that was heard of; None where they are still to be made."""
        if self._error is not None:
            raise self._error
        if self._place is None:
            return None
        for _ in self._pieces or self._write():
            pass
        return Begun(self._place[0], self._written)

    def _begin(self) -> None:
        run = fit_output.read_run(self._db, self._run_id)
        with self._db.atomic(lock_timeout=LOCK_TIMEOUT):
            tables = fit_output.create(self._db, self._output, run)
        self._place = tables, run

    def _go_on(self) -> None:
        until = time.monotonic() + BEGINNING
        self._pieces = self._pieces or self._write()
        for _ in self._pieces:
            if time.monotonic() >= until:
                return
        self._pieces = None

    def _write(self) -> Pieces[None]:
        assert self._place is not None
        tables, run = self._place
        while self._trained or self._finished:
            if self._trained:
                config = fit_output.newest_state(self._db, run.run_id, self._trained.pop(0))
                self._written[config["mst_key"]] = yield from fit_output.model_written(
                    self._db, tables, run, config
                )
            else:
                config = fit_output.newest_state(self._db, run.run_id, self._finished.pop(0))
                before = self._written[config["mst_key"]]
                self._written[config["mst_key"]] = fit_output.metrics_written(
                    self._db, tables, run, config, before
                )
            yield
