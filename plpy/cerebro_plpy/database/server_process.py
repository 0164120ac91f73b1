"""What the server tells of itself through the symbols of its own process, without a statement.

On Greenplum every statement of a function opens a subtransaction on all segments, and where one of these has been
restarted meanwhile, that can end the whole coordinator. So a call that waits must learn there what it has to know
without one: whether it is to end. A cancel mostly comes by itself, as a KeyboardInterrupt.
"""

from __future__ import annotations

import ctypes
import os
import select
import socket
import stat
from functools import cache


@cache
def greenplum() -> bool:
    """Whether this process is a backend of Greenplum, or of what descends from it."""
    return hasattr(ctypes.CDLL(None), "Gp_role")


def cancelled() -> bool:
    """Whether the statement of this backend of Greenplum was cancelled, or ran out of time."""
    return _set("QueryCancelPending")


def ending() -> bool:
    """Whether this backend of Greenplum was told to end."""
    return _set("ProcDiePending")


def _set(flag: str) -> bool:
    return bool(ctypes.c_int.in_dll(ctypes.CDLL(None), flag))


def client_socket(port: int) -> int | None:
    """The file descriptor of this backend's client, at a server of this port; None where it cannot be told."""
    found = [fd for fd in map(int, os.listdir("/proc/self/fd")) if _is_served(fd, port)]
    return found[0] if len(found) == 1 else None


def hung_up(descriptor: int) -> bool:
    """Whether the other end of a socket has been closed."""
    poll = select.poll()
    poll.register(descriptor, select.POLLRDHUP)
    return bool(poll.poll(0))


def _is_served(fd: int, port: int) -> bool:
    """Whether a descriptor is a connection that was accepted at the server's port."""
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return False
        with socket.socket(fileno=os.dup(fd)) as copy:
            if copy.type != socket.SOCK_STREAM:
                return False
            copy.getpeername()
            here = copy.getsockname()
    except OSError:
        return False
    if copy.family == socket.AF_UNIX:
        return isinstance(here, str) and here.endswith(f".s.PGSQL.{port}")
    return bool(here[1] == port)
