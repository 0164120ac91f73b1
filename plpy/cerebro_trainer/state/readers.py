"""Readers of states, which assign the variables of a program while the bytes arrive."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from cerebro_trainer.errors import ConfigError, DamagedState
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.state import conversion
from cerebro_trainer.state.layout import (
    CODES,
    DIGEST_DIGITS,
    Layout,
    TensorEntry,
    format_tensor_name,
)
from cerebro_trainer.state.serialization import (
    Metadata,
    bytes_of,
    parse_epochs,
    parse_weight_names,
    read_header,
)
from cerebro_trainer.wire.frames import Array
from cerebro_trainer.wire.streams import Reader, Stream

DIGEST = re.compile(f"[0-9a-f]{{{DIGEST_DIGITS}}}")

Positions: TypeAlias = Mapping[str, int]
"""Positions of variables by the names of their tensors."""
Assign: TypeAlias = Callable[[int, Array], None]
ReportOrigin: TypeAlias = "Callable[[Origin], None]"


class Origin(NamedTuple):
    """The history of a state that a reader reports."""

    epochs: int
    is_complete: bool  # all variables are read, not only the weights
    base_digest: str | None = None  # None for a state without a base


def read_state(
    layout: Layout, assign: Assign, report_origin: ReportOrigin, base_digest: str | None = None
) -> Reader:
    """Read a state into its program, tensor by tensor.

    Args:
        base_digest: digest of the base that the program already has; the state comes without it.

    Raises:
        ConfigError: the state does not fit the program.
    """
    stream = Stream()
    metadata, entries = yield from read_header(stream)
    positions = _locate_all_tensors(metadata, entries, layout)
    found_digest = _find_base_digest(metadata, entries, layout)
    sent_entries: Sequence[TensorEntry] = entries
    if base_digest is not None:
        if found_digest != base_digest:
            raise DamagedState(f"its base is {found_digest}, expected {base_digest}")
        sent_entries = entries[: len(entries) - len(layout.base_positions)]
    report_origin(Origin(parse_epochs(metadata), is_complete=True, base_digest=found_digest))
    yield from _read_tensors(stream, layout, assign, sent_entries, positions)
    yield from check_end(stream)


def read_next_state(
    stream: Stream, layout: Layout, assign: Assign, report_origin: ReportOrigin
) -> Reader:
    """Read a state that other states may follow in the stream."""
    metadata, entries = yield from read_header(stream)
    positions = _locate_all_tensors(metadata, entries, layout)
    report_origin(Origin(parse_epochs(metadata), is_complete=True))
    yield from _read_tensors(stream, layout, assign, entries, positions)


def read_weights(layout: Layout, assign: Assign, report_origin: ReportOrigin) -> Reader:
    """Read the weights of a state into a program whose weights have the same shapes."""
    stream = Stream()
    metadata, entries = yield from read_header(stream)
    report_origin(Origin(parse_epochs(metadata), is_complete=False))
    positions = _locate_weights(metadata, entries, layout)
    yield from _read_tensors(stream, layout, assign, entries, positions)
    yield from check_end(stream)


def read_warm_start(layout: Layout, assign: Assign, report_origin: ReportOrigin) -> Reader:
    """Read a state, perhaps of another program: all variables if they fit, else the weights.

    The variables fit if the optimizer has the same class, all variables have the same types and
    shapes, and the same weights are trained.
    """
    stream = Stream()
    metadata, entries = yield from read_header(stream)
    is_complete = conversion.fits(metadata, entries, layout)
    report_origin(Origin(parse_epochs(metadata), is_complete))
    if is_complete:
        positions = _match_names(entries, layout)
    else:
        positions = _locate_weights(metadata, entries, layout)
    yield from _read_tensors(stream, layout, assign, entries, positions)
    yield from check_end(stream)


def read_flat_weights(layout: Layout, assign: Assign) -> Reader:
    """Read raw float32 in the order of get_weights() into the weights of a program."""
    stream = Stream()
    expected = sum(4 * math.prod(layout.shapes[position]) for position in layout.weights)
    try:
        for position in layout.weights:
            array = np.empty(layout.shapes[position], "<f4")
            yield from stream.fill(bytes_of(array))
            assign(position, array.astype(layout.dtypes[position], copy=False))
        yield from stream.drain()
    except EOFError:
        pass  # the number of bytes is checked below
    if stream.received != expected:
        raise ConfigError(
            f"Number of elements in model weights({stream.received / 4:g}) doesn't match "
            f"model({expected // 4}): received {count_nouns(stream.received, 'byte')}, expected "
            f"{expected}"
        )


def check_end(stream: Stream) -> Reader:
    """Raise DamagedState if the stream continues."""
    extra = yield from stream.drain()
    if extra:
        raise DamagedState(f"{count_nouns(extra, 'byte', 'follows')} its last tensor")


def _read_tensors(
    stream: Stream,
    layout: Layout,
    assign: Assign,
    entries: Sequence[TensorEntry],
    positions: Positions,
) -> Reader:
    """Read the tensors that have a position, and skip the others."""
    for entry in entries:
        if entry.name not in positions:
            yield from stream.skip(entry.end - entry.begin)
            continue
        position = positions[entry.name]
        conversion.check_tensor(entry, position, layout)
        array = np.empty(layout.shapes[position], conversion.DTYPES[entry.code])
        yield from stream.fill(bytes_of(array))
        assign(position, conversion.convert_array(array, layout.dtypes[position], entry))


def _locate_all_tensors(
    metadata: Metadata, entries: Sequence[TensorEntry], layout: Layout
) -> Positions:
    """Return the positions of all tensors, after checking the origin of the state."""
    conversion.check_origin(metadata, layout)
    return _match_names(entries, layout)


def _match_names(entries: Sequence[TensorEntry], layout: Layout) -> Positions:
    if len(entries) != len(layout.shapes):
        raise ConfigError(
            f"the state has {count_nouns(len(entries), 'tensor')}, the model and optimizer have "
            f"{len(layout.shapes)}"
        )
    positions = {format_tensor_name(position): position for position in range(len(layout.shapes))}
    if unknown := {entry.name for entry in entries} - positions.keys():
        raise DamagedState(f"it has tensors named {', '.join(sorted(unknown))}")
    return positions


def _locate_weights(
    metadata: Metadata, entries: Sequence[TensorEntry], layout: Layout
) -> Positions:
    """Return the positions of the weights, after checking their shapes."""
    names = parse_weight_names(metadata)
    entries_by_name = {entry.name: entry for entry in entries}
    if len(entries_by_name.keys() & set(names)) != len(names):
        raise DamagedState("its header names weights that are not there, or one of them twice")
    expected = [
        conversion.Weight(path, layout.shapes[position])
        for path, position in zip(layout.paths, layout.weights, strict=True)
    ]
    conversion.check_weight_shapes([entries_by_name[name].shape for name in names], expected)
    return dict(zip(names, layout.weights, strict=True))


def _find_base_digest(
    metadata: Metadata, entries: Sequence[TensorEntry], layout: Layout
) -> str | None:
    """Return the digest of a state's base if the base of this layout has the same tensors."""
    digest = str(metadata.get("base"))
    if not layout.base_positions or not DIGEST.fullmatch(digest):
        return None
    expected = {
        (format_tensor_name(position), CODES[layout.dtypes[position]])
        for position in layout.base_positions
    }
    last_entries = entries[-len(expected) :]
    return digest if {(entry.name, entry.code) for entry in last_entries} == expected else None
