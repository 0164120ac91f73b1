"""Signs of life for the backend, from a thread of its own, which computing does not delay.

They are a byte of shared memory that changes each second. It does not while a request is worked on
and no other thread has had the processor: then the framework stands still, as in a deadlock.
"""

from __future__ import annotations

import mmap
import threading
import time
from collections.abc import Callable

BEAT_SECONDS = 1.0
LEAST_SECONDS = 0.001
"""Of processor time: less than any work takes, more than a look at the clocks."""


class Pulse:
    """Beats until the process ends."""

    def __init__(self, descriptor: int) -> None:
        self._page = mmap.mmap(descriptor, mmap.PAGESIZE)
        self._computing: Callable[[], bool] = lambda: False
        self._seen = 0.0
        threading.Thread(target=self._run, daemon=True).start()

    def move(self, descriptor: int) -> None:
        """From now on beat there, for another backend, whatever is computed."""
        self._computing = lambda: False
        self._page = mmap.mmap(descriptor, mmap.PAGESIZE)

    def follow(self, computing: Callable[[], bool]) -> None:
        """From now on beat only where this is not `computing`, or the processor has been used."""
        self._computing = computing

    def _run(self) -> None:
        while True:
            used = time.process_time() - time.thread_time()
            if not self._computing() or used - self._seen >= LEAST_SECONDS:
                self._seen = used
                self._page[0] = (self._page[0] + 1) % 256
            time.sleep(BEAT_SECONDS)
