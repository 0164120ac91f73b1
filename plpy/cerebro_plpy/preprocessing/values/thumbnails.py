"""Files of images as they are sent: behind a head that says what thumbnail a trainer is to make of
each.

So it is said wherever rows are packed or predicted, and a file is decoded by one piece of code
(docs/wire.md).
"""

from __future__ import annotations

import struct

from cerebro_plpy.database.sql.identifiers import quote_identifier

KIND = "image"
"""How they are sent."""
MARK = b"cerebro thumbnail\0"
SIZES = struct.Struct(">HHHH")
"""Height, width and channels of the thumbnail, and the bytes of the column's quoted name, which
follows.
"""


def head(column: str, shape: tuple[int, ...]) -> str:
    """What comes before each file of a column, in hexadecimal digits.

    >>> bytes.fromhex(head("a", (8, 16, 3)))[-11:]
    b'\\x00\\x08\\x00\\x10\\x00\\x03\\x00\\x03"a"'
    """
    name = quote_identifier(column).encode()
    return (MARK + SIZES.pack(*shape, len(name)) + name).hex()


def file(column: str, row: str) -> str:
    """The file of a column, of no bytes where there is none."""
    return f"coalesce({row}.{quote_identifier(column)}::bytea, ''::bytea)"


def size(column: str, row: str) -> str:
    """How many bytes that has."""
    return f"pg_catalog.octet_length({file(column, row)})"


def value(column: str, row: str) -> str:
    """What is sent of a row; the placeholder takes the head."""
    return f"pg_catalog.decode(%s::text, 'hex') || {file(column, row)}"
