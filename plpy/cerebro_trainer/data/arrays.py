"""Conversion between PostgreSQL's arrays and numpy, a whole buffer at a time.

An array arrives as PostgreSQL stores it in memory, without its length word
(`cerebro_internal.array_bytes`), in the byte order of the machine. Its parts are the number of
dimensions (int32), the offset of the values (int32; 0 without a NULL bitmap), the element type
(uint32), the sizes, the lower bounds, perhaps the bitmap and padding, and the values. Rows of equal
shape have equal length. A column of such rows is one structured array, which is decoded by a view
instead of a loop.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cerebro_trainer.errors import RequestError
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.wire.frames import Array, Bytes, Float32Array

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Booleans: TypeAlias = npt.NDArray[np.bool_]

HEADER = struct.Struct("=iiI")
SIZE_BYTES = 4
DIMENSION_BYTES = 8
"""Bytes of a size and a lower bound."""
LENGTH_WORD = 4
"""Bytes before the header, which PostgreSQL's offsets include."""
BYTEA_HEADER = struct.Struct(">iiIiii")
"""The header of a bytea[] with one element in the format of array_send, with its length."""
MAX_DIMENSIONS = 6
NULL_LENGTH = -1


class ElementType(NamedTuple):
    """An element type of PostgreSQL's arrays."""

    name: str
    oid: int
    dtype: np.dtype[Any]


FLOAT4 = ElementType("real", 700, np.dtype("=f4"))
FLOAT8 = ElementType("double precision", 701, np.dtype("=f8"))
INT2 = ElementType("smallint", 21, np.dtype("=i2"))
INT4 = ElementType("integer", 23, np.dtype("=i4"))
INT8 = ElementType("bigint", 20, np.dtype("=i8"))
BYTEA_OID = 17
CLASS_INDEX = np.dtype(">i4")
MAX_EXACT_INTEGER = 1 << 24
"""float32 represents every integer up to this one."""


def decode(payload: Bytes, rows: int, element: ElementType) -> Array:
    """Decode `rows` concatenated arrays; the result is a view of the payload if possible.

    Returns:
        The values, shape (rows, *dimensions).

    Raises:
        RequestError: 22004 for NULL arrays or elements, 22023 for different shapes or an empty
            array, 42804 for another element type. Messages count rows from 1.
    """
    first = _read_header(payload, 0, 1, element)
    row_bytes = first.nbytes + math.prod(first.shape) * element.dtype.itemsize
    if not first.has_bitmap and payload.nbytes == rows * row_bytes:
        fields = [("header", "u1", first.nbytes), ("values", element.dtype, first.shape)]
        table = payload.view(np.dtype(fields))
        if _have_same_shape(table["header"], len(first.shape)):
            return table["values"]
    plain_values = b"".join(_read_rows(payload, rows, element))
    return np.frombuffer(plain_values, element.dtype).reshape(rows, *first.shape)


def decode_floats(
    payload: Bytes, rows: int, divide: float | None = None, element: ElementType = FLOAT4
) -> Float32Array:
    """Decode float arrays as float32, divided in float32 like SQL's real.

    Returns:
        The values, shape (rows, *dimensions); infinite if float32 cannot represent them.
    """
    with np.errstate(over="ignore"):
        values = decode(payload, rows, element).astype("<f4")
    if divide is not None and divide != 1.0:
        values /= np.float32(divide)
    return values


def decode_integers(
    payload: Bytes, rows: int, element: ElementType, divide: float | None = None
) -> Float32Array:
    """Decode integer arrays as float32, divided in float32.

    Raises:
        RequestError: 22003 if float32 would change an integer that is not divided, because it may
            be a token or a key.
    """
    values = decode(payload, rows, element)
    packed = values.astype(np.float32)
    if divide is not None and divide != 1.0:
        packed /= np.float32(divide)
    elif packed.size and max(packed.max(), -packed.min()) >= MAX_EXACT_INTEGER:
        _check_exact(values, packed)
    return packed


def _check_exact(values: Array, packed: Float32Array) -> None:
    with np.errstate(invalid="ignore"):  # rounding may exceed int64, which changes the number, too
        is_changed = packed.astype(np.int64) != values
    if is_changed.any():
        number = int(values[is_changed][0])
        raise RequestError(
            f"float32, in which inputs are stored, cannot hold the integer {number}: it would "
            f"become {int(packed[is_changed][0])}",
            sqlstate="22003",
            hint="Cast the column to real (or real[]) if it may be rounded, or give a "
            f"normalizing_const. Tokens must be at most {MAX_EXACT_INTEGER}.",
        )


def split_byteas(payload: Bytes, rows: int) -> list[memoryview]:
    """Split `rows` concatenated bytea[] arrays of one element, in the format of array_send.

    Returns:
        The element of each array.
    """
    data = payload.data
    offset = 0
    elements = []
    for row in range(1, rows + 1):
        if len(data) < offset + BYTEA_HEADER.size:
            raise RequestError(
                f"more rows than values: only {row - 1} are not NULL", sqlstate="22004"
            )
        dimensions, _, oid, _, _, length = BYTEA_HEADER.unpack_from(data, offset)
        if dimensions != 1 or oid != BYTEA_OID or length == NULL_LENGTH:
            raise RequestError(
                f"row {row} is NULL, or of another type than bytea", sqlstate="22004"
            )
        offset += BYTEA_HEADER.size
        if not 0 <= length <= len(data) - offset:
            raise RequestError(
                f"row {row} would have {count_nouns(length, 'byte')} where {len(data) - offset} "
                "are left"
            )
        elements.append(data[offset : offset + length])
        offset += length
    if offset != len(data):
        raise RequestError(
            f"expected {count_nouns(rows, 'value')}, received "
            f"{count_nouns(len(data) - offset, 'byte')} more"
        )
    return elements


