"""The progress of reading a table, for the error that ends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cerebro_plpy.errors import OutOfTime


@contextmanager
def error_step(progress: str) -> Iterator[None]:
    """Add the progress before this step to an error that ends it for want of time."""
    try:
        yield
    except OutOfTime as error:
        error.detail = error.detail or progress
        raise
