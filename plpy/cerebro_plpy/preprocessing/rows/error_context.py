"""How far a look at a table came, for the error that ends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cerebro_plpy.errors import OutOfTime


@contextmanager
def error_step(progress: str) -> Iterator[None]:
    """Have an error for want of time say how far the work came before this step."""
    try:
        yield
    except OutOfTime as error:
        error.detail = error.detail or progress
        raise
