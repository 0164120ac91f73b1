"""What a backend learns of its own process without a statement: whether its client is still there."""

from __future__ import annotations

import os
import select
import socket
import stat


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
