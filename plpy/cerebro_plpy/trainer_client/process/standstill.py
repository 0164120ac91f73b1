"""Whether a process that a backend waits for stands still: a signal has stopped it, or it sleeps
and does not wake.
"""

from __future__ import annotations

import math
import time

from cerebro_plpy.trainer_client.process import cpu_clock

PAUSE_SECONDS = 0.5
"""Between two looks."""
STOPPED_SECONDS = 5.0
ASLEEP_SECONDS = 30.0
"""Longer than a process waits for anything but its disk while it imports a framework."""
STOPPED = ("T", "t")
ASLEEP = "S"
"""States of a process in /proc. One that waits for its disk has another."""


def state(pid: int) -> str | None:
    """Return the letter of the state of a process; None if the process has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except OSError:
        return None


def is_stopped(pid: int) -> bool:
    """Return whether a signal has stopped a process."""
    return state(pid) in STOPPED


def patience(letter: str | None) -> float:
    """Return for how many seconds a process may be in a state without having the processor."""
    if letter in STOPPED:
        return STOPPED_SECONDS
    return ASLEEP_SECONDS if letter == ASLEEP else math.inf


class Standstill:
    """A process as somebody sees it who waits for it.

    Looks count, and not the time: while a machine is stopped as a whole, nobody looks.
    """

    def __init__(self) -> None:
        self._looked = time.monotonic()
        self._seen: tuple[int, float | None] | None = None
        self._looks = 0

    def look(self, pid: int) -> bool:
        """Return whether the process has done nothing for too long."""
        now = time.monotonic()
        if now - self._looked < PAUSE_SECONDS:
            return False
        self._looked = now
        seen = (pid, cpu_clock.read_seconds(pid))
        limit = patience(state(pid))
        if seen == self._seen and limit < math.inf:
            self._looks += 1
        else:
            self._looks = 0
        self._seen = seen
        return self._looks * PAUSE_SECONDS >= limit
