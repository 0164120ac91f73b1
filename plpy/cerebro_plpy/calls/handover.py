"""How a session that works in the background is given the other end of its own connection.

PostgreSQL ends a session that sends something to a client that is gone. So the one who asked for the work passes the
client's socket on to the very backend that serves it, which never reads from it: what is sent is lost, and the end of
the session, which the client asked for before it went, is found there when the work is done.

The two meet at a socket in Linux' abstract namespace. Both look who the other is: the system user must be the
server's, and the process the one expected.
"""

from __future__ import annotations

import os
import socket
import struct
from types import TracebackType

from cerebro_plpy.errors import ObjectNotReady, TrainerFailure

CREDENTIALS = struct.Struct("3i")
ANSWER_SECONDS = 10.0
ASKED = b"."


def address(pid: int) -> str:
    """Where the process of that number waits."""
    return f"\0cerebro_db-{pid}"


class Meeting:
    """The side of the one who asked: waits until the work has begun."""

    def __init__(self) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.setblocking(False)
        self._come: socket.socket | None = None

    def __enter__(self) -> Meeting:
        try:
            self._listening.bind(address(os.getpid()))
        except OSError as error:
            raise TrainerFailure(f"no socket could be opened for a run in the background: {error.strerror}") from error
        self._listening.listen()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listening.close()
        if self._come:
            self._come.close()

    def passed_on(self, descriptor: int, pid: int) -> int | None:
        """Give the descriptor to the backend of that number once it tells the id of its run; None before."""
        try:
            if self._come is None:
                self._come = self._accepted(pid)
            told = self._come.recv(64) if self._come else b""
        except BlockingIOError:
            return None
        if not told or not self._come:
            return None
        socket.send_fds(self._come, [ASKED], [descriptor])
        return int(told)

    def _accepted(self, pid: int) -> socket.socket | None:
        found, _ = self._listening.accept()
        if peer(found) != (pid, os.geteuid()):
            found.close()
            return None
        found.setblocking(False)
        found.send(ASKED)
        return found


class Asker:
    """The side of the one who works: raises ObjectNotReady where the process of that number did not ask for it."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.settimeout(ANSWER_SECONDS)
        try:
            self._connection.connect(address(pid or 0))
            if peer(self._connection) != (pid, os.geteuid()) or self._connection.recv(1) != ASKED:
                raise ConnectionRefusedError("it did not ask for it")
        except OSError as error:
            raise self._missing(error) from error

    def tell(self, run_id: int) -> int:
        """Say which run this is; the client's end of this session's own connection, which has to stay open."""
        try:
            self._connection.send(str(run_id).encode())
            _, (descriptor,), _, _ = socket.recv_fds(self._connection, 1, 1)
        except (OSError, ValueError) as error:
            raise self._missing(error) from error
        return descriptor

    def _missing(self, error: Exception) -> ObjectNotReady:
        return ObjectNotReady(
            f"process {self._pid} does not wait for this work: {error}",
            hint="SELECT cerebro.submit(...) begins a run in the background.",
        )


def peer(connection: socket.socket) -> tuple[int, int]:
    """Process number and user number of who is at the other end."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    pid, user, _ = CREDENTIALS.unpack(found)
    return pid, user
