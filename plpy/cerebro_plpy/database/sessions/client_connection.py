"""The connection of this backend to its client, examined without a statement."""

from __future__ import annotations

import os
import select
import socket
import stat

TERMINATE = b"X\0\0\0\4"  # the message of the server's protocol that ends a session


def find_client_socket(port: int) -> int | None:
    """Return the file descriptor of this backend's client, at a server with this port.

    None if it cannot be identified.
    """
    sockets = [fd for fd in map(int, os.listdir("/proc/self/fd")) if _is_client_socket(fd, port)]
    if len(sockets) != 1:
        return None
    return sockets[0]


def has_hung_up(descriptor: int) -> bool:
    """Return True if the other end of a socket has been closed."""
    poll = select.poll()
    poll.register(descriptor, select.POLLRDHUP)
    return bool(poll.poll(0))


def replace_client(port: int) -> None:
    """Replace the client by a socket that accepts all messages and requests the session's end.

    If the client cannot be identified, the first message after its end would end this session:
    harmless if it is the message that the statement is done, but it may be an INFO of a trigger.
    """
    descriptor = find_client_socket(port)
    if descriptor is None:
        return
    near_end, far_end = socket.socketpair()
    with near_end:
        near_end.setblocking(False)  # as the server expects it
        os.dup2(near_end.fileno(), descriptor, inheritable=False)
    far_end.sendall(TERMINATE)
    far_end.detach()  # stays open until this process ends


def _is_client_socket(fd: int, port: int) -> bool:
    """Return True if a descriptor is a connection that was accepted at the server's port."""
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return False
        with socket.socket(fileno=os.dup(fd)) as copy:
            if copy.type != socket.SOCK_STREAM:
                return False
            copy.getpeername()
            address = copy.getsockname()
    except OSError:
        return False
    if copy.family == socket.AF_UNIX:
        return isinstance(address, str) and address.endswith(f".s.PGSQL.{port}")
    return bool(address[1] == port)
