"""The heartbeat of a trainer: a byte of shared memory that the trainer changes each second.

A trainer may compute for hours without an answer, so that a timeout cannot detect a hang. The byte
does not change if the trainer was stopped or hangs. `cerebro_trainer.wire.heartbeat` is the other
end.
"""

from __future__ import annotations

import mmap
import os
import time

from cerebro_plpy.errors import TrainerFailure
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.trainer_client.process.standstill import is_stopped

PAUSE_SECONDS = 0.5  # between two checks
SILENT_SECONDS = 60.0
# While a trainer loads its framework, perhaps from a slow disk, it may hold the interpreter's lock.
STARTING_SECONDS = 600.0


class Heartbeat:
    """The byte in the backend.

    Attributes:
        descriptor: the shared memory, to be passed to the trainer and then closed.
    """

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("cerebro_pulse")
        os.ftruncate(self.descriptor, mmap.PAGESIZE)
        self._page = mmap.mmap(self.descriptor, mmap.PAGESIZE)
        self._beat = 0
        self._silent_checks = 0
        self._last_check = time.monotonic()

    def check(self, pid: int, *, is_starting: bool) -> None:
        """Raise an error if the byte has not changed for too long.

        The number of checks counts, not the time: while a whole machine or container is stopped,
        nothing is checked.
        """
        now = time.monotonic()
        if now - self._last_check < PAUSE_SECONDS:
            return
        self._last_check = now
        beat = self._page[0]
        self._silent_checks += 1
        if beat != self._beat:
            self._silent_checks = 0
        self._beat = beat
        limit = STARTING_SECONDS if is_starting and not is_stopped(pid) else SILENT_SECONDS
        if self._silent_checks * PAUSE_SECONDS >= limit:
            raise TrainerFailure(
                f"the trainer (process {pid}) gave no sign of life for "
                f"{count_nouns(limit, 'second')} and was ended",
                hint="It was stopped by a signal, or its framework stands still, as in a deadlock.",
            )

    def close(self) -> None:
        """Release the memory."""
        self._page.close()
