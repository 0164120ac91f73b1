"""Buffers are brought to few lengths, and no row is lost on the way."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cerebro_trainer.data.padding import (
    pad_to_capacity,
    round_up_to_capacity,
    split_batches,
    take_rows,
)

sizes = st.integers(1, 1 << 24)


@given(sizes)
def test_a_capacity_holds_its_rows_without_much_waste(rows: int) -> None:
    assert rows <= round_up_to_capacity(rows) < max(64, rows + max(64, rows / 4)) + 1
    assert round_up_to_capacity(round_up_to_capacity(rows)) == round_up_to_capacity(rows)


def test_few_capacities_serve_all_lengths() -> None:
    assert len({round_up_to_capacity(rows) for rows in range(1, 4097)}) <= 8 + 3 * 4


@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_an_order_finds_the_same_rows_in_filled_columns(rows: int, seed: int) -> None:
    columns = ([np.arange(2 * rows).reshape(rows, 2)], [np.arange(rows)])
    order = np.random.default_rng(seed).permutation(rows).astype(np.int32)
    longer, longer_order = pad_to_capacity(columns, order)
    expected, found = take_rows(columns, order), take_rows(longer, longer_order[:rows])
    for left, right in zip(expected[0] + expected[1], found[0] + found[1], strict=True):
        assert np.array_equal(left, right)


@given(st.integers(1, 9), st.integers(1, 9))
def test_blocks_hold_the_batches_in_order(batches: int, batch_size: int) -> None:
    array = np.arange(3 * batches * batch_size).reshape(-1, 3)
    inputs, _ = split_batches(([array], []), batch_size)
    assert inputs[0].shape == (batches, batch_size, 3)
    assert np.array_equal(np.concatenate(list(inputs[0])), array)
