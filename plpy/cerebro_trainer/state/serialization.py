"""A config's state as bytes: safetensors, which hold no code, with tensors named by position.

Positions, not names: Keras renames variables when a model is rebuilt from JSON, and matching by
name then skips them without a word. The order is `model.variables + optimizer.variables` after
`optimizer.build`. Generator states stand in the middle of it, so the header says which entries are
weights.

A state whose frozen weights may stand apart (`layout.base`) is of version 2: their tensors come
last, so that it is cut in two where they begin, and its header says which base that is by a digest.

A state may take most of the memory, so it is written from the variables themselves and read into
them, piece by piece. The library can do neither: here is only what its format says (u64 length,
JSON header padded with spaces to a multiple of 8, then the tensors without gaps), and the tests
hold every state against the library.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.state import conversion, shapes
from cerebro_trainer.state.layout import CODES, DIGITS, Entry, Layout, name_of
from cerebro_trainer.wire.streams import Reading, Stream, Taking, damaged

FORMAT = "cerebro_db.state/1"
FORMAT_WITH_BASE = "cerebro_db.state/2"
PARTS = ("whole", "own", "base")
DIGEST = re.compile(f"[0-9a-f]{{{DIGITS}}}")
LENGTH = struct.Struct("<Q")
HEADER_LIMIT = 100_000_000
"""Bytes; the library's own limit."""
EPOCH_DIGITS = 9

Array: TypeAlias = npt.NDArray[Any]
Assign: TypeAlias = Callable[[int, Array], None]
Note: TypeAlias = "Callable[[Origin], None]"


class Progress(NamedTuple):
    """How far a state was trained: steps of the optimizer, and epochs since its first call, the
    last one included.
    """

    step: int
    epochs: int


class Origin(NamedTuple):
    """What a reader of a state is told of it: the epochs that it was trained, whether all of it was
    taken, and the digest of its base, if it has one."""

    epochs: int
    whole: bool
    base: str | None = None


def dump(
    values: Sequence[Array], layout: Layout, header: bytes, chunk_bytes: int, part: str = "whole"
) -> Iterator[list[memoryview]]:
    """The state of a program with this layout, or one of its PARTS.

    In chunks of that many bytes, the last as small as it is; each is a list of views of the values
    themselves.
    """
    chunk: list[memoryview] = []
    room = chunk_bytes
    positions = {"whole": layout.order, "own": layout.own, "base": layout.base}[part]
    tensors = (
        bytes_of(values[position]) for position in positions
    )  # one by one: they may come from a file
    for piece in chain(() if part == "base" else (memoryview(header),), tensors):
        while piece:
            chunk.append(piece[:room])
            piece = piece[room:]
            room -= len(chunk[-1])
            if not room:
                yield chunk
                chunk, room = [], chunk_bytes
    if chunk:
        yield chunk


def header_of(layout: Layout, progress: Progress, base: str | None = None) -> bytes:
    """What a state begins with, all before its tensors."""
    header: dict[str, object] = {
        "__metadata__": {
            "format": FORMAT if base is None else FORMAT_WITH_BASE,
            "keras": layout.keras,
            "framework": layout.framework,
            "architecture": layout.architecture,
            "optimizer": layout.optimizer,
            "step": str(progress.step),
            "epochs": str(progress.epochs),
            "weights": json.dumps([name_of(position) for position in layout.weights]),
            "trainable": json.dumps([name_of(position) for position in layout.trainable]),
            **({} if base is None else {"base": base}),
        }
    }
    end = 0
    for position in layout.order:
        begin, end = end, end + layout.sizes[position]
        code = CODES[layout.dtypes[position]]
        header[name_of(position)] = {
            "dtype": code,
            "shape": layout.shapes[position],
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % LENGTH.size)
    return LENGTH.pack(len(text)) + text


def read(layout: Layout, assign: Assign, note: Note, base: str | None = None) -> Reading:
    """Read a state into its program, tensor by tensor; ConfigError says what does not fit it.

    Where the program has its `base`, of that digest, the state comes without it.
    """
    stream = Stream()
    metadata, entries = yield from _read_header(stream)
    wanted = _fitting(metadata, entries, layout)
    own = entries if base is None else _own(metadata, entries, layout, base)
    note(Origin(_epochs(metadata), whole=True, base=base or _base(metadata, entries, layout)))
    yield from _read_tensors(stream, layout, assign, own, wanted)
    yield from check_end(stream)


