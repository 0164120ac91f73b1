"""Sessions of ours give way: whoever else uses the server has the processor before those that train."""

from __future__ import annotations

import os
from contextlib import suppress

NICENESS = 5
"""A third of the weight of other sessions; trainers, which have a tenth, go behind both."""


def give_way(pid: int) -> bool:
    """Make a backend of this server nicer; False where the kernel is to be asked again a moment later.

    Each backend leads a session of its own. Where the kernel makes a group of each, it weighs groups against each other
    by a number of theirs, and lets users other than root write one of these ten times a second (sched(7), "The
    autogroup feature").
    """
    with suppress(OSError):  # the backend is gone, or nicer than it may be made again
        if os.getpriority(os.PRIO_PROCESS, pid) < NICENESS:
            os.setpriority(os.PRIO_PROCESS, pid, NICENESS)
    try:
        _weigh(f"/proc/{pid}/autogroup")
    except BlockingIOError:
        return False
    except OSError:  # the same, or a kernel without groups
        pass
    return True


def _weigh(path: str) -> None:
    group = os.open(path, os.O_RDWR)
    try:
        told = os.read(group, 64)  # nothing where the kernel was told to make no groups
        if told and int(told.rpartition(b" ")[2]) < NICENESS:
            os.write(group, str(NICENESS).encode())
    finally:
        os.close(group)
