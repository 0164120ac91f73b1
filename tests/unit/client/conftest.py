"""What the client shows is as wide as its terminal: here as wide as where there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def width() -> Iterator[None]:
    """Whoever runs the tests may have set another one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        yield