def read_weights(layout: Layout, assign: Assign, note: Note) -> Reading:
    """Read the weights of a state into a program, perhaps another one whose weights have the same
    shapes.
    """
    stream = Stream()
    metadata, entries = yield from _read_header(stream)
    note(Origin(_epochs(metadata), whole=False))
    yield from _read_tensors(stream, layout, assign, entries, _weights(metadata, entries, layout))
    yield from check_end(stream)


def read_some_weights(stream: Stream, layout: Layout, assign: Assign, begin: int) -> Taking[int]:
    """Read the weights of a state, of which more may follow, into those of a program from number
    `begin` on.

    The number after the last of them.
    """
    metadata, entries = yield from _read_header(stream)
    end = begin + len(_names(metadata))
    some = replace(layout, weights=layout.weights[begin:end], paths=layout.paths[begin:end])
    yield from _read_tensors(stream, layout, assign, entries, _weights(metadata, entries, some))
    return end


def read_warm(layout: Layout, assign: Assign, note: Note) -> Reading:
    """Read a state of perhaps another program: whole where all of it fits, else its weights.

    It fits where the optimizer is of the same class, all variables look the same, and the same
    weights are trained.
    """
    stream = Stream()
    metadata, entries = yield from _read_header(stream)
    whole = conversion.fits(metadata, entries, layout)
    note(Origin(_epochs(metadata), whole))
    wanted = _all(entries, layout) if whole else _weights(metadata, entries, layout)
    yield from _read_tensors(stream, layout, assign, entries, wanted)
    yield from check_end(stream)


def read_one(stream: Stream, layout: Layout, assign: Assign, note: Note) -> Reading:
    """Read a state of which more may follow in the stream."""
    metadata, entries = yield from _read_header(stream)
    wanted = _fitting(metadata, entries, layout)
    note(Origin(_epochs(metadata), whole=True))
    yield from _read_tensors(stream, layout, assign, entries, wanted)


def _fitting(metadata: dict[str, str], entries: Sequence[Entry], layout: Layout) -> dict[str, int]:
    """The positions of all tensors of a state, where it is one of a program with this layout."""
    conversion.check_origin(metadata, layout)
    return _all(entries, layout)


def _base(metadata: dict[str, str], entries: Sequence[Entry], layout: Layout) -> str | None:
    """The digest of the base of a state, where it is what of this layout may stand apart, in the
    same types.
    """
    digest, base = (
        str(metadata.get("base")),
        {(name_of(each), CODES[layout.dtypes[each]]) for each in layout.base},
    )
    last = entries[len(entries) - len(base) :]
    return (
        digest
        if base and DIGEST.fullmatch(digest) and {each[:2] for each in last} == base
        else None
    )


def _own(
    metadata: dict[str, str], entries: Sequence[Entry], layout: Layout, base: str
) -> Sequence[Entry]:
    """The tensors of a state that comes without its base, which is to be that one."""
    found = _base(metadata, entries, layout)
    if found != base:
        raise damaged(f"its base is {found}, expected {base}")
    return entries[: len(entries) - len(layout.base)]


def _read_header(stream: Stream) -> Taking[tuple[dict[str, str], list[Entry]]]:
    """The metadata and tensors of the state that begins here."""
    head = yield from stream.take(LENGTH.size)
    (length,) = LENGTH.unpack(head)
    if length > HEADER_LIMIT:
        raise damaged(f"its header would have {length} bytes")
    text = yield from stream.take(length)
    metadata, entries = _parsed(bytes(text))
    if metadata.get("format") not in (FORMAT, FORMAT_WITH_BASE):
        expected = f"{FORMAT} or {FORMAT_WITH_BASE}"
        raise ConfigError(
            f"the state does not fit: its format is {metadata.get('format')}, expected {expected}"
        )
    return metadata, entries


