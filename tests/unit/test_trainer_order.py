"""Orders are permutations, and nothing but place and time decides them."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cerebro_trainer.order import Place, natural, permutation

places = st.builds(Place, seed=st.integers(), mst_key=st.integers(), epoch=st.integers(), segment_id=st.integers())
PLACE = Place(seed=1, mst_key=2, epoch=3, segment_id=4)


@given(places, st.integers(), st.integers(0, 100), st.integers(0, 500))
def test_every_row_comes_once(place: Place, buffer_id: int, pass_no: int, rows: int) -> None:
    order = permutation(place, buffer_id, pass_no, rows)
    assert order.dtype == np.int32
    assert sorted(order.tolist()) == list(range(rows)) == natural(rows).tolist()


def test_every_part_of_the_place_counts() -> None:
    others = [dataclasses.replace(PLACE, **{name: 9}) for name in ("seed", "mst_key", "epoch", "segment_id")]
    orders = [
        permutation(PLACE, 5, 6, 50),
        permutation(PLACE, 9, 6, 50),
        permutation(PLACE, 5, 9, 50),
        *(permutation(other, 5, 6, 50) for other in others),
    ]
    assert len({order.tobytes() for order in orders}) == len(orders)


def test_orders_are_the_same_for_ever() -> None:
    """A replay of an old run stands on this; a change here needs a way to ask for the old orders."""
    assert permutation(PLACE, 5, 6, 10).tolist() == [0, 8, 7, 9, 6, 1, 5, 4, 2, 3]
