"""Prefetch of the next request while the current one is processed.

The backend can read its table while the trainer computes; it waits only if the trainer is slower.
One prefetched frame bounds the memory: at most two buffers exist that are not cached. Requests that
do not depend on the current one are answered at once, in the receiving thread.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as WaitTimeout

from cerebro_trainer.wire.frames import Connection, Frame, PeerGone


class Prefetcher:
    """The frames of a connection, in order, except those that `handle_concurrently` answers."""

    def __init__(self, connection: Connection) -> None:
        # Answers a request in the receiving thread; returns False if it must wait for its turn
        self.handle_concurrently: Callable[[Frame], bool] = lambda frame: False
        # True from the return of `receive` to the next call of it
        self.is_request_active = False
        self._connection = connection
        self._thread = ThreadPoolExecutor(1)
        self._next_frame = self._prefetch()

    def receive(self, max_seconds: float | None = None) -> Frame:
        """Return the next frame.

        Raises:
            PeerGone: also if no frame has arrived after `max_seconds`.
            BrokenFrame: see `Connection.receive`.
            OutOfMemory: see `Connection.receive`.
        """
        self.is_request_active = False
        try:
            return self._next_frame.result(max_seconds)
        except WaitTimeout as error:
            raise PeerGone("idle") from error
        finally:
            self.is_request_active = True
            if self._next_frame.done():
                self._next_frame = self._prefetch()

    def close(self) -> None:
        """End the thread; the connection must have been closed before."""
        self._thread.shutdown()

    def _prefetch(self) -> Future[Frame]:
        return self._thread.submit(self._receive)

    def _receive(self) -> Frame:
        while True:
            frame = self._connection.receive()
            if not self.handle_concurrently(frame):
                return frame
