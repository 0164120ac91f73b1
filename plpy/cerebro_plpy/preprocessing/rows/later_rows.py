"""Columns that run ahead: most of the last rows, which are held back, have values beyond others.

Such a column shows when a row was made, as a time, a serial number or a running total does. Later
rows have values that no model has seen, and networks extrapolate from them without bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.preprocessing.rows.column_batches import split_batches
from cerebro_plpy.preprocessing.rows.source import QUANTILES_SAMPLE, Source
from cerebro_plpy.preprocessing.rows.statistics import Statistics, list_parts, write_number
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import JSON, MOMENTS, NUMBERS, TEXT_NUMBERS

ORDERED = frozenset((*NUMBERS, JSON, *TEXT_NUMBERS, *MOMENTS))
"""Families of numbers, and of points and spans of time."""
AHEAD_SHARE = 0.5
"""Share of the rows held back whose values are beyond those of the training rows."""


def find_columns_ahead(
    reader: Reader,
    later_rows: Source | None,
    columns: Sequence[RawColumn],
    statistics: Statistics,
) -> frozenset[str]:
    """Return the columns of numbers and of times that run ahead.

    Args:
        later_rows: the rows held back; None if they are not the last ones.
        statistics: of the training rows.
    """
    if later_rows is None:
        return frozenset()
    candidates = [column for column in columns if column.family in ORDERED]
    sample = later_rows.choose_rows(statistics.rows, QUANTILES_SAMPLE)
    names: set[str] = set()
    for batch in split_batches(candidates):
        counts = _count_rows_ahead(reader, sample, batch, statistics)
        names.update(
            column.name
            for column, (rows, rows_ahead) in zip(batch, counts)
            if rows_ahead > AHEAD_SHARE * rows
        )
    return frozenset(names)


def _count_rows_ahead(
    reader: Reader, sample: Source, columns: Sequence[RawColumn], statistics: Statistics
) -> Iterator[tuple[int, int]]:
    """Yield for each column the rows with a value, and those beyond the training rows."""
    items: list[str] = []
    values: list[object] = []
    for position, column in enumerate(columns):
        part = list_parts(column)[0]  # the seconds of a time
        number = write_number(column.name, column, part)
        spread = statistics.spreads[column.name, part]
        items.append(sql("features.rows_ahead", number=number.text, n=f"c{position}"))
        values += [*number.values * 2, spread.low, *number.values, spread.high]
    statement = sql(
        "features.spread",
        aggregates=", ".join(items),
        source=sample.table,
        side=sample.side.text,
    )
    (counts,) = reader.run(statement, (*values, *sample.side.values))
    return ((counts[start], counts[start + 1]) for start in range(0, len(counts), 2))
