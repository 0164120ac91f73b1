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

TERMINATE = b"X\0\0\0\4"  # what a client says before it goes, in the server's protocol


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


def leave_client(port: int) -> None:
    """Put something in the client's place to which all can be sent, and which wants this session to end.

    Where a client cannot be told, this session would be ended by the first message to it once it has gone: by the one
    that its statement is done, which does no harm, or by an INFO of somebody's trigger.
    """
    descriptor = client_socket(port)
    if descriptor is None:
        return
    here, there = socket.socketpair()
    with here:
        here.setblocking(False)  # as the server expects it
        os.dup2(here.fileno(), descriptor, inheritable=False)
    there.sendall(TERMINATE)
    there.detach()  # open for as long as this process lives


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
