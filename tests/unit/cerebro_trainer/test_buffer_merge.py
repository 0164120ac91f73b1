"""Neighbouring buffers become one: all rows, in their order, and nothing depends on how many passes
there are.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cerebro_trainer.data.buffer_merge import BufferMerger
from cerebro_trainer.data.buffers import Buffer


def buffer(number: int, rows: int, first: int, *, weighted: bool) -> Buffer:
    x = np.arange(first, first + rows, dtype=np.float32)[:, None]
    return Buffer(number, rows, (x,), (x + 0.5,), x.nbytes * 2, x[:, 0] if weighted else None)


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=9),
    st.integers(1, 25),
    st.integers(1, 3),
    st.booleans(),
)
def test_blocks_have_all_rows_in_their_order(
    sizes: list[int], least: int, passes: int, weighted: bool
) -> None:
    starts = np.cumsum([0, *sizes])
    buffers = [buffer(n, rows, int(starts[n]), weighted=weighted) for n, rows in enumerate(sizes)]
    blocks, found = BufferMerger(least), list[tuple[Buffer, int]]()
    for pass_no in range(passes):
        for each in buffers:
            found += blocks.add(each, pass_no)
    found += blocks.flush()
    for pass_no in range(passes):
        own = [block for block, of_pass in found if of_pass == pass_no]
        assert np.concatenate([block.inputs[0] for block in own])[:, 0].tolist() == list(
            range(sum(sizes))
        )
        assert all(np.array_equal(block.inputs[0] + 0.5, block.targets[0]) for block in own)
        assert all((block.sample_weights is not None) == weighted for block in own)
        assert all(block.rows >= least for block in own[:-1]) and sum(
            block.rows for block in own
        ) == sum(sizes)
        assert len({block.buffer_id for block in own}) == len(own)


def test_without_a_number_each_buffer_is_a_block() -> None:
    one = buffer(3, 4, 0, weighted=False)
    assert list(BufferMerger(None).add(one, 2)) == [(one, 2)]
