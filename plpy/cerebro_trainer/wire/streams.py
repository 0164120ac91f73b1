"""Byte streams that arrive in pieces, read as if they were files.

A reader is a generator that waits for the next piece whenever it needs one. A state is therefore
read while it arrives.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

from cerebro_trainer.errors import DamagedState

SKIP_BYTES = 1 << 20

T = TypeVar("T")
ByteReader: TypeAlias = Generator[None, memoryview | None, T]
"""A generator that receives pieces of any size, and None at the end of the stream."""
Reader: TypeAlias = ByteReader[None]


def start_reader(reader: Reader) -> Reader:
    """Advance a reader until it waits for bytes."""
    next(reader)
    return reader


def finish_reader(reader: Reader) -> None:
    """Send the end of the stream to a reader.

    Raises:
        DamagedState: the reader needs more bytes.
    """
    try:
        reader.send(None)
    except StopIteration:
        return
    except EOFError as error:
        raise DamagedState("it ends too early") from error


class Stream:
    """A stream of pieces, from which readers take any number of bytes.

    The readers raise EOFError if the stream ends too early.
    """

    def __init__(self) -> None:
        self.received = 0  # bytes
        self._unread = memoryview(b"")

    def fill(self, view: memoryview) -> Reader:
        """Fill a writable view with the next bytes."""
        while view:
            if not self._unread:
                piece = yield
                if piece is None:
                    raise EOFError
                self.received += len(piece)
                self._unread = piece
            count = min(len(view), len(self._unread))
            view[:count] = self._unread[:count]
            view = view[count:]
            self._unread = self._unread[count:]

    def read(self, count: int) -> ByteReader[bytearray]:
        """Read the next `count` bytes."""
        data = bytearray(count)
        yield from self.fill(memoryview(data))
        return data

    def skip(self, count: int) -> Reader:
        """Discard the next `count` bytes."""
        scratch = memoryview(bytearray(min(count, SKIP_BYTES)))
        while count:
            yield from self.fill(scratch[:count])
            count -= min(count, SKIP_BYTES)

    def drain(self) -> ByteReader[int]:
        """Wait for the end of the stream; return the number of unread bytes before it."""
        count = len(self._unread)
        while (piece := (yield)) is not None:
            self.received += len(piece)
            count += len(piece)
        return count
