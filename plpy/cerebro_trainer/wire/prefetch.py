"""Requests are received one ahead: while a buffer is worked on, the next one comes in.

The backend then reads its table while the trainer computes, and the two take turns only where the
trainer is the slower one. One frame ahead bounds the memory: never more than two buffers that are
not kept. And a request that asks for something beside what is worked on is answered here, at once.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Waited
from typing import Protocol

from cerebro_trainer.wire.frames import Connection, Frame, PeerGone


class Aside(Protocol):
    """Answers requests beside the one that is worked on, in another thread."""

    def attend(self, frame: Frame) -> bool:
        """Answer a request, if it is one of those."""
        ...


class Ahead:
    """The frames of a connection, in order, but for those that `aside` attends to, if there is such
    a one.
    """

    aside: Aside | None = None

    def __init__(self, connection: Connection) -> None:
        self.taken = False
        """Whether a frame was taken, and the next one is not waited for yet: it is worked on."""
        self._connection = connection
        self._thread = ThreadPoolExecutor(1)
        self._next = self._expect()

    def receive(self, longest: float | None = None) -> Frame:
        """The next frame; raises what `Connection.receive` raises, and PeerGone after the longest
        wait, in seconds.
        """
        self.taken = False
        try:
            return self._next.result(longest)
        except Waited as error:
            raise PeerGone("idle") from error
        finally:
            self.taken = True
            if self._next.done():
                self._next = self._expect()

    def close(self) -> None:
        """End the thread, once nothing comes any more."""
        self._thread.shutdown()

    def _expect(self) -> Future[Frame]:
        return self._thread.submit(self._receive)

    def _receive(self) -> Frame:
        while True:
            frame = self._connection.receive()
            if self.aside is None or not self.aside.attend(frame):
                return frame
