"""Reads the weights out of a state, with the standard library alone.

A state is a safetensors file (8 bytes of header length, a JSON header, then the tensors); its metadata
list, under `weights`, the tensors that `get_weights()` of the model gives, in order.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

LENGTH = struct.Struct("<Q")
# Formats of the array module by safetensors' names of element types.
NARROW = {"F32": "f", "F64": "d", "I64": "q", "I32": "i", "I16": "h", "I8": "b", "U64": "Q", "U32": "I", "U16": "H",
          "U8": "B", "BOOL": "B"}  # fmt: skip


@dataclass(frozen=True)
class Tensor:
    """A tensor of a state: its element type, and where its bytes are in the file."""

    dtype: str
    start: int
    end: int


def tensors(head: bytes | bytearray) -> list[Tensor]:
    """The weights of a state in order; `head` holds at least the length and the header."""
    (length,) = LENGTH.unpack_from(head)
    header = json.loads(head[LENGTH.size : LENGTH.size + length])
    base = LENGTH.size + length
    found = []
    for name in json.loads(header["__metadata__"]["weights"]):
        start, end = header[name]["data_offsets"]
        found.append(Tensor(header[name]["dtype"], base + start, base + end))
    return found


def elements(wanted: Iterable[Tensor]) -> int:
    """How many numbers the tensors hold."""
    sizes = {**{name: array(code).itemsize for name, code in NARROW.items()}, "F16": 2, "BF16": 2}
    return sum((t.end - t.start) // sizes[t.dtype] for t in wanted)


def flat_float32(state: bytes) -> bytes:
    """All weights of a state, one after another, as little-endian float32."""
    return b"".join(as_float32(t.dtype, state[t.start : t.end]) for t in tensors(state))


def as_float32(dtype: str, data: bytes) -> bytes:
    """A tensor's bytes as float32.

    >>> as_float32("I64", array("q", [1, 2]).tobytes()) == array("f", [1, 2]).tobytes()
    True
    """
    if dtype == "F32":
        return data
    if dtype == "BF16":
        return b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2))
    if dtype == "F16":
        return array("f", (value for (value,) in struct.iter_unpack("<e", data))).tobytes()
    return array("f", array(NARROW[dtype], data)).tobytes()
