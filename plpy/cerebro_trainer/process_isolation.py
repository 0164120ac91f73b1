"""Ties of a process to its parent, and its isolation from all other processes."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from setproctitle import setproctitle

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
NICENESS = 10
"""Gives a trainer a tenth of the scheduling weight of others: it is slow beside them, not stopped.
"""
AUTOGROUP = Path("/proc/self/autogroup")
RETRY_SECONDS = 0.1
"""Interval in which the kernel accepts a group's weight from users other than root."""
SLICE_NS = 5_000_000
"""More than the slice that the kernel assigns by default, which is at most 3 ms."""
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
"""Number of the system call sched_setattr(2), by machine: older C libraries do not offer it."""


def follow_parent(parent: int) -> None:
    """Exit when the parent does; exit at once if it has already ended.

    The process exits with status 1 instead of dying from the signal. In containers the server is
    process 1 and inherits orphans, and it takes one that died from a signal for a crashed backend.
    The handler is the C library's own `_exit`, because a framework may block Python's interpreter
    for long; the signal's number becomes the status.
    """
    libc = ctypes.CDLL(None)
    libc.signal(signal.SIGHUP, ctypes.cast(libc["_exit"], ctypes.c_void_p))
    _prctl(PR_SET_PDEATHSIG, signal.SIGHUP)
    if os.getppid() != parent:  # compared last, because the parent may have just ended
        sys.exit(f"cerebro_trainer: the parent is process {os.getppid()}, expected {parent}")


def keep_private() -> None:
    """Keep training data in this process: no core file, no debugger, no program with more rights.

    Afterwards the process can no longer write its own files in /proc.
    """
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(PR_SET_DUMPABLE, 0)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)


def prefer_for_memory_killer() -> None:
    """Make the kernel end this process first when memory is short."""
    Path("/proc/self/oom_score_adj").write_text("1000")


def set_cpu_affinity(cores: Sequence[int]) -> None:
    """Restrict the process to some cores.

    Call this before other threads start, because each thread has an affinity of its own.
    """
    if cores:
        with suppress(OSError):  # none of the cores is available any more
            os.sched_setaffinity(0, cores)


def lower_cpu_priority(*, use_thread: bool) -> None:
    """Give all other processes precedence, so that the server answers while trainers compute.

    The process must lead a session: its scheduling group, which the kernel weighs against others,
    is then its own. Call this before other threads start, because each thread has a niceness of its
    own, and before `keep_private`.

    Args:
        use_thread: wait for the kernel in a thread, because it may take a moment.
    """
    niceness = max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0))
    os.setpriority(os.PRIO_PROCESS, 0, niceness)
    _request_long_slices(niceness)
    with suppress(OSError):  # a kernel without such groups
        group = os.open(AUTOGROUP, os.O_WRONLY)
        if use_thread:
            threading.Thread(target=_lower_group_weight, args=(group,), daemon=True).start()
        else:
            _lower_group_weight(group)


def _request_long_slices(niceness: int) -> None:
    """Request long time slices for this thread and its children, so that others interrupt them.

    Niceness alone does not achieve this. Since the kernel schedules by deadlines (EEVDF), a
    computing thread finishes its slice before a thread that wakes up may run. That costs a session
    some milliseconds for each of its statements. Kernels before 6.12 ignore the request.
    """
    system_call = SCHED_SETATTR.get(platform.machine())
    if system_call is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    fields = (48, os.SCHED_OTHER, 0, niceness, 0, SLICE_NS, 0, 0)
    attributes = struct.pack("=IIQiIQQQ", *fields)  # `struct sched_attr`
    ctypes.CDLL(None).syscall(system_call, 0, attributes, 0)


def _lower_group_weight(group: int) -> None:
    # The write fails if the group is nicer than the process may set, or groups are disabled.
    with suppress(OSError):
        while True:
            try:
                os.write(group, str(NICENESS).encode())
                break
            except BlockingIOError:
                time.sleep(RETRY_SECONDS)
    os.close(group)


def adopt_orphans() -> None:
    """Make this process, instead of process 1, the parent of its descendants' orphans."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def set_trainer_title(framework: str, backend: int | None) -> None:
    """Set the title that `ps` shows for a trainer, whether it was executed or forked.

    Args:
        backend: process id; None while the trainer waits for its next backend.
    """
    status = "kept" if backend is None else f"for backend {backend}"
    setproctitle(f"cerebro_trainer: {framework} {status}")


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        sys.exit(f"cerebro_trainer: prctl {option} failed: {os.strerror(ctypes.get_errno())}")
