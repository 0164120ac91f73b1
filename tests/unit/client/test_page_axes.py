"""The axes of a page: few, those that explain the metric, and ticks that can be read."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_db.display.axes import MISSING, Axis, Tick, make_axis
from cerebro_db.display.axis_choice import (
    MAX_AXES,
    TEMPLATE,
    choose_axes,
    measure_share,
    thin_ticks,
)

PLACES = st.just(MISSING) | st.floats(0, 1)
KEYS = range(1, 13)
POSITIONS = st.fixed_dictionaries({key: PLACES for key in KEYS})
TICKS = st.lists(st.builds(Tick, st.floats(0, 1), st.text(max_size=2)), max_size=12)
FIELDS = st.lists(
    st.tuples(st.sampled_from([TEMPLATE, *"abcdefghijkl"]), POSITIONS),
    max_size=13,
    unique_by=lambda field: field[0],
)


@given(FIELDS, POSITIONS)
def test_few_axes_remain_in_their_order(
    fields: list[tuple[str, dict[int, float]]], scores: dict[int, float]
) -> None:
    axes = [Axis(name, positions, ()) for name, positions in fields]
    metric = Axis("metric", scores, ())
    chosen = choose_axes([*axes, metric])
    names = [axis.name for axis in axes]
    chosen_names = [axis.name for axis in chosen[:-1]]
    assert chosen[-1] == metric and len(chosen) == min(len(axes) + 1, MAX_AXES)
    assert chosen_names == [name for name in names if name in chosen_names]
    assert (TEMPLATE in names) == (TEMPLATE in chosen_names)
    shares = {axis.name: measure_share(axis.positions, _find_scores(scores)) for axis in axes}
    others = [name for name in names if name != TEMPLATE]
    left_out = [shares[name] for name in others if name not in chosen_names]
    kept = [shares[name] for name in others if name in chosen_names]
    assert max(left_out, default=0) <= min(kept, default=1)


def _find_scores(positions: dict[int, float]) -> dict[int, float]:
    return {key: place for key, place in positions.items() if place != MISSING}


@given(POSITIONS, POSITIONS)
def test_a_share_depends_on_ranks_alone(
    positions: dict[int, float], places: dict[int, float]
) -> None:
    """Another scale of the metric or of the parameter changes nothing, nor the names of configs."""
    scores = _find_scores(places)
    share = measure_share(positions, scores)
    assert 0 <= share <= 1
    ranks = sorted(set(scores.values()))
    stretched = {key: math.exp(ranks.index(score)) for key, score in scores.items()}
    assert measure_share(positions, stretched) == pytest.approx(share)
    renamed = {key + 100: place for key, place in reversed(positions.items())}
    new_scores = {key + 100: score for key, score in scores.items()}
    assert measure_share(renamed, new_scores) == pytest.approx(share)


@given(st.integers(0, 10**6), st.booleans())
def test_the_parameter_that_decides_is_shown(seed: int, is_valley: bool) -> None:
    """Also one whose best value lies in the middle, among many that do not matter."""
    random = Random(seed)
    values = {key: random.random() for key in range(40)}
    scores = {key: abs(value - 0.5) if is_valley else value for key, value in values.items()}
    noise = [make_axis(f"n{index}", {key: random.random() for key in values}) for index in range(9)]
    axes = [*noise, make_axis("z", values), make_axis("metric", scores)]
    assert "z" in [axis.name for axis in choose_axes(axes)]


@given(TICKS, st.floats(0.01, 0.5))
def test_ticks_do_not_overprint(ticks: list[Tick], distance: float) -> None:
    thin = thin_ticks(ticks, distance)
    assert set(thin) <= set(ticks)
    assert all(upper.position - lower.position >= distance for lower, upper in pairwise(thin))
    places = [tick.position for tick in thin]
    for tick in ticks:  # a tick is left out only for one that is near
        assert any(abs(tick.position - place) < distance or tick in thin for place in places)
    if ticks:
        assert max(places) == max(tick.position for tick in ticks)
