"""The format of a state: safetensors, which contain no code, with tensors named by position.

Names of variables are of no use: Keras renames variables when a model is rebuilt from JSON, and
matching by name then skips them silently. The positions are those of
`model.variables + optimizer.variables` after `optimizer.build`. Generator states are among them, so
the header lists the entries that are weights.

Version 2 is the format of a state whose base can be stored separately (see `layout`). The tensors
of the base come last, so that the state can be cut there, and the header contains their digest.

A state may take most of the memory. It is therefore written from the variables, and read into
them, piece by piece, which the library safetensors cannot do. This module implements the format
(u64 length, JSON header padded with spaces to a multiple of 8, tensors without gaps); tests compare
it with the library.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np

from cerebro_trainer.errors import ConfigError, DamagedState
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.state.layout import (
    CODES,
    Layout,
    TensorEntry,
    format_tensor_name,
    format_tensor_names,
)
from cerebro_trainer.wire.frames import Array, Arrays
from cerebro_trainer.wire.streams import ByteReader, Stream

FORMAT = "cerebro_db.state/1"
FORMAT_WITH_BASE = "cerebro_db.state/2"
PARTS = ("whole", "own", "base")
LENGTH = struct.Struct("<Q")
HEADER_LIMIT = 100_000_000
"""Bytes; also the limit of the library."""
MAX_EPOCH_DIGITS = 9

Metadata: TypeAlias = dict[str, str]


class Progress(NamedTuple):
    """The training that a state has had."""

    step: int  # of the optimizer
    epochs: int  # since the first call, including the last epoch


def dump(
    values: Arrays, layout: Layout, header: bytes, chunk_bytes: int, part: str = "whole"
) -> Iterator[list[memoryview]]:
    """Yield the bytes of a state, or of one of its PARTS, in chunks.

    Args:
        values: the variables of a program with this layout.
        header: the result of `build_header`.
        chunk_bytes: size of each chunk but the last one.

    Yields:
        A chunk as a list of views of the values, which are not copied.
    """
    chunk: list[memoryview] = []
    room = chunk_bytes
    for data in _dump_buffers(values, layout, header, part):
        while data:
            chunk.append(data[:room])
            data = data[room:]
            room -= len(chunk[-1])
            if not room:
                yield chunk
                chunk = []
                room = chunk_bytes
    if chunk:
        yield chunk


def _dump_buffers(values: Arrays, layout: Layout, header: bytes, part: str) -> Iterator[memoryview]:
    positions = {
        "whole": layout.tensor_order,
        "own": layout.main_positions,
        "base": layout.base_positions,
    }[part]
    if part != "base":
        yield memoryview(header)
    for position in positions:
        yield bytes_of(values[position])  # one by one, because they may come from a file


def build_header(layout: Layout, progress: Progress, base_digest: str | None = None) -> bytes:
    """Return the bytes of a state before its tensors."""
    metadata = {
        "format": FORMAT if base_digest is None else FORMAT_WITH_BASE,
        "keras": layout.keras,
        "framework": layout.framework,
        "architecture": layout.architecture,
        "optimizer": layout.optimizer,
        "step": str(progress.step),
        "epochs": str(progress.epochs),
        "weights": format_tensor_names(layout.weights),
        "trainable": format_tensor_names(layout.trainable),
    }
    if base_digest is not None:
        metadata["base"] = base_digest
    header: dict[str, object] = {"__metadata__": metadata}
    begin = 0
    for position in layout.tensor_order:
        end = begin + layout.sizes[position]
        header[format_tensor_name(position)] = {
            "dtype": CODES[layout.dtypes[position]],
            "shape": layout.shapes[position],
            "data_offsets": [begin, end],
        }
        begin = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % LENGTH.size)
    return LENGTH.pack(len(text)) + text


def read_header(stream: Stream) -> ByteReader[tuple[Metadata, list[TensorEntry]]]:
    """Read the header of a state.

    Returns:
        The metadata, and the tensors in the order of their bytes.
    """
    prefix = yield from stream.read(LENGTH.size)
    (length,) = LENGTH.unpack(prefix)
    if length > HEADER_LIMIT:
        raise DamagedState(f"its header would have {count_nouns(length, 'byte')}")
    text = yield from stream.read(length)
    metadata, entries = _parse_header(bytes(text))
    if metadata.get("format") not in (FORMAT, FORMAT_WITH_BASE):
        expected = f"{FORMAT} or {FORMAT_WITH_BASE}"
        raise ConfigError(
            f"the state does not fit: its format is {metadata.get('format')}, expected {expected}"
        )
    return metadata, entries


def _parse_header(text: bytes) -> tuple[Metadata, list[TensorEntry]]:
    try:
        header = json.loads(text)
        metadata = dict(header.pop("__metadata__", {}))
        entries = [
            TensorEntry(
                name, str(entry["dtype"]), tuple(entry["shape"]), *map(int, entry["data_offsets"])
            )
            for name, entry in header.items()
        ]
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise DamagedState(
            f"its header is no header of safetensors ({type(error).__name__})"
        ) from error
    entries.sort(key=lambda entry: (entry.begin, entry.end))
    end = 0
    for entry in entries:
        if entry.begin != end or entry.end < end:
            raise DamagedState(f"tensor {entry.name} begins at byte {entry.begin}, expected {end}")
        end = entry.end
    return metadata, entries


def parse_epochs(metadata: Metadata) -> int:
    """Return the epochs of a state; 0 for one of a version before 0.3.0, which lacks them."""
    text = str(metadata.get("epochs", "0"))
    if not text.isdecimal() or len(text) > MAX_EPOCH_DIGITS:
        raise DamagedState(f"its header gives {text[:MAX_EPOCH_DIGITS]!r} as its epochs")
    return int(text)


def parse_weight_names(metadata: Metadata) -> list[str]:
    """Return the names of the tensors that are weights, in the order of get_weights()."""
    try:
        return [str(name) for name in json.loads(metadata["weights"])]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DamagedState(
            f"its header does not say which tensors are weights ({type(error).__name__})"
        ) from error


def bytes_of(array: Array) -> memoryview:
    """Return the bytes of an array, without a copy if the array is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
