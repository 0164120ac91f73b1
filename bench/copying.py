"""Copy rows to and from PostgreSQL as numpy arrays, in COPY's binary format, the fastest one.

Every row of these tables has the same length in that format, so that one structured view reads or
writes all rows. A row has a count of fields, and the length before each field. An array begins with
its dimensions, and the length precedes each element (PostgreSQL's documentation, COPY, "Binary
Format").
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from psycopg2.extensions import connection as Connection

from bench.examples import Examples

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = struct.pack(">h", -1)
FLOAT4 = 700


def row_type(shape: Sequence[int]) -> np.dtype[Any]:
    """Return the type of a row (id integer, x real[…], y integer), with the shape of x."""
    element = np.dtype([("length", ">i4"), ("value", ">f4")])
    return np.dtype(
        [
            ("fields", ">i2"),
            ("id_length", ">i4"),
            ("id", ">i4"),
            ("x_length", ">i4"),
            ("dimensions", ">i4"),
            ("nulls", ">i4"),
            ("oid", ">u4"),
            ("sizes", [("size", ">i4"), ("lower", ">i4")], (len(shape),)),
            ("x", element, (int(np.prod(shape)),)),
            ("y_length", ">i4"),
            ("y", ">i4"),
        ]
    )


def encode(examples: Examples) -> bytes:
    """Return rows, numbered from 1, in the format of COPY."""
    x, y = examples
    shape = x.shape[1:]
    kind = row_type(shape)
    rows = np.zeros(len(x), kind)
    rows["fields"] = 3
    rows["id_length"] = 4
    rows["y_length"] = 4
    rows["id"] = np.arange(1, len(x) + 1)
    rows["dimensions"] = len(shape)
    rows["oid"] = FLOAT4
    rows["sizes"]["size"] = shape
    rows["sizes"]["lower"] = 1
    rows["x_length"] = 12 + 8 * len(shape) + 8 * int(np.prod(shape))
    rows["x"]["length"] = 4
    rows["x"]["value"] = x.reshape(len(x), -1)
    rows["y"] = y
    return SIGNATURE + rows.tobytes() + TRAILER


def decode(data: bytes | memoryview) -> Examples:
    """Return the rows in the format of COPY; all x must have one shape and no NULLs."""
    view = memoryview(data)[len(SIGNATURE) : -len(TRAILER)]
    (dimensions,) = struct.unpack_from(">i", view, 14)
    shape = struct.unpack_from(">" + "ii" * dimensions, view, 26)[::2]
    rows = np.frombuffer(view, row_type(shape))
    if (rows["sizes"]["size"] != shape).any() or (rows["x"]["length"] != 4).any():
        raise ValueError("the rows differ in shape, or have NULLs")
    x = rows["x"]["value"].astype(np.float32).reshape(-1, *shape)
    return x, rows["y"].astype(np.int32)


def write_table(connection: Connection, table: str, examples: Examples) -> None:
    """Create a table (id, x, y) of rows."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE {table} (id integer PRIMARY KEY, x real[] NOT NULL, y integer NOT NULL)"
        )
        cursor.copy_expert(f"COPY {table} FROM STDIN (FORMAT binary)", io.BytesIO(encode(examples)))
        cursor.execute(f"ANALYZE {table}")


def read_table(connection: Connection, table: str) -> tuple[Examples, int]:
    """Return the rows of a table (id, x, y) in the order of their ids, and the bytes received."""
    received = io.BytesIO()
    with connection.cursor() as cursor:
        cursor.copy_expert(
            f"COPY (SELECT id, x, y FROM {table} ORDER BY id) TO STDOUT (FORMAT binary)", received
        )
    data = received.getbuffer()
    return decode(data), data.nbytes
