"""What the caller's backend holds while it packs: a few times the buffer that it writes, whatever
that is made of.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from packed import fresh, pack
from PIL import Image
from processes import most_memory
from workbench import Workbench

pytestmark = pytest.mark.postgresql("elsewhere other processes pack")

NUMBERS = 1 << 22
BUFFER = 4 * NUMBERS
TIMES = 4
"""The copies that a backend makes of a buffer, which PostgreSQL wants in one piece; and a block of
rows, and a sort.
"""


@pytest.fixture
def session(bench: Workbench) -> Iterator[Workbench]:
    """A backend that has packed something small, so that it has loaded all that it needs."""
    opened = bench.another()
    pack(opened, "points", "label")
    yield opened
    opened.close()


def grown(session: Workbench, source: str, inputs: str, buffer_size: int) -> int:
    """How much more memory its backend needs to pack a table, in bytes."""
    before = most_memory(session.pid())
    table = pack(session, source, "y", inputs, buffer_size=buffer_size, n_segments=1)
    assert session.value(f"SELECT max(octet_length({inputs})) FROM {table}") == BUFFER
    return most_memory(session.pid()) - before


def test_an_image_is_decoded_elsewhere(bench: Workbench, session: Workbench) -> None:
    """Two small files, each a buffer of 16 MB."""
    file, table = io.BytesIO(), fresh("pictures")
    Image.new("L", (NUMBERS >> 11, 1 << 11), 7).save(file, "PNG")
    bench.rows(f"CREATE TABLE {table} (picture bytea, y integer)")
    bench.rows(f"INSERT INTO {table} VALUES (%s, 0), (%s, 1)", *[file.getvalue()] * 2)
    assert len(file.getvalue()) < BUFFER // 100
    assert grown(session, table, "picture", 1) < TIMES * BUFFER


@pytest.mark.long
def test_arrays_are_collected_elsewhere(bench: Workbench, session: Workbench) -> None:
    """Two buffers of 512 rows each."""
    table = fresh("wide")
    bench.rows(
        f"CREATE TABLE {table} AS SELECT array_fill(n::real, ARRAY[{NUMBERS >> 9}]) AS x, n % 2 AS "
        "y FROM generate_series(1, 1024) n"
    )
    assert grown(session, table, "x", 512) < TIMES * BUFFER
