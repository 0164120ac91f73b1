"""Recipes that come with raw values: what is none is refused, and points of time have the parts of
a calendar.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_trainer.data import recipe_values, timestamps
from cerebro_trainer.errors import RequestError

NOTHING: dict[str, object] = {
    "scales": [],
    "parts": [],
    "missing": [],
    "categories": [],
    "wide": [],
}
SCALE = [-1.0, 1.0, 0.0, 1.0, 4.0]
PARTS = ("epoch", "year", "month", "day", "dow", "hour")


@pytest.mark.parametrize(
    "told",
    [
        {},
        {**NOTHING, "scales": [SCALE]},
        {**NOTHING, "scales": [SCALE], "parts": [["value", "value"]]},
        {**NOTHING, "scales": [SCALE], "parts": [["century"]]},
        {**NOTHING, "scales": [SCALE], "parts": ["value"]},
        {**NOTHING, "scales": [SCALE], "parts": [["value"]], "missing": [[1]]},
        {**NOTHING, "scales": [SCALE[1:]], "parts": [["value"]]},
        {**NOTHING, "categories": [[1]]},
    ],
)
def test_what_is_no_recipe_is_refused(told: object) -> None:
    with pytest.raises(RequestError):
        recipe_values.parse_recipe(json.dumps(told))


@pytest.mark.parametrize("text", ["", "[]", "1", "[" * 100_000])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(RequestError):
        recipe_values.parse_recipe(text)


@given(st.lists(st.datetimes(), min_size=1, max_size=9), st.booleans())
def test_parts_of_points_of_time(points: list[datetime], exact: bool) -> None:
    """Seconds alone are enough where there is no fraction of one."""
    told = [point if exact else point.replace(microsecond=0) for point in points]
    micros = [(point - datetime(1970, 1, 1)) // timedelta(microseconds=1) for point in told]
    seconds = np.array(micros) / 1e6
    fraction = np.array([point.second * 1e6 + point.microsecond for point in told])
    raw = np.stack([seconds, fraction] if exact else [seconds], axis=1)
    found = timestamps.extract_parts(raw, [PARTS, *[()] * exact])
    days = [[p.year, p.month, p.day, p.isoweekday() % 7, p.hour] for p in told]
    assert found[:, 1:].tolist() == days
    assert found[:, 0].tolist() == seconds.tolist()


def test_what_is_infinite_or_missing() -> None:
    raw = np.array([[np.inf, np.nan, 7.0], [-np.inf, np.nan, np.nan], [np.nan, np.nan, np.inf]])
    found = timestamps.extract_parts(raw, [("epoch", "year", "dow"), (), ("value",)])
    expected = [
        [np.inf, np.inf, np.nan, 7.0],
        [-np.inf, -np.inf, np.nan, np.nan],
        [np.nan, np.nan, np.nan, np.inf],
    ]
    np.testing.assert_array_equal(found, expected)
