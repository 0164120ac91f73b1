"""Sessions of ours give way: whoever else uses the server has the processor before those that
train.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Collection
from contextlib import suppress

NICENESS = 5
"""A third of the weight of other sessions; trainers, which have a tenth, go behind both."""
SLICE_NS = 5_000_000
"""Of time, at once. Kernels from 6.12 on let whoever asks for less, as all do who ask for nothing,
come in between.

As much as trainers ask for: with more a session waits for these, and others for what it has locked.
"""
BEGINNING_SECONDS = 3.0
"""Sessions begin by loading what they need, in small pieces that nobody comes in between."""
PAUSE_SECONDS = 1e-3
"""So long a session computes before it looks whether others want the processor."""
SETATTR = {"x86_64": 314, "aarch64": 274}
"""The number of sched_setattr(2), by machine: older C libraries have no function for it."""


class Beginning:
    """The first seconds of some backends, in which they keep to these processors; where there are
    none, to any. Then they may use all that the server's first process may."""

    def __init__(self, pids: Collection[int], cores: Collection[int]) -> None:
        self._pids = pids
        self._until = time.monotonic() + BEGINNING_SECONDS if cores else None
        if cores:
            self._keep_to(cores)

    def look(self) -> None:
        """End them where they are over by now."""
        if self._until is not None and time.monotonic() >= self._until:
            self.end()

    def end(self) -> None:
        """From now on any processor will do."""
        if self._until is not None:
            self._until = None
            self._keep_to(os.sched_getaffinity(os.getppid()))

    def _keep_to(self, cores: Collection[int]) -> None:
        for pid in self._pids:
            with suppress(OSError):  # the backend is gone, or none of them may be used any more
                os.sched_setaffinity(pid, cores)


class Pauses:
    """What a session that gives way does between its statements: let whoever else wants the
    processor have it.

    The kernel may leave it to a session with little weight until the next tick, up to ten
    milliseconds later: where a client has come in between another session and that one, which has
    just run, is not the next.
    """

    def __init__(self) -> None:
        self._since = time.monotonic()

    def pause(self) -> None:
        """Do so, unless that was a moment ago."""
        if time.monotonic() - self._since >= PAUSE_SECONDS:
            if os.getpriority(os.PRIO_PROCESS, 0) >= NICENESS:
                os.sched_yield()
            self._since = time.monotonic()


def give_way(pid: int) -> bool:
    """Make a backend of this server nicer; False where the kernel is to be asked again a moment
    later.

    Each backend leads a session of its own. Where the kernel makes a group of each, it weighs
    groups against each other by a number of theirs, and lets users other than root write one of
    these ten times a second (sched(7), "The autogroup feature").
    """
    with suppress(OSError):  # the backend is gone
        niceness = max(NICENESS, os.getpriority(os.PRIO_PROCESS, pid))
        os.setpriority(os.PRIO_PROCESS, pid, niceness)
        _take_long_slices(pid, niceness)
    try:
        _weigh(f"/proc/{pid}/autogroup")
    except BlockingIOError:
        return False
    except OSError:  # the same, or a kernel without groups
        pass
    return True


def _take_long_slices(pid: int, niceness: int) -> None:
    """Whoever wakes up meanwhile comes in between; asked for by `struct sched_attr`, in its first
    version.

    The first statements of a session load what they need, for a tenth of a second: where many begin
    at once, others would have to wait for the end of a slice of each.
    """
    number = SETATTR.get(os.uname().machine)
    if number is not None and os.sched_getscheduler(pid) == os.SCHED_OTHER:
        asked = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, niceness, 0, SLICE_NS, 0, 0)
        ctypes.CDLL(None).syscall(number, pid, asked, 0)


def _weigh(path: str) -> None:
    group = os.open(path, os.O_RDWR)
    try:
        told = os.read(group, 64)  # nothing where the kernel was told to make no groups
        if told and int(told.rpartition(b" ")[2]) < NICENESS:
            os.write(group, str(NICENESS).encode())
    finally:
        os.close(group)
