"""Remarks about columns of whole numbers that may name a row, or be points in time."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebro_plpy.preprocessing.remarks.number_remarks import remark_numbers
from cerebro_plpy.preprocessing.remarks.row_names import (
    MIN_ROWS,
    describe_row_numbers,
    has_naming_name,
)
from cerebro_plpy.preprocessing.rows.statistics import NumberStatistics, Statistics
from cerebro_plpy.preprocessing.values.columns import RawColumn

NAMING = (
    *("id", "PassengerId", "customerID", "user_id", "RowNumber", "EmployeeNumber", "seq_no"),
    *("Row No", "order.nr", "primary_key", "index", "uid", "rownum", "Unnamed: 0", "row.names"),
)
OTHERS = ("paid", "bid", "grid", "number_of_rooms", "Id Type", "piano", "monkey", "keyboard", "2")


def spread_of(values: list[float]) -> NumberStatistics:
    """The statistics of numbers; with few of them, all are quantiles."""
    ordered = sorted(values)
    return NumberStatistics(
        rows=len(values),
        low=ordered[0],
        high=ordered[-1],
        quantiles=tuple(ordered[1:-1]),
        sampled=len(values),
        distinct=len(set(values)),
    )


def remarks(name: str, values: list[float], family: str = "integer") -> list[str]:
    """The texts of the remarks about a column."""
    statistics = Statistics(len(values), {(name, ""): spread_of(values)}, {})
    return [
        each.text for each in remark_numbers(RawColumn(name, family, family, False), statistics)
    ]


@pytest.mark.parametrize("name", NAMING)
def test_the_last_word_says_that_a_column_names_a_row(name: str) -> None:
    assert has_naming_name(name)


@pytest.mark.parametrize("name", OTHERS)
def test_a_word_elsewhere_does_not(name: str) -> None:
    assert not has_naming_name(name)


@given(start=st.integers(-1000, 10**12), rows=st.integers(MIN_ROWS, 60), data=st.data())
def test_numbers_without_gaps_may_name_a_row(start: int, rows: int, data: st.DataObject) -> None:
    """So may those of a table of which some rows are held back; numbers far apart do not."""
    numbers = data.draw(
        st.lists(st.integers(0, 2 * rows - 2), min_size=rows, max_size=rows, unique=True)
    )
    column = RawColumn("x", "integer", "integer", False)
    dense = spread_of([float(start + number) for number in numbers])
    assert "hardly a gap" in str(describe_row_numbers(column, dense))
    apart = spread_of([float(start + 7 * number) for number in range(rows)])
    assert describe_row_numbers(column, apart) is None
    assert describe_row_numbers(column._replace(name="userid"), apart) is not None
    repeated = spread_of([float(start + number // 2) for number in range(rows)])
    assert describe_row_numbers(column._replace(name="userid"), repeated) is None


@pytest.mark.parametrize(("unit", "per_second"), [("seconds", 1), ("milliseconds", 1000)])
def test_seconds_since_1970_are_shown_with_the_cast(unit: str, per_second: int) -> None:
    values = [
        (datetime(2023, 1, 5, tzinfo=UTC) + timedelta(hours=7 * n)).timestamp() * per_second
        for n in range(200)
    ]
    (text,) = remarks('Seen "at"', values)
    number = '"Seen ""at"""' if per_second == 1 else '"Seen ""at""" / 1000.0'
    assert f"{unit} since 1970, 2023-01-05 to 2023-03-04" in text
    assert f'to_timestamp({number}) AS "Seen ""at"""' in text


@given(st.lists(st.dates(date(1900, 1, 1), date(2100, 12, 31)), min_size=12, unique=True))
def test_numbers_with_the_digits_of_dates_are_shown_with_the_cast(days: list[date]) -> None:
    (text,) = remarks("day", [float(f"{day:%Y%m%d}") for day in days])
    assert 'to_date("day"::bigint::text, \'YYYYMMDD\') AS "day"' in text
    assert remarks("day", [*(float(f"{day:%Y%m%d}") for day in days), 20241301.0]) == []


@pytest.mark.parametrize(
    "values",
    [[float(n * 37 % 1000) for n in range(100)], [1.7e9 + n * 0.5 for n in range(100)], [3.0] * 50],
)
def test_other_numbers_are_not_remarked_on(values: list[float]) -> None:
    assert remarks("amount", values, "real") == []
