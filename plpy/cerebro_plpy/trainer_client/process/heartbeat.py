"""Whether a trainer is alive: one byte of memory that both ends share, which it changes each
second.

A trainer may compute for hours without an answer, and so no time of waiting says that it hangs.
That it was stopped, or stands still, shows in this byte: `cerebro_trainer.wire.heartbeat` is the
other end.
"""

from __future__ import annotations

import mmap
import os
import time

from cerebro_plpy.errors import TrainerFailure
from cerebro_plpy.trainer_client.process.standstill import is_stopped

PAUSE_SECONDS = 0.5  # between two looks
SILENT_SECONDS = 60.0
# It loads its framework without letting go of the interpreter, from a disk that may be slow.
STARTING_SECONDS = 600.0


class Pulse:
    """The byte as the backend sees it. `descriptor` is for the trainer, and closed once that has
    it.
    """

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("cerebro_pulse")
        os.ftruncate(self.descriptor, mmap.PAGESIZE)
        self._page = mmap.mmap(self.descriptor, mmap.PAGESIZE)
        self._beat, self._silent, self._looked = 0, 0, time.monotonic()

    def look(self, pid: int, *, starting: bool) -> None:
        """Raise an error where the byte has not changed for too long.

        What counts are looks: while a machine or a container is stopped as a whole, nobody looks.
        """
        now = time.monotonic()
        if now - self._looked < PAUSE_SECONDS:
            return
        self._looked, before, self._beat = now, self._beat, self._page[0]
        self._silent = 0 if self._beat != before else self._silent + 1
        limit = STARTING_SECONDS if starting and not is_stopped(pid) else SILENT_SECONDS
        if self._silent * PAUSE_SECONDS >= limit:
            raise TrainerFailure(
                f"the trainer (process {pid}) gave no sign of life for {limit:.0f} seconds and was "
                "ended",
                hint="It was stopped by a signal, or its framework stands still, as in a deadlock.",
            )

    def close(self) -> None:
        """Give the memory back."""
        self._page.close()
