"""The connection to a trainer: starts the process, exchanges frames with it, and ends it.

A frame is `<4sIQ` (magic, header length, payload length), a JSON header and raw bytes, over a Unix
socket pair. `cerebro_trainer.wire.frames` is the other end, docs/internals/wire.md describes both.
The wait loop lets a cancel take effect, and monitors the trainer's memory and heartbeat. A trainer
ends when this socket closes, so no cleanup depends on code that a killed backend would not run.
"""

from __future__ import annotations

import io
import json
import os
import select
import socket
import struct
import tempfile
from collections.abc import Iterator
from typing import Union

from cerebro_plpy import errors
from cerebro_plpy.database.platform_protocol import Check
from cerebro_plpy.errors import CerebroError, TrainerFailure
from cerebro_plpy.nouns import count_nouns, match_verb
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
from cerebro_plpy.trainer_client.process.trainer_process import (
    END_SECONDS,
    ExecutedTrainer,
    TrainerProcess,
)
from cerebro_plpy.trainer_client.request_schema import Header

FRAME = struct.Struct("<4sIQ")
MAGIC = b"CDB1"
PROTOCOL = 1
POLL_MS = 100
SMALL_FRAME_BYTES = 1 << 16  # a smaller frame is sent by one call: each call wakes the trainer
MAX_BYTES = 1 << 30  # limit of a header or payload: the size of a value of PostgreSQL
Buffer = Union[bytes, memoryview]


