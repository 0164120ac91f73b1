"""Remarks about columns of numbers that may name a row, or be points in time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.remarks.column_remarks import (
    ColumnRemark,
    columns_argument,
    view_column,
)
from cerebro_plpy.preprocessing.remarks.row_names import describe_row_numbers
from cerebro_plpy.preprocessing.rows.statistics import NumberStatistics, Statistics
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import NUMBERS

FEWEST_VALUES = 10
"""Fewer distinct quantiles are codes rather than points in time."""
UNITS = {1: "seconds", 1000: "milliseconds"}
"""Units that programs count the time since 1970 in, by their number in a second."""
EARLIEST = datetime(2000, 1, 1, tzinfo=timezone.utc)
LATEST = datetime(2040, 1, 1, tzinfo=timezone.utc)
YEARS = range(1900, 2101)


def remark_numbers(column: RawColumn, statistics: Statistics) -> Iterator[ColumnRemark]:
    """Yield the remarks about a column of numbers."""
    spread = statistics.spreads.get((column.name, ""))
    if column.family not in NUMBERS or spread is None:
        return
    row_numbers = describe_row_numbers(column, spread)
    points = _describe_points(column.name, spread)
    if points:
        yield ColumnRemark(column.name, points)
    elif row_numbers:
        advice = columns_argument(column.name)
        yield ColumnRemark(column.name, f"{row_numbers}. If it names a row, leave it out: {advice}")


def _describe_points(name: str, spread: NumberStatistics) -> str | None:
    """Return the remark about numbers that look like points in time; None if they do not."""
    if spread.low is None or spread.high is None:
        return None
    values = sorted({spread.low, *(spread.quantiles or ()), spread.high})
    if len(values) < FEWEST_VALUES or any(value % 1 for value in values):
        return None
    quoted = quote_identifier(name)
    if all(map(_is_written_date, values)):
        cast = f"to_date({quoted}::bigint::text, 'YYYYMMDD')"
        return (
            f"its numbers look like dates, {values[0]:.0f} to {values[-1]:.0f}. If they are, write "
            f"{view_column(name, cast)} in a view, and train on that"
        )
    for per_second, unit in UNITS.items():
        low = values[0] / per_second
        high = values[-1] / per_second
        if EARLIEST.timestamp() <= low and high < LATEST.timestamp():
            first = datetime.fromtimestamp(low, timezone.utc)
            last = datetime.fromtimestamp(high, timezone.utc)
            number = quoted if per_second == 1 else f"{quoted} / {per_second}.0"
            return (
                f"its numbers look like {unit} since 1970, {first:%Y-%m-%d} to {last:%Y-%m-%d}. If "
                f"they are, write {view_column(name, f'to_timestamp({number})')} in a "
                "view, and train on that"
            )
    return None


def _is_written_date(value: float) -> bool:
    """Return whether a number has the digits of a date: year, month, day."""
    text = f"{value:.0f}"
    try:
        return len(text) == 8 and datetime.strptime(text, "%Y%m%d").year in YEARS
    except ValueError:
        return False
