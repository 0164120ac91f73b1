"""Sizes of buffers, and of the blocks in which their rows are sent to a packer.

Sizes are counted in elements, numbers of four bytes.
"""

from __future__ import annotations

import json
from math import prod

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.packing.packed_columns import IMAGE, Column
from cerebro_plpy.packing.packing_plan import PackingPlan

BUFFER_ELEMENTS = 2 << 20
"""Usual size of a buffer: 8 MB, so that it stays in the processor's cache on its way."""
FEW_ROWS = 1024
"""A buffer of fewer rows may be larger, up to MAX_BUFFER_ELEMENTS."""
MAX_BUFFER_ELEMENTS = 16 << 20
BLOCK_ELEMENTS = 1 << 18
"""Size of a block, which a backend sends and the packer decodes at once: 1 MB, or one row."""
MAX_BLOCKS = 1 << 16
SEGMENT_ROWS = 10_000
"""Rows from which on a further segment is worth its visits, if any worker serves any segment."""
ELEMENT_BYTES = 4
ARRAY_HEADER_ELEMENTS = 3
"""Size of the header of an array on its way to the packer."""


def estimate_row_elements(db: Database, plan: PackingPlan, column: Column) -> int:
    """Return the elements of a column in one row; the packer looks at the first image."""
    if column.classes is not None:
        return ARRAY_HEADER_ELEMENTS + len(column.classes) // 2  # one-hot columns are int16
    if column.kind == IMAGE:
        request = {
            "rows": 1,
            "buffer_id": 0,
            "shapes_only": True,
            "arrays": [{"kind": IMAGE, "column": column.name}],
        }
        segment = plan.distribution.keys[0]
        image = column.bytes_sql(f"t.{column.quoted}")
        response = plan.packers.inspect_image(segment, column.quoted, image, json.dumps(request))
        return prod(json.loads(response)["shapes"][0])
    if column.scalar:
        return ARRAY_HEADER_ELEMENTS + 1
    query = sql("pack.elements", source=plan.source.quoted, column=column.quoted)
    return ARRAY_HEADER_ELEMENTS + int(db.value(query) or 0)


def estimate_sent_elements(db: Database, plan: PackingPlan, column: Column) -> int:
    """Return the size of an image file: it may be larger than the array that is made of it."""
    if column.kind != IMAGE:
        return 0
    query = sql("pack.bytes", source=plan.source.quoted, column=column.quoted)
    return int(db.value(query) or 0) // ELEMENT_BYTES


def choose_buffer_rows(row_elements: int) -> int:
    """Return the rows of a buffer if the caller has not requested any.

    A buffer has about 8 MB, or 1,024 rows if these take at most 64 MB.
    """
    few_rows = min(FEW_ROWS, MAX_BUFFER_ELEMENTS // row_elements)
    return max(1, BUFFER_ELEMENTS // row_elements, few_rows)


def count_useful_segments(rows: int, row_elements: int) -> int:
    """Return how many segments rows are worth; each has many rows, or a usual buffer.

    >>> [count_useful_segments(rows, 20) for rows in (100, 10_000, 10_001, 1_000_000)]
    [1, 1, 2, 100]
    >>> count_useful_segments(5000, 150_528)
    359
    """
    buffers = -(-rows * row_elements // BUFFER_ELEMENTS)
    return max(1, buffers, -(-rows // SEGMENT_ROWS))


def choose_buffers(plan: PackingPlan, row_elements: int) -> tuple[int, int]:
    """Return the number of buffers, and the rows of the largest one.

    Every segment gets the same number of buffers.
    """
    size = plan.buffer_size or choose_buffer_rows(row_elements)
    per_segment = -(-plan.rows // (min(size, plan.rows) * plan.segments))
    buffers = min(plan.segments * per_segment, plan.rows)
    return buffers, -(-plan.rows // buffers)


def count_blocks(rows: int, row_elements: int) -> int:
    """Return the number of blocks of a buffer with so many rows, a power of two.

    >>> count_blocks(1000, 4), count_blocks(1024, 4096), count_blocks(3, 1 << 24)
    (1, 16, 4)
    """
    blocks = min(rows, -(-rows * row_elements // BLOCK_ELEMENTS), MAX_BLOCKS)
    return 1 << (blocks - 1).bit_length()