class TrainerConnection:
    """A running trainer.

    Args:
        check: is called while waiting; may raise to end the wait.
        wait: wait until the trainer has started. Otherwise call `greet` before anything else.
        roles: identifies sessions of the same caller, which may use the trainer before and after
            this one; None if no other session may.
    """

    def __init__(
        self,
        spec: TrainerSpec,
        check: Check,
        *,
        wait: bool = True,
        roles: str | None = None,
    ) -> None:
        try:
            self._work_dir = work_dirs.WorkDir()
        except OSError as error:
            raise launch.start_error(spec, error) from error
        self.spec = spec
        self._roles = roles
        self._check = check
        self._is_parked = False
        self._is_broken = False
        self._unsent = 0  # bytes of the payload of the current frame
        self.has_pending_reply = False
        self._early_reply: tuple[Header, memoryview] | None = None
        self._aside_number = 0  # of the last request that was sent before a pending reply
        self._unread = 0  # bytes of the payload of the current reply
        self.watch = memory_limit.MemoryWatch(spec.memory_bytes)
        self.hello: Header = {}
        self._stderr = tempfile.TemporaryFile(prefix=work_dirs.PREFIX)  # noqa: SIM115
        self._start_process(may_fork=True)
        if wait:
            self.greet()

    def _start_process(self, *, may_fork: bool) -> None:
        """Start the process, from a fork server if that is possible."""
        self._heartbeat = heartbeat.Heartbeat()
        self._socket, far_end = socket.socketpair()
        self._channel = Channel(self._socket, self._wait, self._end_error)
        passed = (far_end.fileno(), self._heartbeat.descriptor, self._work_dir.descriptor)
        stderr = self._stderr.fileno()
        process: TrainerProcess | None = None
        try:
            if may_fork:
                process = fork_server_client.fork(
                    self.spec, self._work_dir.path, (*passed, stderr), self._roles
                )
            if process is None:
                process = ExecutedTrainer(self.spec, self._work_dir.path, passed, stderr)
            self._process = process
        except OSError as error:
            self._release()
            raise launch.start_error(self.spec, error) from error
        finally:
            far_end.close()
            os.close(self._heartbeat.descriptor)
        if self.pid:
            self._work_dir.assign(self.pid)

    def greet(self) -> None:
        """Wait until the trainer has loaded its framework, and read its first message."""
        if not self.hello:
            try:
                self.hello = self._receive_hello()
            except BaseException:
                self.close()
                raise

    def _receive_hello(self) -> Header:
        self._wait_for_process()
        hello = self.receive_result()
        if hello.get("protocol") != PROTOCOL:
            raise TrainerFailure(
                f"the trainer speaks protocol {hello.get('protocol')}, this backend speaks "
                f"{PROTOCOL}",
                hint=f"Install the same version of cerebro_db for {self.spec.python} and the "
                "server, then reconnect.",
            )
        self.watch.check_start(self.pid)
        return hello

    def _wait_for_process(self) -> None:
        """Wait until the process exists; execute it if the fork server fails."""
        if self.pid:
            return
        try:
            while not self._process.has_started(POLL_MS):
                self._check()
                self._heartbeat.check(self.pid, is_starting=True)
            self._work_dir.assign(self.pid)
        except OSError:
            fork_server_client.exclude(self.spec)
            self._process.end()
            self._socket.close()
            self._heartbeat.close()
            self._start_process(may_fork=False)

    @property
    def pid(self) -> int:
        """The trainer's process id; 0 if a fork server has not forked it yet."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Return True if the trainer can take another request."""
        if self._is_broken or self.has_pending_reply:
            return False
        if self._unsent or self._unread or self._process.wait(0) is not None:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLRDHUP)
        return not poll.poll(0)

    def park(self, seconds: int) -> None:
        """Leave the trainer to other sessions of the caller for some time.

        This happens if the session ends before its next call.
        """
        self._is_parked = self._process.park(seconds)

    def send(self, header: Header, *payload: bytes) -> None:
        """Send one frame; wait while the trainer's end is full."""
        size = sum(map(len, payload))
        if size <= SMALL_FRAME_BYTES:
            self._channel.write(self._encode_head(header, size) + b"".join(payload))
            return
        self.send_head(header, size)
        for part in payload:
            self.send_part(part)

    def send_head(self, header: Header, size: int) -> None:
        """Begin a frame whose payload of `size` bytes follows in parts."""
        self._channel.write(self._encode_head(header, size))
        self._unsent = size

    def _encode_head(self, header: Header, size: int) -> bytes:
        """Return the bytes before a payload of a frame, which must be allowed to begin now."""
        self._check_open()
        if self._is_parked:
            self._wake()
        if self._unread:
            raise _unfetched_error()
        if self._unsent:
            # The statement that was sending a large payload has failed: the remaining bytes will
            # never come.
            raise self._failure(
                f"{count_nouns(self._unsent, 'byte')} of an earlier request "
                f"{match_verb(self._unsent, 'was')} not sent"
            )
        head = json.dumps(header, separators=(",", ":")).encode()
        return FRAME.pack(MAGIC, len(head), size) + head

    def _wake(self) -> None:
        """Let the trainer end with this session again."""
        if not self._process.park(None):
            raise self._failure(f"the nursery of the trainer (process {self.pid}) does not listen")
        self._is_parked = False

    def send_part(self, part: bytes) -> None:
        """Send the next part of the payload of the current frame."""
        if len(part) > self._unsent:
            raise errors.DatatypeMismatch(
                f"a buffer has {count_nouns(len(part), 'byte')} where {self._unsent} are expected: "
                "an array is NULL, or was changed",
                hint="Pack the table again with training_preprocessor_dl().",
            )
        self._channel.write(part)
        self._unsent -= len(part)

    def post(self, header: Header, *payload: bytes) -> None:
        """Send a request; its reply must be received before the next request."""
        if self.has_pending_reply:
            raise _unfetched_error()
        self.send(header, *payload)
        self.has_pending_reply = True

    def call(self, header: Header, *payload: bytes) -> Header:
        """Send a request and return the object in the field `ok` of its reply."""
        self.post(header, *payload)
        return self.receive_result()

    def begin_reply(self) -> tuple[Header, int]:
        """Receive the next reply without its payload, which `read_part` must read next.

        Returns:
            The result, and the size of the payload.
        """
        answer, self._unread = self._receive_head()
        self.has_pending_reply = False
        return self._check_result(answer), self._unread

    def read_part(self, size: int) -> bytes:
        """Return the next bytes of the payload of a reply.

        They are received directly into the returned object, without a second copy in memory.
        """
        self._check_open()
        if size > self._unread:
            raise self._failure(
                f"the trainer sent {count_nouns(self._unread, 'byte')} where {size} were expected"
            )
        data = io.BytesIO(bytes(size))
        with data.getbuffer() as buffer:
            self._channel.fill(buffer)
        self._unread -= size
        return data.getvalue()

    def receive_result(self) -> Header:
        """Return the result in the next reply; raise an error as the class of its SQLSTATE."""
        return self.receive_reply()[0]

    def receive_reply(self) -> tuple[Header, Buffer]:
        """Return the result and the payload of the next reply."""
        header, payload = self.receive_frame()
        self.has_pending_reply = False
        return self._check_result(header), payload

    def stream_chunks(self, header: Header) -> Iterator[Buffer]:
        """Send a request and yield the chunks of its reply.

        The request may be sent while another reply is pending, which may come before or between
        the chunks.
        """
        if self.has_pending_reply:
            yield from self._stream_aside(header)
        else:
            yield from self.stream_reply(header)

    def stream_reply(self, header: Header) -> Iterator[Buffer]:
        """Send a request and yield the chunks of its reply; no other reply may be pending."""
        self.post(header)
        while True:
            answer, payload = self.receive_frame()
            if not answer.get("more"):
                self.has_pending_reply = False
                self._check_result(answer)
                return
            yield payload

    def _stream_aside(self, header: Header) -> Iterator[Buffer]:
        self._aside_number += 1
        number = self._aside_number
        self.send({**header, "aside": number})
        while True:
            answer, payload = self._receive()
            if "aside" not in answer:
                self._early_reply = (answer, payload)
            elif answer["aside"] != number:  # of an earlier request that was abandoned
                continue
            elif answer.get("more"):
                yield payload
            else:
                self._check_result(answer)
                return

    def receive_frame(self) -> tuple[Header, memoryview]:
        """Return the next frame that does not belong to a request aside."""
        while self._early_reply is None:
            header, payload = self._receive()
            if "aside" not in header:
                return header, payload
        reply = self._early_reply
        self._early_reply = None
        return reply

    def _receive(self) -> tuple[Header, memoryview]:
        header, size = self._receive_head()
        return header, self._channel.read(size)

    def _receive_head(self) -> tuple[Header, int]:
        """Return the header of the next frame, and the size of its payload without reading it."""
        self._check_open()
        magic, head, body = FRAME.unpack(self._channel.read(FRAME.size))
        if magic != MAGIC or max(head, body) > MAX_BYTES:
            raise self._failure(
                f"the trainer sent {magic!r}, {head} and {count_nouns(body, 'byte')} where a frame "
                "was expected"
            )
        text = bytes(self._channel.read(head))
        header = responses.parse_header(text)
        if header is None:
            raise self._failure(f"the trainer sent {text[:80]!r} where a JSON object was expected")
        return header, body

    def close(self) -> int:
        """End the trainer and its children, and remove its files; return its exit status."""
        self._is_broken = True
        self.watch.clock.stop()
        self._socket.close()
        status = self._process.end()
        self._release()
        return status

    def _release(self) -> None:
        """Close the resources of a trainer other than its process."""
        self._socket.close()
        self._stderr.close()
        self._heartbeat.close()
        self._work_dir.close()

    def _check_open(self) -> None:
        if self._is_broken:
            raise TrainerFailure(f"the trainer (process {self.pid}) was ended before")

    def _check_result(self, answer: Header) -> Header:
        """Return the result in an answer; raise an error in it as the class of its SQLSTATE."""
        result = responses.find_result(answer)
        if result is not None:
            return result
        error = responses.find_error(answer)
        raise error or self._failure(f"the trainer answered {answer!r:.200}")

    def _wait(self, event: int) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        try:
            while not poll.poll(POLL_MS):
                self._check()
                self.watch.look(self.pid, is_starting=not self.hello)
                self._heartbeat.check(self.pid, is_starting=not self.hello)
        except BaseException:
            # A frame is incomplete: this trainer cannot be used again.
            self.close()
            raise

    def _end_error(self, predicate: str) -> CerebroError:
        return self._failure(f"the trainer (process {self.pid}) {predicate}")

    def _failure(self, message: str) -> CerebroError:
        """End the trainer; return the error, with the end of its messages."""
        self._is_broken = True
        # A process that exits closes its socket first. If it were killed in between, its exit
        # status would be lost.
        self._process.wait(END_SECONDS)
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - 2000))
        messages = self._stderr.read().decode(errors="replace").strip()
        status = self.close()
        if self.hello or status < 0:
            return TrainerFailure(f"{message} (exit status {status})", detail=messages or None)
        # It exited by itself before it had started: the installation is wrong, and a second attempt
        # would fail, too.
        return launch.early_exit_error(self.spec, status, messages)


def _unfetched_error() -> CerebroError:
    return errors.ObjectNotReady(
        "an earlier answer was not fetched", hint="Call cerebro_internal.trainer_start anew."
    )
