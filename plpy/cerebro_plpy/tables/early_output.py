"""Output tables as far as they can be written while a run goes on: what finished configurations have come to.

It is done in the caller's transaction, as for all output tables, but beside the workers, a piece at a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from cerebro_plpy.database.caller import Database
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.tables import outputs
from cerebro_plpy.tables.model_states import ModelTables
from cerebro_plpy.tables.outputs import Begun, LoggedRun
from cerebro_plpy.tables.pieces import PIECE_SECONDS

# Somebody may be about to make a table of such a name: that is waited for when no worker waits for this session.
LOCK_TIMEOUT = "1s"
BEGINNING = PIECE_SECONDS / 4  # what is begun just before its end may take the rest: see pieces.next_size()


class EarlyOutput:
    """New output tables of a run, of which nobody hears before its end that they could not be written."""

    def __init__(self, db: Database, output: Relation) -> None:
        self._db, self._output = db, output
        self._finished: list[tuple[int, int]] = []
        self._pieces: Iterator[None] | None = None
        self._place: tuple[ModelTables, LoggedRun] | None = None
        self._written: set[int] = set()
        self._stopped = False
        self._error: Exception | None = None

    def finished(self, run_id: int, mst_key: int) -> None:
        """Hear of a configuration that has nothing left to do, and of which a state is stored."""
        self._finished.append((mst_key, run_id))

    def piece(self) -> bool:
        """Write for some 20 ms; False where there is nothing to write. A cancel is raised, an error is kept."""
        if self._stopped or not (self._finished or self._pieces):
            return False
        error = self._db.failure(self._go_on if self._place else self._begin)
        if error is not None:
            self._stopped = True
            self._error = error if self._place else None  # without tables all is written at the end
        return True

    def begun(self) -> Begun | None:
        """The tables with all configurations that are finished; None where they are still to be made."""
        if self._error is not None:
            raise self._error
        if self._place is None:
            return None
        for _ in self._pieces or self._write():
            pass
        return Begun(self._place[0], self._written)

    def _begin(self) -> None:
        run = outputs.read_run(self._db, self._finished[0][1])
        with self._db.together(lock_timeout=LOCK_TIMEOUT):
            tables = outputs.create(self._db, self._output, run)
        self._place = tables, run

    def _go_on(self) -> None:
        until = time.monotonic() + BEGINNING
        self._pieces = self._pieces or self._write()
        for _ in self._pieces:
            if time.monotonic() >= until:
                return
        self._pieces = None

    def _write(self) -> Iterator[None]:
        assert self._place is not None
        tables, run = self._place
        while self._finished:
            self._finished.remove(first := min(self._finished))
            mst_key, run_id = first
            config = outputs.newest_state(self._db, run_id, mst_key)
            yield from outputs.config_pieces(self._db, tables, self._output, run, config)
            self._written.add(mst_key)
