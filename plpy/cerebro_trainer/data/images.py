"""Decoding of images, which tables store as PNG or JPEG in a bytea.

The values are 0 to 255 before a division. An image keeps its channels, as with
`tf.io.decode_image`: one for grey, three for colours, one more for transparency. A palette is
replaced by its colours, and CMYK by RGB.

The bytes come from users. Only these two formats are tried, and the size that an image declares is
checked before memory is allocated for its pixels.
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
from cerebro_trainer.nouns import count_nouns, match_verb
from cerebro_trainer.wire.frames import Float32Array

try:
    from PIL import Image
except ImportError as missing:
    raise RequestError(
        f"images cannot be read: {missing}",
        sqlstate="55000",
        hint="Install pillow for the interpreter that trainer_python in cerebro.setting names.",
    ) from missing

FORMATS = ("PNG", "JPEG")
MAX_IMAGE_NUMBERS = 1 << 24
"""Largest number of values in an image, all channels together: 64 MB of float32, like a buffer.

An image becomes a value of a table, of which a backend that packs has several copies; and a file of
a few KB may declare any size.
"""
MAX_BLOCK_NUMBERS = 1 << 28
"""The same for all images of a block: the limit of a value in PostgreSQL."""
CONVERTED_MODES = {"1": "L", "L": "L", "LA": "LA", "RGB": "RGB", "RGBA": "RGBA", "CMYK": "RGB"}
"""Pillow's modes to which images are converted, by their own; palettes are a separate case."""
THUMBNAIL_MODES = {1: "L", 3: "RGB"}
"""By number of channels."""
MAX_THUMBNAIL_SOURCE = 1 << 27
"""Largest number of values in an image for a thumbnail, such as a photograph of 40 megapixels."""
WHITE = (255, 255, 255, 255)
"""Background of transparent images in thumbnails."""
PILLOW_ERRORS = (
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
"""Exceptions that Pillow raises for bytes that are not an image, or only a part of one."""

Shape = tuple[int, int, int]
"""Height, width and channels."""


def decode(files: Sequence[memoryview], divide: float | None, column: str) -> Float32Array:
    """Decode all images of a column, which must have the same shape.

    Returns:
        The values, shape (rows, height, width, channels).

    Raises:
        RequestError: an image is invalid; the hint is a condition that finds it.
    """
    images = [_open(data, column, MAX_IMAGE_NUMBERS) for data in files]
    shapes = [(image.height, image.width, _count_channels(image)) for image in images]
    _check_shapes(shapes, files, column)
    check_block_size(len(shapes), shapes[0], column)
    values = np.empty((len(images), *shapes[0]), np.float32)
    for row, image in enumerate(images):
        values[row] = _decode_pixels(image, files[row], column).reshape(shapes[0])
        image.close()
    if divide is not None and divide != 1.0:
        values /= np.float32(divide)
    return values


def make_thumbnail(data: memoryview, column: str, shape: Shape) -> npt.NDArray[np.uint8]:
    """Scale an image to a height and a width, in grey or in colours."""
    height, width, channels = shape
    with _open(data, column, MAX_THUMBNAIL_SOURCE) as image:
        try:
            return np.asarray(_resize(image, THUMBNAIL_MODES[channels], (width, height)))
        except PILLOW_ERRORS as error:
            raise _damage_error(data, column, error) from error


def _resize(image: Image.Image, mode: str, size: tuple[int, int]) -> Image.Image:
    is_transparent = "A" in image.getbands() or "transparency" in image.info
    image.draft(mode, size)  # a JPEG decodes no more pixels than necessary
    converted = image.convert("RGBA" if is_transparent else mode)
    resized = converted
    if converted.size != size:
        resized = converted.resize(size, Image.Resampling.BILINEAR)
    if not is_transparent:
        return resized
    return Image.alpha_composite(Image.new("RGBA", size, WHITE), resized).convert(mode)


def check_block_size(rows: int, shape: Shape, column: str) -> None:
    """Raise RequestError if a block of images exceeds the size of a value in PostgreSQL."""
    numbers = rows * prod(shape)
    if numbers > MAX_BLOCK_NUMBERS:
        raise RequestError(
            f"{count_nouns(rows, 'image')} of column {column} {match_verb(rows, 'takes')} "
            f"{numbers * 4 >> 20} MB as float32; expected at most {MAX_BLOCK_NUMBERS * 4 >> 20} MB",
            hint="Pack them with a smaller buffer_size.",
        )


def _open(data: memoryview, column: str, max_numbers: int) -> Image.Image:
    """Open an image, which reads only its header, and check the declared size."""
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except Image.DecompressionBombError as error:
        raise _image_error(data, column, str(error)) from error
    except PILLOW_ERRORS as error:
        raise _image_error(data, column, "they are no image in one of these formats") from error
    if image.mode != "P" and image.mode not in CONVERTED_MODES:
        raise _image_error(data, column, f"its mode is {image.mode}; expected 8 bits per channel")
    channels = _count_channels(image)
    if image.width * image.height * channels > max_numbers:
        size = f"{image.width}x{image.height}x{channels}"
        raise _image_error(
            data,
            column,
            f"it has {size} numbers; expected at most {count_nouns(max_numbers, 'number')}",
        )
    return image


def _decode_pixels(image: Image.Image, data: memoryview, column: str) -> npt.NDArray[np.uint8]:
    try:
        return np.asarray(image.convert(_converted_mode(image)))
    except PILLOW_ERRORS as error:
        raise _damage_error(data, column, error) from error


def _count_channels(image: Image.Image) -> int:
    return Image.getmodebands(_converted_mode(image))


def _converted_mode(image: Image.Image) -> str:
    if image.mode == "P":
        return "RGBA" if "transparency" in image.info else "RGB"
    return CONVERTED_MODES[image.mode]


def _check_shapes(shapes: Sequence[Shape], files: Sequence[memoryview], column: str) -> None:
    counts = Counter(shapes).most_common()
    if len(counts) == 1:
        return
    listed = ", ".join(f"{'x'.join(map(str, shape))} ({count})" for shape, count in counts[:10])
    ellipsis = ", …" if len(counts) > 10 else ""
    rarest_shape, _ = counts[-1]
    outlier = files[shapes.index(rarest_shape)]
    raise RequestError(
        f"the images of column {column} have {count_nouns(len(counts), 'shape')} (height x width x "
        "channels); expected one",
        detail=f"In a block of {count_nouns(len(shapes), 'image')} there are {listed}{ellipsis}.",
        hint=f"Resize or convert them before, or leave some out. {_search_hint(outlier, column)}",
    )


def _image_error(data: memoryview, column: str, reason: str) -> RequestError:
    return RequestError(
        f"{count_nouns(len(data), 'byte')} in column {column} cannot be read as PNG or JPEG: "
        f"{reason}",
        hint=_search_hint(data, column),
    )


def _damage_error(data: memoryview, column: str, error: Exception) -> RequestError:
    return _image_error(data, column, f"it is damaged: {error}")


def _search_hint(data: memoryview, column: str) -> str:
    digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
    return f"Such a row is found by WHERE md5({column}) = '{digest}'."
