"""Bytes to and from a trainer: all of them, however many go at a time, or an error that says that
it is gone.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable

from cerebro_plpy.errors import CerebroError

SEND_BYTES = 4 << 20


class Channel:
    """One end of a socket pair."""

    def __init__(
        self,
        end: socket.socket,
        wait: Callable[[int], None],
        failure: Callable[[str], CerebroError],
    ) -> None:
        """`wait` waits until the socket can be read or written, as its argument says, and may raise
        to give up; `failure` makes the error that says what has become of the trainer."""
        self._socket, self._wait, self._failure = end, wait, failure
        end.setblocking(False)
        # As much as the kernel allows: the fewer bytes fit, the more often the two processes take
        # turns.
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)

    def write(self, data: bytes) -> None:
        """Send all of it."""
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                self._wait(select.POLLOUT)
            except OSError as error:
                raise self._failure("is gone") from error

    def read(self, size: int) -> memoryview:
        """The next bytes."""
        view = memoryview(bytearray(size))
        self.fill(view)
        return view

    def fill(self, view: memoryview) -> None:
        """Receive the next bytes into a place for them."""
        done = 0
        while done < len(view):
            try:
                count = self._socket.recv_into(view[done:])
            except BlockingIOError:
                self._wait(select.POLLIN)
                continue
            except ConnectionError:
                count = 0
            if count == 0:
                raise self._failure("ended before it answered")
            done += count
