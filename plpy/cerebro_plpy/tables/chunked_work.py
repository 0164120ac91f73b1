"""Work in short pieces, as a generator: its caller can do other things between the pieces."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
ChunkedWork = Generator[None, None, T]

PIECE_SECONDS = 0.02


def run_to_end(work: ChunkedWork[T]) -> T:
    """Run all pieces of the work, and return its result."""
    try:
        while True:
            next(work)
    except StopIteration as stop:
        value: T = stop.value
        return value


def choose_next_size(size: int, seconds: float) -> int:
    """Return the size of the next piece, intended to take three quarters of PIECE_SECONDS.

    Args:
        size: size of the last piece.
        seconds: time that it took.

    >>> choose_next_size(100, 0.03), choose_next_size(100, 0.0075), choose_next_size(100, 0.0)
    (50, 200, 200)
    >>> choose_next_size(1, 9.0)
    1
    """
    growth = 0.75 * PIECE_SECONDS / max(seconds, 1e-6)
    return max(1, int(size * min(2.0, growth)))
