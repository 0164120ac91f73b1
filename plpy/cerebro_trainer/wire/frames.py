"""Frames on a socket: the one door between a backend and its trainer.

A frame is `<4sIQ` (magic, header length, payload length), a JSON header in UTF-8, and raw payload
bytes. Payloads are received straight into a fresh numpy buffer and sent straight from one: nothing
is copied on the way. The backend's `link` module is the other end.
"""

from __future__ import annotations

import json
import select
import socket
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cerebro_trainer.errors import OutOfMemory

MAGIC = b"CDB1"
PREFIX = struct.Struct("<4sIQ")
HEADER_LIMIT = 256 << 20
"""Bytes. A header holds an architecture or predictions as text, never data."""
DRAIN_BYTES = 1 << 20
JOINED_BYTES = 1 << 16
"""A payload up to this size is sent with its header at once: a call of the system costs more than
the copy.
"""

Bytes: TypeAlias = npt.NDArray[np.uint8]


class PeerGone(Exception):
    """The backend closed its end or vanished, or was idle for too long: the trainer has nobody left
    to work for.
    """

    def __init__(self, reason: str = "closed") -> None:
        super().__init__(reason)
        self.idle = reason == "idle"


class BrokenFrame(Exception):
    """What arrived is not a frame, so nothing after it can be understood either."""


class Frame(NamedTuple):
    """One message: its header, and its payload as uint8 of shape (bytes,)."""

    header: dict[str, Any]
    payload: Bytes


class Message:
    """One frame to send; the payload is the concatenation of the given buffers, each
    C-contiguous.
    """

    def __init__(self, header: Mapping[str, object], *payload: memoryview) -> None:
        self.header = header
        self.payload = payload


Messages: TypeAlias = Iterable[Message]


class Connection:
    """The trainer's end of the socket pair."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._sending = Lock()  # frames of several threads come one after another
        self._hangup = select.poll()
        self._hangup.register(sock, 0)

    def receive(self) -> Frame:
        """Wait for the next frame.

        Raises PeerGone at end of file; BrokenFrame when the bytes are no frame; OutOfMemory, with
        the stream still in step, when the payload does not fit.
        """
        magic, header_bytes, payload_bytes = PREFIX.unpack(self._exactly(PREFIX.size))
        if magic != MAGIC:
            raise BrokenFrame(f"expected a frame starting with {MAGIC!r}, received {magic!r}")
        if header_bytes > HEADER_LIMIT:
            raise BrokenFrame(
                f"a frame's header may have {HEADER_LIMIT} bytes, received {header_bytes}"
            )
        header = self._parse(self._exactly(header_bytes))
        return Frame(header, self._payload(payload_bytes))

    def send(self, message: Message) -> None:
        """Send one frame; PeerGone if nobody is there to receive it."""
        text = json.dumps(message.header, separators=(",", ":")).encode()
        views = [part.cast("B") for part in message.payload if part.nbytes]
        size = sum(view.nbytes for view in views)
        parts: list[bytes | memoryview] = [PREFIX.pack(MAGIC, len(text), size) + text, *views]
        if size <= JOINED_BYTES:
            parts = [b"".join(parts)]
        try:
            with self._sending:
                for part in parts:
                    self._socket.sendall(part)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise PeerGone("closed") from error

    def close(self) -> None:
        """End the conversation, also for a thread that waits for the next frame."""
        with suppress(OSError):  # it has ended
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def check_peer(self) -> None:
        """Raise PeerGone if the backend has closed its end; costs a microsecond, so loops may ask
        often.
        """
        if self._hangup.poll(0):
            raise PeerGone("closed")

    @staticmethod
    def _parse(text: bytearray) -> dict[str, Any]:
        try:
            header = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BrokenFrame(f"a frame's header is no JSON: {error}") from error
        if not isinstance(header, dict):
            raise BrokenFrame(
                f"a frame's header must be a JSON object, received {type(header).__name__}"
            )
        return header

    def _exactly(self, count: int) -> bytearray:
        """So many bytes; memory is taken for what has come, not for what is said to come."""
        buffer = bytearray()
        while len(buffer) < count:
            piece = bytearray(min(count - len(buffer), DRAIN_BYTES))
            self._fill(memoryview(piece))
            buffer += piece
        return buffer

    def _payload(self, count: int) -> Bytes:
        try:
            payload = np.empty(count, dtype=np.uint8)
        except (MemoryError, ValueError) as error:
            self._drain(count)
            raise OutOfMemory(f"a payload of {count} bytes does not fit into memory") from error
        self._fill(payload.data)
        return payload

    def _drain(self, count: int) -> None:
        scratch = memoryview(bytearray(DRAIN_BYTES))
        while count:
            part = scratch[: min(count, DRAIN_BYTES)]
            self._fill(part)
            count -= len(part)

    def _fill(self, view: memoryview) -> None:
        while view:
            try:
                received = self._socket.recv_into(view, 0, socket.MSG_WAITALL)
            except ConnectionResetError as error:
                raise PeerGone("closed") from error
            if not received:
                raise PeerGone("closed")
            view = view[received:]
