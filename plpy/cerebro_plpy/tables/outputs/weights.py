"""Picks the weights out of a state as it is read chunk by chunk, with the standard library alone.

A state is a safetensors file (8 bytes of header length, a JSON header, then the tensors); its
metadata list, under `weights`, the tensors that `get_weights()` of the model gives, in order.
Optimizer variables, often twice as large, are passed over, so that a backend never holds them.
"""

from __future__ import annotations

import json
import re
import struct
from array import array
from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.records import dataclass
from cerebro_plpy.tables.chunked_work import at_once

LENGTH = struct.Struct("<Q")
# Formats of the array module by safetensors' names of element types.
CODES = {
    "F32": "f",
    "F64": "d",
    "I64": "q",
    "I32": "i",
    "I16": "h",
    "I8": "b",
    "U64": "Q",
    "U32": "I",
    "U16": "H",
    "U8": "B",
    "BOOL": "B",
}
CONVERTED = 64 << 10  # bytes of other numbers than float32 at a time: milliseconds of work
SIZES = {**{name: array(code).itemsize for name, code in CODES.items()}, "F16": 2, "BF16": 2}


EPOCHS = re.compile(rb'"epochs":"([0-9]{1,9})"')
FRAMEWORK = re.compile(rb'"framework":"([a-z]{1,32})"')


def epochs_of(beginning: bytes) -> int:
    """The epochs that a state was trained, by its first bytes; 0 where an older version did not
    say.

    >>> epochs_of(b'........{"__metadata__":{"step":"40","epochs":"3",')
    3
    """
    found = EPOCHS.search(bytes(beginning))
    return int(found[1]) if found else 0


def framework_of(beginning: bytes) -> str | None:
    """The framework that has left a state, by its first bytes.

    >>> framework_of(b'........{"__metadata__":{"framework":"jax","step":"40",')
    'jax'
    """
    found = FRAMEWORK.search(bytes(beginning))
    return found[1].decode() if found else None


@dataclass(frozen=True)
class Tensor:
    """A tensor of a state: its element type, and where its bytes are in the file."""

    dtype: str
    start: int
    end: int

    @property
    def elements(self) -> int:
        """How many numbers it holds."""
        return (self.end - self.start) // SIZES[self.dtype]


@dataclass(frozen=True)
class Weights:
    """The weights of a state. `flat` is None where they have more than the bytes allowed."""

    size: int
    flat: bytes | None


def read_weights(chunks: Iterable[bytes], largest: int) -> Weights:
    """All weights of a state, one after another, as little-endian float32, and their number of
    bytes.
    """
    return at_once(weights_piecewise(chunks, largest))


def weights_piecewise(chunks: Iterable[bytes], largest: int) -> Generator[None, None, Weights]:
    """The same, chunk by chunk; what comes behind the last of the weights is not read."""
    stream = _Stream(chunks)
    wanted = _header(stream)
    size = 4 * sum(tensor.elements for tensor in wanted)
    if size > largest:
        return Weights(size, None)
    parts: dict[Tensor, list[bytes | memoryview]] = {}
    for tensor in sorted(wanted, key=lambda tensor: (tensor.start, tensor.end)):
        for _ in stream.pieces(tensor.start - stream.position):
            yield
        parts[tensor] = found = []
        for piece in _float32(stream, tensor):
            found.append(piece)
            yield
    return Weights(size, b"".join(chain.from_iterable(parts[tensor] for tensor in wanted)))


def _float32(stream: _Stream, tensor: Tensor) -> Iterator[bytes | memoryview]:
    """The bytes of a tensor as float32, in pieces; the stream is asked between them, which may end
    the work.
    """
    left = tensor.end - tensor.start
    if tensor.dtype == "F32":
        yield from stream.pieces(left)
        return
    while left:
        data = stream.take(min(left, CONVERTED))
        left -= len(data)
        yield as_float32(tensor.dtype, data)


def _header(stream: _Stream) -> list[Tensor]:
    """The weights that a state's header names, in order."""
    (length,) = LENGTH.unpack(stream.take(LENGTH.size))
    text = stream.take(length)
    try:
        header = json.loads(text)
        entries = [header[name] for name in json.loads(header["__metadata__"]["weights"])]
        found = [_tensor(entry, stream.position) for entry in entries]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise damage_error(
            f"its header is no header of safetensors ({type(error).__name__})"
        ) from error
    placed = sorted(found, key=lambda tensor: (tensor.start, tensor.end))
    if any(after.start < tensor.end for tensor, after in zip(placed, placed[1:])):
        raise damage_error("its tensors lie over one another")
    return found


def _tensor(entry: Mapping[str, Any], base: int) -> Tensor:
    begin, end = entry["data_offsets"]
    if (
        type(begin) is not int
        or type(end) is not int
        or not 0 <= begin <= end
        or (end - begin) % SIZES[entry["dtype"]]
    ):
        raise ValueError(entry)
    return Tensor(entry["dtype"], base + begin, base + end)


def damage_error(what: str) -> DataCorrupted:
    """The error for bytes that are no state."""
    return DataCorrupted(
        f"the state is damaged: {what}",
        hint="Train again: the table that held the state was changed.",
    )


class _Stream:
    """Chunks read as if they were one file."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.position = 0
        self._chunks = iter(chunks)
        self._left = memoryview(b"")

    def take(self, count: int) -> bytes:
        """So many bytes."""
        return b"".join(self.pieces(count))

    def pieces(self, count: int) -> Iterator[memoryview]:
        """So many bytes as they lie in the chunks, which are not copied."""
        while count:
            if not self._left:
                self._left = memoryview(next(self._chunks, b""))
                if not self._left:
                    raise damage_error("it ends too early")
            piece, self._left = self._left[:count], self._left[count:]
            self.position += len(piece)
            count -= len(piece)
            yield piece


def as_float32(dtype: str, data: bytes) -> bytes:
    """A tensor's bytes as float32.

    >>> as_float32("I64", array("q", [1, 2]).tobytes()) == array("f", [1, 2]).tobytes()
    True
    """
    if dtype == "F32":
        return data
    if dtype == "BF16":
        longer = bytearray(2 * len(data))
        longer[2::4], longer[3::4] = data[::2], data[1::2]
        return bytes(longer)
    if dtype == "F16":
        return array("f", (value for (value,) in struct.iter_unpack("<e", data))).tobytes()
    return array("f", array(CODES[dtype], data)).tobytes()
