"""What a backend learns of its own process without a statement: whether its client is still
there.
"""

from __future__ import annotations

import os
import select
import socket
import stat

TERMINATE = b"X\0\0\0\4"  # what a client says before it goes, in the server's protocol


def client_socket(port: int) -> int | None:
    """The file descriptor of this backend's client, at a server of this port; None where it cannot
    be told.
    """
    found = [fd for fd in map(int, os.listdir("/proc/self/fd")) if _is_served(fd, port)]
    return found[0] if len(found) == 1 else None


def hung_up(descriptor: int) -> bool:
    """Whether the other end of a socket has been closed."""
    poll = select.poll()
    poll.register(descriptor, select.POLLRDHUP)
    return bool(poll.poll(0))


def leave_client(port: int) -> None:
    """Put something in the client's place to which all can be sent, and which wants this session to
    end.

    Where a client cannot be told, this session would be ended by the first message to it once it
    has gone: by the one that its statement is done, which does no harm, or by an INFO of somebody's
    trigger.
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
