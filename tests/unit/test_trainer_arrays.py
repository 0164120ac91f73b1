"""PostgreSQL's binary arrays against a slow and plain encoder written from array_send's format."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cerebro_trainer import arrays, packing
from cerebro_trainer.errors import RequestError

FORMATS = {700: ">f", 701: ">d", 21: ">h", 23: ">i"}


def array_send(
    values: np.ndarray, oid: int, nulls: tuple[int, ...] = (), flag: int | None = None, lower: int = 1
) -> bytes:
    """One array value; `nulls` are flat positions of NULL elements."""
    flag = int(bool(nulls)) if flag is None else flag
    head = struct.pack(">iiI", values.ndim, flag, oid) + b"".join(struct.pack(">ii", n, lower) for n in values.shape)
    elements = [
        struct.pack(">i", -1)
        if position in nulls
        else struct.pack(">i", struct.calcsize(FORMATS[oid])) + struct.pack(FORMATS[oid], value)
        for position, value in enumerate(values.ravel().tolist())
    ]
    return head + b"".join(elements)


def column(values: np.ndarray, oid: int) -> np.ndarray:
    """string_agg over all rows."""
    return payload(b"".join(array_send(row, oid) for row in values))


def payload(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


shapes = hnp.array_shapes(min_dims=2, max_dims=5, min_side=1, max_side=4)


@given(hnp.arrays(np.float32, shapes, elements=st.floats(width=32)))
def test_floats_come_back_with_every_bit(values: np.ndarray) -> None:
    found = arrays.floats(column(values, 700), len(values))
    assert found.dtype == np.float32 and found.flags.c_contiguous
    np.testing.assert_array_equal(found, values)


@given(hnp.arrays(np.int16, shapes))
def test_small_integers_come_back(values: np.ndarray) -> None:
    found = arrays.small_integers(column(values, 21), len(values))
    assert found.dtype == np.int16
    np.testing.assert_array_equal(found, values)


@given(st.integers(1, 20).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n - 1), min_size=1))))
def test_one_hot_has_its_one_at_the_index(case: tuple[int, list[int]]) -> None:
    classes, indices = case
    found = arrays.one_hot(column(np.array(indices).reshape(-1, 1), 23), len(indices), classes)
    assert found.shape == (len(indices), classes)
    assert found.sum(axis=1).tolist() == [1] * len(indices)
    assert found.argmax(axis=1).tolist() == indices


@given(st.floats(1e-3, 1e6), hnp.arrays(np.float32, (3, 2), elements=st.floats(-1e6, 1e6, width=32)))
def test_division_is_in_float32(divisor: float, values: np.ndarray) -> None:
    np.testing.assert_array_equal(arrays.floats(column(values, 700), 3, divisor), values / np.float32(divisor))


@given(st.data())
def test_first_null_element_is_named_with_its_row(data: st.DataObject) -> None:
    rows, width = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    row = data.draw(st.integers(0, rows - 1))
    later = data.draw(st.sets(st.integers(row, rows - 1)))
    nulls = tuple(data.draw(st.sets(st.integers(0, width - 1), min_size=1)))
    sent = payload(
        b"".join(array_send(np.zeros(width), 700, nulls if r == row or r in later else ()) for r in range(rows))
    )
    with pytest.raises(RequestError, match=rf"row {row + 1} has a NULL element") as refused:
        arrays.floats(sent, rows)
    assert refused.value.sqlstate == "22004"


@given(st.data())
def test_first_row_of_another_shape_is_named(data: st.DataObject) -> None:
    rows = data.draw(st.integers(2, 6))
    row = data.draw(st.integers(1, rows - 1))
    first, other = data.draw(st.lists(hnp.array_shapes(max_dims=3, max_side=3), min_size=2, max_size=2, unique=True))
    sent = payload(b"".join(array_send(np.zeros(other if r == row else first), 700) for r in range(rows)))
    with pytest.raises(RequestError, match=rf"row {row + 1} has shape .* row 1 has shape") as refused:
        arrays.floats(sent, rows)
    assert refused.value.sqlstate == "22023"


def test_null_flag_without_a_null_is_no_error() -> None:
    """PostgreSQL keeps the bitmap of an array whose NULL was overwritten."""
    sent = payload(array_send(np.ones(2), 700) + array_send(np.ones(2), 700, flag=1))
    assert arrays.floats(sent, 2).tolist() == [[1, 1], [1, 1]]


def test_lower_bounds_do_not_matter() -> None:
    sent = payload(array_send(np.ones(2), 700) + array_send(np.ones(2), 700, lower=0))
    assert arrays.floats(sent, 2).tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("sent", "rows", "sqlstate"),
    [
        (array_send(np.ones(2), 701), 1, "42804"),
        (array_send(np.ones(2, int), 23), 1, "42804"),
        (struct.pack(">iiI", 0, 0, 700), 1, "22023"),
        (array_send(np.ones(2), 700), 2, "22004"),
        (array_send(np.ones(2), 700) * 3, 2, "22023"),
        (array_send(np.ones(2), 700)[:-1], 1, "22004"),
        (b"", 1, "22004"),
    ],
)
def test_what_is_no_such_column_is_refused(sent: bytes, rows: int, sqlstate: str) -> None:
    with pytest.raises(RequestError) as refused:
        arrays.floats(payload(sent), rows)
    assert refused.value.sqlstate == sqlstate


@pytest.mark.parametrize("index", [-1, 3])
def test_class_index_out_of_range_is_named_with_its_row(index: int) -> None:
    with pytest.raises(RequestError, match=f"row 2: class index {index}"):
        arrays.one_hot(column(np.array([[0], [index]]), 23), 2, 3)


@given(st.lists(st.floats(allow_nan=False)))
def test_literals_keep_every_digit(values: list[float]) -> None:
    inside = arrays.literal(values)[1:-1]
    assert [float(part) for part in inside.split(",") if part] == values


def test_several_columns_are_cut_by_their_lengths() -> None:
    floats, small = column(np.ones((2, 3)), 700), column(np.full((2, 1), 7), 21)
    header = {
        "rows": 2,
        "lengths": [len(floats), len(small)],
        "arrays": [{"kind": "float32"}, {"kind": "int16"}],
    }
    first, second = packing.pack(header, np.concatenate([floats, small]))
    assert first.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert second.tolist() == [[7], [7]]
    with pytest.raises(RequestError, match="add up"):
        packing.pack(header, floats)
