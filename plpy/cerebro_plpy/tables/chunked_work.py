"""Work that is done piece by piece, so that whoever does it can look at something else in between:
a generator.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Pieces = Generator[None, None, T]

PIECE_SECONDS = 0.02


def at_once(pieces: Pieces[T]) -> T:
    """All pieces, one after another; what they come to."""
    try:
        while True:
            next(pieces)
    except StopIteration as stop:
        value: T = stop.value
        return value


def next_size(size: int, seconds: float) -> int:
    """How much to do in a piece that is to take three quarters of its time, where so much took so
    many seconds.

    >>> next_size(100, 0.03), next_size(100, 0.0075), next_size(100, 0.0), next_size(1, 9.0)
    (50, 200, 200, 1)
    """
    return max(1, int(size * min(2.0, 0.75 * PIECE_SECONDS / max(seconds, 1e-6))))
