"""The session that writes the log of a run, which must record even failures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from cerebro_plpy.database.sessions.worker_sessions import WorkerSession
from cerebro_plpy.errors import CerebroError, SegmentLost

# Time for a segment to recover: Greenplum promotes a mirror, or starts the segment again.
RECOVERY_SECONDS = 120.0
PAUSE_SECONDS = 0.5


class ControlSession(WorkerSession):
    """A session that repeats statements that a lost segment prevented from being committed.

    It may be disconnected while its run waits.
    """

    _reconnect_label: str | None = None  # application_name after a disconnect

    def disconnect(self, label: str) -> None:
        """Free the connection slot; the next statement connects again under this label."""
        self.close()
        self._reconnect_label = label

    def start(self, statement: str, values: Sequence[object] = ()) -> None:
        """See `WorkerSession.start`."""
        label = self._reconnect_label
        if label is not None:
            self._reconnect_label = None
            try:
                self._open(label)
            except CerebroError:
                self._reconnect_label = label
                raise
        super().start(statement, values)

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """See `WorkerSession.run`."""
        start = time.monotonic()
        while True:
            try:
                return super().run(statement, values)
            except SegmentLost:
                if time.monotonic() - start > RECOVERY_SECONDS:
                    raise
            time.sleep(PAUSE_SECONDS)
            self.check()
