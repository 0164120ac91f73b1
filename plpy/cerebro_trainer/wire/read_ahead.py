"""Requests are received one ahead: while a buffer is worked on, the next one comes in.

The backend then reads its table while the trainer computes, and the two take turns only where the trainer is
the slower one. One frame ahead bounds the memory: never more than two buffers that are not kept.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Waited

from cerebro_trainer.wire.frames import Connection, Frame, PeerGone


class Ahead:
    """The frames of a connection, in order."""

    def __init__(self, connection: Connection) -> None:
        self.taken = False
        """Whether a frame was taken, and the next one is not waited for yet: it is worked on."""
        self._connection = connection
        self._thread = ThreadPoolExecutor(1)
        self._next = self._expect()

    def receive(self, longest: float | None = None) -> Frame:
        """The next frame; raises what `Connection.receive` raises, and PeerGone after the longest wait, in seconds."""
        self.taken = False
        try:
            return self._next.result(longest)
        except Waited as error:
            raise PeerGone("idle") from error
        finally:
            self.taken = True
            if self._next.done():
                self._next = self._expect()

    def _expect(self) -> Future[Frame]:
        return self._thread.submit(self._connection.receive)
