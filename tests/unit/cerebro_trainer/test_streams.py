"""A state is written and read piece by piece, and is what the library of its format would write and
read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.tables.chunked_work import run_to_end
from cerebro_plpy.tables.outputs import weights
from cerebro_plpy.tables.outputs.weights import as_float32, read_weights
from cerebro_trainer.errors import ConfigError, RequestError
from cerebro_trainer.state import readers, serialization
from cerebro_trainer.state.layout import Layout
from cerebro_trainer.wire import streams
from cerebro_trainer.wire.frames import Array

DTYPES = st.sampled_from(
    ["float32", "float16", "float64", "int64", "int32", "uint32", "uint8", "bool"]
)
SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
VALUES = arrays.arrays(DTYPES, SHAPES)
EXACT = arrays.arrays(DTYPES, SHAPES, elements=st.sampled_from([0, 1]))
STATES = st.lists(VALUES, min_size=1, max_size=6)
CHUNKS = st.integers(1, 300)
PROGRESS = serialization.Progress(step=3, epochs=2)


def layout(values: list[Array]) -> Layout:
    """What such variables look like; every second one is a weight, the last of them first."""
    return Layout(
        shapes=tuple(value.shape for value in values),
        dtypes=tuple(value.dtype.name for value in values),
        weights=tuple(range(0, len(values), 2))[::-1],
        trainable=tuple(range(0, len(values), 4)),
        paths=tuple(f"layer_{position}/kernel" for position in range(0, len(values), 2))[::-1],
        architecture="a",
        optimizer="o",
        framework="f",
        keras="k",
    )


def dump(values: list[Array], chunk_bytes: int) -> Iterator[list[memoryview]]:
    found = layout(values)
    return serialization.dump(
        values, found, serialization.build_header(found, PROGRESS), chunk_bytes
    )


def dumped(values: list[Array], chunk_bytes: int = 100) -> list[bytes]:
    return [b"".join(chunk) for chunk in dump(values, chunk_bytes)]


def taken(reading: streams.Reader, chunks: list[bytes]) -> None:
    streams.start_reader(reading)
    for chunk in chunks:
        reading.send(memoryview(chunk))
    streams.finish_reader(reading)


def read(expected: Layout, chunks: list[bytes]) -> dict[int, Array]:
    """The variables by position."""
    found: dict[int, Array] = {}
    taken(readers.read_state(expected, found.__setitem__, lambda origin: None), chunks)
    return found


def read_warm(expected: Layout, chunks: list[bytes]) -> tuple[dict[int, Array], bool]:
    """The variables by position, and whether all fitted."""
    found, origins = dict[int, Array](), list[readers.Origin]()
    taken(readers.read_warm_start(expected, found.__setitem__, origins.append), chunks)
    assert origins[0].epochs == PROGRESS.epochs
    return found, origins[0].is_complete


def same(one: Array, other: Array) -> bool:
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


@given(values=STATES, chunk_bytes=CHUNKS)
def test_the_library_reads_what_is_written(values: list[Array], chunk_bytes: int) -> None:
    chunks = dumped(values, chunk_bytes)
    assert {len(chunk) for chunk in chunks[:-1]} <= {chunk_bytes}
    tensors = safetensors.numpy.load(b"".join(chunks))
    assert all(same(tensors[f"{position:05d}"], value) for position, value in enumerate(values))
    assert len(tensors) == len(values)


@given(values=STATES, chunk_bytes=CHUNKS)
def test_what_the_library_writes_is_read(values: list[Array], chunk_bytes: int) -> None:
    expected = layout(values)
    metadata = {"format": serialization.FORMAT, "architecture": "a", "optimizer": "o"}
    data = safetensors.numpy.save({f"{p:05d}": value for p, value in enumerate(values)}, metadata)
    cuts = [*range(0, len(data), chunk_bytes), len(data)]
    found = read(expected, [data[begin:end] for begin, end in pairwise(cuts)])
    assert all(same(found[position], value) for position, value in enumerate(values))


@given(values=STATES, chunk_bytes=CHUNKS)
def test_weights_alone_are_read_from_the_state_of_another_optimizer(
    values: list[Array], chunk_bytes: int
) -> None:
    expected = replace(layout(values), optimizer="another", architecture="another")
    found: dict[int, Array] = {}
    taken(
        readers.read_weights(expected, found.__setitem__, lambda origin: None),
        dumped(values, chunk_bytes),
    )
    assert found.keys() == set(expected.weights)
    assert all(same(found[position], values[position]) for position in found)
    assert read_warm(expected, dumped(values, chunk_bytes))[1] is False


@given(values=STATES, chunk_bytes=CHUNKS)
def test_a_state_of_another_architecture_is_taken_whole_where_all_of_it_fits(
    values: list[Array], chunk_bytes: int
) -> None:
    chunks, own = dumped(values, chunk_bytes), layout(values)
    renamed = replace(
        own, architecture="another", paths=tuple(f"other_{path}" for path in own.paths)
    )
    found, whole = read_warm(renamed, chunks)
    assert whole and all(same(found[position], value) for position, value in enumerate(values))
    frozen = replace(renamed, trainable=own.trainable[1:])
    found, whole = read_warm(frozen, chunks)
    assert not whole and found.keys() == set(own.weights)


@given(values=STATES, data=st.data())
def test_weights_of_other_shapes_are_refused_by_their_names(
    values: list[Array], data: st.DataObject
) -> None:
    own = layout(values)
    place = data.draw(st.integers(0, len(own.weights) - 1))
    shapes = list(own.shapes)
    shapes[own.weights[place]] += (5,)
    with pytest.raises(ConfigError) as refused:
        read_warm(replace(own, shapes=tuple(shapes)), dumped(values))
    assert f"{own.paths[place]} {list(shapes[own.weights[place]])}" in refused.value.message


@given(
    values=st.lists(EXACT, min_size=1, max_size=6),
    chunk_bytes=CHUNKS,
    converted=st.sampled_from([8, 16, 1 << 16]),
)
def test_a_backend_finds_the_weights(values: list[Array], chunk_bytes: int, converted: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weights, "CONVERTED_BYTES", converted)
        check_weights(values, chunk_bytes)


def check_weights(values: list[Array], chunk_bytes: int) -> None:
    flat = b"".join(values[position].astype("<f4").tobytes() for position in layout(values).weights)
    found = run_to_end(read_weights(dumped(values, chunk_bytes), len(flat)))
    assert (found.size, found.flat) == (len(flat), flat)
    if flat:
        assert run_to_end(read_weights(dumped(values, chunk_bytes), len(flat) - 1)).flat is None


@pytest.mark.parametrize("dtype", ["<f4", "<f2", "<f8", "<i4", "|u1"])
def test_a_backend_looks_up_between_pieces_of_a_large_weight(dtype: str) -> None:
    """A cancel takes effect where the next chunks are fetched: little is done between two of
    them.
    """
    chunks, done = dumped([np.ones(200_000, dtype)], 8000), [0]
    taken_so_far: list[int] = []

    def fetched() -> Iterator[bytes]:
        for chunk in chunks:
            taken_so_far.append(done[0])
            yield chunk

    def counted(name: str, data: bytes) -> bytes:
        done[0] += len(data)
        return as_float32(name, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weights, "as_float32", counted)
        run_to_end(read_weights(fetched(), 1 << 20))
    steps = [after - before for before, after in pairwise([*taken_so_far, done[0]])]
    assert max(steps) <= weights.CONVERTED_BYTES
    assert dtype == "<f4" or done[0] == 200_000 * np.dtype(dtype).itemsize


@given(values=STATES, data=st.data())
def test_a_state_that_ends_too_early_is_damaged(values: list[Array], data: st.DataObject) -> None:
    whole = b"".join(dumped(values))
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(RequestError, match="damaged"):
        read(layout(values), [cut])


def test_a_backend_refuses_a_state_that_ends_too_early() -> None:
    values = [np.ones(100, "f4")]
    with pytest.raises(DataCorrupted):
        run_to_end(read_weights(dumped(values)[:-1], 1 << 20))


@given(values=STATES)
def test_the_header_ends_where_tensors_are_aligned(values: list[Array]) -> None:
    data = b"".join(dumped(values))
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    assert length % 8 == 0
    for position, value in enumerate(values):
        assert header[f"{position:05d}"]["data_offsets"][0] % value.dtype.itemsize == 0


def test_nothing_is_copied_on_the_way_out() -> None:
    value = np.zeros(1000, "f4")
    chunks = list(dump([value], 1 << 20))
    value += 1
    assert b"".join(chunks[0]).endswith(np.ones(1000, "f4").tobytes())