def _read_tensors(
    stream: Stream, layout: Layout, assign: Assign, entries: Sequence[Entry], wanted: dict[str, int]
) -> Reading:
    """Read those tensors that stand at a position; the others are passed over."""
    for entry in entries:
        if entry.name not in wanted:
            yield from stream.skip(entry.end - entry.begin)
            continue
        position = wanted[entry.name]
        conversion.check(entry, position, layout)
        array = np.empty(layout.shapes[position], conversion.TYPES[entry.code])
        yield from stream.fill(bytes_of(array))
        assign(position, conversion.converted(array, layout.dtypes[position], entry))


def check_end(stream: Stream) -> Reading:
    """Raises RequestError where something follows what was read."""
    extra = yield from stream.rest()
    if extra:
        raise damaged(f"{extra} bytes follow its last tensor")


def read_flat_weights(layout: Layout, assign: Assign) -> Reading:
    """Read raw float32 in get_weights() order into the weights of a program."""
    stream = Stream()
    sizes = [4 * math.prod(layout.shapes[position]) for position in layout.weights]
    try:
        for position in layout.weights:
            array = np.empty(layout.shapes[position], "<f4")
            yield from stream.fill(bytes_of(array))
            assign(position, array.astype(layout.dtypes[position], copy=False))
        yield from stream.rest()
    except EOFError:
        pass
    if stream.received != sum(sizes):
        raise ConfigError(
            f"Number of elements in model weights({stream.received / 4:g}) doesn't match "
            f"model({sum(sizes) // 4}): received {stream.received} bytes, expected {sum(sizes)}"
        )


def _parsed(text: bytes) -> tuple[dict[str, str], list[Entry]]:
    """A header's metadata and tensors, those in the order of their bytes."""
    try:
        header = json.loads(text)
        metadata = dict(header.pop("__metadata__", {}))
        entries = [
            Entry(
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
        raise damaged(f"its header is no header of safetensors ({type(error).__name__})") from error
    entries.sort(key=lambda entry: (entry.begin, entry.end))
    end = 0
    for entry in entries:
        if entry.begin != end or entry.end < end:
            raise damaged(f"tensor {entry.name} begins at byte {entry.begin}, expected {end}")
        end = entry.end
    return metadata, entries


def _epochs(metadata: dict[str, str]) -> int:
    """The epochs of a state; those of versions before 0.3.0 do not say."""
    text = str(metadata.get("epochs", "0"))
    if not (text.isdecimal() and len(text) <= EPOCH_DIGITS):
        raise damaged(f"its header gives {text[:EPOCH_DIGITS]!r} as its epochs")
    return int(text)


def _all(entries: Sequence[Entry], layout: Layout) -> dict[str, int]:
    """The position of every tensor by its name."""
    if len(entries) != len(layout.shapes):
        raise ConfigError(
            f"the state has {len(entries)} tensors, the model and optimizer have "
            f"{len(layout.shapes)}"
        )
    wanted = {name_of(position): position for position in range(len(layout.shapes))}
    if unknown := {entry.name for entry in entries} - wanted.keys():
        raise damaged(f"it has tensors named {', '.join(sorted(unknown))}")
    return wanted


def _weights(metadata: dict[str, str], entries: Sequence[Entry], layout: Layout) -> dict[str, int]:
    """The positions of the weights by the names that they have in the state."""
    names = _names(metadata)
    by_name = {entry.name: entry for entry in entries}
    if len(by_name.keys() & set(names)) != len(names):
        raise damaged("its header names weights that are not there, or one of them twice")
    pairs = zip(layout.paths, layout.weights, strict=True)
    weights = [shapes.Weight(path, layout.shapes[position]) for path, position in pairs]
    shapes.check([by_name[name].shape for name in names], weights)
    return dict(zip(names, layout.weights, strict=True))


def _names(metadata: dict[str, str]) -> list[str]:
    """The tensors that are weights, in the order of get_weights()."""
    try:
        return [str(name) for name in json.loads(metadata["weights"])]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise damaged(
            f"its header does not say which tensors are weights ({type(error).__name__})"
        ) from error


def bytes_of(array: Array) -> memoryview:
    """The values of an array, one after another, without a copy where they lie so."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
