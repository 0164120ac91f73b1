"""Extract the weights from a state that is read chunk by chunk, with the standard library.

A state is a safetensors file: 8 bytes with the length of the header, a JSON header, and the
tensors. The metadata list, under `weights`, the tensors that `get_weights()` of the model returns,
in order. Optimizer variables, often twice as large, are skipped, so a backend never holds them.
"""

from __future__ import annotations

import json
import re
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.records import dataclass
from cerebro_plpy.tables.chunked_work import ChunkedWork

HEADER_LENGTH = struct.Struct("<Q")
ARRAY_CODES = {
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
"""Type codes of the array module, by safetensors' names of element types."""
ELEMENT_BYTES = {
    **{name: array(code).itemsize for name, code in ARRAY_CODES.items()},
    "F16": 2,
    "BF16": 2,
}
CONVERTED_BYTES = 64 << 10
"""Bytes that are converted to float32 at once, which takes milliseconds."""
EPOCHS = re.compile(rb'"epochs":"([0-9]{1,9})"')
FRAMEWORK = re.compile(rb'"framework":"([a-z]{1,32})"')


def find_epochs(beginning: bytes) -> int:
    """Return the epochs that a state was trained for; 0 if an older version did not record them.

    Args:
        beginning: first bytes of the state.

    >>> find_epochs(b'........{"__metadata__":{"step":"40","epochs":"3",')
    3
    """
    match = EPOCHS.search(bytes(beginning))
    if match is None:
        return 0
    return int(match[1])


def find_framework(beginning: bytes) -> str | None:
    """Return the framework that wrote a state, from its first bytes.

    >>> find_framework(b'........{"__metadata__":{"framework":"jax","step":"40",')
    'jax'
    """
    match = FRAMEWORK.search(bytes(beginning))
    return match and match[1].decode()


class Tensor(NamedTuple):
    """A tensor of a state."""

    start: int  # offset of the first byte in the file
    end: int
    dtype: str  # safetensors' name of the element type

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.end - self.start

    @property
    def elements(self) -> int:
        return self.size // ELEMENT_BYTES[self.dtype]


@dataclass(frozen=True)
class Weights:
    """The weights of a state, as little-endian float32."""

    size: int  # bytes
    flat: bytes | None  # None if they are too large

    @property
    def kilobytes(self) -> float:
        """Their size in kilobytes."""
        return self.size / 1024


def read_weights(chunks: Iterable[bytes], max_bytes: int) -> ChunkedWork[Weights]:
    """Return all weights of a state, read chunk by chunk up to the last weight."""
    stream = _Stream(chunks)
    tensors = _read_header(stream)
    size = 4 * sum(tensor.elements for tensor in tensors)
    if size > max_bytes:
        return Weights(size, None)
    parts: dict[Tensor, list[bytes | memoryview]] = {}
    for tensor in sorted(tensors):
        for _ in stream.read_pieces(tensor.start - stream.position):
            yield
        parts[tensor] = []
        for part in _read_float32(stream, tensor):
            parts[tensor].append(part)
            yield
    return Weights(size, b"".join(chain.from_iterable(parts[tensor] for tensor in tensors)))


def _read_float32(stream: _Stream, tensor: Tensor) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a tensor as float32, in pieces; a cancel can end the work in between."""
    if tensor.dtype == "F32":
        yield from stream.read_pieces(tensor.size)
        return
    remaining = tensor.size
    while remaining:
        data = stream.read(min(remaining, CONVERTED_BYTES))
        remaining -= len(data)
        yield as_float32(tensor.dtype, data)


def _read_header(stream: _Stream) -> list[Tensor]:
    """Return the weights that a state's header lists, in order."""
    (length,) = HEADER_LENGTH.unpack(stream.read(HEADER_LENGTH.size))
    text = stream.read(length)
    try:
        header = json.loads(text)
        names = json.loads(header["__metadata__"]["weights"])
        tensors = [_parse_tensor(header[name], stream.position) for name in names]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise damage_error(
            f"its header is no header of safetensors ({type(error).__name__})"
        ) from error
    by_position = sorted(tensors)
    for tensor, following in zip(by_position, by_position[1:]):
        if following.start < tensor.end:
            raise damage_error("its tensors lie over one another")
    return tensors


def _parse_tensor(entry: Mapping[str, Any], base: int) -> Tensor:
    """Read an entry of the header; its offsets count from `base`."""
    dtype = entry["dtype"]
    start, end = entry["data_offsets"]
    if type(start) is not int or type(end) is not int:
        raise ValueError(entry)
    if not 0 <= start <= end or (end - start) % ELEMENT_BYTES[dtype]:
        raise ValueError(entry)
    return Tensor(base + start, base + end, dtype)


def damage_error(reason: str) -> DataCorrupted:
    """Return the error for bytes that are not a state."""
    return DataCorrupted(
        f"the state is damaged: {reason}",
        hint="Train again: the table that held the state was changed.",
    )


class _Stream:
    """Chunks that are read like one file."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.position = 0
        self._chunks = iter(chunks)
        self._buffer = memoryview(b"")

    def read(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        return b"".join(self.read_pieces(count))

    def read_pieces(self, count: int) -> Iterator[memoryview]:
        """Yield the next `count` bytes in pieces, which are not copied."""
        while count:
            if not self._buffer:
                self._buffer = memoryview(next(self._chunks, b""))
                if not self._buffer:
                    raise damage_error("it ends too early")
            piece = self._buffer[:count]
            self._buffer = self._buffer[count:]
            self.position += len(piece)
            count -= len(piece)
            yield piece


def as_float32(dtype: str, data: bytes) -> bytes:
    """Return the bytes of a tensor as float32.

    >>> as_float32("I64", array("q", [1, 2]).tobytes()) == array("f", [1, 2]).tobytes()
    True
    """
    if dtype == "F32":
        return data
    if dtype == "BF16":  # the upper half of a float32
        longer = bytearray(2 * len(data))
        longer[2::4] = data[::2]
        longer[3::4] = data[1::2]
        return bytes(longer)
    if dtype == "F16":
        return array("f", (value for (value,) in struct.iter_unpack("<e", data))).tobytes()
    return array("f", array(ARRAY_CODES[dtype], data)).tobytes()
