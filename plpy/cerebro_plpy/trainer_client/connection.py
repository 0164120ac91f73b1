"""The only door to a trainer: starts the process, exchanges frames with it, and makes sure it ends.

A frame is `<4sIQ` (magic, header length, payload length), a JSON header and raw bytes, over a Unix
socket pair. `cerebro_trainer.wire.frames` is the other end, docs/wire.md describes both. The wait
loop lets a cancel take effect and watches the trainer's memory and its pulse. A trainer ends when
this socket closes, so no cleanup rests on code that a killed backend would not run.
"""

from __future__ import annotations

import io
import json
import os
import select
import socket
import struct
import tempfile
from collections.abc import Callable, Iterator
from typing import Union

from cerebro_plpy import errors
from cerebro_plpy.errors import CerebroError, TrainerFailure
from cerebro_plpy.trainer_client import responses
from cerebro_plpy.trainer_client.channel import Channel
from cerebro_plpy.trainer_client.process import (
    fork_server_client,
    heartbeat,
    launch,
    memory_limit,
    work_dirs,
)
from cerebro_plpy.trainer_client.process.launch import TrainerSpec
from cerebro_plpy.trainer_client.process.trainer_process import END_SECONDS, Child, Executed
from cerebro_plpy.trainer_client.request_schema import Header

FRAME = struct.Struct("<4sIQ")
MAGIC = b"CDB1"
PROTOCOL = 1
POLL_MS = 100
JOINED_BYTES = 1 << 16  # a frame of at most so many is sent at once: each call wakes the trainer
LARGEST = 1 << 30  # bytes of a header or payload: what a value of PostgreSQL can have
Buffer = Union[bytes, memoryview]


