"""CPU priority of worker sessions, which give way to sessions of other users."""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Collection
from contextlib import suppress

NICENESS = 5
"""A third of the weight of other sessions; trainers, with a tenth, come after both."""
SLICE_NS = 5_000_000
"""Requested time slice. Kernels from 6.12 on let tasks with shorter slices preempt longer ones,
and a task that requests nothing has a shorter one.

Trainers request the same: with more, a session would wait for trainers, and other sessions for its
locks.
"""
STARTUP_SECONDS = 3.0
"""A session begins by loading code and catalogs in small pieces that nothing preempts."""
YIELD_SECONDS = 1e-3
"""CPU time between two yields of a session."""
SETATTR = {"x86_64": 314, "aarch64": 274}
"""The number of sched_setattr(2) by machine: older C libraries have no function for it."""


class StartupCores:
    """Cores that some backends are restricted to during their first seconds.

    Afterwards they may use all cores of the server's first process. Without cores, nothing is
    restricted.
    """

    def __init__(self, pids: Collection[int], cores: Collection[int]) -> None:
        self._pids = pids
        self._deadline = time.monotonic() + STARTUP_SECONDS if cores else None
        if cores:
            self._set_affinity(cores)

    def release_if_over(self) -> None:
        """Lift the restriction if the first seconds are over."""
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self.release()

    def release(self) -> None:
        """Lift the restriction."""
        if self._deadline is not None:
            self._deadline = None
            self._set_affinity(os.sched_getaffinity(os.getppid()))

    def _set_affinity(self, cores: Collection[int]) -> None:
        for pid in self._pids:
            with suppress(OSError):  # the backend has ended, or none of the cores is allowed
                os.sched_setaffinity(pid, cores)


class CpuYield:
    """Yields the CPU to other processes between the statements of a session with low priority.

    The kernel may let a low-priority session run until the next tick, up to ten milliseconds later.
    That happens if a client has run between another session and this one: the other session, which
    has just run, is then not the next.
    """

    def __init__(self) -> None:
        self._last = time.monotonic()

    def yield_cpu(self) -> None:
        """Yield the CPU, unless that was a moment ago."""
        if time.monotonic() - self._last >= YIELD_SECONDS:
            if os.getpriority(os.PRIO_PROCESS, 0) >= NICENESS:
                os.sched_yield()
            self._last = time.monotonic()


def lower_priority(pid: int) -> bool:
    """Lower the priority of a backend; return False if that must be tried again a moment later.

    Each backend leads a session of the operating system. If the kernel groups processes by session,
    it weighs groups by a number of their own. Users other than root may write ten of these numbers
    a second (sched(7), "The autogroup feature").
    """
    with suppress(OSError):  # the backend has ended
        niceness = max(NICENESS, os.getpriority(os.PRIO_PROCESS, pid))
        os.setpriority(os.PRIO_PROCESS, pid, niceness)
        _request_slice(pid, niceness)
    try:
        _lower_group_priority(f"/proc/{pid}/autogroup")
    except BlockingIOError:
        return False
    except OSError:  # the backend has ended, or the kernel has no groups
        pass
    return True


def _request_slice(pid: int, niceness: int) -> None:
    """Request a time slice that other tasks may preempt, with version 1 of `struct sched_attr`.

    The first statements of a session load code and catalogs for a tenth of a second. If many
    sessions begin at once, other sessions would otherwise wait for a slice of each.
    """
    number = SETATTR.get(os.uname().machine)
    if number is not None and os.sched_getscheduler(pid) == os.SCHED_OTHER:
        attributes = struct.pack("=IIQiIQQQ", 48, os.SCHED_OTHER, 0, niceness, 0, SLICE_NS, 0, 0)
        ctypes.CDLL(None).syscall(number, pid, attributes, 0)


def _lower_group_priority(path: str) -> None:
    group = os.open(path, os.O_RDWR)
    try:
        text = os.read(group, 64)  # empty if the kernel was configured without groups
        if text and int(text.rpartition(b" ")[2]) < NICENESS:
            os.write(group, str(NICENESS).encode())
    finally:
        os.close(group)
