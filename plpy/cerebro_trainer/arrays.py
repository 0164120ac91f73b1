"""PostgreSQL's binary array format to numpy and back, a whole buffer at a time.

`array_send` writes int32 ndim, int32 null flag, uint32 element type, per dimension (int32 size, int32
lower bound), then per element an int32 length and the value, all big-endian. Rows of equal shape have
equal length, so a column of them is one structured array: it is decoded by a view, never by a loop.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cerebro_trainer.errors import RequestError
from cerebro_trainer.wire import Bytes

HEAD = struct.Struct(">iiI")
DIMENSION = struct.Struct(">ii")
LENGTH = struct.Struct(">i")
MAX_DIMENSIONS = 6
NULL_LENGTH = -1


class ElementType(NamedTuple):
    """How PostgreSQL sends one element type."""

    name: str
    oid: int
    wire: str


FLOAT4 = ElementType("real", 700, ">f4")
INT2 = ElementType("smallint", 21, ">i2")
INT4 = ElementType("integer", 23, ">i4")
INT8 = ElementType("bigint", 20, ">i8")
BYTEA = 17
"""The type oid of an image."""
EXACT = 1 << 24
"""float32 holds every integer up to here."""


def decode(payload: Bytes, rows: int, element: ElementType) -> npt.NDArray[Any]:
    """The values of `rows` concatenated arrays, shape (rows, *dims), big-endian view into the payload.

    Raises RequestError: 22004 for NULL arrays or elements, 22023 where shapes differ or an array is empty,
    42804 for another element type. Rows are counted from 1 in messages.
    """
    shape = _shape(payload, 0, 1, element)
    head = HEAD.size + DIMENSION.size * len(shape)
    record = np.dtype(
        [("head", "u1", head), ("elements", [("length", ">i4"), ("value", element.wire)], math.prod(shape))]
    )
    aligned = payload.nbytes // record.itemsize
    table = payload[: aligned * record.itemsize].view(record)
    fits = _same_dimensions(table["head"]) & (table["elements"]["length"] == record_length(element)).all(axis=1)
    if aligned != rows or payload.nbytes % record.itemsize or not fits.all():
        raise _misfit(payload, rows, element, int(fits.argmin()) if not fits.all() else aligned)
    return table["elements"]["value"].reshape(rows, *shape)


def record_length(element: ElementType) -> int:
    """Bytes of one value.

    >>> record_length(FLOAT4), record_length(INT2)
    (4, 2)
    """
    return np.dtype(element.wire).itemsize


def floats(payload: Bytes, rows: int, divide: float | None = None) -> npt.NDArray[np.float32]:
    """float4[] arrays as float32 of shape (rows, *dims), divided in float32 as SQL does for real."""
    values = decode(payload, rows, FLOAT4).astype(np.float32)
    if divide is not None and divide != 1.0:
        values /= np.float32(divide)
    return values


def whole_numbers(
    payload: Bytes, rows: int, element: ElementType, divide: float | None = None
) -> npt.NDArray[np.float32]:
    """int4[] or int8[] arrays as float32 of shape (rows, *dims), divided in float32.

    Undivided integers may be tokens or keys, so RequestError 22003 where float32 would make another of one.
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
                f"float32, in which inputs are stored, cannot hold the integer {number}: it would become "
                f"{int(packed[wrong][0])}",
                sqlstate="22003",
                hint="Cast the column to real (or real[]) if it may be rounded, or give a normalizing_const. Tokens "
                f"must be at most {EXACT}.",
            )
    return packed


def variable_length(payload: Bytes, rows: int) -> list[memoryview]:
    """The only element of each of `rows` concatenated bytea[] arrays of one element."""
    head = HEAD.size + DIMENSION.size
    data, offset, found = payload.data, 0, []
    for row in range(1, rows + 1):
        if len(data) < offset + head + LENGTH.size:
            raise RequestError(f"more rows than values: only {row - 1} are not NULL", sqlstate="22004")
        dimensions, _, oid = HEAD.unpack_from(data, offset)
        (length,) = LENGTH.unpack_from(data, offset + head)
        if dimensions != 1 or oid != BYTEA:
            raise RequestError(f"row {row} has no value of type bytea", sqlstate="42804")
        if length == NULL_LENGTH:
            raise RequestError(f"row {row} is NULL", sqlstate="22004", hint="Leave rows with NULL values out.")
        offset += head + LENGTH.size
        found.append(data[offset : offset + length])
        offset += length
    if offset != len(data):
        raise RequestError(f"expected {rows} values, received {len(data) - offset} bytes more")
    return found


