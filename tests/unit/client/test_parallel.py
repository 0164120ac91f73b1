"""Parallel coordinates: which axes there are, and where configurations cross them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_db.show.parallel import axes

NUMBER = st.integers(-(10**9), 10**9) | st.floats(1e-12, 1e12)
VALUES = st.none() | st.floats()
PARAMS = st.dictionaries(
    st.integers(1, 30),
    st.dictionaries(st.sampled_from(("lr", "depth", "kind")), NUMBER | st.text(max_size=3) | st.booleans(), max_size=3),
    max_size=8,
)


@given(PARAMS, st.data())
def test_places(params: dict[int, dict[str, object]], data: st.DataObject) -> None:
    values = {key: data.draw(VALUES) for key in params}
    *found, last = axes(params, values, "loss")
    assert last.name == "loss"
    assert set(last.places) == {key for key, value in values.items() if value is not None and math.isfinite(value)}
    for axis in (*found, last):
        assert all(0 <= place <= 1 for place in (*axis.places.values(), *(place for place, _ in axis.ticks)))
    for axis in found:
        column = {key: one[axis.name] for key, one in params.items() if axis.name in one}
        assert set(axis.places) == set(column)
        if all(type(value) in (int, float) for value in column.values()):
            order = sorted(column, key=lambda key: column[key])  # type: ignore[arg-type, return-value]
            assert [axis.places[key] for key in order] == sorted(axis.places.values())


def test_what_is_alike_in_all_has_no_axis() -> None:
    found = axes({1: {"lr": 0.1, "depth": 2}, 2: {"lr": 0.2, "depth": 2, "width": 8}}, {}, "loss")
    assert [axis.name for axis in found] == ["lr", "width", "loss"]


@pytest.mark.parametrize(
    "numbers, places, ticks",
    [
        ((0.001, 0.01, 0.1), (0, 0.5, 1), ["0.001", "0.01", "0.1"]),
        ((0.01, 0.1), (0, 1), ["0.01", "0.1"]),
        ((0, 10, 1000), (0, 0.01, 1), ["0", "10", "1000"]),
        ((True, False), (1, 0), ["false", "true"]),
    ],
)
def test_scales(numbers: tuple[float, ...], places: tuple[float, ...], ticks: list[str]) -> None:
    first, _ = axes({key: {"p": number} for key, number in enumerate(numbers)}, {}, "loss")
    assert list(first.places.values()) == pytest.approx(places)
    assert [text for _, text in first.ticks] == ticks
