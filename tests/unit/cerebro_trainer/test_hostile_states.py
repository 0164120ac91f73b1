"""Bytes that are no state, or that were one: both readers say so, and neither goes on for ever."""

from __future__ import annotations

import json
import pickle
import struct
from collections.abc import Callable, Iterable
from typing import Any

import hostile
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.tables.chunked_work import run_to_end
from cerebro_plpy.tables.outputs.weights import read_weights
from cerebro_trainer.errors import TrainerError
from cerebro_trainer.state import readers, serialization
from cerebro_trainer.state.layout import Layout
from cerebro_trainer.wire import streams
from cerebro_trainer.wire.frames import Array

VALUES = [np.arange(6, dtype="f4").reshape(2, 3), np.array(7, "i8"), np.ones(3, "f4")]
LAYOUT = Layout(
    shapes=tuple(value.shape for value in VALUES),
    dtypes=tuple(value.dtype.name for value in VALUES),
    weights=(0, 2),
    trainable=(0,),
    paths=("dense/kernel", "dense/bias"),
    architecture="a",
    optimizer="o",
    framework="f",
    keras="k",
)
HEAD = serialization.build_header(LAYOUT, serialization.Progress(3, 2))
WHOLE = b"".join(b"".join(chunk) for chunk in serialization.dump(VALUES, LAYOUT, HEAD, 1000))
LENGTH = struct.unpack("<Q", WHOLE[:8])[0]
HEADER, TENSORS = json.loads(WHOLE[8 : 8 + LENGTH]), WHOLE[8 + LENGTH :]
FLAT = b"".join(VALUES[position].tobytes() for position in LAYOUT.weights)


class Planted:
    """Unpickled, it would raise something that no reader raises."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("raise SystemExit('code of a state was executed')",)


def with_header(header: object) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + TENSORS


def entry(**values: object) -> bytes:
    return with_header({**HEADER, "00000": {**HEADER["00000"], **values}})


def metadata(**values: object) -> bytes:
    return with_header({**HEADER, "__metadata__": {**HEADER["__metadata__"], **values}})


STATES = hostile.damaged(WHOLE) | hostile.changed(HEADER).map(with_header) | st.binary(max_size=60)
EXAMPLES = (
    pickle.dumps(Planted()), struct.pack("<Q",
    len(pickle.dumps(Planted()))) + pickle.dumps(Planted()), b"",
    struct.pack("<Q", 2**64 - 1), struct.pack("<Q", serialization.HEADER_LIMIT) + b"{}",
    WHOLE[:8] + b" " * LENGTH + TENSORS,
    with_header([]), with_header({}), with_header({**HEADER, "00000": None}),
    entry(data_offsets=[0, 2**70]), entry(data_offsets=[5, 1]), entry(data_offsets=[-8, 16]),
    entry(data_offsets=[0]),
    entry(data_offsets=[float("inf"), 1]), entry(data_offsets=[0, 23]), entry(data_offsets=[1.5,
    24]),
    entry(shape=[2**62, 2**62]), entry(shape=[-2, -3]), entry(shape="ab"), entry(dtype="F8"),
    entry(dtype=[]),
    with_header({"__metadata__": 3}), ("[" * 100_000).encode(),
    struct.pack("<Q", 100_000) + b"[" * 100_000,
)  # fmt: skip
NAMES: tuple[object, ...] = (
    "x",
    [[]],
    '["00000", ["00002"]]',
    '["9", "8"]',
    "7",
    '["__metadata__", "00000"]',
    '["00001", "00002"]',
    '["00000", "00000"]',
    None,
)
WRONG_WEIGHTS = [metadata(weights=names) for names in NAMES]
EPOCHS: tuple[object, ...] = ("", "-1", "1e3", "x", "1" * 5000, [], None)
WRONG_EPOCHS = [metadata(epochs=text) for text in EPOCHS]


def taken(reading: streams.Reader, chunks: Iterable[bytes]) -> None:
    streams.start_reader(reading)
    for chunk in chunks:
        reading.send(memoryview(chunk))
    streams.finish_reader(reading)


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


READERS: dict[str, Callable[[Layout, readers.Assign, readers.ReportOrigin], streams.Reader]] = {
    "whole": readers.read_state,
    "weights": readers.read_weights,
    "warm": readers.read_warm_start,
}


def check_trainer(data: bytes, size: int, reader: str) -> None:
    """A state is read as one of this layout, or refused by an error of our own."""
    found: dict[int, Array] = {}
    try:
        taken(READERS[reader](LAYOUT, found.__setitem__, lambda origin: None), pieces(data, size))
    except TrainerError as error:
        assert error.message
    for position, array in found.items():
        assert (array.shape, array.dtype.name) == (LAYOUT.shapes[position], LAYOUT.dtypes[position])


def check_backend(data: bytes, size: int) -> None:
    try:
        found = run_to_end(read_weights(pieces(data, size), 1 << 20))
    except DataCorrupted as error:
        assert error.hint
    else:
        assert found.flat is None or len(found.flat) == found.size


@given(STATES, st.integers(1, 90), st.sampled_from(sorted(READERS)))
def test_the_trainer_refuses_what_is_no_state(data: bytes, size: int, reader: str) -> None:
    check_trainer(data, size, reader)


@pytest.mark.parametrize("data", EXAMPLES, ids=range(len(EXAMPLES)))
@pytest.mark.parametrize("reader", READERS)
def test_the_trainer_refuses_these(data: bytes, reader: str) -> None:
    with pytest.raises(TrainerError):
        taken(
            READERS[reader](LAYOUT, lambda position, array: None, lambda origin: None),
            pieces(data, 90) or [b""],
        )


@pytest.mark.parametrize("data", WRONG_EPOCHS, ids=range(len(WRONG_EPOCHS)))
@pytest.mark.parametrize("reader", READERS)
def test_epochs_that_are_no_number_are_refused(data: bytes, reader: str) -> None:
    with pytest.raises(TrainerError):
        taken(
            READERS[reader](LAYOUT, lambda position, array: None, lambda origin: None),
            pieces(data, 90),
        )


@pytest.mark.parametrize("data", WRONG_WEIGHTS, ids=range(len(WRONG_WEIGHTS)))
def test_weights_that_are_not_there_are_not_passed_over(data: bytes) -> None:
    with pytest.raises(TrainerError):
        taken(
            readers.read_weights(LAYOUT, lambda position, array: None, lambda origin: None),
            pieces(data, 90),
        )


@given(STATES, st.integers(1, 90))
@example(entry(data_offsets=[5, 1]), 8)
def test_the_backend_refuses_what_is_no_state(data: bytes, size: int) -> None:
    check_backend(data, size)


@pytest.mark.parametrize(
    "data", [*EXAMPLES, *WRONG_WEIGHTS], ids=range(len(EXAMPLES) + len(WRONG_WEIGHTS))
)
def test_the_backend_refuses_these(data: bytes) -> None:
    check_backend(data, 8)


@given(hostile.damaged(FLAT), st.integers(1, 90))
def test_flat_weights_are_taken_by_their_length_alone(data: bytes, size: int) -> None:
    found: dict[int, Array] = {}
    reading = readers.read_flat_weights(LAYOUT, found.__setitem__)
    if len(data) == len(FLAT):
        taken(reading, pieces(data, size))
        assert b"".join(found[position].tobytes() for position in LAYOUT.weights) == data
    else:
        with pytest.raises(
            TrainerError, match=f"received {len(data)} bytes?, expected {len(FLAT)}"
        ):
            taken(reading, pieces(data, size) or [b""])