def small_integers(payload: Bytes, rows: int) -> npt.NDArray[np.int16]:
    """int2[] arrays as int16 of shape (rows, *dims)."""
    return decode(payload, rows, INT2).astype(np.int16)


def one_hot(payload: Bytes, rows: int, classes: int) -> npt.NDArray[np.int16]:
    """int4[] arrays of one class index each, as one-hot int16 of shape (rows, classes)."""
    indices = decode(payload, rows, INT4).reshape(rows, -1)
    if indices.shape[1] != 1:
        raise RequestError(f"expected one class index per row, received arrays of {indices.shape[1]} elements")
    wrong = (indices < 0) | (indices >= classes)
    if wrong.any():
        row = int(wrong.argmax())
        raise RequestError(f"row {row + 1}: class index {int(indices[row, 0])} is not below {classes}")
    encoded = np.zeros((rows, classes), dtype=np.int16)
    np.put_along_axis(encoded, indices.reshape(rows, 1).astype(np.intp), 1, axis=1)
    return encoded


def literal(values: Iterable[object]) -> str:
    """A one-dimensional PostgreSQL array literal of numbers.

    >>> literal([1, 2.5])
    '{1,2.5}'
    """
    return "{" + ",".join(map(repr, values)) + "}"


def _shape(payload: Bytes, offset: int, row: int, element: ElementType) -> tuple[int, ...]:
    """The dimensions of the array that starts at `offset`, after checking its type and size."""
    end = offset + HEAD.size
    if payload.nbytes < end:
        raise RequestError(
            f"more rows than arrays: only {row - 1} values are not NULL",
            sqlstate="22004",
            hint="Leave rows with NULL values out.",
        )
    dimensions, _, oid = HEAD.unpack(payload[offset:end].tobytes())
    if oid != element.oid:
        raise RequestError(
            f"row {row}: expected an array of {element.name} (type oid {element.oid}), received element type oid {oid}",
            sqlstate="42804",
        )
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise RequestError(
            f"row {row}: expected an array of 1 to {MAX_DIMENSIONS} dimensions, "
            f"received {'an empty array' if dimensions == 0 else dimensions}"
        )
    return tuple(
        DIMENSION.unpack(payload[end + DIMENSION.size * i : end + DIMENSION.size * (i + 1)].tobytes())[0]
        for i in range(dimensions)
    )


def _same_dimensions(heads: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    """Which rows have the first row's dimension count, element type and sizes; lower bounds do not matter.

    The null flag (bytes 4 to 7) is passed over: PostgreSQL sets it for any array that has a null bitmap,
    also when no element is NULL any more. NULL elements show in their length.
    """
    sizes = [
        HEAD.size + DIMENSION.size * d + b
        for d in range((heads.shape[1] - HEAD.size) // DIMENSION.size)
        for b in range(4)
    ]
    columns = [*range(4), *range(8, 12), *sizes]
    return np.asarray((heads[:, columns] == heads[:1, columns]).all(axis=1))


def _misfit(payload: Bytes, rows: int, element: ElementType, index: int) -> RequestError:
    """What is wrong with row `index` (from 0); rows before it have the first one's size, so it is aligned."""
    first = _shape(payload, 0, 1, element)
    size = HEAD.size + DIMENSION.size * len(first) + (4 + record_length(element)) * math.prod(first)
    if index >= rows:
        return RequestError(f"expected {rows} arrays, received {payload.nbytes - rows * size} bytes more")
    shape = _shape(payload, index * size, index + 1, element)
    if shape != first:
        return RequestError(
            f"row {index + 1} has shape {_by(shape)}, but row 1 has shape {_by(first)}",
            hint="All arrays of a column must have the same dimensions.",
        )
    return RequestError(
        f"row {index + 1} has a NULL element",
        sqlstate="22004",
        hint="Replace NULL elements, or leave such rows out.",
    )


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))
