"""Statistics of raw columns over training rows: one pass over all rows, one over samples.

Samples, whose rows are chosen by a hash, give quantiles, numbers of distinct values, and the values
of categories. The pass over all rows takes the extremes of columns as they are stored, which costs
little; columns whose range that does not give are read once more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.kinds.category import MOST_CATEGORIES
from cerebro_plpy.preprocessing.rows.error_context import error_step
from cerebro_plpy.preprocessing.values import column_values
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression, combined_values
from cerebro_plpy.preprocessing.values.families import JSON, MOMENTS, TEXT

SAMPLE = 200_000
"""Rows for the values of categories, each of which must occur more than once."""
QUANTILES_SAMPLE = 20_000
PIECES = 32
"""Pieces that quantiles divide the sample into."""
AT_ONCE = 100
"""Columns of one statement; PostgreSQL's limit for a result is 1,664."""
SHARES = f"{{{', '.join(str(piece / PIECES) for piece in range(1, PIECES))}}}"
MONOTONIC_PARTS = ("", "epoch", "year")
"""Parts that are greater for a greater value, except in unordered families."""
UNORDERED_FAMILIES = ("interval", JSON)
"""Spans of time, because their order takes a month for 30 days; and JSON."""
VALUES_IN_RANGE = 7
"""How often the expression of a number occurs in `features.range`."""
SETS_AT_ONCE = 30
"""PostgreSQL's limit of arguments of GROUPING."""


class Source(NamedTuple):
    """Rows to learn from; expressions are over a row `t`."""

    table: str  # quoted
    side: Expression  # the condition that a row counts
    hash: Expression  # a bigint that depends on the values that name the row alone
    rows: int | None = None
    sample: Sample | None = None  # a stored sample of these rows

    def few(self, rows: int, size: int) -> Source:
        """Return about `size` rows, chosen by the hash; a larger choice contains a smaller.

        Other bits of the hash decide the side of a row.

        Args:
            rows: the number of rows of the source.
        """
        if rows <= size:
            return self._replace(sample=None)
        rows_to_choose: Source | Sample = self
        if self.sample is not None and rows == self.rows and size <= SAMPLE:
            rows_to_choose = self.sample
        hash_, side = rows_to_choose.hash, rows_to_choose.side
        chosen = f"(({hash_.text}) >> 32 & 2147483647::bigint) % {max(1, rows)}::bigint < {size}"
        condition = Expression(f"{chosen} AND {side.text}", (*hash_.values, *side.values))
        return Source(rows_to_choose.table, condition, hash_)


class Sample(NamedTuple):
    """A table of some of the rows of a source, with fields as in `Source`."""

    table: str
    side: Expression
    hash: Expression


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


class TextStatistics(NamedTuple):
    """Statistics of a column of texts."""

    rows: int  # that have a text
    sampled: int
    distinct: int  # in the sample
    words: float  # the mean number in the sample


class Statistics(NamedTuple):
    """Statistics of all columns."""

    rows: int
    spreads: dict[tuple[str, str], NumberStatistics]  # by column and part; a number has part ''
    texts: dict[str, TextStatistics]

    def coarser(self, pieces: int) -> Statistics:
        """Return the statistics with quantiles of at most `pieces` pieces."""
        return self._replace(
            spreads={name: spread.coarser(pieces) for name, spread in self.spreads.items()}
        )

    def present(self, column: str) -> int:
        """Return the number of rows in which a column has a value."""
        if column in self.texts:
            return self.texts[column].rows
        return max(spread.rows for (name, _), spread in self.spreads.items() if name == column)


class _Question(NamedTuple):
    """A value of a column that statistics are computed of."""

    column: RawColumn
    part: str | None  # '' for a number, None for a text
    value: Expression

    @property
    def name(self) -> tuple[str, str]:
        """The column and the part."""
        return self.column.name, self.part or ""


class _Range(NamedTuple):
    rows: int
    low: float | None
    high: float | None

    @property
    def finite(self) -> bool:
        """True if both ends are known and finite, or there are no numbers."""
        return not self.rows or all(end is not None and math.isfinite(end) for end in self[1:])


class _Sampled(NamedTuple):
    quantiles: list[float] | None
    sampled: int
    distinct: int
    low: float | None
    high: float | None


