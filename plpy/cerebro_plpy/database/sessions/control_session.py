"""The session that writes the log of a run, which must be told even of what goes wrong."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from cerebro_plpy.database.sessions.worker_sessions import WorkerSession
from cerebro_plpy.errors import CerebroError, SegmentLost

PATIENCE_SECONDS = (
    120.0  # for a segment to come back: Greenplum promotes a mirror, or starts the segment again
)
PAUSE_SECONDS = 0.5


class ControlSession(WorkerSession):
    """Repeats what a lost segment kept from being committed; it may be away while its run waits."""

    _away: str | None = None  # by which name it comes back

    def go_away(self, label: str) -> None:
        """Leave room for others; the next statement opens it again."""
        self.close()
        self._away = label

    def start(self, statement: str, values: Sequence[object] = ()) -> None:
        """See `WorkerSession.start`."""
        if self._away is not None:
            label, self._away = self._away, None
            try:
                self._open(label)
            except CerebroError:
                self._away = label
                raise
        super().start(statement, values)

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """See `WorkerSession.run`."""
        began = time.monotonic()
        while True:
            try:
                return super().run(statement, values)
            except SegmentLost:
                if time.monotonic() - began > PATIENCE_SECONDS:
                    raise
            time.sleep(PAUSE_SECONDS)
            self.check()
