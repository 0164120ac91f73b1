"""Detection of a process that a backend waits for and that makes no progress.

A signal may have stopped the process, or it may sleep forever.
"""

from __future__ import annotations

import math
import time

from cerebro_plpy.trainer_client.process import cpu_clock

PAUSE_SECONDS = 0.5
"""Between two checks."""
STOPPED_SECONDS = 5.0
ASLEEP_SECONDS = 30.0
"""Longer than a process that imports a framework waits for anything but its disk."""
STOPPED = ("T", "t")
ASLEEP = "S"
"""States of a process in /proc; a process that waits for its disk has another state."""


def read_state(pid: int) -> str | None:
    """Return the letter of the state of a process; None if the process has ended."""
    try:
        return cpu_clock.read_stat(pid)[0]
    except OSError:
        return None


def is_stopped(pid: int) -> bool:
    """Return True if a signal has stopped a process."""
    return read_state(pid) in STOPPED


def max_idle_seconds(state: str | None) -> float:
    """Return how long a process may be in a state without using CPU time."""
    if state in STOPPED:
        return STOPPED_SECONDS
    if state == ASLEEP:
        return ASLEEP_SECONDS
    return math.inf


class Standstill:
    """Detects that a process makes no progress.

    The number of checks counts, not the time: while a whole machine is stopped, nothing is checked.
    """

    def __init__(self) -> None:
        self._last_check = time.monotonic()
        self._progress: tuple[int, float | None] | None = None  # process and its CPU seconds
        self._idle_checks = 0

    def has_stalled(self, pid: int) -> bool:
        """Return True if the process has made no progress for too long."""
        now = time.monotonic()
        if now - self._last_check < PAUSE_SECONDS:
            return False
        self._last_check = now
        progress = (pid, cpu_clock.read_seconds(pid))
        limit = max_idle_seconds(read_state(pid))
        if progress == self._progress and limit < math.inf:
            self._idle_checks += 1
        else:
            self._idle_checks = 0
        self._progress = progress
        return self._idle_checks * PAUSE_SECONDS >= limit
