"""CPU time and memory of a trainer, read from the kernel for all its threads.

The trainer does not take part: its usage is known even if it failed or was killed.
"""

from __future__ import annotations

import os
import re
import time

TICKS = os.sysconf("SC_CLK_TCK")  # per second
START_FIELD = 19  # of `read_stat`: start of a process in ticks since the boot of the machine
PAUSE_SECONDS = 0.1  # between two readings of its memory
CPUCLOCK_SCHED = 2  # the clock of user and kernel mode together


def read_seconds(pid: int) -> float | None:
    """Return the CPU seconds of a process since its start; None if it has ended."""
    clock_id = (~pid << 3) | CPUCLOCK_SCHED  # as clock_getcpuclockid(3) builds it
    try:
        return time.clock_gettime(clock_id)
    except OSError:
        return None


def read_memory(pid: int) -> tuple[int, int]:
    """Return the peak and the current resident bytes of a process; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
            sizes = dict(re.findall(r"^(VmHWM|VmRSS):\s+(\d+) kB$", status.read(), re.MULTILINE))
    except OSError:
        return 0, 0
    return int(sizes.get("VmHWM", 0)) << 10, int(sizes.get("VmRSS", 0)) << 10


def read_stat(pid: int) -> list[str]:
    """Return the fields of a process in /proc, from its state on; raise OSError if it has ended."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()


class Clock:
    """The usage of one trainer in this session; it may have worked for other sessions before."""

    def __init__(self) -> None:
        self._created = time.clock_gettime(time.CLOCK_BOOTTIME)
        self._pid = 0
        self._has_ended = False
        self._taken = 0.0  # CPU seconds that were returned, or used by other sessions
        self._seconds = 0.0  # CPU seconds at the last reading
        self._earlier_peak = 0  # bytes in other sessions
        self._peak: tuple[float, int] | None = None  # time of the reading and bytes

    def look(self, pid: int) -> None:
        """Read the clock of the trainer, which may have ended when its usage is needed."""
        seconds = read_seconds(pid) if pid and not self._has_ended else None
        if seconds is None:
            return
        if not self._pid:
            self._begin(pid, seconds)
        self._seconds = seconds

    def _begin(self, pid: int, seconds: float) -> None:
        self._pid = pid
        try:
            start = float(read_stat(pid)[START_FIELD]) / TICKS
        except OSError:
            return  # it has just ended
        if start < self._created - 1 / TICKS:  # reused
            self._taken = seconds
            self._earlier_peak, _ = read_memory(pid)

    def take_seconds(self) -> float:
        """Return the CPU seconds since the last call."""
        self.look(self._pid)
        seconds = self._seconds - self._taken
        self._taken = self._seconds
        return max(0.0, seconds)

    def read_peak(self) -> int:
        """Return the peak of the trainer's bytes in this session, at most 0.1 seconds old.

        If the peak was reached in an earlier session, return the current bytes.
        """
        now = time.monotonic()
        if self._peak is None or now - self._peak[0] > PAUSE_SECONDS:
            peak = 0
            current = 0
            if self._pid and not self._has_ended:
                peak, current = read_memory(self._pid)
            self._peak = (now, peak if peak > self._earlier_peak else current)
        return self._peak[1]

    def stop(self) -> None:
        """Stop reading: the trainer is about to end, and its number may be reused."""
        self.look(self._pid)
        self._has_ended = True
