"""What ties a process of ours to the one that started it, and shuts it off from all others."""

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
"""A tenth of the weight of others that want the processor, so that a trainer is slow beside them,
and not stopped.
"""
AUTOGROUP = Path("/proc/self/autogroup")
AGAIN_SECONDS = 0.1
"""So often the kernel lets users other than root weigh a group."""
SLICE_NS = 5_000_000
"""More than the kernel gives at a time to those who ask for nothing, which is 3 ms at most."""
SETATTR = {"x86_64": 314, "aarch64": 274}
"""The number of sched_setattr(2), by machine: older C libraries have no function for it."""


def follow_parent(parent: int) -> None:
    """Die with the parent. Asked for first and compared second: it may have died in between.

    By exit status 1, not by the signal: where the server is process 1, as in containers, it
    inherits orphans, and one that a signal ended looks to it like a crashed backend. The C
    library's own function is the handler, so that it needs no turn of the interpreter, which a
    framework may keep for long; the signal's number is the status.
    """
    libc = ctypes.CDLL(None)
    libc.signal(signal.SIGHUP, ctypes.cast(libc["_exit"], ctypes.c_void_p))
    _prctl(PR_SET_PDEATHSIG, signal.SIGHUP)
    if os.getppid() != parent:
        sys.exit(f"cerebro_trainer: the parent is process {os.getppid()}, expected {parent}")


def keep_private() -> None:
    """Training data stay in this process: no core file, no debugger of the same user, no program
    with more rights.

    It gives up the right to write files of its own in /proc, so this comes after what is written
    there.
    """
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(PR_SET_DUMPABLE, 0)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)


def offer_to_memory_killer() -> None:
    """Where memory is short, the kernel ends this process first."""
    Path("/proc/self/oom_score_adj").write_text("1000")


def keep_to(cores: Sequence[int]) -> None:
    """Work on these processors alone. Before any other thread is started, for each has its own."""
    if cores:
        with suppress(OSError):  # none of them may be used any more
            os.sched_setaffinity(0, cores)


def give_way(*, threads: bool) -> None:
    """Whoever else wants the processor has it first: the server answers while trainers compute.

    A process that leads a session is in a group of its own, which the kernel weighs against others
    by a number of the group's. Before any other thread is started, for each has its own niceness;
    and before `keep_private`. Who is not to have threads waits for the kernel, which may take a
    moment.
    """
    niceness = max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0))
    os.setpriority(os.PRIO_PROCESS, 0, niceness)
    _take_long_slices(niceness)
    with suppress(OSError):  # a kernel without such groups
        group = os.open(AUTOGROUP, os.O_WRONLY)
        if threads:
            threading.Thread(target=_weigh, args=(group,), daemon=True).start()
        else:
            _weigh(group)


def _take_long_slices(niceness: int) -> None:
    """Ask for long slices of time, for this thread and those that it starts: who asks for less
    comes in between.

    Niceness alone does not do that. Since it chooses by deadlines (EEVDF) the kernel lets whoever
    computes finish a slice before it looks at who has woken up, which costs a session some
    milliseconds for each of its statements. Kernels before 6.12 do not heed what is asked.
    """
    number = SETATTR.get(platform.machine())
    if number is not None and os.sched_getscheduler(0) == os.SCHED_OTHER:
        asked = struct.pack(
            "=IIQiIQQQ", 48, os.SCHED_OTHER, 0, niceness, 0, SLICE_NS, 0, 0
        )  # `struct sched_attr`
        ctypes.CDLL(None).syscall(number, 0, asked, 0)


def _weigh(group: int) -> None:
    with suppress(
        OSError
    ):  # it is nicer than it may be made again, or the kernel was told to make no groups
        while True:
            try:
                os.write(group, str(NICENESS).encode())
                break
            except BlockingIOError:
                time.sleep(AGAIN_SECONDS)
    os.close(group)


def adopt_orphans() -> None:
    """Children of children come to this process when their parents end, and not to process 1."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def name_trainer(framework: str, backend: int | None) -> None:
    """What `ps` shows of a trainer, however it was started; None while it is kept for a backend
    still to come.
    """
    setproctitle(
        f"cerebro_trainer: {framework} {'kept' if backend is None else f'for backend {backend}'}"
    )


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        sys.exit(f"cerebro_trainer: prctl {option} failed: {os.strerror(ctypes.get_errno())}")