_Ranges = dict[tuple[str, str], _Range]


def gather_statistics(reader: Reader, source: Source, columns: Sequence[RawColumn]) -> Statistics:
    """Return the statistics of columns."""
    rows = 0
    texts: dict[str, TextStatistics] = {}
    spreads: dict[tuple[str, str], NumberStatistics] = {}
    usable = [column for column in columns if column.family is not None]
    for start in range(0, max(1, len(usable)), AT_ONCE):
        batch = usable[start : start + AT_ONCE]
        questions = [each for column in batch for each in _questions(column)]
        sampled: dict[tuple[str, str], Any] = {}
        with error_step(f"{start} of {len(usable)} columns have been looked at."):
            rows, ranges = _extremes(reader, source, batch)
            for first in range(0, len(questions), AT_ONCE):
                sampled |= _read_sample(reader, source, questions[first : first + AT_ONCE], rows)
            ranges |= _missing_ranges(reader, source, questions, ranges, sampled)
        for each in questions:
            if each.part is None:
                texts[each.column.name] = TextStatistics(
                    ranges[each.name].rows, *sampled[each.name]
                )
            else:
                spreads[each.name] = _spread(ranges[each.name], sampled[each.name])
    return Statistics(rows, spreads, texts)


def _questions(column: RawColumn) -> Iterator[_Question]:
    """Yield the values of a column that statistics are computed of."""
    if column.family == TEXT:
        yield _Question(column, None, column_values.distinct_text(column.name))
    elif column.family in MOMENTS:
        for part in MOMENTS[column.family]:
            yield _Question(column, part, column_values.date_part(column.name, column.family, part))
    elif column.family is not None:
        yield _Question(column, "", column_values.number(column.name, column.family))


def _extremes(reader: Reader, source: Source, columns: Sequence[RawColumn]) -> tuple[int, _Ranges]:
    """Return the number of rows, and the ranges that follow from the extremes of each column."""
    aggregates: list[str] = []
    results: list[Expression] = []
    names: list[tuple[str, str]] = []
    for place, column in enumerate(columns):
        name = f"t.{quote_identifier(column.name)}"
        aggregates.append(f", pg_catalog.count({name}) AS n{place}")
        rising = [
            each.part
            for each in _questions(column)
            if each.part in MONOTONIC_PARTS and column.family not in UNORDERED_FAMILIES
        ]
        if rising:
            aggregates.append(
                f", pg_catalog.min({name}) AS l{place}, pg_catalog.max({name}) AS h{place}"
            )
        for part in rising or ["epoch" if column.family in MOMENTS else ""]:
            names.append((column.name, part or ""))
            ends = [NULL, NULL]
            if rising:
                ends = [_part_of(f"{end}{place}", column.family, part) for end in "lh"]
            results += [Expression(f"t.n{place}"), *ends]
    statement = sql(
        "features.extremes",
        aggregates="".join(aggregates),
        found=", ".join(
            ["t.rows", *(f"{each.text} AS x{place}" for place, each in enumerate(results))]
        ),
        source=source.table,
        side=source.side.text,
    )
    ((rows, *cells),) = reader.run(statement, (*combined_values(results), *source.side.values))
    return rows, dict(zip(names, _read_ranges(cells)))


def _read_ranges(cells: Sequence[Any]) -> Iterator[_Range]:
    """Yield the ranges in a row of statements: each is a count, a low and a high end."""
    for start in range(0, len(cells), 3):
        yield _Range(*cells[start : start + 3])


NULL = Expression("NULL::double precision")


def _part_of(name: str, family: str | None, part: str | None) -> Expression:
    if part:
        return column_values.date_part(name, family or "", part)
    return column_values.number(name, family or "")


