"""The data of a segment in the trainer: decoded buffers, which are cached if they fit.

A job sees the same `Buffer` objects whether a dataset is cached or streamed again for each visit,
because that must not influence any result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cerebro_trainer.errors import RequestError
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.wire.fields import Header, integer, items, text
from cerebro_trainer.wire.frames import Array, Bytes, Float32Array

MAX_DIMENSIONS = 32
DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "int16": np.dtype("<i2")}
ROLES = ("x", "y", "w")


@dataclass(frozen=True)
class Buffer:
    """One row of a packed table, which contains `rows` examples; arrays have shape (rows, ...)."""

    buffer_id: int
    rows: int
    inputs: tuple[Array, ...]
    targets: tuple[Array, ...]
    nbytes: int
    # Weights of the rows in the table, shape (rows,); None if the table has none
    sample_weights: Float32Array | None = None
    # Weights of the rows in the training loss, shape (rows,); None if the job has none
    weights: Float32Array | None = None


def parse_buffer(header: Header, payload: Bytes) -> Buffer:
    """Return the buffer in a `buffer` frame; its arrays are views of the payload."""
    arrays: dict[str, list[Array]] = {role: [] for role in ROLES}
    offset = 0
    for entry in items(header, "arrays"):
        array, offset = _parse_array(entry, payload, offset)
        arrays[text(entry, "role", choices=ROLES)].append(array)
    if offset != payload.nbytes:
        raise RequestError(
            f"the arrays take {count_nouns(offset, 'byte')}, but the payload has {payload.nbytes}"
        )
    lengths = {len(array) for role in ROLES for array in arrays[role]}
    if len(lengths) != 1:
        raise RequestError(
            f"the arrays of one buffer must have equal lengths, received {sorted(lengths)}"
        )
    rows = lengths.pop()
    weights = [_check_weights(array, rows) for array in arrays["w"]]
    if len(weights) > 1:
        raise RequestError(f"rows have one weight each, received {len(weights)}")
    return Buffer(
        buffer_id=integer(header, "buffer_id"),
        rows=rows,
        inputs=tuple(arrays["x"]),
        targets=tuple(arrays["y"]),
        nbytes=payload.nbytes,
        sample_weights=next(iter(weights), None),
    )


def _check_weights(array: Array, rows: int) -> Float32Array:
    if array.size != rows or array.dtype != np.float32:
        raise RequestError(
            f"{count_nouns(rows, 'row')} came with weights of shape {list(array.shape)} and type "
            f"{array.dtype}"
        )
    return array.reshape(rows)


def _parse_array(entry: Header, payload: Bytes, offset: int) -> tuple[Array, int]:
    """Return the array that an entry describes, and the offset of its end."""
    dtype = DTYPES[text(entry, "dtype", choices=tuple(DTYPES))]
    shape = entry.get("shape")
    if not (isinstance(shape, list) and shape and all(type(n) is int and n >= 0 for n in shape)):
        raise RequestError(f'"shape" must be a list of sizes, received {shape!r}')
    if len(shape) > MAX_DIMENSIONS or max(shape) >> 31:
        raise RequestError(
            f'"shape" must have {MAX_DIMENSIONS} sizes at most, each below 2^31, received {shape!r}'
        )
    end = offset + math.prod(shape) * dtype.itemsize
    if end > payload.nbytes:
        raise RequestError(
            f"an array of shape {shape} ends at byte {end}, but the payload has {payload.nbytes}"
        )
    return payload[offset:end].view(dtype).reshape(shape), end


def get_single_target(buffer: Buffer) -> Array:
    """Return the target of each row: a number, or the index of its one-hot encoded class.

    Raises:
        RequestError: the rows have several targets, or another kind of target.
    """
    if len(buffer.targets) != 1 or buffer.rows < 1:
        raise RequestError(
            f"rows have one target each, received {len(buffer.targets)} of "
            f"{count_nouns(buffer.rows, 'row')}"
        )
    values = buffer.targets[0].reshape(buffer.rows, -1)
    is_one_hot = values.dtype == DTYPES["int16"]
    if values.shape[1] < 1 or (values.shape[1] > 1 and not is_one_hot):
        raise RequestError(
            "a target must be a number or an encoded class, received "
            f"{list(buffer.targets[0].shape)}"
        )
    return values.argmax(axis=1) if is_one_hot else values[:, 0]


@dataclass
class Dataset:
    """The buffers of one packed table on one segment, in the order of their arrival."""

    limit: int  # bytes that may be cached
    buffers: list[Buffer] = field(default_factory=list)  # all of them, or none
    sizes: list[int] = field(default_factory=list)  # rows of each buffer, cached or not
    buffer_count: int = 0
    rows: int = 0
    nbytes: int = 0
    is_closed: bool = False

    @property
    def is_cached(self) -> bool:
        """True if all buffers so far are cached."""
        return len(self.buffers) == self.buffer_count

    @property
    def is_complete(self) -> bool:
        """True if a job can read the dataset without streaming it again."""
        return self.is_closed and self.is_cached

    @property
    def cached_bytes(self) -> int:
        """The memory of the cached buffers."""
        return self.nbytes if self.is_cached else 0

    def add(self, buffer: Buffer) -> None:
        """Add a buffer; above the limit cache none at all, because a part is of no use."""
        fits = self.is_cached and self.nbytes + buffer.nbytes <= self.limit
        self.buffer_count += 1
        self.sizes.append(buffer.rows)
        self.rows += buffer.rows
        self.nbytes += buffer.nbytes
        if fits:
            self.buffers.append(buffer)
        else:
            self.buffers.clear()

    def summarize(self) -> dict[str, object]:
        """Return the reply to `close`."""
        return {
            "buffers": self.buffer_count,
            "rows": self.rows,
            "bytes": self.nbytes,
            "cached": self.is_cached,
            "limit": self.limit,
        }
