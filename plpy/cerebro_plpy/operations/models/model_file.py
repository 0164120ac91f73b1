"""The file of a model: everything that predictions with a version need, and no code.

A file has three parts: MAGIC, a header of JSON behind its length, and the states of the networks,
one after another. The header lists the states with their sizes and hashes. Whoever reads a file
does not know who wrote it, so nothing in it is trusted: `read_file` checks its form, and
`import_model` checks its content.

FORMAT has a number. A reader refuses a format that it does not know, and ignores further keys.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Union

from cerebro_plpy.errors import DataCorrupted, FeatureNotSupported, LimitExceeded
from cerebro_plpy.nouns import count_nouns

MAGIC = b"cerebro_db model\n"
FORMAT_NAME = "cerebro_db.exported/"
FORMAT = f"{FORMAT_NAME}1"
LENGTH = struct.Struct("<Q")
MAX_HEADER_BYTES = 64 << 20
MAX_FILE_BYTES = 400 << 20
"""A larger file does not fit into a message to the server, which has its digits as text."""
MAX_TENSORS = 100_000
BIGINT = 1 << 63
ITEM_BYTES = {
    **{"BOOL": 1, "I8": 1, "U8": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2},
    **{"I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8},
}
"""Bytes of an element of a tensor, by its type in safetensors."""
JsonMapping = Mapping[str, Any]
Type = Union[type, tuple[type, ...]]


class ModelFile(NamedTuple):
    """The content of a file."""

    header: JsonMapping
    states: Sequence[bytes]


def damaged(reason: str) -> DataCorrupted:
    """Return the error of a file that cannot be used."""
    return DataCorrupted(
        f"import_model error: the file is not an exported model, or it is damaged: {reason}",
        hint="Export the model again: cerebro-db export model NAME -o FILE.",
    )


def write_file(header: JsonMapping, states: Sequence[bytes]) -> bytes:
    """Return the bytes of a file.

    Raises:
        LimitExceeded: they are too many.
    """
    size = sum(map(len, states))
    if size > MAX_FILE_BYTES:
        raise LimitExceeded(
            f"export_model error: the weights of the model have {count_nouns(size, 'byte')}; "
            f"expected at most {MAX_FILE_BYTES}.",
            hint="cerebro-db export safetensors writes weights of any size.",
        )
    entries = [
        {"bytes": len(state), "sha256": hashlib.sha256(state).hexdigest()} for state in states
    ]
    text = json.dumps({"format": FORMAT, **header, "states": entries}, allow_nan=False)
    encoded = text.encode()
    return b"".join((MAGIC, LENGTH.pack(len(encoded)), encoded, *states))


def read_file(data: bytes) -> ModelFile:
    """Return the content of a file; its header is JSON, and its states are whole.

    Raises:
        DataCorrupted: the bytes are not a file of a model.
        FeatureNotSupported: a newer release has written it.
    """
    begin = len(MAGIC) + LENGTH.size
    if len(data) > MAX_FILE_BYTES + MAX_HEADER_BYTES + begin:
        raise damaged(f"it has {count_nouns(len(data), 'byte')}, more than any file of a model")
    if len(data) < begin or not data.startswith(MAGIC):
        raise damaged("it does not begin like one")
    length = LENGTH.unpack_from(data, len(MAGIC))[0]
    if length > min(MAX_HEADER_BYTES, len(data) - begin):
        raise damaged(f"its header has {count_nouns(length, 'byte')}")
    header = _parse_object(data[begin : begin + length], "its header")
    _check_format(header)
    states = []
    position = begin + length
    for entry in take(header, "states", list):
        size = take(entry, "bytes", int)
        if not 0 < size <= len(data) - position:
            raise damaged(f"a state has {count_nouns(size, 'byte')}; {len(data) - position} follow")
        state = data[position : position + size]
        if hashlib.sha256(state).hexdigest() != take(entry, "sha256", str):
            raise damaged("a state differs from its hash")
        check_state(state)
        states.append(state)
        position += size
    if position != len(data):
        raise damaged(f"{count_nouns(len(data) - position, 'byte', 'follows')} its last state")
    return ModelFile(header, states)


def take(value: object, name: str, type_: Type) -> Any:
    """Return an entry of an object, which must be of a type; a boolean is not a number."""
    if not isinstance(value, Mapping) or name not in value:
        raise damaged(f"{name} is missing")
    entry = value[name]
    if not isinstance(entry, type_) or (isinstance(entry, bool) and type_ is not bool):
        raise damaged(f"{name} is {entry!r:.100}")
    return entry


def take_number(value: object, name: str) -> float | None:
    """Return an entry that is a number or null."""
    entry = take(value, name, (int, float, type(None)))
    return None if entry is None else float(entry)


def take_count(value: object, name: str) -> int | None:
    """Return an entry that is a whole number which the database can store, or null."""
    entry: int | None = take(value, name, (int, type(None)))
    if entry is not None and not 0 <= entry < BIGINT:
        raise damaged(f"{name} is {entry!r:.100}")
    return entry


def check_state(state: bytes) -> None:
    """Check that bytes are the state of a network, or of the members of an ensemble.

    Only the form of safetensors is checked: types, shapes and positions of tensors. A trainer
    compares them with the network.
    """
    position = 0
    while position < len(state):
        position = _check_tensors(state, position)


def _check_tensors(state: bytes, begin: int) -> int:
    """Check one member of a state; return the position of its end."""
    header_begin = begin + LENGTH.size
    if header_begin > len(state):
        raise damaged("a state ends within a length")
    length = int(LENGTH.unpack_from(state, begin)[0])
    if length > min(MAX_HEADER_BYTES, len(state) - header_begin):
        raise damaged(f"the header of a state has {count_nouns(length, 'byte')}")
    header = dict(_parse_object(state[header_begin : header_begin + length], "a state's header"))
    metadata = header.pop("__metadata__", None)
    names = _parse_list(take(metadata, "weights", str))
    if len(header) > MAX_TENSORS or not all(name in header for name in names):
        raise damaged("a state lacks weights that its header lists")
    end = 0
    for first, last in sorted(_list_offsets(header)):
        if first != end:
            raise damaged("tensors of a state overlap, or leave gaps")
        end = last
    if end > len(state) - header_begin - length:
        raise damaged("a state ends within a tensor")
    return header_begin + length + end


def _list_offsets(header: JsonMapping) -> Iterator[tuple[int, int]]:
    """Yield the positions of tensors, which must fit their shapes."""
    for name in header:
        entry = take(header, name, dict)
        item_bytes = ITEM_BYTES.get(take(entry, "dtype", str))
        shape = take(entry, "shape", list)
        offsets = take(entry, "data_offsets", list)
        if item_bytes is None or len(offsets) != 2 or not _are_sizes((*shape, *offsets)):
            raise damaged(f"tensor {name:.100} is {entry!r:.200}")
        size = item_bytes
        for length in shape:
            size *= length
        if offsets[1] - offsets[0] != size:
            raise damaged(f"tensor {name:.100} has another size than its shape")
        yield offsets[0], offsets[1]


def _are_sizes(values: Sequence[object]) -> bool:
    """Return whether all values are whole numbers that a file may contain."""
    return len(values) <= MAX_TENSORS and all(
        isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_FILE_BYTES
        for value in values
    )


def _check_format(header: JsonMapping) -> None:
    format_name = take(header, "format", str)
    if format_name == FORMAT:
        return
    if format_name.startswith(FORMAT_NAME):
        raise FeatureNotSupported(
            f"import_model error: the file has format {format_name:.100}; this release reads "
            f"{FORMAT}.",
            hint="Import it into a database with a newer release of cerebro_db.",
        )
    raise damaged(f"its format is {format_name!r:.100}")


def _parse_object(data: bytes, part: str) -> JsonMapping:
    value = _parse(data, part)
    if not isinstance(value, dict):
        raise damaged(f"{part} is not an object")
    return value


def _parse_list(text: str) -> list[str]:
    value = _parse(text.encode(), "the list of weights")
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise damaged("the list of weights is not one of names")
    return value


def _parse(data: bytes, part: str) -> object:
    """Parse JSON that PostgreSQL accepts as well."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        text = data.decode()
        value: object = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise damaged(f"{part} is not JSON") from error
    if "\\u0000" in text:
        raise damaged(f"{part} has a character that the database does not store")
    return value
