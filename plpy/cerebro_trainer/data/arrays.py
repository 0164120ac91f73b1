"""PostgreSQL's arrays to numpy and back, a whole buffer at a time.

An array comes as PostgreSQL holds it in memory, without its length word (`cerebro.array_bytes`), in
the byte order of the machine: int32 number of dimensions, int32 offset of the values (0: no NULL
bitmap), uint32 element type, the sizes, the lower bounds, perhaps the bitmap and padding, then the
values. Rows of equal shape have equal length, so a column of them is one structured array: it is
decoded by a view, never by a loop.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cerebro_trainer.errors import RequestError
from cerebro_trainer.wire.frames import Bytes

HEAD = struct.Struct("=iiI")
DIMENSION_BYTES = 8
"""Of a size and a lower bound."""
LENGTH_WORD = 4
"""Bytes before the head, which offsets count."""
SENT = struct.Struct(">iiIiii")
"""The head of a bytea[] of one element in array_send's format, and the element's length."""
MAX_DIMENSIONS = 6
NULL_LENGTH = -1


class ElementType(NamedTuple):
    """How PostgreSQL holds one element type."""

    name: str
    oid: int
    dtype: np.dtype[Any]


FLOAT4 = ElementType("real", 700, np.dtype("=f4"))
FLOAT8 = ElementType("double precision", 701, np.dtype("=f8"))
INT2 = ElementType("smallint", 21, np.dtype("=i2"))
INT4 = ElementType("integer", 23, np.dtype("=i4"))
INT8 = ElementType("bigint", 20, np.dtype("=i8"))
BYTEA = 17
"""The type oid of an image."""
CLASS_INDEX = np.dtype(">i4")
EXACT = 1 << 24
"""float32 holds every integer up to here."""


def decode(payload: Bytes, rows: int, element: ElementType) -> npt.NDArray[Any]:
    """The values of `rows` concatenated arrays, shape (rows, *dims), a view into the payload.

    Raises RequestError: 22004 for NULL arrays or elements, 22023 where shapes differ or an array is
    empty, 42804 for another element type. Rows are counted from 1 in messages.
    """
    first = _head(payload, 0, 1, element)
    size = first.size + math.prod(first.shape) * element.dtype.itemsize
    if not first.bitmap and payload.nbytes == rows * size:
        table = payload.view(
            np.dtype([("head", "u1", first.size), ("values", element.dtype, first.shape)])
        )
        if _same_heads(table["head"], len(first.shape)):
            return table["values"]
    plain = b"".join(_without_bitmaps(payload, rows, element))
    return np.frombuffer(plain, element.dtype).reshape(rows, *first.shape)


def floats(
    payload: Bytes, rows: int, divide: float | None = None, element: ElementType = FLOAT4
) -> npt.NDArray[np.float32]:
    """float4[] or float8[] arrays as float32 of shape (rows, *dims), divided in float32 as SQL does
    for real.
    """
    with np.errstate(
        over="ignore"
    ):  # what float32 cannot hold becomes infinite, which the packer refuses
        values = decode(payload, rows, element).astype("<f4")
    if divide is not None and divide != 1.0:
        values /= np.float32(divide)
    return values


def whole_numbers(
    payload: Bytes, rows: int, element: ElementType, divide: float | None = None
) -> npt.NDArray[np.float32]:
    """int4[] or int8[] arrays as float32 of shape (rows, *dims), divided in float32.

    Undivided integers may be tokens or keys, so RequestError 22003 where float32 would make another
    of one.
    """
    values = decode(payload, rows, element)
    packed = values.astype(np.float32)
    if divide is not None and divide != 1.0:
        packed /= np.float32(divide)
    elif packed.size and max(packed.max(), -packed.min()) >= EXACT:
        with np.errstate(invalid="ignore"):  # beyond int64 by rounding, and so another number
            wrong = packed.astype(np.int64) != values
        if wrong.any():
            number = int(values[wrong][0])
            raise RequestError(
                f"float32, in which inputs are stored, cannot hold the integer {number}: it would "
                f"become {int(packed[wrong][0])}",
                sqlstate="22003",
                hint="Cast the column to real (or real[]) if it may be rounded, or give a "
                f"normalizing_const. Tokens must be at most {EXACT}.",
            )
    return packed


def variable_length(payload: Bytes, rows: int) -> list[memoryview]:
    """The only element of each of `rows` concatenated bytea[] arrays of one element, in
    array_send's format.
    """
    data, offset, found = payload.data, 0, []
    for row in range(1, rows + 1):
        if len(data) < offset + SENT.size:
            raise RequestError(
                f"more rows than values: only {row - 1} are not NULL", sqlstate="22004"
            )
        dimensions, _, oid, _, _, length = SENT.unpack_from(data, offset)
        if dimensions != 1 or oid != BYTEA or length == NULL_LENGTH:
            raise RequestError(
                f"row {row} is NULL, or of another type than bytea", sqlstate="22004"
            )
        offset += SENT.size
        if not 0 <= length <= len(data) - offset:
            raise RequestError(
                f"row {row} would have {length} bytes where {len(data) - offset} are left"
            )
        found.append(data[offset : offset + length])
        offset += length
    if offset != len(data):
        raise RequestError(f"expected {rows} values, received {len(data) - offset} bytes more")
    return found


def small_integers(payload: Bytes, rows: int) -> npt.NDArray[np.int16]:
    """int2[] arrays as int16 of shape (rows, *dims)."""
    return decode(payload, rows, INT2).astype("<i2")


def one_hot(payload: Bytes, rows: int, classes: int) -> npt.NDArray[np.int16]:
    """Big-endian int32 class indices, one a row, as one-hot int16 of shape (rows, classes)."""
    if payload.nbytes != rows * CLASS_INDEX.itemsize:
        raise RequestError(
            f"received {payload.nbytes // CLASS_INDEX.itemsize} class indices for {rows} rows: "
            "others have a value that none had when the classes were looked for",
            sqlstate="22004",
            hint="The table changes meanwhile: pack a copy of it.",
        )
    indices = payload.view(CLASS_INDEX).astype(np.intp)
    wrong = (indices < 0) | (indices >= classes)
    if wrong.any():
        row = int(wrong.argmax())
        raise RequestError(f"row {row + 1}: class index {int(indices[row])} is not below {classes}")
    encoded = np.zeros((rows, classes), dtype="<i2")
    encoded[np.arange(rows), indices] = 1
    return encoded


def literal(values: Iterable[object]) -> str:
    """A one-dimensional PostgreSQL array literal of numbers.

    >>> literal([1, 2.5])
    '{1,2.5}'
    """
    return "{" + ",".join(map(repr, values)) + "}"


class Head(NamedTuple):
    """What stands before the values of an array: its shape, its size in bytes, and whether it has a
    bitmap.
    """

    shape: tuple[int, ...]
    size: int
    bitmap: bool


def _head(payload: Bytes, offset: int, row: int, element: ElementType) -> Head:
    """The head of the array that starts at `offset`, after checking type and dimensions."""
    if payload.nbytes < offset + HEAD.size:
        raise RequestError(
            f"more rows than arrays: only {row - 1} values are not NULL",
            sqlstate="22004",
            hint="Leave rows with NULL values out.",
        )
    dimensions, values_at, oid = HEAD.unpack_from(payload.data, offset)
    if oid != element.oid:
        raise RequestError(
            f"row {row}: expected an array of {element.name} (type oid {element.oid}), received "
            f"element type oid {oid}",
            sqlstate="42804",
        )
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise RequestError(
            f"row {row}: expected an array of 1 to {MAX_DIMENSIONS} dimensions, "
            f"received {'an empty array' if dimensions == 0 else dimensions}"
        )
    plain = HEAD.size + DIMENSION_BYTES * dimensions
    size = values_at - LENGTH_WORD if values_at else plain
    if size < plain or payload.nbytes < offset + size:
        raise RequestError(f"row {row} is cut off, or no array as PostgreSQL holds it")
    shape = struct.unpack_from(f"={dimensions}i", payload.data, offset + HEAD.size)
    if min(shape) < 1:
        raise RequestError(
            f"row {row}: expected an array with elements, received the shape {_by(shape)}"
        )
    return Head(shape, size, bool(values_at))


def _same_heads(heads: npt.NDArray[np.uint8], dimensions: int) -> bool:
    """Whether all rows have the first one's dimensions, offset, type and sizes; lower bounds do not
    matter.
    """
    told = HEAD.size + DIMENSION_BYTES // 2 * dimensions
    return bool((heads[:, :told] == heads[:1, :told]).all())


def _without_bitmaps(payload: Bytes, rows: int, element: ElementType) -> Iterator[bytes]:
    """The values of each row, read row after row: the slow way, which finds the first row that does
    not fit.

    PostgreSQL keeps the bitmap of an array in which no element is NULL any more; such rows do fit.
    """
    offset, first = 0, _head(payload, 0, 1, element).shape
    for row in range(1, rows + 1):
        head = _head(payload, offset, row, element)
        if head.shape != first:
            raise RequestError(
                f"row {row} has shape {_by(head.shape)}, but row 1 has shape {_by(first)}",
                hint="All arrays of a column must have the same dimensions.",
            )
        count = math.prod(head.shape)
        if head.bitmap and _nulls(
            payload, offset + HEAD.size + DIMENSION_BYTES * len(first), count
        ):
            raise RequestError(
                f"row {row} has a NULL element",
                sqlstate="22004",
                hint="Replace NULL elements, or leave such rows out.",
            )
        begin, offset = offset + head.size, offset + head.size + count * element.dtype.itemsize
        if offset > payload.nbytes:
            raise RequestError(
                f"row {row} ends at byte {offset}, but the payload has {payload.nbytes}"
            )
        yield payload[begin:offset].tobytes()
    if offset != payload.nbytes:
        raise RequestError(f"expected {rows} arrays, received {payload.nbytes - offset} bytes more")


def _nulls(payload: Bytes, offset: int, count: int) -> bool:
    """Whether a bitmap at `offset`, whose bits say which elements are there, has a zero among
    `count` bits.
    """
    bits = np.unpackbits(payload[offset : offset + (count + 7) // 8], bitorder="little")
    return not bits[:count].all()


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
