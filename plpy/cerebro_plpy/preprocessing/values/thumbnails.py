"""Files of images as SQL: each is sent after a header that describes the thumbnail to make of it.

So one piece of code decodes all files (docs/internals/wire.md), in packing and in predictions.
"""

from __future__ import annotations

import struct

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.values.array_layout import Shape

KIND = "image"
"""The kind of an input of such files, for a trainer."""
MARK = b"cerebro thumbnail\0"
SIZES = struct.Struct(">HHHH")
"""Height, width and channels, and the bytes of the column's quoted name, which follows."""


def header(column: str, shape: Shape) -> str:
    """Return the header of the files of a column, in hexadecimal digits.

    >>> bytes.fromhex(header("a", (8, 16, 3)))[-11:]
    b'\\x00\\x08\\x00\\x10\\x00\\x03\\x00\\x03"a"'
    """
    name = quote_identifier(column).encode()
    return (MARK + SIZES.pack(*shape, len(name)) + name).hex()


def file(column: str, row: str) -> str:
    """Return the file of a row; without a file, no bytes."""
    return f"coalesce({row}.{quote_identifier(column)}::bytea, ''::bytea)"


def file_size(column: str, row: str) -> str:
    """Return the number of bytes of the file."""
    return f"pg_catalog.octet_length({file(column, row)})"


def sent_file(column: str, row: str) -> str:
    """Return the bytes that a trainer takes; the placeholder is for the header."""
    return f"pg_catalog.decode(%s::text, 'hex') || {file(column, row)}"
