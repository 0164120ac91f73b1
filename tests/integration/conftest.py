"""Tables that several modules pack, and sessions that several need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from workbench import Workbench


@pytest.fixture(scope="module")
def source(bench: Workbench) -> str:
    """Twenty rows: an id, the same in an array, a text label, and the label's number."""
    bench.rows(
        "CREATE TABLE plain AS SELECT id, ARRAY[id, -id]::real[] AS x,"
        " (ARRAY['b', 'A', 'a'])[1 + id % 3] AS y, id % 3 AS n FROM generate_series(1, 20) id"
    )
    return "plain"


@pytest.fixture
def person(bench: Workbench) -> Iterator[Workbench]:
    """Another session of the owner."""
    session = bench.another()
    yield session
    session.close()
