"""Image files for tests: encoded pixels, and a file that only declares them."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
from PIL import Image

BYTEA = 17
"""The type oid of what a file is sent as."""


def encoded(
    pixels: np.ndarray, kind: str = "PNG", mode: str | None = None, **options: object
) -> bytes:
    """An image file of pixels of shape (height, width, channels)."""
    image = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    output = io.BytesIO()
    (image.convert(mode) if mode else image).save(output, kind, **options)
    return output.getvalue()


def chunk(name: bytes, data: bytes) -> bytes:
    """A chunk of a PNG file."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width: int, height: int, depth: int = 8, colour: int = 2) -> bytes:
    """A file that declares a size and has next to no pixels."""
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    parts = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(b"\0" * 64)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
