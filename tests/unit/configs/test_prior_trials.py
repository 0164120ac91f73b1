"""How configurations stood in their runs: their order, and nothing of the level of their values."""

from __future__ import annotations

import math
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.configs.prior_trials import compute_standings, parse_run_name, read_runs
from cerebro_plpy.errors import InvalidParameter

VALUES = st.lists(
    st.integers(-9, 9).map(float) | st.sampled_from([math.inf, math.nan]), min_size=1, max_size=12
)


def stood(values: list[float]) -> list[float]:
    return compute_standings([(0.0, value) for value in values])


@given(VALUES, st.integers(1, 5), st.integers(-100, 100))
def test_only_their_order_counts(values: list[float], factor: int, level: int) -> None:
    found = stood(values)
    assert found == stood([value * factor + level for value in values])
    assert fmean(found) == pytest.approx(0.5) and 0 < min(found) <= max(found) < 1
    bad = [value if math.isfinite(value) else math.inf for value in values]
    for one, its in zip(bad, found, strict=True):
        for other, the_other in zip(bad, found, strict=True):
            assert (one < other) == (its < the_other)


@given(VALUES)
def test_who_went_further_stands_before(values: list[float]) -> None:
    found = compute_standings(
        [(-2.0, value) for value in values] + [(-1.0, value) for value in values]
    )
    assert max(found[: len(values)]) < min(found[len(values) :])


def test_runs_are_named_as_in_train() -> None:
    assert read_runs("m", ["run:12", "run:3", "run:12"]) == (12, 3)
    assert parse_run_name("run:-1") is parse_run_name("run:1x") is parse_run_name(" run:1") is None


@pytest.mark.parametrize("wrong", ["run:12", [], [12], ["12"], ["run:1", None], {"run:1": 1}, None])
def test_other_names_are_refused(wrong: object) -> None:
    with pytest.raises(InvalidParameter, match="start_from in search_params") as error:
        read_runs("m", wrong)
    assert error.value.hint
