"""Tests of the client's output, which has the width of an output that is not a terminal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def width() -> Iterator[None]:
    """Remove the width that the environment may set."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        yield
