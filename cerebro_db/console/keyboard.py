"""Keys as they are pressed: the terminal is put back as it was, however this ends."""

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

UP, DOWN, ENTER, ERASE, ESCAPE, CLOSED = "up", "down", "enter", "erase", "escape", "closed"
SEQUENCES = {"\x1b[A": UP, "\x1bOA": UP, "\x1b[B": DOWN, "\x1bOB": DOWN}
LETTERS = {"\r": ENTER, "\n": ENTER, "\x7f": ERASE, "\x08": ERASE, "\x1b": ESCAPE, "\x04": CLOSED}


def pressed(told: str) -> list[str]:
    """What a terminal sent, as keys: letters, or names of those that are none; what is unknown is
    left out.

    >>> pressed("j\\x1b[A\\r\\x1b[15~é")
    ['j', 'up', 'enter', 'é']
    """
    keys, at = [], 0
    while at < len(told):
        length = _sequence(told, at)
        part = told[at : at + length]
        known = SEQUENCES.get(part) or LETTERS.get(part)
        if known or part.isprintable():
            keys.append(known or part)
        at += length
    return keys


def _sequence(told: str, at: int) -> int:
    """How long the escape sequence is that begins there; 1 where none does."""
    if told[at : at + 2] not in ("\x1b[", "\x1bO"):
        return 1
    end = at + 2
    while end < len(told) and not "@" <= told[end] <= "~":
        end += 1
    return end + 1 - at


class Keyboard:
    """Keys of a terminal, one after the other, without Enter."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def wait(self, seconds: float) -> list[str]:
        """The keys that were pressed meanwhile: returns with the first; none where there was
        none.
        """
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        if not ready:
            return []
        told = os.read(self._descriptor, 1024)
        return pressed(told.decode(errors="replace")) if told else [CLOSED]


@contextmanager
def keyboard(descriptor: int) -> Iterator[Keyboard]:
    """The keyboard of a terminal, which echoes nothing meanwhile. Ctrl-C interrupts as ever, and
    SIGTERM ends it.
    """

    def ended(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = termios.tcgetattr(descriptor)
    asked = signal.signal(signal.SIGTERM, ended)
    try:
        tty.setcbreak(descriptor)
        yield Keyboard(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)
        signal.signal(signal.SIGTERM, asked)
