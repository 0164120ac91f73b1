"""Answers are lists; where pandas is installed they become frames, and where not they say what to
do.
"""

from __future__ import annotations

import sys
from dataclasses import astuple
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_db import errors
from cerebro_db.records import Point
from cerebro_db.result_set import MAX_ROWS, Records

POINTS = st.builds(
    Point,
    run_id=st.integers(1, 9),
    mst_key=st.integers(1, 9),
    epoch=st.integers(1, 9),
    dataset=st.sampled_from(["training", "validation"]),
    name=st.text(max_size=5),
    value=st.floats(allow_nan=False, allow_infinity=False),
    time=st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
)
COLUMNS = ["run_id", "mst_key", "epoch", "dataset", "name", "value", "time"]


@given(st.lists(POINTS, max_size=5))
def test_a_frame_has_the_fields_of_its_records(points: list[Point]) -> None:
    frame = Records(points, COLUMNS).frame()
    assert list(frame.columns) == COLUMNS
    assert [tuple(row) for row in frame.itertuples(index=False)] == [
        astuple(point) for point in points
    ]


@given(
    st.lists(
        st.fixed_dictionaries({"id": st.integers(0, 99), "class_value": st.text(max_size=3)}),
        max_size=5,
    )
)
def test_a_frame_of_rows_has_their_columns(rows: list[dict[str, Any]]) -> None:
    frame = Records(rows, ["id", "class_value"]).frame()
    assert frame.to_dict("records") == rows
    assert list(frame.columns) == ["id", "class_value"]


def test_times_are_times_and_what_is_missing_is_missing() -> None:
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    rows = [
        {"ended_at": moment, "training_time": timedelta(seconds=2), "value": 0.5},
        {"ended_at": None, "training_time": None, "value": None},
    ]
    frame = Records(rows, ["ended_at", "training_time", "value"]).frame()
    assert frame.ended_at[0] - pandas.Timedelta(days=1) == datetime(2029, 12, 31, tzinfo=UTC)
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
    assert ".[frames]" in str(caught.value)


@given(st.lists(POINTS, max_size=5))
def test_shown_they_are_a_table_with_a_line_for_each(points: list[Point]) -> None:
    shown = Records(points, COLUMNS)
    lines = repr(shown).splitlines()
    assert lines[0].split() == COLUMNS
    assert len(lines) == 2 + len(points)
    assert shown._repr_html_().count("<tr>") == 1 + len(points)


def test_in_a_notebook_the_text_is_no_output_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert repr(Records([{"id": 7}], ["id"])).split()[0::2] == ["id", "7"]


def test_of_many_the_first_are_shown_and_how_many_more_there_are() -> None:
    shown = Records([{"id": number} for number in range(1000)], ["id"])
    assert [line.strip() for line in repr(shown).splitlines()[-2:]] == [
        str(MAX_ROWS - 1),
        f"… and {1000 - MAX_ROWS} more",
    ]
    assert f"{1000 - MAX_ROWS} more" in shown._repr_html_()


@pytest.mark.parametrize("hostile", ["<b>bold</b>", "[bold]markup[/]", "\x1b[2J", "two\nlines"])
def test_what_is_shown_of_a_text_is_text(hostile: str) -> None:
    shown = Records([{"name": hostile}], ["name"])
    assert "\x1b" not in repr(shown) and len(repr(shown).splitlines()) == 3
    assert "<b>" not in shown._repr_html_()
    if hostile.isprintable():
        assert hostile in repr(shown)
