"""The processor time of a trainer, by the clock that the kernel keeps of any process: that of all
its threads.

Nothing is asked of the trainer, so that what it did before it failed, or was ended, is known too.
"""

from __future__ import annotations

import os
import re
import time

TICKS = os.sysconf("SC_CLK_TCK")  # in a second
PAUSE_SECONDS = 0.1  # between two looks at its memory
# of the clocks of a process that of its time in user and in kernel mode together (CPUCLOCK_SCHED)
BOTH = 2


def read_seconds(pid: int) -> float | None:
    """Processor seconds of a process since it began; None where it is gone."""
    try:
        return time.clock_gettime(
            (~pid << 3) | BOTH
        )  # the number that clock_getcpuclockid makes of a process
    except OSError:
        return None


def memory(pid: int) -> tuple[int, int]:
    """Resident bytes of a process, the most that they were and those of now; 0 where it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
            found = dict(re.findall(r"^(VmHWM|VmRSS):\s+(\d+) kB$", status.read(), re.MULTILINE))
    except OSError:
        return 0, 0
    return int(found.get("VmHWM", 0)) << 10, int(found.get("VmRSS", 0)) << 10


def _began(pid: int) -> float:
    """When a process began, in seconds since the machine did."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
        return float(stat.read().rpartition(")")[2].split()[19]) / TICKS


class Clock:
    """That of one trainer, which may have worked for others before it came to this session."""

    def __init__(self) -> None:
        self._made = time.clock_gettime(time.CLOCK_BOOTTIME)
        self._pid, self._ended = 0, False
        self._told = self._seen = 0.0
        self._before = 0  # the most bytes that it had when others had it
        self._peak: tuple[float, int] | None = None

    def look(self, pid: int) -> None:
        """See what it has used by now; it may be gone when somebody wants to know."""
        used = read_seconds(pid) if pid and not self._ended else None
        if used is None:
            return
        if not self._pid:
            self._begin(pid, used)
        self._seen = used

    def _begin(self, pid: int, used: float) -> None:
        self._pid = pid
        try:
            kept = _began(pid) < self._made - 1 / TICKS
        except OSError:
            return  # it has just ended
        if kept:
            self._told, self._before = used, memory(pid)[0]

    def taken(self) -> float:
        """Seconds that it has used since they were taken last."""
        self.look(self._pid)
        used, self._told = self._seen - self._told, self._seen
        return max(0.0, used)

    def peak(self) -> int:
        """The most bytes that it had in this session, as of a tenth of a second ago, and as far as
        that is known: what it has now, where it had more for others."""
        moment = time.monotonic()
        if self._peak is None or moment - self._peak[0] > PAUSE_SECONDS:
            most, now = memory(self._pid) if self._pid and not self._ended else (0, 0)
            self._peak = moment, most if most > self._before else now
        return self._peak[1]

    def stop(self) -> None:
        """It is about to end: its number may be that of another process after that."""
        self.look(self._pid)
        self._ended = True
