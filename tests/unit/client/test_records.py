"""Answers are lists; where pandas is installed they become frames, and where not they say what to do."""

from __future__ import annotations

import sys
from dataclasses import astuple
from datetime import datetime, timedelta, timezone
from typing import Any

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_db import errors
from cerebro_db.record_list import Records
from cerebro_db.records import Point

POINTS = st.builds(
    Point,
    run_id=st.integers(1, 9),
    mst_key=st.integers(1, 9),
    epoch=st.integers(1, 9),
    dataset=st.sampled_from(["training", "validation"]),
    name=st.text(max_size=5),
    value=st.floats(allow_nan=False, allow_infinity=False),
    time=st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(timezone.utc)),
)
COLUMNS = ["run_id", "mst_key", "epoch", "dataset", "name", "value", "time"]


@given(st.lists(POINTS, max_size=5))
def test_a_frame_has_the_fields_of_its_records(points: list[Point]) -> None:
    frame = Records(points, COLUMNS).frame()
    assert list(frame.columns) == COLUMNS
    assert [tuple(row) for row in frame.itertuples(index=False)] == [astuple(point) for point in points]


@given(st.lists(st.fixed_dictionaries({"id": st.integers(0, 99), "class_value": st.text(max_size=3)}), max_size=5))
def test_a_frame_of_rows_has_their_columns(rows: list[dict[str, Any]]) -> None:
    frame = Records(rows, ["id", "class_value"]).frame()
    assert frame.to_dict("records") == rows
    assert list(frame.columns) == ["id", "class_value"]


def test_times_are_times_and_what_is_missing_is_missing() -> None:
    moment = datetime(2030, 1, 1, tzinfo=timezone.utc)
    rows = [
        {"ended_at": moment, "training_time": timedelta(seconds=2), "value": 0.5},
        {"ended_at": None, "training_time": None, "value": None},
    ]
    frame = Records(rows, ["ended_at", "training_time", "value"]).frame()
    assert frame.ended_at[0] - pandas.Timedelta(days=1) == datetime(2029, 12, 31, tzinfo=timezone.utc)
    assert frame.training_time.sum() == timedelta(seconds=2)
    assert frame.isna().iloc[1].all() and frame.value.mean() == 0.5


def test_records_are_a_list() -> None:
    assert Records([1, 2], ["number"]) == [1, 2]


def test_without_pandas_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError) as caught:
        Records([], ["a"]).frame()
    assert isinstance(caught.value, errors.MissingLibrary)
    assert (caught.value.name, caught.value.sqlstate) == ("pandas", "55000")
    assert "pip install pandas" in str(caught.value)
