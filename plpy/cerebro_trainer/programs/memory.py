"""Memory of this process: its use and its limit, which decide how a model is run."""

from __future__ import annotations

import ctypes
import re
import threading
from pathlib import Path
from typing import NamedTuple

from cerebro_trainer.errors import ConfigError

RESERVE_DIVISOR = 40
"""This part of the limit is left unused: one in so many bytes."""
SAMPLE_SECONDS = 2e-3
M_MMAP_THRESHOLD = -3
"""Parameter of the C library's mallopt."""
MMAP_BYTES = 256 << 10
MEGABYTE = 1 << 20


class MemoryBudget(NamedTuple):
    """Memory that a program may use."""

    limit: int = 0  # bytes for the whole process; 0 for no limit
    mode: str | None = None  # execution mode that the program must have, whatever the memory

    @property
    def remaining_bytes(self) -> int | None:
        """Bytes that are available now; None without a limit."""
        if not self.limit:
            return None
        return self.limit - self.limit // RESERVE_DIVISOR - read_used_bytes()

    def check(self, purpose: str, nbytes: int) -> None:
        """Raise ConfigError if fewer bytes are available.

        Args:
            purpose: the thing that needs them, for the error message.
        """
        remaining = self.remaining_bytes
        if remaining is not None and nbytes > remaining:
            raise ConfigError(
                f"{purpose} need {nbytes / MEGABYTE:.0f} MB of memory, but the trainer has "
                f"{max(0, remaining) / MEGABYTE:.0f} MB left",
                sqlstate="53200",
                hint="Ask the administrator to raise trainer_memory_mb in cerebro.setting.",
            )


class PeakMemory:
    """Context that samples the memory of this process every few milliseconds."""

    peak_bytes = 0

    def __enter__(self) -> PeakMemory:
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _sample(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, read_used_bytes())
            if self._is_over.wait(SAMPLE_SECONDS):
                return


def read_used_bytes() -> int:
    """Return the resident and swapped bytes of this process, as its backend measures them."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    kilobytes = re.findall(r"^Vm(?:RSS|Swap):\s+(\d+)", status, re.MULTILINE)
    return sum(int(text) << 10 for text in kilobytes)


def return_freed_memory() -> None:
    """Make the C library return large freed blocks to the system at once.

    By default it raises this threshold as a process frees large blocks.
    """
    library = ctypes.CDLL(None)
    library.mallopt(M_MMAP_THRESHOLD, MMAP_BYTES)
    library.malloc_trim(0)
