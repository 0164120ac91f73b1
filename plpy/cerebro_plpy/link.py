"""The only door to a trainer: starts the process, exchanges frames with it, and makes sure it ends.

A frame is `<4sIQ` (magic, header length, payload length), a JSON header and raw bytes, over a Unix
socket pair. `cerebro_trainer.wire` is the other end. The wait loop lets a cancel take effect and watches
the trainer's memory. A trainer ends when this socket closes, so no cleanup rests on code that a killed
backend would not run.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Union

from cerebro_plpy import errors, folders, memory
from cerebro_plpy.errors import CerebroError, ConfigFailure, TrainerFailure
from cerebro_plpy.launch import TrainerSpec

FRAME = struct.Struct("<4sIQ")
MAGIC = b"CDB1"
PROTOCOL = 1
POLL_MS = 100
END_SECONDS = 2.0
SEND_BYTES = 4 << 20
Header = dict[str, Any]
Buffer = Union[bytes, memoryview]


class Link:
    """A running trainer. `check` is called while waiting and may raise to end the wait.

    Without `wait` it may still be starting; then `greet` has to be called before anything else.
    """

    def __init__(self, spec: TrainerSpec, check: Callable[[], None], *, wait: bool = True) -> None:
        self.spec = spec
        self._check = check
        self._broken = False
        self._owed = 0
        self.hello: Header = {}
        self._stderr = tempfile.TemporaryFile(prefix=folders.PREFIX)  # noqa: SIM115
        self._home = folders.make()
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        # As much as the kernel allows: the fewer bytes fit, the more often the two processes take turns.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        try:
            self._process = self._spawn(theirs)
        except OSError as error:
            folders.remove(self._home)
            raise errors.ObjectNotReady(
                f"the trainer's interpreter {spec.python!r} cannot be started: {error.strerror}",
                hint="Set trainer_python in cerebro.setting to the Python of an environment with"
                " cerebro_db[tensorflow].",
            ) from error
        finally:
            theirs.close()
        self._memory_checked = time.monotonic()
        if wait:
            self.greet()

    def greet(self) -> None:
        """Wait until the trainer has loaded its framework and says what it is, unless it has said so."""
        if not self.hello:
            try:
                self.hello = self._greeting()
            except BaseException:
                self.close()
                raise

    def _greeting(self) -> Header:
        hello = self.answer()
        if hello.get("protocol") != PROTOCOL:
            raise TrainerFailure(
                f"the trainer speaks protocol {hello.get('protocol')}, this backend speaks {PROTOCOL}",
                hint=f"Install the same version of cerebro_db for {self.spec.python} and the server, then reconnect.",
            )
        return hello

    def _spawn(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        fd = theirs.fileno()
        return subprocess.Popen(
            self.spec.command(fd), env=self.spec.environment(self._home), cwd=self._home, pass_fds=(fd,),
            start_new_session=True, stdin=subprocess.DEVNULL, stdout=self._stderr, stderr=self._stderr,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        """The trainer's process id."""
        return self._process.pid

    def alive(self) -> bool:
        """Whether the trainer can take another request."""
        if self._broken or self._owed or self._process.poll() is not None:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLRDHUP)
        return not poll.poll(0)

    def send(self, header: Header, *payload: bytes) -> None:
        """Send one frame; waits while the trainer's end is full."""
        self.send_head(header, sum(map(len, payload)))
        for part in payload:
            self.send_part(part)

    def send_head(self, header: Header, size: int) -> None:
        """Begin a frame whose payload of `size` bytes follows in parts."""
        if self._owed:
            # A statement that was passing on a large payload has failed; the rest of it will never come.
            raise self._failure(f"{self._owed} bytes of an earlier request were not sent")
        head = json.dumps(header, separators=(",", ":")).encode()
        self._write(FRAME.pack(MAGIC, len(head), size) + head)
        self._owed = size

    def send_part(self, part: bytes) -> None:
        """Send the next part of the payload of the frame that was begun."""
        if len(part) > self._owed:
            raise errors.DatatypeMismatch(
                f"a buffer has {len(part)} bytes where {self._owed} are expected: an array is NULL, or was changed",
                hint="Pack the table again with training_preprocessor_dl().",
            )
        self._write(part)
        self._owed -= len(part)

    def ask(self, header: Header, *payload: bytes) -> Header:
        """Send a request and return what its answer holds under `ok`."""
        self.send(header, *payload)
        return self.answer()

    def answer(self) -> Header:
        """The next answer; an error in it is raised as the class of its SQLSTATE."""
        header, _ = self.receive()
        return self.accepted(header)

    def chunks(self, header: Header) -> Iterator[Buffer]:
        """Send a request whose answer is a series of chunks, and give them one by one."""
        self.send(header)
        while True:
            answer, payload = self.receive()
            if not answer.get("more"):
                self.accepted(answer)
                return
            yield payload

    def receive(self) -> tuple[Header, memoryview]:
        """The next frame."""
        magic, head, body = FRAME.unpack(self._read(FRAME.size))
        if magic != MAGIC:
            raise self._failure(f"the trainer sent {magic!r} where a frame was expected")
        return json.loads(bytes(self._read(head))), self._read(body)

    def close(self) -> None:
        """End the trainer at once and remove what it had on disk."""
        self._broken = True
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._stderr.close()
        folders.remove(self._home)

    def accepted(self, header: Header) -> Header:
        """What an answer holds under `ok`; an error in it is raised as the class of its SQLSTATE."""
        if "ok" in header:
            result: Header = header["ok"]
            return result
        error = header.get("error", {})
        kind = ConfigFailure if error.get("kind") == "config" else errors.by_sqlstate(error.get("sqlstate", ""))
        message = error.get("message", f"the trainer answered {header!r}")
        raise kind(message, hint=error.get("hint"), detail=error.get("detail"))

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                self._wait(select.POLLOUT)
            except OSError as error:
                raise self._failure(f"the trainer (process {self.pid}) is gone") from error

    def _read(self, size: int) -> memoryview:
        data = bytearray(size)
        view, done = memoryview(data), 0
        while done < size:
            try:
                count = self._socket.recv_into(view[done:])
            except BlockingIOError:
                self._wait(select.POLLIN)
                continue
            except ConnectionError:
                count = 0
            if count == 0:
                raise self._failure(f"the trainer (process {self.pid}) ended before it answered")
            done += count
        return view

    def _wait(self, event: int) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        try:
            while not poll.poll(POLL_MS):
                self._check()
                self._watch_memory()
        except BaseException:
            # The conversation is cut in the middle: this trainer cannot be used again.
            self.close()
            raise

    def _watch_memory(self) -> None:
        now = time.monotonic()
        if not self.spec.memory_bytes or now - self._memory_checked < 0.5:
            return
        self._memory_checked = now
        memory.check(self.pid, self.spec.memory_bytes, starting=not self.hello)

    def _failure(self, message: str) -> CerebroError:
        self._broken = True
        # A process that gives up closes its socket before it ends; killed in between, its exit status would be lost.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - 2000))
        tail = self._stderr.read().decode(errors="replace").strip()
        self.close()
        code = self._process.returncode
        if self.hello or code < 0:
            return TrainerFailure(f"{message} (exit status {code})", detail=tail or None)
        # It gave up by itself, so it would again: what is installed is wrong, and no attempt more will help.
        return errors.ObjectNotReady(
            f"the trainer could not start: {self.spec.python} ended with exit status {code}",
            detail=tail or None,
            hint="trainer_python in cerebro.setting names the interpreter, which needs"
            f" cerebro_db[{self.spec.framework}]; cerebro-db check tells more.",
        )
