"""Bytes that come in pieces, read by code that is written as if it read a file.

A reading is a generator: it waits for the next piece wherever it needs one, so a state is read
while it arrives.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

from cerebro_trainer.errors import RequestError

SCRAP = 1 << 20

T = TypeVar("T")
Taking: TypeAlias = Generator[None, memoryview | None, T]
"""Takes pieces of any size; None says that it is over."""
Reading: TypeAlias = Taking[None]


def begin(reading: Reading) -> Reading:
    """Bring a reading to where it waits for bytes."""
    next(reading)
    return reading


def finish(reading: Reading) -> None:
    """Tell a reading that no more bytes come; where it wants more, the state is damaged."""
    try:
        reading.send(None)
    except StopIteration:
        return
    except EOFError as error:
        raise damaged("it ends too early") from error


class Stream:
    """Bytes that come in pieces, taken as many at a time as are wanted. EOFError where they end too
    early.
    """

    def __init__(self) -> None:
        self.received = 0
        self._left = memoryview(b"")

    def fill(self, room: memoryview) -> Reading:
        """Fill the room."""
        while room:
            if not self._left:
                piece = yield
                if piece is None:
                    raise EOFError
                self.received += len(piece)
                self._left = piece
            count = min(len(room), len(self._left))
            room[:count] = self._left[:count]
            room, self._left = room[count:], self._left[count:]

    def take(self, count: int) -> Taking[bytearray]:
        """So many bytes."""
        data = bytearray(count)
        yield from self.fill(memoryview(data))
        return data

    def skip(self, count: int) -> Reading:
        """Pass so many bytes over."""
        scrap = memoryview(bytearray(min(count, SCRAP)))
        while count:
            yield from self.fill(scrap[:count])
            count -= min(count, SCRAP)

    def rest(self) -> Taking[int]:
        """Wait for the end; how many bytes came before it that nobody took."""
        extra = len(self._left)
        while (piece := (yield)) is not None:
            self.received += len(piece)
            extra += len(piece)
        return extra


def damaged(what: str) -> RequestError:
    """The error for bytes that are no state."""
    return RequestError(f"the state is damaged: {what}", sqlstate="XX001")
