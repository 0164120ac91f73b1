"""Frames on a socket, the only connection between a backend and its trainer.

A frame consists of a prefix `<4sIQ` (magic, header length, payload length), a JSON header in UTF-8,
and raw payload bytes. Payloads are received into a fresh numpy buffer and sent from one without a
copy. The other end is the backend's module `connection`.
"""

from __future__ import annotations

import json
import select
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cerebro_trainer.errors import OutOfMemory
from cerebro_trainer.nouns import count_nouns

MAGIC = b"CDB1"
PREFIX = struct.Struct("<4sIQ")
HEADER_LIMIT = 256 << 20
"""Bytes. A header contains an architecture or predictions as text, never data."""
CHUNK_BYTES = 1 << 20
JOINED_BYTES = 1 << 16
"""A payload up to this size is sent together with its header: a copy is cheaper than a call."""

Bytes: TypeAlias = npt.NDArray[np.uint8]
Array: TypeAlias = npt.NDArray[Any]
Arrays: TypeAlias = Sequence[Array]
Float32Array: TypeAlias = npt.NDArray[np.float32]
Reply: TypeAlias = dict[str, object]
"""The JSON object that answers a request."""


class PeerGone(Exception):
    """The backend has closed its end, has vanished, or has been idle for too long."""

    def __init__(self, reason: str = "closed") -> None:
        super().__init__(reason)
        self.is_idle = reason == "idle"


class BrokenFrame(Exception):
    """The received bytes are not a frame, so the bytes after them cannot be interpreted either."""


class Frame(NamedTuple):
    """A received message."""

    header: dict[str, Any]
    payload: Bytes  # shape (bytes,)


class Message:
    """A frame to send.

    Args:
        payload: C-contiguous buffers, which are sent one after another.
    """

    def __init__(self, header: Mapping[str, object], *payload: memoryview) -> None:
        self.header = header
        self.payload = payload


Messages: TypeAlias = Iterable[Message]


def reply(content: object, *payload: memoryview) -> Messages:
    """Return the single message that answers a request."""
    return (Message({"ok": content}, *payload),)


class Connection:
    """The trainer's end of the socket pair."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._send_lock = Lock()  # keeps the frames of several threads apart
        self._hangup = select.poll()
        self._hangup.register(sock, 0)

    def receive(self) -> Frame:
        """Wait for the next frame.

        Raises:
            PeerGone: the backend has closed its end.
            BrokenFrame: the bytes are not a frame.
            OutOfMemory: the payload does not fit into memory; the next frame can be received.
        """
        prefix = self._receive_bytes(PREFIX.size)
        magic, header_bytes, payload_bytes = PREFIX.unpack(prefix)
        if magic != MAGIC:
            raise BrokenFrame(f"expected a frame starting with {MAGIC!r}, received {magic!r}")
        if header_bytes > HEADER_LIMIT:
            raise BrokenFrame(
                f"a frame's header may have {HEADER_LIMIT} bytes, received {header_bytes}"
            )
        header = self._parse_header(self._receive_bytes(header_bytes))
        return Frame(header, self._receive_payload(payload_bytes))

    def send(self, message: Message) -> None:
        """Send a frame; raise PeerGone if the backend has closed its end."""
        text = json.dumps(message.header, separators=(",", ":")).encode()
        views = [part.cast("B") for part in message.payload if part.nbytes]
        size = sum(view.nbytes for view in views)
        parts: list[bytes | memoryview] = [PREFIX.pack(MAGIC, len(text), size) + text, *views]
        if size <= JOINED_BYTES:
            parts = [b"".join(parts)]
        try:
            with self._send_lock:
                for part in parts:
                    self._socket.sendall(part)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise PeerGone("closed") from error

    def close(self) -> None:
        """Close the connection, also for a thread that waits for the next frame."""
        with suppress(OSError):  # already closed
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def check_peer(self) -> None:
        """Raise PeerGone if the backend has closed its end.

        The check takes a microsecond, so that loops may repeat it often.
        """
        if self._hangup.poll(0):
            raise PeerGone("closed")

    @staticmethod
    def _parse_header(text: bytearray) -> dict[str, Any]:
        try:
            header = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BrokenFrame(f"a frame's header is no JSON: {error}") from error
        if not isinstance(header, dict):
            raise BrokenFrame(
                f"a frame's header must be a JSON object, received {type(header).__name__}"
            )
        return header

    def _receive_bytes(self, count: int) -> bytearray:
        """Receive `count` bytes; memory is allocated for arrived bytes, not for announced ones."""
        buffer = bytearray()
        while len(buffer) < count:
            chunk = bytearray(min(count - len(buffer), CHUNK_BYTES))
            self._fill(memoryview(chunk))
            buffer += chunk
        return buffer

    def _receive_payload(self, count: int) -> Bytes:
        try:
            payload = np.empty(count, dtype=np.uint8)
        except (MemoryError, ValueError) as error:
            self._discard(count)
            raise OutOfMemory(
                f"a payload of {count_nouns(count, 'byte')} does not fit into memory"
            ) from error
        self._fill(payload.data)
        return payload

    def _discard(self, count: int) -> None:
        scratch = memoryview(bytearray(CHUNK_BYTES))
        while count:
            part = scratch[: min(count, CHUNK_BYTES)]
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
