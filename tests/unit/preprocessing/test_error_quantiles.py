"""Intervals cover new rows at least as often as their level says, for every sample of errors."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.preprocessing.scoring.calibration import Calibration
from cerebro_plpy.preprocessing.scoring.error_quantiles import ErrorQuantiles

ERRORS = st.one_of(
    st.integers(0, 5).map(float),
    st.floats(0, 1e300),
    st.just(math.nan),
)
"""Few numbers, so that many errors are equal, or many; and those of predictions that failed."""
LEVELS = st.one_of(
    st.floats(0, 1, exclude_min=True, exclude_max=True),
    st.integers(1, 99).map(lambda percent: percent / 100),
)


@given(st.lists(ERRORS, min_size=2, max_size=60), LEVELS)
def test_the_expected_coverage_is_at_least_the_level(errors: Sequence[float], level: float) -> None:
    """Of exchangeable rows each one is as likely the new one; the others are the sample.

    Where the interval is not known, the row counts as covered: the call is refused.
    """
    covered = 0
    for place, error in enumerate(errors):
        sample = [*errors[:place], *errors[place + 1 :]]
        margin = ErrorQuantiles.from_errors(sample).find_margin(level)
        covered += margin is None or error <= margin
    assert covered / len(errors) >= level - 1e-9


@given(st.lists(ERRORS, max_size=1500), LEVELS, LEVELS)
def test_intervals_grow_with_the_level(errors: Sequence[float], level: float, other: float) -> None:
    quantiles = ErrorQuantiles.from_errors(errors)
    low, high = sorted([level, other])
    margins = [quantiles.find_margin(each) for each in (low, high)]
    assert margins[0] is not None or margins[1] is None
    if margins[0] is not None and margins[1] is not None:
        assert margins[0] <= margins[1]


@given(st.lists(ERRORS, max_size=1500), st.integers(1, 99))
def test_whole_percents_are_exact(errors: Sequence[float], percent: int) -> None:
    """The margin is the order statistic of the paper, whatever the number of rows."""
    rank = -(-(len(errors) + 1) * percent // 100)
    ordered = sorted(math.inf if math.isnan(error) else error for error in errors)
    wanted = ordered[rank - 1] if rank <= len(ordered) else math.inf
    margin = ErrorQuantiles.from_errors(errors).find_margin(percent / 100)
    assert margin == (wanted if math.isfinite(wanted) else None)


@given(st.lists(ERRORS, max_size=1500))
def test_the_largest_level_is_possible_and_a_larger_one_is_not(errors: Sequence[float]) -> None:
    quantiles = ErrorQuantiles.from_errors(errors)
    largest = quantiles.find_largest_level()
    assert len(quantiles.errors) <= 110
    if not quantiles.errors:
        assert largest == 0
        return
    assert quantiles.find_margin(largest) is not None
    assert largest >= 0.9999 or quantiles.find_margin(largest + 1e-4) is None


@given(st.lists(ERRORS, max_size=300))
def test_what_is_stored_is_read_to_the_bit(errors: Sequence[float]) -> None:
    calibration = Calibration(errors=ErrorQuantiles.from_errors(errors))
    assert Calibration.from_json(calibration.to_json()) == calibration


DAMAGED = {
    "no object": [],
    "no rows": {"quantiles": []},
    "rows that are no number": {"rows": "3", "quantiles": []},
    "a rank of more rows": {"rows": 3, "quantiles": [[4, 1.0]]},
    "a rank of no row": {"rows": 3, "quantiles": [[0, 1.0]]},
    "ranks that fall": {"rows": 3, "quantiles": [[2, 1.0], [1, 1.0]]},
    "errors that fall": {"rows": 3, "quantiles": [[1, 2.0], [2, 1.0]]},
    "a negative error": {"rows": 3, "quantiles": [[1, -2.0]]},
    "an infinite error": {"rows": 3, "quantiles": [[1, math.inf]]},
    "an error that is none": {"rows": 3, "quantiles": [[1, math.nan]]},
    "no pairs": {"rows": 3, "quantiles": [1]},
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_quantiles_are_refused(damage: str) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        Calibration.from_json(json.dumps({"errors": DAMAGED[damage]}))