def decode_small_integers(payload: Bytes, rows: int) -> npt.NDArray[np.int16]:
    """Decode int2[] arrays as int16, shape (rows, *dimensions)."""
    return decode(payload, rows, INT2).astype("<i2")


def encode_one_hot(payload: Bytes, rows: int, classes: int) -> npt.NDArray[np.int16]:
    """Encode class indices, one big-endian int32 per row, as int16 of shape (rows, classes)."""
    if payload.nbytes != rows * CLASS_INDEX.itemsize:
        raise RequestError(
            f"received {payload.nbytes // CLASS_INDEX.itemsize} class indices for "
            f"{count_nouns(rows, 'row')}: "
            "others have a value that none had when the classes were looked for",
            sqlstate="22004",
            hint="The table changes meanwhile: pack a copy of it.",
        )
    indices = payload.view(CLASS_INDEX).astype(np.intp)
    is_invalid = (indices < 0) | (indices >= classes)
    if is_invalid.any():
        row = int(is_invalid.argmax())
        raise RequestError(f"row {row + 1}: class index {int(indices[row])} is not below {classes}")
    encoded = np.zeros((rows, classes), dtype="<i2")
    encoded[np.arange(rows), indices] = 1
    return encoded


def format_literal(values: Iterable[object]) -> str:
    """Return a one-dimensional PostgreSQL array literal of numbers.

    >>> format_literal([1, 2.5])
    '{1,2.5}'
    """
    return "{" + ",".join(map(repr, values)) + "}"


class ArrayHeader(NamedTuple):
    """The part of an array before its values."""

    shape: tuple[int, ...]
    nbytes: int
    has_bitmap: bool


def _read_header(payload: Bytes, offset: int, row: int, element: ElementType) -> ArrayHeader:
    """Read the header of the array at `offset`, and check its type and dimensions."""
    if payload.nbytes < offset + HEADER.size:
        raise RequestError(
            f"more rows than arrays: only {count_nouns(row - 1, 'value', 'is')} not NULL",
            sqlstate="22004",
            hint="Leave rows with NULL values out.",
        )
    dimensions, value_offset, oid = HEADER.unpack_from(payload.data, offset)
    if oid != element.oid:
        raise RequestError(
            f"row {row}: expected an array of {element.name} (type oid {element.oid}), received "
            f"element type oid {oid}",
            sqlstate="42804",
        )
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        received = "an empty array" if dimensions == 0 else dimensions
        raise RequestError(
            f"row {row}: expected an array of 1 to {MAX_DIMENSIONS} dimensions, received {received}"
        )
    min_nbytes = HEADER.size + DIMENSION_BYTES * dimensions
    nbytes = value_offset - LENGTH_WORD if value_offset else min_nbytes
    if nbytes < min_nbytes or payload.nbytes < offset + nbytes:
        raise RequestError(f"row {row} is cut off, or no array as PostgreSQL holds it")
    shape = struct.unpack_from(f"={dimensions}i", payload.data, offset + HEADER.size)
    if min(shape) < 1:
        raise RequestError(
            f"row {row}: expected an array with elements, received the shape {_format_shape(shape)}"
        )
    return ArrayHeader(shape, nbytes, bool(value_offset))


def _have_same_shape(headers: npt.NDArray[np.uint8], dimensions: int) -> bool:
    """Return whether all headers are equal, except for the lower bounds."""
    compared_bytes = HEADER.size + SIZE_BYTES * dimensions
    return bool((headers[:, :compared_bytes] == headers[:1, :compared_bytes]).all())


def _read_rows(payload: Bytes, rows: int, element: ElementType) -> Iterator[bytes]:
    """Yield the values of each row, which is slow, but finds the first row that does not fit.

    PostgreSQL may keep the bitmap of an array without NULL elements; such a row does fit.
    """
    offset = 0
    shape = _read_header(payload, 0, 1, element).shape
    for row in range(1, rows + 1):
        header = _read_header(payload, offset, row, element)
        if header.shape != shape:
            raise RequestError(
                f"row {row} has shape {_format_shape(header.shape)}, but row 1 has shape "
                f"{_format_shape(shape)}",
                hint="All arrays of a column must have the same dimensions.",
            )
        count = math.prod(header.shape)
        bitmap_offset = offset + HEADER.size + DIMENSION_BYTES * len(shape)
        if header.has_bitmap and _has_null(payload, bitmap_offset, count):
            raise RequestError(
                f"row {row} has a NULL element",
                sqlstate="22004",
                hint="Replace NULL elements, or leave such rows out.",
            )
        begin = offset + header.nbytes
        offset = begin + count * element.dtype.itemsize
        if offset > payload.nbytes:
            raise RequestError(
                f"row {row} ends at byte {offset}, but the payload has {payload.nbytes}"
            )
        yield payload[begin:offset].tobytes()
    if offset != payload.nbytes:
        raise RequestError(
            f"expected {count_nouns(rows, 'array')}, received "
            f"{count_nouns(payload.nbytes - offset, 'byte')} more"
        )


def _has_null(payload: Bytes, offset: int, count: int) -> bool:
    """Return whether one of the first `count` bits of a bitmap is 0, which stands for NULL."""
    bits = np.unpackbits(payload[offset : offset + (count + 7) // 8], bitorder="little")
    return not bits[:count].all()


def _format_shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