class Link:
    """A running trainer. `check` is called while waiting and may raise to end the wait.

    Without `wait` it may still be starting; then `greet` has to be called before anything else.
    Other sessions of the same caller (`who`) may have it before and after this one.
    """

    def __init__(
        self,
        spec: TrainerSpec,
        check: Callable[[], None],
        *,
        wait: bool = True,
        who: str | None = None,
    ) -> None:
        try:
            self._home = work_dirs.Home()
        except OSError as error:
            raise launch.not_executable(spec, error) from error
        self.spec = spec
        self._who = who
        self._check = check
        self._rests = False
        self._broken = False
        self._owed = 0
        self._unanswered = False
        self._early: tuple[Header, memoryview] | None = None
        self._aside = 0
        self._unread = 0
        self.watch = memory_limit.Watch(spec.memory_bytes)
        self.hello: Header = {}
        self._stderr = tempfile.TemporaryFile(prefix=work_dirs.PREFIX)  # noqa: SIM115
        self._begin()
        if wait:
            self.greet()

    def _begin(self, *, forked: bool = True) -> None:
        """Start the process, which may be `forked` where that can be."""
        self._pulse = heartbeat.Pulse()
        self._socket, theirs = socket.socketpair()
        self._channel = Channel(self._socket, self._wait, self._gone)
        passed, said = (
            (theirs.fileno(), self._pulse.descriptor, self._home.descriptor),
            self._stderr.fileno(),
        )
        try:
            fork = (
                fork_server_client.fork(self.spec, self._home.path, (*passed, said), self._who)
                if forked
                else None
            )
            self._child: Child = fork or Executed(self.spec, self._home.path, passed, said)
        except OSError as error:
            self._let_go()
            raise launch.not_executable(self.spec, error) from error
        finally:
            theirs.close()
            os.close(self._pulse.descriptor)
        if self.pid:
            self._home.belongs(self.pid)

    def greet(self) -> None:
        """Wait until the trainer has loaded its framework and says what it is, unless it has said
        so.
        """
        if not self.hello:
            try:
                self.hello = self._greeting()
            except BaseException:
                self.close()
                raise

    def _greeting(self) -> Header:
        self._await_begin()
        hello = self.answer()
        if hello.get("protocol") != PROTOCOL:
            raise TrainerFailure(
                f"the trainer speaks protocol {hello.get('protocol')}, this backend speaks "
                f"{PROTOCOL}",
                hint=f"Install the same version of cerebro_db for {self.spec.python} and the "
                "server, then reconnect.",
            )
        self.watch.begun(self.pid)
        return hello

    def _await_begin(self) -> None:
        """Wait until the process exists; where a nursery fails it, it is executed."""
        if self.pid:
            return
        try:
            while not self._child.begun(POLL_MS):
                self._check()
                self._pulse.look(self.pid, starting=True)
            self._home.belongs(self.pid)
        except OSError:
            fork_server_client.give_up(self.spec)
            self._child.end()
            self._socket.close()
            self._pulse.close()
            self._begin(forked=False)

    @property
    def pid(self) -> int:
        """The trainer's process id."""
        return self._child.pid

    def alive(self) -> bool:
        """Whether the trainer can take another request."""
        if (
            self._broken
            or self._owed
            or self._unread
            or self._unanswered
            or self._child.wait(0) is not None
        ):
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLRDHUP)
        return not poll.poll(0)

    def rest(self, seconds: int) -> None:
        """No call uses the trainer now: if the session ends before the next one, it is kept for
        others so long.
        """
        self._rests = self._child.rest(seconds)

    def send(self, header: Header, *payload: bytes) -> None:
        """Send one frame; waits while the trainer's end is full."""
        size = sum(map(len, payload))
        if size <= JOINED_BYTES:
            self._channel.write(self._beginning(header, size) + b"".join(payload))
            return
        self.send_head(header, size)
        for part in payload:
            self.send_part(part)

    def send_head(self, header: Header, size: int) -> None:
        """Begin a frame whose payload of `size` bytes follows in parts."""
        self._channel.write(self._beginning(header, size))
        self._owed = size

    def _beginning(self, header: Header, size: int) -> bytes:
        """What stands before a payload of so many bytes, if a frame may begin now."""
        self._check_open()
        if self._rests:
            self._wake()
        if self._unread:
            raise _not_fetched()
        if self._owed:
            # A statement that was passing on a large payload has failed; the rest of it will never
            # come.
            raise self._failure(f"{self._owed} bytes of an earlier request were not sent")
        head = json.dumps(header, separators=(",", ":")).encode()
        return FRAME.pack(MAGIC, len(head), size) + head

    def _wake(self) -> None:
        """From now on it ends with this session again."""
        if not self._child.rest(None):
            raise self._failure(f"the nursery of the trainer (process {self.pid}) does not listen")
        self._rests = False

    def send_part(self, part: bytes) -> None:
        """Send the next part of the payload of the frame that was begun."""
        if len(part) > self._owed:
            raise errors.DatatypeMismatch(
                f"a buffer has {len(part)} bytes where {self._owed} are expected: an array is "
                "NULL, or was changed",
                hint="Pack the table again with training_preprocessor_dl().",
            )
        self._channel.write(part)
        self._owed -= len(part)

    def post(self, header: Header, *payload: bytes) -> None:
        """Send a request whose answer is fetched later, before there is another."""
        if self._unanswered:
            raise _not_fetched()
        self.send(header, *payload)
        self._unanswered = True

    def ask(self, header: Header, *payload: bytes) -> Header:
        """Send a request and return what its answer holds under `ok`."""
        self.post(header, *payload)
        return self.answer()

    def reply_in_parts(self) -> tuple[Header, int]:
        """The next answer, and how many bytes came with it, which are to be taken by `part` before
        all else.
        """
        answer, self._unread = self._head()
        self._unanswered = False
        return self._accepted(answer), self._unread

    def part(self, size: int) -> bytes:
        """The next bytes of what came with an answer.

        They are received into the object that is returned: nothing of their size is made beside it.
        """
        self._check_open()
        if size > self._unread:
            raise self._failure(f"the trainer sent {self._unread} bytes where {size} were expected")
        data = io.BytesIO(bytes(size))
        with data.getbuffer() as room:
            self._channel.fill(room)
        self._unread -= size
        return data.getvalue()

    def answer(self) -> Header:
        """The next answer; an error in it is raised as the class of its SQLSTATE."""
        return self.reply()[0]

    def reply(self) -> tuple[Header, Buffer]:
        """The next answer and what came with it."""
        header, payload = self.receive()
        self._unanswered = False
        return self._accepted(header), payload

    @property
    def unanswered(self) -> bool:
        """Whether an answer is still to be fetched."""
        return self._unanswered

    def chunks(self, header: Header) -> Iterator[Buffer]:
        """Send a request whose answer is a series of chunks, and give them one by one.

        Where an earlier answer is still to be fetched, it is asked aside, and that answer may come
        meanwhile.
        """
        if self._unanswered:
            yield from self._chunks_aside(header)
        else:
            yield from self.series(header)

    def series(self, header: Header) -> Iterator[Buffer]:
        """Send a request whose answer is a series of chunks, and give them one by one; none may be
        open before it.
        """
        self.post(header)
        while True:
            answer, payload = self.receive()
            if not answer.get("more"):
                self._unanswered = False
                self._accepted(answer)
                return
            yield payload

    def _chunks_aside(self, header: Header) -> Iterator[Buffer]:
        self._aside += 1
        number = self._aside
        self.send({**header, "aside": number})
        while True:
            answer, payload = self._frame()
            if "aside" not in answer:
                self._early = answer, payload
            elif answer["aside"] != number:  # of an earlier one, which nobody has read to its end
                continue
            elif answer.get("more"):
                yield payload
            else:
                self._accepted(answer)
                return

    def receive(self) -> tuple[Header, memoryview]:
        """The next frame that is no part of an answer aside."""
        while self._early is None:
            header, payload = self._frame()
            if "aside" not in header:
                return header, payload
        early, self._early = self._early, None
        return early

    def _frame(self) -> tuple[Header, memoryview]:
        header, size = self._head()
        return header, self._channel.read(size)

    def _head(self) -> tuple[Header, int]:
        """The header of the next frame, and the size of its payload, which is still to be read."""
        self._check_open()
        magic, head, body = FRAME.unpack(self._channel.read(FRAME.size))
        if magic != MAGIC or max(head, body) > LARGEST:
            raise self._failure(
                f"the trainer sent {magic!r}, {head} and {body} bytes where a frame was expected"
            )
        text = bytes(self._channel.read(head))
        header = responses.header(text)
        if header is None:
            raise self._failure(f"the trainer sent {text[:80]!r} where a JSON object was expected")
        return header, body

    def close(self) -> int:
        """End the trainer at once, with what it started, and remove what it had on disk; its exit
        status.
        """
        self._broken = True
        self.watch.clock.stop()
        self._socket.close()
        status = self._child.end()
        self._let_go()
        return status

    def _let_go(self) -> None:
        """Give back what a trainer takes beside its process."""
        self._socket.close()
        self._stderr.close()
        self._pulse.close()
        self._home.close()

    def _check_open(self) -> None:
        if self._broken:
            raise TrainerFailure(f"the trainer (process {self.pid}) was ended before")

    def _accepted(self, answer: Header) -> Header:
        """What an answer holds under `ok`; an error in it is raised as the class of its
        SQLSTATE.
        """
        result = responses.result(answer)
        if result is None:
            raise responses.error(answer) or self._failure(f"the trainer answered {answer!r:.200}")
        return result

    def _wait(self, event: int) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        try:
            while not poll.poll(POLL_MS):
                self._check()
                self.watch.look(self.pid, starting=not self.hello)
                self._pulse.look(self.pid, starting=not self.hello)
        except BaseException:
            # The conversation is cut in the middle: this trainer cannot be used again.
            self.close()
            raise

    def _gone(self, what: str) -> CerebroError:
        return self._failure(f"the trainer (process {self.pid}) {what}")

    def _failure(self, message: str) -> CerebroError:
        self._broken = True
        # A process that gives up closes its socket before it ends; killed in between, its exit
        # status would be lost.
        self._child.wait(END_SECONDS)
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - 2000))
        tail = self._stderr.read().decode(errors="replace").strip()
        code = self.close()
        if self.hello or code < 0:
            return TrainerFailure(f"{message} (exit status {code})", detail=tail or None)
        # It gave up by itself, so it would again: what is installed is wrong, and no attempt more
        # will help.
        return launch.gave_up(self.spec, code, tail)


def _not_fetched() -> CerebroError:
    return errors.ObjectNotReady(
        "an earlier answer was not fetched", hint="Call cerebro.trainer_start anew."
    )
