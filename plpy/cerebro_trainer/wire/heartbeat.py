"""A heartbeat for the backend, from a separate thread that computations do not delay.

A byte of shared memory changes every second. It stays unchanged while a request is processed and
no other thread has used the CPU: then the framework stands still, as in a deadlock.
"""

from __future__ import annotations

import mmap
import threading
import time
from collections.abc import Callable

BEAT_SECONDS = 1.0
MIN_CPU_SECONDS = 0.001
"""Less CPU time than any work takes, and more than reading the clocks."""


class Heartbeat:
    """A thread that beats until the process ends.

    Args:
        descriptor: descriptor of the page that is shared with the backend.
    """

    def __init__(self, descriptor: int) -> None:
        self._page = mmap.mmap(descriptor, mmap.PAGESIZE)
        self._is_request_active: Callable[[], bool] = lambda: False
        self._cpu_seconds = 0.0  # of the other threads, at the last beat
        threading.Thread(target=self._run, daemon=True).start()

    def redirect(self, descriptor: int) -> None:
        """Beat in the page of another backend, without watching its requests yet."""
        self._is_request_active = lambda: False
        self._page = mmap.mmap(descriptor, mmap.PAGESIZE)

    def watch(self, is_request_active: Callable[[], bool]) -> None:
        """Stop beating while a request is active but the CPU is not used."""
        self._is_request_active = is_request_active

    def _run(self) -> None:
        while True:
            cpu_seconds = time.process_time() - time.thread_time()
            has_computed = cpu_seconds - self._cpu_seconds >= MIN_CPU_SECONDS
            if has_computed or not self._is_request_active():
                self._cpu_seconds = cpu_seconds
                self._page[0] = (self._page[0] + 1) % 256
            time.sleep(BEAT_SECONDS)
