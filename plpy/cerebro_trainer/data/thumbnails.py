"""Images of any sizes as thumbnails of one size: what a recipe makes of a column of PNG or JPEG
files.

Each file comes behind a head that says what is wanted of it (docs/wire.md). So whoever packs rows,
and whoever predicts them, says it in SQL, and both get the same numbers; of an image that is not
there, which has a head only, zeros.
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

MARK = b"cerebro thumbnail\0"
"""How a head begins; no PNG and no JPEG does."""
SIZES = struct.Struct(">HHHH")
"""Height, width, channels, and the bytes of the name of the column, which follows."""
CENTER, WIDTH = np.float32(127.5), np.float32(63.75)
"""A channel becomes a number from -2 to 2, so that 0 is in the middle."""
UNKNOWN = "An image that is not known may be NULL."


class _Head(NamedTuple):
    shape: Shape
    column: str
    size: int


def asked(values: Sequence[memoryview]) -> bool:
    """Whether these are files behind heads."""
    return values[0][: len(MARK)] == MARK


def decode(values: Sequence[memoryview]) -> npt.NDArray[np.float32]:
    """The numbers of the thumbnail of each file, of shape (rows, numbers)."""
    heads = list(map(_head, values))
    shape, column, _ = heads[0]
    if any(head.shape != shape for head in heads):
        raise RequestError(f"thumbnails of column {column} are wanted of several shapes")
    images.check_block(len(values), shape, column)
    found = np.zeros((len(values), prod(shape)), np.float32)
    for row, (value, head) in enumerate(zip(values, heads, strict=True)):
        if file := value[head.size :]:
            found[row] = (_pixels(file, head).reshape(-1) - CENTER) / WIDTH
    return found


def _head(value: memoryview) -> _Head:
    begin = len(MARK)
    if value[:begin] != MARK or len(value) < begin + SIZES.size:
        raise RequestError("a file has no head that says what its thumbnail is to be")
    *shape, length = SIZES.unpack_from(value, begin)
    name = begin + SIZES.size
    height, width, channels = shape
    if (
        min(height, width) < 1
        or channels not in images.THUMBNAIL_MODES
        or len(value) < name + length
    ):
        raise RequestError(
            f"a thumbnail of shape {shape} is wanted; expected a height, a width, and 1 or 3 "
            "channels"
        )
    return _Head(
        (height, width, channels),
        str(value[name : name + length], "utf-8", "replace"),
        name + length,
    )


def _pixels(file: memoryview, head: _Head) -> npt.NDArray[np.uint8]:
    try:
        return images.thumbnail(file, head.column, head.shape)
    except RequestError as error:
        raise RowError(
            error.message, sqlstate=error.sqlstate, hint=f"{error.hint} {UNKNOWN}"
        ) from error
