"""Thumbnails of one size, into which a recipe converts the PNG or JPEG files of a column.

Each file has a header that describes its thumbnail (docs/internals/wire.md). Packing and prediction
send the same header from SQL, and receive the same numbers. A missing image, a header without a
file, becomes zeros.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data import images
from cerebro_trainer.data.images import Shape
from cerebro_trainer.errors import RequestError, RowError
from cerebro_trainer.wire.frames import Float32Array

MAGIC = b"cerebro thumbnail\0"
"""First bytes of a header; PNG and JPEG files have others."""
SIZES = struct.Struct(">HHHH")
"""Height, width, channels, and the bytes of the column's name, which follows."""
CENTER = np.float32(127.5)
WIDTH = np.float32(63.75)
"""A channel is scaled to a number from -2 to 2 with 0 in the middle."""
NULL_HINT = "An image that is not known may be NULL."


class ThumbnailHeader(NamedTuple):
    """The header of a file."""

    shape: Shape
    column: str
    nbytes: int


def have_headers(values: Sequence[memoryview]) -> bool:
    """Return whether values of a column are files with headers."""
    return values[0][: len(MAGIC)] == MAGIC


def decode(values: Sequence[memoryview]) -> Float32Array:
    """Return the numbers of each file's thumbnail, shape (rows, numbers)."""
    headers = [_read_header(value) for value in values]
    shape, column, _ = headers[0]
    if any(header.shape != shape for header in headers):
        raise RequestError(f"thumbnails of column {column} are wanted of several shapes")
    images.check_block_size(len(values), shape, column)
    numbers = np.zeros((len(values), prod(shape)), np.float32)
    for row, (value, header) in enumerate(zip(values, headers, strict=True)):
        file = value[header.nbytes :]
        if file:
            numbers[row] = (_make_thumbnail(file, header).reshape(-1) - CENTER) / WIDTH
    return numbers


def _read_header(value: memoryview) -> ThumbnailHeader:
    sizes_offset = len(MAGIC)
    name_offset = sizes_offset + SIZES.size
    if value[:sizes_offset] != MAGIC or len(value) < name_offset:
        raise RequestError("a file has no head that says what its thumbnail is to be")
    *shape, name_bytes = SIZES.unpack_from(value, sizes_offset)
    height, width, channels = shape
    end = name_offset + name_bytes
    has_valid_shape = min(height, width) >= 1 and channels in images.THUMBNAIL_MODES
    if not has_valid_shape or len(value) < end:
        raise RequestError(
            f"a thumbnail of shape {shape} is wanted; expected a height, a width, and 1 or 3 "
            "channels"
        )
    column = str(value[name_offset:end], "utf-8", "replace")
    return ThumbnailHeader((height, width, channels), column, end)


def _make_thumbnail(file: memoryview, header: ThumbnailHeader) -> npt.NDArray[np.uint8]:
    try:
        return images.make_thumbnail(file, header.column, header.shape)
    except RequestError as error:
        raise RowError(
            error.message, sqlstate=error.sqlstate, hint=f"{error.hint} {NULL_HINT}"
        ) from error
