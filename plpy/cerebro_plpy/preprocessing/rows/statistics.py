"""Statistics of raw columns over training rows: one pass over all rows, one over samples.

Samples give quantiles, numbers of distinct values, and the values of categories. The pass over all
rows takes the extremes of columns as they are stored, which costs little. Columns whose range does
not follow from these are read once more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.kinds.category import MOST_CATEGORIES
from cerebro_plpy.preprocessing.rows.column_batches import (
    MOST_COLUMNS,
    MOST_SETS,
    group_by_each,
    split_batches,
)
from cerebro_plpy.preprocessing.rows.error_context import error_step
from cerebro_plpy.preprocessing.rows.sampled_texts import (
    TextStatistics,
    has_shapes,
    read_texts,
    text_aggregates,
)
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values import column_values
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression, combined_values
from cerebro_plpy.preprocessing.values.families import (
    JSON,
    MOMENTS,
    SCALAR,
    TEXT_NUMBERS,
    TEXT_POINTS,
    TEXTS,
)
from cerebro_plpy.preprocessing.values.text_shapes import shape

PIECES = 32
"""Pieces that quantiles divide the sample into."""
SHARES = f"{{{', '.join(str(piece / PIECES) for piece in range(1, PIECES))}}}"
MONOTONIC_PARTS = ("", "epoch", "year")
"""Parts that are greater for a greater value, except in unordered families."""
UNORDERED_FAMILIES = ("interval", JSON, *TEXT_NUMBERS, *TEXT_POINTS)
"""Spans of time, because their order takes a month for 30 days; JSON, and values in texts."""
VALUES_IN_RANGE = 7
"""How often the expression of a number occurs in `features.range`."""
NULL = Expression("NULL::double precision")

ColumnPart = tuple[str, str]
"""The name of a column, and a part of its values; numbers and texts have part ''."""


class NumberStatistics(NamedTuple):
    """Statistics of a column of numbers, or of a part of a column of dates."""

    rows: int  # that have a number
    low: float | None  # the range of finite numbers
    high: float | None
    quantiles: tuple[float, ...] | None  # PIECES - 1 or three, of finite numbers of the sample
    sampled: int
    distinct: int  # in the sample; of numbers that are not whole only 0, 1, or 2 for more

    @property
    def quartiles(self) -> tuple[float, float, float] | None:
        """The quantiles that divide the sample into four."""
        if self.quantiles is None:
            return None
        quarter = (len(self.quantiles) + 1) // 4
        first, middle, last = self.quantiles[quarter - 1 :: quarter]
        return first, middle, last

    def coarser(self, pieces: int) -> NumberStatistics:
        """Return the statistics with quantiles of at most `pieces` pieces."""
        if self.quantiles is None:
            return self
        step = max(1, (len(self.quantiles) + 1) // pieces)
        return self._replace(quantiles=self.quantiles[step - 1 :: step])


class Statistics(NamedTuple):
    """Statistics of all columns."""

    rows: int
    spreads: dict[ColumnPart, NumberStatistics]
    texts: dict[str, TextStatistics]

    def coarser(self, pieces: int) -> Statistics:
        """Return the statistics with quantiles of at most `pieces` pieces."""
        return self._replace(
            spreads={part: spread.coarser(pieces) for part, spread in self.spreads.items()}
        )

    def present(self, column: str) -> int:
        """Return the number of rows in which a column has a value."""
        if column in self.texts:
            return self.texts[column].rows
        return max(spread.rows for (name, _), spread in self.spreads.items() if name == column)


class Range(NamedTuple):
    """The number of rows with a number, and the least and the greatest of them."""

    rows: int
    low: float | None
    high: float | None

    @property
    def is_finite(self) -> bool:
        """True if both ends are known and finite, or there are no numbers."""
        return not self.rows or all(end is not None and math.isfinite(end) for end in self[1:])


UNREAD = Range(1, None, None)
"""The range of a part that is not known yet."""


class SampledNumbers(NamedTuple):
    """The columns of `features.sampled_numbers`."""

    quantiles: list[float] | None
    sampled: int
    distinct: int
    low: float | None
    high: float | None

    def over(self, numbers: Range) -> NumberStatistics:
        """Return the statistics of all rows, whose range is known."""
        quantiles = None if self.quantiles is None else tuple(self.quantiles)
        return NumberStatistics(*numbers, quantiles, self.sampled, self.distinct)


class _Value(NamedTuple):
    """A value of a column that statistics are computed of."""

    part: ColumnPart
    column: RawColumn
    expression: Expression

    @property
    def is_text(self) -> bool:
        return self.column.family in TEXTS


def gather_statistics(reader: Reader, source: Source, columns: Sequence[RawColumn]) -> Statistics:
    """Return the statistics of columns."""
    rows = 0
    texts: dict[str, TextStatistics] = {}
    spreads: dict[ColumnPart, NumberStatistics] = {}
    usable = [column for column in columns if column.family is not None]
    for start in range(0, max(1, len(usable)), MOST_COLUMNS):
        batch = usable[start : start + MOST_COLUMNS]
        values = [value for column in batch for value in _list_values(column)]
        sampled: dict[ColumnPart, Any] = {}
        with error_step(f"Columns that have been looked at: {start} of {len(usable)}."):
            rows, ranges = _read_extremes(reader, source, batch)
            for some_values in split_batches(values):
                sampled |= _read_sample(reader, source, some_values, rows)
            ranges |= _read_missing_ranges(reader, source, values, ranges, sampled)
        for part, column, _ in values:
            if column.family in TEXTS:
                texts[column.name] = sampled[part].over(ranges[part].rows)
            else:
                spreads[part] = sampled[part].over(ranges[part])
    return Statistics(rows, spreads, texts)


def _list_values(column: RawColumn) -> Iterator[_Value]:
    """Yield the values of a column that statistics are computed of."""
    if column.family in TEXTS:
        yield _Value((column.name, ""), column, column_values.value_text(column))
        return
    for part in list_parts(column):
        yield _Value((column.name, part), column, write_number(column.name, column, part))


def list_parts(column: RawColumn) -> Sequence[str]:
    """Return the parts of a time, the first of which orders it; of other values part ''."""
    return MOMENTS.get(column.family or "", ("",))


def write_number(name: str, column: RawColumn, part: str) -> Expression:
    """Return a part of a value of a column, which `t` has under this name."""
    family = column.family or ""
    if part:
        return column_values.date_part(name, family, part)
    return column_values.number(name, family)


def _read_extremes(
    reader: Reader, source: Source, columns: Sequence[RawColumn]
) -> tuple[int, dict[ColumnPart, Range]]:
    """Return the number of rows, and the ranges that follow from the extremes of each column."""
    aggregates: list[str] = []
    ends: dict[ColumnPart, tuple[Expression, ...]] = {}
    for number, column in enumerate(columns):
        name = f"t.{quote_identifier(column.name)}"
        counted = name
        if column.family == SCALAR:
            counted = column_values.value_text(column).text
        aggregates.append(f", pg_catalog.count({counted}) AS n{number}")
        rows = Expression(f"t.n{number}")
        if column.family in (*TEXTS, *UNORDERED_FAMILIES):
            ends[column.name, list_parts(column)[0]] = (rows, NULL, NULL)
            continue
        aggregates.append(
            f", pg_catalog.min({name}) AS l{number}, pg_catalog.max({name}) AS h{number}"
        )
        for part in list_parts(column):
            if part in MONOTONIC_PARTS:
                low = write_number(f"l{number}", column, part)
                high = write_number(f"h{number}", column, part)
                ends[column.name, part] = (rows, low, high)
    expressions = [expression for triple in ends.values() for expression in triple]
    results = [f"{end.text} AS x{number}" for number, end in enumerate(expressions)]
    statement = sql(
        "features.extremes",
        aggregates="".join(aggregates),
        found=", ".join(["t.rows", *results]),
        source=source.table,
        side=source.side.text,
    )
    values = (*combined_values(expressions), *source.side.values)
    ((count, *cells),) = reader.run(statement, values)
    return count, dict(zip(ends, _read_ranges(cells)))


def _read_ranges(cells: Sequence[Any]) -> Iterator[Range]:
    """Yield the ranges in a row of a result, which have three columns each."""
    return (Range(*range_cells) for range_cells in split_batches(cells, len(Range._fields)))


def _read_missing_ranges(
    reader: Reader,
    source: Source,
    values: Sequence[_Value],
    ranges: Mapping[ColumnPart, Range],
    sampled: Mapping[ColumnPart, Any],
) -> dict[ColumnPart, Range]:
    """Return the ranges of numbers that do not follow from their extremes.

    A part of a date with several values in the sample has about the range that it has there. All
    other ranges, such as those of columns with infinite numbers, are read from all rows.
    """
    result: dict[ColumnPart, Range] = {}
    unknown: list[_Value] = []
    for value in values:
        part = value.part
        if value.is_text or ranges.get(part, UNREAD).is_finite:
            continue
        column_range = ranges[value.column.name, list_parts(value.column)[0]]
        numbers: SampledNumbers = sampled[part]
        if not column_range.rows:
            result[part] = column_range
        elif value.column.family in (*TEXT_NUMBERS, *TEXT_POINTS):
            # Reading all texts would take long.
            result[part] = Range(column_range.rows, numbers.low, numbers.high)
        elif part not in ranges and column_range.is_finite and numbers.distinct > 1:
            result[part] = Range(column_range.rows, numbers.low, numbers.high)
        else:
            unknown.append(value)
    for batch in split_batches(unknown):
        result |= _read_all_ranges(reader, source, batch)
    return result


def _read_all_ranges(
    reader: Reader, source: Source, values: Sequence[_Value]
) -> dict[ColumnPart, Range]:
    """Read ranges from all rows; each expression stands in several aggregates of one scan."""
    aggregates = [
        sql("features.range", c=value.expression.text, n=f"c{number}")
        for number, value in enumerate(values)
    ]
    statement = sql(
        "features.spread",
        aggregates=", ".join(aggregates),
        source=source.table,
        side=source.side.text,
    )
    constants = [
        constant for value in values for constant in value.expression.values * VALUES_IN_RANGE
    ]
    (cells,) = reader.run(statement, (*constants, *source.side.values))
    return dict(zip((value.part for value in values), _read_ranges(cells)))


def _read_sample(
    reader: Reader, source: Source, values: Sequence[_Value], rows: int
) -> dict[ColumnPart, tuple[Any, ...]]:
    """Read the statistics of the sample."""
    sample = source.choose_for_quantiles(rows)
    columns = [f"{value.expression.text} AS c{number}" for number, value in enumerate(values)]
    for number, value in enumerate(values):
        if has_shapes(value.column):
            columns.append(f"{shape(value.expression.text)} AS s{number}")
    statement = sql(
        "features.sample",
        columns=", ".join(columns),
        aggregates=", ".join(_aggregates(value, str(n)) for n, value in enumerate(values)),
        source=sample.table,
        side=sample.side.text,
    )
    constants = combined_values(value.expression for value in values)
    (cells,) = reader.run(statement, (*constants, *sample.side.values))
    remaining = iter(cells)
    return {value.part: _read_sampled(value, remaining) for value in values}


def _aggregates(value: _Value, number: str) -> str:
    """Return the aggregates of a value of the sample, which has this number there."""
    name = f"c{number}"
    if value.is_text:
        return text_aggregates(value.column, name, f"s{number}")
    count = "different" if value.column.family == "integer" else "several"
    different = sql(f"features.{count}_numbers", c=name)
    return sql("features.sampled_numbers", c=name, different=different, shares=SHARES)


def _read_sampled(value: _Value, cells: Iterator[Any]) -> tuple[Any, ...]:
    """Read the results of the aggregates of a value."""
    if value.is_text:
        return read_texts(value.column, cells)
    return SampledNumbers(*islice(cells, len(SampledNumbers._fields)))


def read_categories(
    reader: Reader, source: Source, columns: Sequence[RawColumn], rows: int
) -> dict[str, tuple[str, ...]]:
    """Return the values that a sample has more than once by column, the most frequent first."""
    values: dict[str, list[str]] = {column.name: [] for column in columns}
    sample = source.choose_for_categories(rows)
    for batch in split_batches(columns, MOST_SETS):
        sets = group_by_each([column_values.value_text(column) for column in batch])
        statement = sql(
            "features.categories", **sets.clauses, source=sample.table, side=sample.side.text
        )
        column_by_number = {number: column.name for number, column in zip(sets.numbers, batch)}
        for number, value, _ in reader.run(statement, (*sample.side.values, MOST_CATEGORIES)):
            values[column_by_number[number]].append(value)
    return {name: tuple(texts) for name, texts in values.items()}
