"""Records are lists that display as tables and convert to frames if pandas is installed."""

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


def test_a_frame_keeps_times_and_missing_values() -> None:
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


def test_without_pandas_the_error_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError) as caught:
        Records([], ["a"]).frame()
    assert isinstance(caught.value, errors.MissingLibrary)
    assert (caught.value.name, caught.value.sqlstate) == ("pandas", "55000")
    assert ".[frames]" in str(caught.value)


@given(st.lists(POINTS, max_size=5))
def test_records_display_as_a_table_with_a_line_for_each(points: list[Point]) -> None:
    records = Records(points, COLUMNS)
    lines = repr(records).splitlines()
    assert lines[0].split() == COLUMNS
    assert len(lines) == 2 + len(points)
    assert records._repr_html_().count("<tr>") == 1 + len(points)


def test_in_a_notebook_the_text_is_not_a_separate_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert repr(Records([{"id": 7}], ["id"])).split()[0::2] == ["id", "7"]


def test_only_the_first_of_many_records_and_the_number_of_the_others_are_displayed() -> None:
    records = Records([{"id": number} for number in range(1000)], ["id"])
    assert [line.strip() for line in repr(records).splitlines()[-2:]] == [
        str(MAX_ROWS - 1),
        f"… and {1000 - MAX_ROWS} more",
    ]
    assert f"{1000 - MAX_ROWS} more" in records._repr_html_()


@pytest.mark.parametrize("hostile", ["<b>bold</b>", "[bold]markup[/]", "\x1b[2J", "two\nlines"])
def test_a_hostile_text_is_displayed_as_text(hostile: str) -> None:
    records = Records([{"name": hostile}], ["name"])
    assert "\x1b" not in repr(records) and len(repr(records).splitlines()) == 3
    assert "<b>" not in records._repr_html_()
    if hostile.isprintable():
        assert hostile in repr(records)


@given(st.lists(st.integers(1, 24), min_size=1, max_size=6), st.integers(20, 120))
def test_columns_that_fit_are_shown_without_a_break(sizes: list[int], width: int) -> None:
    """All columns may be left out but the first, the last one before the others."""
    names = [f"c{number}" for number in range(len(sizes))]
    row = {name: "x" * max(size, 2) for name, size in zip(names, sizes, strict=True)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        lines = repr(Records([row], names, optional=names[:0:-1])).splitlines()
    count = len(lines[0].split())
    assert lines[0].split() == names[:count] and max(map(len, lines)) <= width

    def measure(number: int) -> int:
        return sum(len(row[name]) for name in names[:number]) + 2 * (number - 1)

    if measure(1) <= width:
        assert lines[2].split() == [row[name] for name in names[:count]]
    assert count == len(names) or measure(count + 1) > width