def _missing_ranges(
    reader: Reader,
    source: Source,
    questions: Sequence[_Question],
    ranges: _Ranges,
    sampled: Mapping[Any, Any],
) -> _Ranges:
    """Return the ranges of numbers that do not follow from their extremes.

    A part of a date with several values in the sample has about the range that it has there. All
    other ranges, such as those of columns with infinite numbers, are read from all rows.
    """
    result: _Ranges = {}
    unknown: list[_Question] = []
    for each in questions:
        whole = ranges.get((each.column.name, "epoch")) or ranges[each.column.name, ""]
        if each.part is None or ranges.get(each.name, _Range(1, None, None)).finite:
            continue
        sample: _Sampled = sampled[each.name]
        if not whole.rows:
            result[each.name] = whole
        elif each.name not in ranges and whole.finite and sample.distinct > 1:
            result[each.name] = _Range(whole.rows, sample.low, sample.high)
        else:
            unknown.append(each)
    for start in range(0, len(unknown), AT_ONCE):
        result |= _ranges(reader, source, unknown[start : start + AT_ONCE])
    return result


def _ranges(reader: Reader, source: Source, questions: Sequence[_Question]) -> _Ranges:
    """Read ranges from all rows; each expression stands in several aggregates of one scan."""
    statement = sql(
        "features.spread",
        aggregates=", ".join(
            sql("features.range", c=each.value.text, n=f"c{n}") for n, each in enumerate(questions)
        ),
        source=source.table,
        side=source.side.text,
    )
    values = [value for each in questions for value in each.value.values * VALUES_IN_RANGE]
    (cells,) = reader.run(statement, (*values, *source.side.values))
    return dict(zip((each.name for each in questions), _read_ranges(cells)))


def _read_sample(
    reader: Reader, source: Source, questions: Sequence[_Question], rows: int
) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Read the statistics of the sample."""
    if not questions:
        return {}
    names = [f"c{number}" for number in range(len(questions))]
    few = source.few(rows, QUANTILES_SAMPLE)
    statement = sql(
        "features.sample",
        columns=", ".join(f"{each.value.text} AS {name}" for name, each in zip(names, questions)),
        aggregates=", ".join(_aggregates(each, name) for name, each in zip(names, questions)),
        source=few.table,
        side=few.side.text,
    )
    values = combined_values(each.value for each in questions)
    (cells,) = reader.run(statement, (*values, *few.side.values))
    remaining = iter(cells)
    return {each.name: _read_answer(each, remaining) for each in questions}


def _aggregates(question: _Question, name: str) -> str:
    if question.part is None:
        return sql("features.sampled_texts", c=name)
    kind = "different" if question.column.family == "integer" else "several"
    different = sql(f"features.{kind}_numbers", c=name)
    return sql("features.sampled_numbers", c=name, different=different, shares=SHARES)


def _read_answer(question: _Question, cells: Iterator[Any]) -> tuple[Any, ...]:
    """Read the cells of one question."""
    if question.part is None:
        sampled, distinct, words = (next(cells) for _ in range(3))
        return sampled, distinct, words or 0.0
    return _Sampled(*(next(cells) for _ in range(5)))


def _spread(everywhere: _Range, few: _Sampled) -> NumberStatistics:
    quantiles = None if few.quantiles is None else tuple(few.quantiles)
    return NumberStatistics(
        everywhere.rows, everywhere.low, everywhere.high, quantiles, few.sampled, few.distinct
    )


def read_categories(
    reader: Reader, source: Source, columns: Sequence[RawColumn], rows: int
) -> dict[str, tuple[str, ...]]:
    """Return the values that a sample has more than once by column, the most frequent first."""
    result: dict[str, list[str]] = {column.name: [] for column in columns}
    few = source.few(rows, SAMPLE)
    for start in range(0, len(columns), SETS_AT_ONCE):
        batch = columns[start : start + SETS_AT_ONCE]
        names = [f"c{number}" for number in range(len(batch))]
        values = [column_values.distinct_text(column.name, column.family) for column in batch]
        statement = sql(
            "features.categories",
            names=", ".join(names),
            columns=", ".join(f"{value.text} AS {name}" for name, value in zip(names, values)),
            sets=", ".join(f"({name})" for name in names),
            source=few.table,
            side=few.side.text,
        )
        # GROUPING sets the bits of the columns that a row is not grouped by; the first is highest.
        all_bits = (1 << len(batch)) - 1
        column_by_grouping = {
            all_bits - (1 << (len(batch) - 1 - place)): column.name
            for place, column in enumerate(batch)
        }
        for grouping, value, _ in reader.run(statement, (*few.side.values, MOST_CATEGORIES)):
            result[column_by_grouping[grouping]].append(value)
    return {name: tuple(values) for name, values in result.items()}
