"""Keys of a terminal without Enter; the terminal's settings are always restored."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

UP = "up"
DOWN = "down"
ENTER = "enter"
ERASE = "erase"
ESCAPE = "escape"
CLOSED = "closed"
KEYS = {
    "\x1b[A": UP,
    "\x1bOA": UP,
    "\x1b[B": DOWN,
    "\x1bOB": DOWN,
    "\r": ENTER,
    "\n": ENTER,
    "\x7f": ERASE,
    "\x08": ERASE,
    "\x1b": ESCAPE,
    "\x04": CLOSED,
}
"""Names of keys that are not letters, by the text that a terminal sends."""


def parse_keys(text: str) -> list[str]:
    """Return the keys in a text from a terminal: letters and names of keys, without unknown ones.

    >>> parse_keys("j\\x1b[A\\r\\x1b[15~é")
    ['j', 'up', 'enter', 'é']
    """
    keys = []
    start = 0
    while start < len(text):
        end = _find_end(text, start)
        part = text[start:end]
        if part in KEYS:
            keys.append(KEYS[part])
        elif part.isprintable():
            keys.append(part)
        start = end
    return keys


def _find_end(text: str, start: int) -> int:
    """Return the end of the escape sequence, or of the letter, that begins at `start`."""
    if text[start : start + 2] not in ("\x1b[", "\x1bO"):
        return start + 1
    end = start + 2
    while end < len(text) and not "@" <= text[end] <= "~":
        end += 1
    return end + 1


class Keyboard:
    """Reader of the keys of a terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def wait(self, seconds: float) -> list[str]:
        """Wait for keys and return the first ones; return no keys after so many seconds."""
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        if not ready:
            return []
        content = os.read(self._descriptor, 1024)
        return parse_keys(content.decode(errors="replace")) if content else [CLOSED]


@contextmanager
def open_keyboard(descriptor: int) -> Iterator[Keyboard]:
    """Read single keys of a terminal without echo; restore its settings at the end.

    Ctrl-C still interrupts the process. SIGTERM ends the process after the settings are restored.
    """

    def exit_process(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    settings = termios.tcgetattr(descriptor)
    handler = signal.signal(signal.SIGTERM, exit_process)
    try:
        tty.setcbreak(descriptor)
        yield Keyboard(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, settings)
        signal.signal(signal.SIGTERM, handler)
