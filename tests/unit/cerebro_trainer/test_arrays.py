"""PostgreSQL's arrays against a slow and plain encoder, written from the description in its
array.h.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cerebro_trainer.data import arrays
from cerebro_trainer.data.packing import MAX_BYTES, BufferPacker
from cerebro_trainer.errors import RequestError

FORMATS = {700: "f", 701: "d", 21: "h", 23: "i", 20: "q"}


def in_memory(
    values: np.ndarray, oid: int, nulls: tuple[int, ...] = (), bitmap: bool = False, lower: int = 1
) -> bytes:
    """One array without its length word; `nulls` are flat positions of NULL elements, which are not
    stored.
    """
    dimensions = struct.pack(f"={2 * values.ndim}i", *values.shape, *[lower] * values.ndim)
    present = [position not in nulls for position in range(values.size)]
    offset, bits = 0, b""
    if nulls or bitmap:
        bits = np.packbits(present, bitorder="little").tobytes()
        bits += bytes(-(16 + len(dimensions) + len(bits)) % 8)
        offset = 16 + len(dimensions) + len(bits)
    kept = [value for value, there in zip(values.ravel().tolist(), present, strict=True) if there]
    head = struct.pack("=iiI", values.ndim, offset, oid)
    return head + dimensions + bits + struct.pack(f"={len(kept)}{FORMATS[oid]}", *kept)


def column(values: np.ndarray, oid: int) -> np.ndarray:
    """string_agg over all rows."""
    return payload(b"".join(in_memory(row, oid) for row in values))


def payload(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


shapes = hnp.array_shapes(min_dims=2, max_dims=5, min_side=1, max_side=4)


@given(hnp.arrays(np.float32, shapes, elements=st.floats(width=32)))
def test_floats_come_back_with_every_bit(values: np.ndarray) -> None:
    found = arrays.decode_floats(column(values, 700), len(values))
    assert found.dtype == np.float32 and found.flags.c_contiguous
    np.testing.assert_array_equal(found, values)


@given(hnp.arrays(np.int16, shapes))
def test_small_integers_come_back(values: np.ndarray) -> None:
    found = arrays.decode_small_integers(column(values, 21), len(values))
    assert found.dtype == np.int16
    np.testing.assert_array_equal(found, values)


@given(
    st.integers(1, 20).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n - 1), min_size=1))
    )
)
def test_one_hot_has_its_one_at_the_index(case: tuple[int, list[int]]) -> None:
    classes, indices = case
    found = arrays.encode_one_hot(
        payload(np.array(indices, ">i4").tobytes()), len(indices), classes
    )
    assert found.shape == (len(indices), classes)
    assert found.sum(axis=1).tolist() == [1] * len(indices)
    assert found.argmax(axis=1).tolist() == indices


@given(
    st.floats(1e-3, 1e6), hnp.arrays(np.float32, (3, 2), elements=st.floats(-1e6, 1e6, width=32))
)
def test_division_is_in_float32(divisor: float, values: np.ndarray) -> None:
    np.testing.assert_array_equal(
        arrays.decode_floats(column(values, 700), 3, divisor), values / np.float32(divisor)
    )


@given(st.data())
def test_first_null_element_is_named_with_its_row(data: st.DataObject) -> None:
    rows, width = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    row = data.draw(st.integers(0, rows - 1))
    later = data.draw(st.sets(st.integers(row, rows - 1)))
    nulls = tuple(data.draw(st.sets(st.integers(0, width - 1), min_size=1)))
    sent = payload(
        b"".join(
            in_memory(np.zeros(width), 700, nulls if r == row or r in later else ())
            for r in range(rows)
        )
    )
    with pytest.raises(RequestError, match=rf"row {row + 1} has a NULL element") as refused:
        arrays.decode_floats(sent, rows)
    assert refused.value.sqlstate == "22004"


@given(st.data())
def test_first_row_of_another_shape_is_named(data: st.DataObject) -> None:
    rows = data.draw(st.integers(2, 6))
    row = data.draw(st.integers(1, rows - 1))
    first, other = data.draw(
        st.lists(hnp.array_shapes(max_dims=3, max_side=3), min_size=2, max_size=2, unique=True)
    )
    sent = payload(
        b"".join(in_memory(np.zeros(other if r == row else first), 700) for r in range(rows))
    )
    with pytest.raises(
        RequestError, match=rf"row {row + 1} has shape .* row 1 has shape"
    ) as refused:
        arrays.decode_floats(sent, rows)
    assert refused.value.sqlstate == "22023"


def test_a_bitmap_without_a_null_is_no_error() -> None:
    """PostgreSQL keeps the bitmap of an array whose NULL was overwritten."""
    sent = payload(in_memory(np.ones(2), 700) + in_memory(np.ones(2), 700, bitmap=True))
    assert arrays.decode_floats(sent, 2).tolist() == [[1, 1], [1, 1]]


def test_lower_bounds_do_not_matter() -> None:
    sent = payload(in_memory(np.ones(2), 700) + in_memory(np.ones(2), 700, lower=0))
    assert arrays.decode_floats(sent, 2).tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("sent", "rows", "sqlstate"),
    [
        (in_memory(np.ones(2), 701), 1, "42804"),
        (in_memory(np.ones(2, int), 23), 1, "42804"),
        (struct.pack("=iiI", 0, 0, 700), 1, "22023"),
        (in_memory(np.ones(2), 700), 2, "22004"),
        (in_memory(np.ones(2), 700) * 3, 2, "22023"),
        (in_memory(np.ones(2), 700)[:-1], 1, "22023"),
        (b"", 1, "22004"),
    ],
)
def test_what_is_no_such_column_is_refused(sent: bytes, rows: int, sqlstate: str) -> None:
    with pytest.raises(RequestError) as refused:
        arrays.decode_floats(payload(sent), rows)
    assert refused.value.sqlstate == sqlstate


@pytest.mark.parametrize("index", [-1, 3])
def test_class_index_out_of_range_is_named_with_its_row(index: int) -> None:
    with pytest.raises(RequestError, match=f"row 2: class index {index}"):
        arrays.encode_one_hot(payload(np.array([0, index], ">i4").tobytes()), 2, 3)


@given(st.lists(st.floats(allow_nan=False)))
def test_literals_keep_every_digit(values: list[float]) -> None:
    inside = arrays.format_literal(values)[1:-1]
    assert [float(part) for part in inside.split(",") if part] == values


def test_several_columns_are_cut_by_their_lengths() -> None:
    numbers, floats, small = (
        row_numbers([1, 2]),
        column(np.ones((2, 3)), 700),
        column(np.full((2, 1), 7), 21),
    )
    header = {
        "rows": 2,
        "lengths": [len(numbers), len(floats), len(small)],
        "arrays": [{"kind": "float32"}, {"kind": "int16"}],
    }
    packing = BufferPacker()
    packing.add(header, np.concatenate([numbers, floats, small]))
    first, second = packing.take_columns({})
    assert first.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert second.tolist() == [[7], [7]]
    with pytest.raises(RequestError, match="add up"):
        packing.add(header, floats)


def row_numbers(numbers: Sequence[int]) -> np.ndarray:
    return payload(np.array(numbers, ">i8").tobytes())


def add(packing: BufferPacker, numbers: Sequence[int], shape: Sequence[int] = (1,)) -> None:
    """A block of rows, their numbers packed as their only column."""
    values = np.repeat(np.array(numbers, float), np.prod(shape)).reshape(-1, *shape)
    sent = [row_numbers(numbers), column(values, 701)]
    entry = {"kind": "float64", "column": "x", "source": "t", "array": "x"}
    header = {"rows": len(numbers), "lengths": [len(part) for part in sent], "arrays": [entry]}
    packing.add(header, np.concatenate(sent))


def packed(
    numbers: Sequence[int], seed: int | None, buffer_id: int = 0, cuts: Sequence[int] = ()
) -> list[int]:
    """The numbers of rows, packed as their only column; they come in blocks that begin at the
    cuts.
    """
    packing = BufferPacker()
    for begin, end in pairwise([0, *sorted(cuts), len(numbers)]):
        add(packing, numbers[begin:end])
    assert packing.get_shapes() == [(len(numbers), 1)]
    (found,) = packing.take_columns({"seed": seed, "buffer_id": buffer_id})
    return [int(value) for value in found[:, 0]]


SEEDS = st.none() | st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.lists(st.integers(1, 1 << 24), min_size=1, max_size=30, unique=True), SEEDS, st.data())
def test_rows_are_placed_by_their_numbers_and_not_by_how_they_came(
    numbers: list[int], seed: int | None, data: st.DataObject
) -> None:
    found = packed(numbers, seed)
    cuts = (
        data.draw(st.sets(st.integers(1, len(numbers) - 1), max_size=5)) if len(numbers) > 1 else ()
    )
    assert packed(data.draw(st.permutations(numbers)), seed, cuts=list(cuts)) == found
    assert sorted(found) == sorted(numbers)
    assert seed is not None or found == sorted(numbers)


def test_the_seed_and_the_buffer_decide_the_order() -> None:
    orders = {tuple(packed(range(1, 50), seed, buffer)) for seed in (1, 2) for buffer in (0, 1)}
    assert len(orders) == 4


def test_a_block_of_another_shape_is_refused_with_its_column() -> None:
    packing = BufferPacker()
    add(packing, [1, 2], (2, 3))
    with pytest.raises(RequestError, match="shape 3x2, but others have shape 2x3") as refused:
        add(packing, [3], (3, 2))
    assert refused.value.message.endswith("(column x of table t)")
    assert refused.value.detail is not None and "array_dims(x)" in refused.value.detail


def test_a_buffer_that_no_row_of_a_table_can_hold_is_refused_as_it_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a lower limit, so that the test takes little memory."""
    assert MAX_BYTES < 1 << 30
    monkeypatch.setattr("cerebro_trainer.data.packing.MAX_BYTES", 1 << 20)
    packing = BufferPacker()
    add(packing, [1], (1 << 18,))
    with pytest.raises(RequestError, match="expected at most 1 MB") as refused:
        add(packing, [2], (1 << 18,))
    assert "buffer_size" in str(refused.value.hint)


def test_a_buffer_without_rows_is_refused() -> None:
    with pytest.raises(RequestError, match="no rows"):
        BufferPacker().get_shapes()
