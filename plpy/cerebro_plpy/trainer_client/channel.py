"""Transfer of bytes to and from a trainer, completely or with an error about the trainer's end."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable

from cerebro_plpy.errors import CerebroError

SEND_BYTES = 4 << 20


class Channel:
    """One end of a socket pair.

    Args:
        wait: waits for an event of poll(2) at the socket; may raise to give up.
        failure: returns the error for the trainer; its argument completes the sentence.
    """

    def __init__(
        self,
        end: socket.socket,
        wait: Callable[[int], None],
        failure: Callable[[str], CerebroError],
    ) -> None:
        self._socket = end
        self._wait = wait
        self._failure = failure
        end.setblocking(False)
        # As much as the kernel allows: with a small buffer the two processes switch more often.
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)

    def write(self, data: bytes) -> None:
        """Send all bytes."""
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                self._wait(select.POLLOUT)
            except OSError as error:
                raise self._failure("is gone") from error

    def read(self, size: int) -> memoryview:
        """Return the next bytes."""
        view = memoryview(bytearray(size))
        self.fill(view)
        return view

    def fill(self, view: memoryview) -> None:
        """Receive the next bytes into a buffer."""
        position = 0
        while position < len(view):
            try:
                count = self._socket.recv_into(view[position:])
            except BlockingIOError:
                self._wait(select.POLLIN)
                continue
            except ConnectionError:
                count = 0
            if count == 0:
                raise self._failure("ended before it answered")
            position += count
