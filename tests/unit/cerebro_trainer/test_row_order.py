"""Orders are permutations, and nothing but place and time decides them."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cerebro_trainer.data.row_order import StepWindow, VisitKey, list_rows, shuffle_buffer

places = st.builds(
    VisitKey,
    seed=st.integers(),
    mst_key=st.integers(),
    epoch=st.integers(),
    segment_id=st.integers(),
)
PLACE = VisitKey(seed=1, mst_key=2, epoch=3, segment_id=4)


@given(places, st.integers(), st.integers(0, 100), st.integers(0, 500))
def test_every_row_comes_once(place: VisitKey, buffer_id: int, pass_no: int, rows: int) -> None:
    order = shuffle_buffer(place, buffer_id, pass_no, rows)
    assert order.dtype == np.int32
    assert sorted(order.tolist()) == list(range(rows)) == list_rows(rows).tolist()


def test_every_part_of_the_place_counts() -> None:
    others = [
        dataclasses.replace(PLACE, **{name: 9})
        for name in ("seed", "mst_key", "epoch", "segment_id")
    ]
    orders = [
        shuffle_buffer(PLACE, 5, 6, 50),
        shuffle_buffer(PLACE, 9, 6, 50),
        shuffle_buffer(PLACE, 5, 9, 50),
        *(shuffle_buffer(other, 5, 6, 50) for other in others),
    ]
    assert len({order.tobytes() for order in orders}) == len(orders)


def test_orders_are_the_same_for_ever() -> None:
    """A replay of an old run stands on this; a change here needs a way to ask for the old
    orders.
    """
    assert shuffle_buffer(PLACE, 5, 6, 10).tolist() == [0, 8, 7, 9, 6, 1, 5, 4, 2, 3]


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=6),
    st.integers(1, 9),
    st.integers(1, 20),
    st.integers(1, 4),
)
def test_passes_of_some_steps_go_round_the_partition(
    sizes: list[int], batch: int, steps: int, passes: int
) -> None:
    counts = [-(-size // batch) for size in sizes]
    window = StepWindow(steps=steps, total=sum(counts), passes=passes)
    taken: list[tuple[int, int]] = []
    per_pass = []
    for epoch in range(1, 4):
        for pass_no in range(passes):
            before = len(taken)
            for number, size in enumerate(sizes):
                first = sum(counts[:number])
                rows = window.select(list_rows(size), batch, first, epoch, pass_no).tolist()
                starts = rows[::batch]
                assert rows == [
                    row for start in starts for row in range(start, min(start + batch, size))
                ]
                taken += [(number, start) for start in starts]
            per_pass.append(len(taken) - before)
    assert set(per_pass) == {min(steps, sum(counts))}
    seen = [
        taken.count((n, start)) for n, size in enumerate(sizes) for start in range(0, size, batch)
    ]
    assert not seen or max(seen) - min(seen) <= 1


def test_the_first_pass_begins_at_the_first_batch() -> None:
    window = StepWindow(steps=2, total=5, passes=1)
    taken = [window.select(list_rows(9), 2, 0, epoch, 0).tolist() for epoch in (1, 2, 3)]
    assert taken == [[0, 1, 2, 3], [4, 5, 6, 7], [0, 1, 8]]
