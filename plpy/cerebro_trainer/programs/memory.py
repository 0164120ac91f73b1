"""What this process holds of memory, and what it is allowed: what decides how a model is run."""

from __future__ import annotations

import ctypes
import re
import threading
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

RESERVE = 40
"""One part in so many of the limit is left alone."""
PAUSE_SECONDS = 2e-3
MAPPED_THRESHOLD = -3
"""mallopt's M_MMAP_THRESHOLD."""
MAPPED_BYTES = 256 << 10


class Room(NamedTuple):
    """What a program is made for: a `limit` of bytes for its whole process, 0 for none, and a
    `form` if it must have that."""

    limit: int = 0
    form: str | None = None

    @property
    def bytes(self) -> int | None:
        """Bytes that are left now; None for any number."""
        return self.limit - self.limit // RESERVE - held() if self.limit else None


class Peak:
    """The most that this process holds while something is done, looked at every few
    milliseconds.
    """

    bytes = 0

    def __enter__(self) -> Peak:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            self.bytes = max(self.bytes, held())
            if self._over.wait(PAUSE_SECONDS):
                return


def held() -> int:
    """Bytes of memory that this process has, also those that were swapped out: what its backend
    looks at.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return sum(
        int(kilobytes) << 10
        for kilobytes in re.findall(r"^Vm(?:RSS|Swap):\s+(\d+)", status, re.MULTILINE)
    )


def give_back_at_once() -> None:
    """Have what is freed go back to the system where it is large, which the C library learns not to
    do.
    """
    library = ctypes.CDLL(None)
    library.mallopt(MAPPED_THRESHOLD, MAPPED_BYTES)
    library.malloc_trim(0)
