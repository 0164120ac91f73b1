"""The process of a trainer, executed by its backend or forked by a fork server."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from cerebro_plpy.trainer_client.process.launch import TrainerSpec
from cerebro_plpy.trainer_client.process.standstill import Standstill

# Process id, user and group of a peer.
CREDENTIALS = struct.Struct("3i")
MESSAGE_BYTES = 4096
END_SECONDS = 2.0
# The exit status, like that of a signal, of a trainer whose fork server has ended.
LOST = -1


class Peer(NamedTuple):
    """The process that listens at the other end of a connection."""

    pid: int
    user: int


def read_peer(connection: socket.socket) -> Peer:
    """Return the process that listened when a connection was made."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    pid, user, _ = CREDENTIALS.unpack(credentials)
    return Peer(pid, user)


class ForkRequest(NamedTuple):
    """A request to a fork server."""

    message: bytes
    descriptors: Sequence[int]


class StartingServer(NamedTuple):
    """A fork server that is being started."""

    process: subprocess.Popen[bytes]  # ends when the fork server can be reached
    connect: Callable[[], socket.socket | None]


class TrainerProcess(ABC):
    """A process that is a trainer, or becomes one."""

    pid: int  # 0 until it exists

    def has_started(self, milliseconds: int) -> bool:
        """Wait for some time until it exists; return False if it does not.

        Raises:
            OSError: it will never exist.
        """
        return True

    @abstractmethod
    def wait(self, seconds: float) -> int | None:
        """Return its exit status; None if it does not end in time."""

    def park(self, seconds: int | None) -> bool:
        """Allow it to serve another session of its caller if this session ends in this time.

        Args:
            seconds: None: it ends with this session.

        Returns:
            False if the fork server cannot be reached.
        """
        return True  # a child of the backend ends with the session in any case

    @abstractmethod
    def end(self) -> int:
        """Kill it and its children; return its exit status."""


class ExecutedTrainer(TrainerProcess):
    """A child process of the backend.

    Args:
        descriptors: its socket, its heartbeat and the pipe of its folder.
        output: descriptor for its messages.
    """

    def __init__(
        self, spec: TrainerSpec, home: str, descriptors: tuple[int, int, int], output: int
    ) -> None:
        self._process = subprocess.Popen(
            spec.command(*descriptors[:2]),
            env=spec.environment(home),
            cwd=home,
            pass_fds=descriptors,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        self.pid = self._process.pid

    def wait(self, seconds: float) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def end(self) -> int:
        if self._process.poll() is None:  # else its number may be reused
            os.killpg(self.pid, signal.SIGKILL)
        return self._process.wait()


class ForkedTrainer(TrainerProcess):
    """A child process of a fork server, with a connection that exists as long as the process.

    The request is sent when the fork server is ready; until then no descriptor is passed on.
    """

    def __init__(self, server: socket.socket | StartingServer, request: ForkRequest) -> None:
        self.pid = 0
        self._starting = server if isinstance(server, StartingServer) else None
        self._connection = None if isinstance(server, StartingServer) else server
        self._server_pid = 0
        self._status: int | None = None
        self._message = request.message
        self._descriptors = [os.dup(descriptor) for descriptor in request.descriptors]
        self._standstill = Standstill()

    def has_started(self, milliseconds: int) -> bool:
        if self._starting is not None:
            self._connect(self._starting, milliseconds)
        elif not self.pid:
            self._receive(milliseconds)
        if self.pid:
            return True
        if self._status is not None:
            raise ConnectionResetError("the nursery has forked no trainer")
        if self._standstill.has_stalled(self._acting_process()):
            raise TimeoutError("the nursery stands still")
        return False

    def _acting_process(self) -> int:
        """Return the process that must act next."""
        if self._starting is not None:
            return self._starting.process.pid
        if self._server_pid or self._connection is None:
            return self._server_pid
        return read_peer(self._connection).pid

    def wait(self, seconds: float) -> int | None:
        while self._connection and self._status is None and self._receive(int(seconds * 1000)):
            pass
        return self._status

    def park(self, seconds: int | None) -> bool:
        if self._connection is None:
            return False
        try:
            return bool(self._connection.send(json.dumps({"rests": seconds}).encode()))
        except OSError:
            return False

    def end(self) -> int:
        if self._starting is not None and self._starting.process.poll() is None:
            os.killpg(self._starting.process.pid, signal.SIGKILL)
            self._starting.process.wait()
        if self._connection is not None:
            self.park(None)
            self._disconnect(self._connection)
        self._close_descriptors()
        self._status = LOST if self._status is None else self._status
        return self._status

    def _connect(self, starting: StartingServer, milliseconds: int) -> None:
        try:
            starting.process.wait(milliseconds / 1000)
        except subprocess.TimeoutExpired:
            return
        self._starting = None
        self._connection = starting.connect()
        if self._connection is None:
            raise ConnectionRefusedError("there is no nursery")

    def _disconnect(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        if self._server_pid and self.wait(END_SECONDS) is None:
            # The fork server does not end its trainer, so that it must have been stopped. Its
            # trainers end with it.
            with suppress(ProcessLookupError):
                os.kill(self._server_pid, signal.SIGKILL)
        self._connection = None
        connection.close()

    def _receive(self, milliseconds: int) -> bool:
        """Receive the next message of the fork server; return False if none comes in time."""
        if self._connection is None:
            return False
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        if not poll.poll(milliseconds):
            return False
        message = _receive_message(self._connection)
        self.pid = message.get("pid", self.pid)
        self._status = message.get("status")
        if "nursery" in message:
            self._server_pid = message["nursery"]
            with suppress(OSError):  # the fork server has ended: the next message is its end
                socket.send_fds(self._connection, [self._message], self._descriptors)
            self._close_descriptors()
        return True

    def _close_descriptors(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


def _receive_message(connection: socket.socket) -> dict[str, int]:
    with suppress(ConnectionError):
        if text := connection.recv(MESSAGE_BYTES):
            return dict(json.loads(text))
    return {"status": LOST}
