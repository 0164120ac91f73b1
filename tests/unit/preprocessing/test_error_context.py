"""The error of a table whose reading runs out of time: its detail contains the progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from cerebro_plpy.errors import OutOfTime
from cerebro_plpy.preprocessing.rows.column_batches import MOST_COLUMNS
from cerebro_plpy.preprocessing.rows.error_context import error_step
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.rows.statistics import gather_statistics
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression

ALL = Source("t", Expression("true"), Expression("0::bigint"))


class Reader:
    """A session whose time suffices for a number of statements."""

    def __init__(self, statements: int) -> None:
        self._remaining = statements

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if not self._remaining:
            raise OutOfTime("time is up")
        self._remaining -= 1
        if "percentile_disc" in statement:
            return [(None, 3, 2, 0.0, 1.0) * MOST_COLUMNS]
        return [(3, *((3, 0.0, 1.0) * MOST_COLUMNS))]


@pytest.mark.parametrize(
    ("statements", "columns"),
    [(0, 0), (1, 0), (2, MOST_COLUMNS), (3, MOST_COLUMNS), (4, 2 * MOST_COLUMNS)],
)
def test_the_error_counts_the_columns_that_were_read(statements: int, columns: int) -> None:
    names = [f"c{number}" for number in range(3 * MOST_COLUMNS)]
    table_columns = [RawColumn(name, "integer", "integer", False) for name in names]
    with pytest.raises(OutOfTime) as caught:
        gather_statistics(Reader(statements), ALL, table_columns)
    assert caught.value.detail == (
        f"Columns that have been looked at: {columns} of {3 * MOST_COLUMNS}."
    )


def test_the_innermost_step_adds_the_detail() -> None:
    with pytest.raises(OutOfTime) as caught, error_step("outer"), error_step("inner"):
        raise OutOfTime("time is up")
    assert caught.value.detail == "inner"
