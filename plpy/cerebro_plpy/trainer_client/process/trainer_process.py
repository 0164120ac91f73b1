"""The process of a trainer as its backend sees it, executed by the backend or forked by a
nursery.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from cerebro_plpy.trainer_client.process.launch import TrainerSpec
from cerebro_plpy.trainer_client.process.standstill import Standstill

CREDENTIALS = struct.Struct("3i")
"""Process id, user and group of a peer."""
TOLD_BYTES = 4096
END_SECONDS = 2.0
LOST = -1
"""The exit status of a trainer whose nursery is gone, so that nobody can say how it ended; like
that of a signal.
"""


class Peer(NamedTuple):
    """The process that listens at the other end of a connection, and its user."""

    pid: int
    user: int


def peer(connection: socket.socket) -> Peer:
    """Return who listened when a connection was made."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    return Peer(*CREDENTIALS.unpack(found)[:2])


class Request(NamedTuple):
    """What a nursery is asked for: the words, and the descriptors that go with them."""

    words: bytes
    descriptors: Sequence[int]


class Starting(NamedTuple):
    """A nursery that is just being started: it can be reached when the process that starts it has
    ended.
    """

    process: subprocess.Popen[bytes]
    dial: Callable[[], socket.socket | None]


class Child(Protocol):
    """A process that is a trainer, or becomes one."""

    pid: int

    def begun(self, milliseconds: int) -> bool:
        """Whether it exists, within a time of waiting; an OSError where it never will."""
        ...

    def wait(self, seconds: float) -> int | None:
        """Its exit status; None where it has not ended in that time."""
        ...

    def rest(self, seconds: int | None) -> bool:
        """For so long it may be kept for another session if this one ends now; None: it ends with
        this one.

        False where nobody could be told.
        """
        ...

    def end(self) -> int:
        """End it at once, with what it started; its exit status."""
        ...


class Executed:
    """A child of the backend's own."""

    def __init__(
        self, spec: TrainerSpec, home: str, descriptors: tuple[int, int, int], said: int
    ) -> None:
        """`descriptors` are its socket, its pulse and what keeps its folder; what it says goes to
        `said`.
        """
        self._process = subprocess.Popen(
            spec.command(*descriptors[:2]),
            env=spec.environment(home),
            cwd=home,
            pass_fds=descriptors,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
        self.pid = self._process.pid

    def begun(self, milliseconds: int) -> bool:
        return True

    def wait(self, seconds: float) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def rest(self, seconds: int | None) -> bool:
        return True  # it is the backend's own, and ends with it

    def end(self) -> int:
        if self._process.poll() is None:  # else its number may be another's
            os.killpg(self.pid, signal.SIGKILL)
        return self._process.wait()


class Forked:
    """A child of a nursery, by a connection that lives as long as it does."""

    def __init__(self, nursery: socket.socket | Starting, request: Request) -> None:
        """The request is sent when the nursery is ready: until then nothing of this trainer is out
        of hand.
        """
        self.pid = 0
        self._starting = nursery if isinstance(nursery, Starting) else None
        self._connection = None if isinstance(nursery, Starting) else nursery
        self._nursery = 0
        self._status: int | None = None
        self._words = request.words
        self._passed = [os.dup(each) for each in request.descriptors]
        self._standstill = Standstill()

    def begun(self, milliseconds: int) -> bool:
        if self._starting is not None:
            self._connect(self._starting, milliseconds)
        elif not self.pid:
            self._listen(milliseconds)
        if not self.pid and self._status is not None:
            raise ConnectionResetError("the nursery has forked no trainer")
        if not self.pid and self._standstill.look(self._awaited()):
            raise TimeoutError("the nursery stands still")
        return bool(self.pid)

    def _awaited(self) -> int:
        """Return the process that is to act next."""
        if self._starting is not None:
            return self._starting.process.pid
        return self._nursery or (peer(self._connection).pid if self._connection else 0)

    def wait(self, seconds: float) -> int | None:
        while self._connection and self._status is None and self._listen(int(seconds * 1000)):
            pass
        return self._status

    def rest(self, seconds: int | None) -> bool:
        try:
            return self._connection is not None and bool(
                self._connection.send(json.dumps({"rests": seconds}).encode())
            )
        except OSError:
            return False

    def end(self) -> int:
        if self._starting is not None and self._starting.process.poll() is None:
            os.killpg(self._starting.process.pid, signal.SIGKILL)
            self._starting.process.wait()
        if self._connection is not None:
            self.rest(None)
            self._hang_up(self._connection)
        self._let_go()
        self._status = LOST if self._status is None else self._status
        return self._status

    def _connect(self, starting: Starting, milliseconds: int) -> None:
        try:
            starting.process.wait(milliseconds / 1000)
        except subprocess.TimeoutExpired:
            return
        self._starting, self._connection = None, starting.dial()
        if self._connection is None:
            raise ConnectionRefusedError("there is no nursery")

    def _hang_up(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        if self._nursery and self.wait(END_SECONDS) is None:
            # It neither forks nor ends a trainer, so somebody has stopped it; its trainers end with
            # it.
            with suppress(ProcessLookupError):
                os.kill(self._nursery, signal.SIGKILL)
        self._connection = None
        connection.close()

    def _listen(self, milliseconds: int) -> bool:
        """Take the nursery's next words, if they come in that time."""
        if self._connection is None:
            return False
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        if not poll.poll(milliseconds):
            return False
        words = _next_words(self._connection)
        self.pid, self._status = words.get("pid", self.pid), words.get("status")
        if "nursery" in words:
            self._nursery = words["nursery"]
            with suppress(OSError):  # it has gone, which is what it says next
                socket.send_fds(self._connection, [self._words], self._passed)
            self._let_go()
        return True

    def _let_go(self) -> None:
        while self._passed:
            os.close(self._passed.pop())


def _next_words(connection: socket.socket) -> dict[str, int]:
    with suppress(ConnectionError):
        if told := connection.recv(TOLD_BYTES):
            return dict(json.loads(told))
    return {"status": LOST}
