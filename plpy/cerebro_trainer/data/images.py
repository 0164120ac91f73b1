"""Images as they lie in a table, PNG or JPEG in a bytea, as float32 arrays of shape (rows, height,
width, channels).

Values are 0 to 255, before a divisor. Channels are those that the image has, as with
`tf.io.decode_image`: one for grey, three for colours, one more for transparency. A palette becomes
its colours, CMYK becomes RGB.

The bytes come from users: no format but these two is tried, and what an image declares is looked at
before any memory is taken for its pixels.
"""

from __future__ import annotations

import hashlib
import io
import struct
import zlib
from collections import Counter
from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from cerebro_trainer.errors import RequestError

try:
    from PIL import Image
except ImportError as missing:
    raise RequestError(
        f"images cannot be read: {missing}",
        sqlstate="55000",
        hint="Install pillow for the interpreter that trainer_python in cerebro.setting names.",
    ) from missing

FORMATS = ("PNG", "JPEG")
MAX_NUMBERS = 1 << 24
"""Of one image, all channels together: 64 MB of float32, as much as a buffer has. It becomes a
value of a table, which a backend that packs holds several times; and a file of a few KB may declare
any size."""
MAX_BLOCK = 1 << 28
"""Of all images of a block: what a value of PostgreSQL can have."""
MODES = {"1": "L", "L": "L", "LA": "LA", "RGB": "RGB", "RGBA": "RGBA", "CMYK": "RGB"}
"""What the modes of an image become; beside these a palette."""
THUMBNAIL_MODES = {1: "L", 3: "RGB"}
"""By channels."""
MAX_BYTES = 1 << 27
"""Of an image that a thumbnail is made of, all channels together: photographs of 40 million pixels
have less.
"""
WHITE = (255, 255, 255, 255)
"""Seen through what is transparent in a thumbnail."""
BROKEN = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
    struct.error,
    zlib.error,
)
"""What Pillow raises for bytes that are no image, or only part of one."""

Shape = tuple[int, int, int]


def decode(
    encoded: Sequence[memoryview], divide: float | None, column: str
) -> npt.NDArray[np.float32]:
    """All images of a column, which must have one shape; RequestError tells how to find one that is
    wrong.
    """
    found = [_opened(data, column) for data in encoded]
    shapes = [(image.height, image.width, Image.getmodebands(_mode(image))) for image in found]
    _check_shapes(shapes, encoded, column)
    check_block(len(shapes), shapes[0], column)
    values = np.empty((len(found), *shapes[0]), np.float32)
    for row, image in enumerate(found):
        values[row] = _pixels(image, encoded[row], column).reshape(shapes[0])
        image.close()
    if divide is not None and divide != 1.0:
        values /= np.float32(divide)
    return values


def thumbnail(data: memoryview, column: str, shape: Shape) -> npt.NDArray[np.uint8]:
    """An image of any size as one of this height and width, grey or in colours."""
    height, width, channels = shape
    with _opened(data, column, MAX_BYTES) as image:
        try:
            return np.asarray(_resized(image, THUMBNAIL_MODES[channels], (width, height)))
        except BROKEN as error:
            raise _damaged(data, column, error) from error


def _resized(image: Image.Image, mode: str, size: tuple[int, int]) -> Image.Image:
    transparent = "A" in image.getbands() or "transparency" in image.info
    image.draft(mode, size)  # of a JPEG no more pixels are computed than are needed
    shown = image.convert("RGBA" if transparent else mode)
    small = shown if shown.size == size else shown.resize(size, Image.Resampling.BILINEAR)
    if not transparent:
        return small
    return Image.alpha_composite(Image.new("RGBA", size, WHITE), small).convert(mode)


def check_block(rows: int, shape: Shape, column: str) -> None:
    """Raises where so many images are no value of PostgreSQL."""
    if (numbers := rows * prod(shape)) > MAX_BLOCK:
        raise RequestError(
            f"{rows} images of column {column} take {numbers * 4 >> 20} MB as float32; expected at "
            f"most {MAX_BLOCK * 4 >> 20} MB",
            hint="Pack them with a smaller buffer_size.",
        )


def _opened(data: memoryview, column: str, most: int = MAX_NUMBERS) -> Image.Image:
    """The image, of which only the header has been read; it declares so many numbers at most."""
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except Image.DecompressionBombError as error:
        raise _refused(data, column, str(error)) from error
    except BROKEN as error:
        raise _refused(data, column, "they are no image in one of these formats") from error
    if image.mode != "P" and image.mode not in MODES:
        raise _refused(data, column, f"its mode is {image.mode}; expected 8 bits per channel")
    channels = Image.getmodebands(_mode(image))
    if image.width * image.height * channels > most:
        size = f"{image.width}x{image.height} pixels of {channels} channels"
        raise _refused(data, column, f"it has {size}; expected at most {most} numbers")
    return image


def _pixels(image: Image.Image, data: memoryview, column: str) -> npt.NDArray[np.uint8]:
    try:
        return np.asarray(image.convert(_mode(image)))
    except BROKEN as error:
        raise _damaged(data, column, error) from error


def _mode(image: Image.Image) -> str:
    if image.mode == "P":
        return "RGBA" if "transparency" in image.info else "RGB"
    return MODES[image.mode]


def _check_shapes(shapes: Sequence[Shape], encoded: Sequence[memoryview], column: str) -> None:
    counts = Counter(shapes).most_common()
    if len(counts) == 1:
        return
    listed = ", ".join(f"{'x'.join(map(str, shape))} ({count})" for shape, count in counts[:10])
    odd = encoded[shapes.index(counts[-1][0])]
    raise RequestError(
        f"the images of column {column} have {len(counts)} shapes (height x width x channels); "
        "expected one",
        detail=f"In a block of {len(shapes)} images there are "
        f"{listed}{', …' if len(counts) > 10 else ''}.",
        hint=f"Resize or convert them before, or leave some out. {_finding(odd, column)}",
    )


def _refused(data: memoryview, column: str, why: str) -> RequestError:
    return RequestError(
        f"{len(data)} bytes in column {column} cannot be read as PNG or JPEG: {why}",
        hint=_finding(data, column),
    )


def _damaged(data: memoryview, column: str, error: Exception) -> RequestError:
    return _refused(data, column, f"it is damaged: {error}")


def _finding(data: memoryview, column: str) -> str:
    digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
    return f"Such a row is found by WHERE md5({column}) = '{digest}'."
