"""The segment's data in the trainer: decoded buffers, kept while they fit.

Whether a dataset is kept or streamed again for every visit must not show in any result, so a job
sees the same `Buffer` objects either way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cerebro_trainer.errors import RequestError
from cerebro_trainer.wire.fields import integer, items, text
from cerebro_trainer.wire.frames import Bytes

MAX_DIMENSIONS = 32
DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "int16": np.dtype("<i2")}


@dataclass(frozen=True)
class Buffer:
    """One row of a packed table: `rows` examples; each array has shape (rows, ...)."""

    buffer_id: int
    rows: int
    inputs: tuple[npt.NDArray[Any], ...]
    targets: tuple[npt.NDArray[Any], ...]
    nbytes: int
    sample_weights: npt.NDArray[np.float32] | None = None
    """Those of the rows as the table has them, shape (rows,); None where it has none."""
    weights: npt.NDArray[np.float32] | None = None
    """Of the rows in the training loss, shape (rows,); None for a job that has none."""


def from_frame(header: Mapping[str, Any], payload: Bytes) -> Buffer:
    """Cut a `buffer` frame into arrays, without copying: they are views of the payload."""
    found: dict[str, list[npt.NDArray[Any]]] = {"x": [], "y": [], "w": []}
    offset = 0
    for entry in items(header, "arrays"):
        array, offset = _cut(entry, payload, offset)
        found[text(entry, "role", choices=("x", "y", "w"))].append(array)
    if offset != payload.nbytes:
        raise RequestError(f"the arrays take {offset} bytes, but the payload has {payload.nbytes}")
    lengths = {len(array) for arrays in found.values() for array in arrays}
    if len(lengths) != 1:
        raise RequestError(
            f"the arrays of one buffer must have equal lengths, received {sorted(lengths)}"
        )
    rows, inputs, targets = lengths.pop(), tuple(found["x"]), tuple(found["y"])
    weights = [_weights(array, rows) for array in found["w"]]
    if len(weights) > 1:
        raise RequestError(f"rows have one weight each, received {len(weights)}")
    return Buffer(integer(header, "buffer_id"), rows, inputs, targets, payload.nbytes, *weights)


def _weights(array: npt.NDArray[Any], rows: int) -> npt.NDArray[np.float32]:
    if array.size != rows or array.dtype != np.float32:
        raise RequestError(
            f"{rows} rows came with weights of shape {list(array.shape)} and type {array.dtype}"
        )
    return array.reshape(rows)


def _cut(entry: Mapping[str, Any], payload: Bytes, offset: int) -> tuple[npt.NDArray[Any], int]:
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


def single_target(buffer: Buffer) -> npt.NDArray[Any]:
    """Return the one target of each row: a number, or the place of the class that its columns
    encode.
    """
    if len(buffer.targets) != 1 or buffer.rows < 1:
        raise RequestError(
            f"rows have one target each, received {len(buffer.targets)} of {buffer.rows} rows"
        )
    values = buffer.targets[0].reshape(buffer.rows, -1)
    encoded = values.dtype == DTYPES["int16"]
    if values.shape[1] < 1 or (values.shape[1] > 1 and not encoded):
        raise RequestError(
            "a target must be a number or an encoded class, received "
            f"{list(buffer.targets[0].shape)}"
        )
    return values.argmax(axis=1) if encoded else values[:, 0]


@dataclass
class Dataset:
    """The buffers of one packed table on one segment, in the order they came."""

    limit: int
    buffers: list[Buffer] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Rows of each buffer that came, whether or not it is kept."""
    count: int = 0
    rows: int = 0
    nbytes: int = 0
    closed: bool = False

    @property
    def cached(self) -> bool:
        """Whether all buffers that came so far are here."""
        return len(self.buffers) == self.count

    @property
    def complete(self) -> bool:
        """Whether a job can run over it without its being streamed again."""
        return self.closed and self.cached

    @property
    def kept_bytes(self) -> int:
        """What its buffers take in memory."""
        return self.nbytes if self.cached else 0

    def add(self, buffer: Buffer) -> None:
        """Keep the buffer; once the limit is passed keep none at all, as part of a dataset is of no
        use.
        """
        fits = self.cached and self.nbytes + buffer.nbytes <= self.limit
        self.count += 1
        self.sizes.append(buffer.rows)
        self.rows += buffer.rows
        self.nbytes += buffer.nbytes
        if fits:
            self.buffers.append(buffer)
        else:
            self.buffers.clear()

    def summary(self) -> dict[str, object]:
        """The reply to `close`."""
        return {
            "buffers": self.count,
            "rows": self.rows,
            "bytes": self.nbytes,
            "cached": self.cached,
            "limit": self.limit,
        }
