"""What training rows say about raw columns, by set-wise SQL: of all rows, and of samples of them, a
pass each.

Quantiles, how many values differ, and which values a category has come of samples, whose rows are
chosen by a hash. All rows are asked of the columns as they are, so that it costs little; where that
does not tell the range, those columns are looked at again.
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
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import JSON, MOMENTS, TEXT

SAMPLE, QUANTILES_SAMPLE = 200_000, 20_000
"""Rows that tell which values categories have, of which each is to be there more than once; and
what numbers are.
"""
PIECES = 32
"""Quantiles divide the sample into so many pieces."""
AT_ONCE = 100
"""Columns in one statement, whose result may have 1,664."""
SHARES = f"{{{', '.join(str(piece / PIECES) for piece in range(1, PIECES))}}}"
RISING = ("", "epoch", "year")
"""What is greater of a greater value; but for those families."""
UNORDERED = ("interval", JSON)
"""Of spans of time, in whose order a month has 30 days; and of JSON."""
PLACES = 7
"""Where the expression of a number stands in `features.range`."""
SETS_AT_ONCE = 30
"""As many as GROUPING takes."""


class Source(NamedTuple):
    """Rows to learn from: a table by its quoted name, and SQL over its rows `t` that says which of
    them count.

    `hash` is a bigint that no other column decides but those that name the row. Of so many `rows` a
    `sample` may have been kept.
    """

    table: str
    side: Expression
    hash: Expression
    rows: int | None = None
    sample: Sample | None = None

    def few(self, rows: int, size: int) -> Source:
        """About so many of the rows, of which there are `rows`, by the hash; fewer are a part of
        more.

        Other bits of the hash say on which side a row is.
        """
        if rows <= size:
            return self._replace(sample=None)
        there = self.sample is not None and rows == self.rows and size <= SAMPLE
        table, side, hashed = self.sample if self.sample and there else self[:3]
        some = f"(({hashed.text}) >> 32 & 2147483647::bigint) % {max(1, rows)}::bigint < {size}"
        return Source(
            table, Expression(f"{some} AND {side.text}", (*hashed.values, *side.values)), hashed
        )


class Sample(NamedTuple):
    """A table of some of the rows of a source, as `Source` describes them."""

    table: str
    side: Expression
    hash: Expression


class NumberStatistics(NamedTuple):
    """Of a column of numbers: how many there are, the range and quantiles of the finite ones,
    PIECES - 1 or three.

    Of the sample: how many there are, and how many of them differ; but of numbers that are not all
    whole, and of parts of time, only whether none do (0 or 1), or some (2).
    """

    rows: int
    low: float | None
    high: float | None
    quantiles: tuple[float, ...] | None
    sampled: int
    distinct: int

    @property
    def quartiles(self) -> tuple[float, float, float] | None:
        """Those of the quantiles that divide the sample into four."""
        if self.quantiles is None:
            return None
        quarter = (len(self.quantiles) + 1) // 4
        first, middle, last = self.quantiles[quarter - 1 :: quarter]
        return first, middle, last

    def coarser(self, pieces: int) -> NumberStatistics:
        """The same with the quantiles of fewer pieces, where they have more."""
        step = 1 if self.quantiles is None else max(1, (len(self.quantiles) + 1) // pieces)
        return (
            self if step == 1 else self._replace(quantiles=(self.quantiles or ())[step - 1 :: step])
        )


class TextStatistics(NamedTuple):
    """Of a column of texts: how many there are; of the sample how many, how many of them differ,
    and their words.
    """

    rows: int
    sampled: int
    distinct: int
    words: float


class Statistics(NamedTuple):
    """Of all columns: `spreads` by column and part, where a number itself has the part ''."""

    rows: int
    spreads: dict[tuple[str, str], NumberStatistics]
    texts: dict[str, TextStatistics]

    def coarser(self, pieces: int) -> Statistics:
        """The same with quantiles that divide each sample into fewer pieces."""
        return self._replace(
            spreads={name: spread.coarser(pieces) for name, spread in self.spreads.items()}
        )

    def present(self, column: str) -> int:
        """In how many rows a column has a value."""
        if column in self.texts:
            return self.texts[column].rows
        return max(spread.rows for (name, _), spread in self.spreads.items() if name == column)


class _Question(NamedTuple):
    """What is asked of a column: of a part of it, or of all of a number; the part is None of a
    text.
    """

    column: RawColumn
    part: str | None
    value: Expression

    @property
    def name(self) -> tuple[str, str]:
        """By which it is known."""
        return self.column.name, self.part or ""


class _Range(NamedTuple):
    rows: int
    low: float | None
    high: float | None

    @property
    def finite(self) -> bool:
        """True if it is that of all numbers, or there are none."""
        return not self.rows or all(end is not None and math.isfinite(end) for end in self[1:])


class _Sampled(NamedTuple):
    quantiles: list[float] | None
    sampled: int
    different: int
    low: float | None
    high: float | None


_Ranges = dict[tuple[str, str], _Range]


def gather_statistics(reader: Reader, source: Source, columns: Sequence[RawColumn]) -> Statistics:
    """Look at all training rows, and closer at a sample of them."""
    rows, texts, spreads = 0, dict[str, TextStatistics](), dict[tuple[str, str], NumberStatistics]()
    usable = [column for column in columns if column.family is not None]
    for start in range(0, max(1, len(usable)), AT_ONCE):
        part = usable[start : start + AT_ONCE]
        questions = [each for column in part for each in _questions(column)]
        few: dict[tuple[str, str], Any] = {}
        with error_step(f"{start} of {len(usable)} columns have been looked at."):
            rows, ranges = _extremes(reader, source, part)
            for first in range(0, len(questions), AT_ONCE):
                few |= _sampled(reader, source, questions[first : first + AT_ONCE], rows)
            ranges |= _looked_at_again(reader, source, questions, ranges, few)
        for each in questions:
            if each.part is None:
                texts[each.column.name] = TextStatistics(ranges[each.name].rows, *few[each.name])
            else:
                spreads[each.name] = _spread(ranges[each.name], few[each.name])
    return Statistics(rows, spreads, texts)


def _questions(column: RawColumn) -> Iterator[_Question]:
    if column.family == TEXT:
        yield _Question(column, None, column_values.distinct_text(column.name))
    elif column.family in MOMENTS:
        for part in MOMENTS[column.family]:
            yield _Question(column, part, column_values.date_part(column.name, column.family, part))
    elif column.family is not None:
        yield _Question(column, "", column_values.number(column.name, column.family))


def _extremes(reader: Reader, source: Source, columns: Sequence[RawColumn]) -> tuple[int, _Ranges]:
    """How many rows there are, and what follows of the least and the greatest value of each
    column.
    """
    aggregates, found, names = list[str](), list[Expression](), list[tuple[str, str]]()
    for place, column in enumerate(columns):
        name = f"t.{quote_identifier(column.name)}"
        aggregates.append(f", pg_catalog.count({name}) AS n{place}")
        rising = [
            each.part
            for each in _questions(column)
            if each.part in RISING and column.family not in UNORDERED
        ]
        if rising:
            aggregates.append(
                f", pg_catalog.min({name}) AS l{place}, pg_catalog.max({name}) AS h{place}"
            )
        for part in rising or ["epoch" if column.family in MOMENTS else ""]:
            names.append((column.name, part or ""))
            ends = (
                [_made(f"{end}{place}", column.family, part) for end in "lh"]
                if rising
                else [NULL, NULL]
            )
            found += [Expression(f"t.n{place}"), *ends]
    statement = sql(
        "features.extremes",
        aggregates="".join(aggregates),
        found=", ".join(
            ["t.rows", *(f"{each.text} AS x{place}" for place, each in enumerate(found))]
        ),
        source=source.table,
        side=source.side.text,
    )
    values = [value for each in found for value in each.values]
    ((rows, *told),) = reader.run(statement, (*values, *source.side.values))
    return rows, {
        name: _Range(*told[3 * place : 3 * place + 3]) for place, name in enumerate(names)
    }


NULL = Expression("NULL::double precision")


def _made(name: str, family: str | None, part: str | None) -> Expression:
    return (
        column_values.date_part(name, family or "", part)
        if part
        else column_values.number(name, family or "")
    )


def _looked_at_again(
    reader: Reader,
    source: Source,
    questions: Sequence[_Question],
    ranges: _Ranges,
    sampled: Mapping[Any, Any],
) -> _Ranges:
    """The ranges of numbers that neither their extremes nor the sample tell: those with infinite
    ones, and the like.

    A part of time that has several values in the sample has about its range there.
    """
    told: _Ranges = {}
    doubtful: list[_Question] = []
    for each in questions:
        whole = ranges.get((each.column.name, "epoch")) or ranges[each.column.name, ""]
        if each.part is None or ranges.get(each.name, _Range(1, None, None)).finite:
            continue
        few: _Sampled = sampled[each.name]
        if not whole.rows:
            told[each.name] = whole
        elif each.name not in ranges and whole.finite and few.different > 1:
            told[each.name] = _Range(whole.rows, few.low, few.high)
        else:
            doubtful.append(each)
    for start in range(0, len(doubtful), AT_ONCE):
        told |= _ranges(reader, source, doubtful[start : start + AT_ONCE])
    return told


def _ranges(reader: Reader, source: Source, questions: Sequence[_Question]) -> _Ranges:
    """Expressions stand in several aggregates, so that nothing keeps the rows from being shared."""
    statement = sql(
        "features.spread",
        aggregates=", ".join(
            sql("features.range", c=each.value.text, n=f"c{n}") for n, each in enumerate(questions)
        ),
        source=source.table,
        side=source.side.text,
    )
    values = [value for each in questions for value in each.value.values * PLACES]
    (found,) = reader.run(statement, (*values, *source.side.values))
    return {
        each.name: _Range(*found[3 * place : 3 * place + 3]) for place, each in enumerate(questions)
    }


def _sampled(
    reader: Reader, source: Source, questions: Sequence[_Question], rows: int
) -> dict[tuple[str, str], tuple[Any, ...]]:
    """What the sample says."""
    if not questions:
        return {}
    names, few = (
        [f"c{number}" for number in range(len(questions))],
        source.few(rows, QUANTILES_SAMPLE),
    )
    statement = sql(
        "features.sample",
        columns=", ".join(f"{each.value.text} AS {name}" for name, each in zip(names, questions)),
        aggregates=", ".join(_aggregates(each, name) for name, each in zip(names, questions)),
        source=few.table,
        side=few.side.text,
    )
    values = [value for each in questions for value in each.value.values]
    (found,) = reader.run(statement, (*values, *few.side.values))
    answers = iter(found)
    return {each.name: _answer(each, answers) for each in questions}


def _aggregates(question: _Question, name: str) -> str:
    if question.part is None:
        return sql("features.sampled_texts", c=name)
    kind = "different" if question.column.family == "integer" else "several"
    different = sql(f"features.{kind}_numbers", c=name)
    return sql("features.sampled_numbers", c=name, different=different, shares=SHARES)


def _answer(question: _Question, answers: Iterator[Any]) -> tuple[Any, ...]:
    if question.part is None:
        sampled, different, words = (next(answers) for _ in range(3))
        return sampled, different, words or 0.0
    return _Sampled(*(next(answers) for _ in range(5)))


def _spread(everywhere: _Range, few: _Sampled) -> NumberStatistics:
    quantiles = None if few.quantiles is None else tuple(few.quantiles)
    return NumberStatistics(
        everywhere.rows, everywhere.low, everywhere.high, quantiles, few.sampled, few.different
    )


def read_categories(
    reader: Reader, source: Source, columns: Sequence[RawColumn], rows: int
) -> dict[str, tuple[str, ...]]:
    """The values of each of these columns that a sample of so many rows has more than once, the
    most frequent first.
    """
    found: dict[str, list[str]] = {column.name: [] for column in columns}
    few = source.few(rows, SAMPLE)
    for start in range(0, len(columns), SETS_AT_ONCE):
        part = columns[start : start + SETS_AT_ONCE]
        names = [f"c{number}" for number in range(len(part))]
        values = [column_values.distinct_text(column.name, column.family) for column in part]
        statement = sql(
            "features.categories",
            names=", ".join(names),
            columns=", ".join(f"{value.text} AS {name}" for name, value in zip(names, values)),
            sets=", ".join(f"({name})" for name in names),
            source=few.table,
            side=few.side.text,
        )
        everywhere = (1 << len(part)) - 1
        # The bit of the first column is the highest.
        place_of = {
            everywhere - (1 << (len(part) - 1 - place)): column.name
            for place, column in enumerate(part)
        }
        for place, value, _ in reader.run(statement, (*few.side.values, MOST_CATEGORIES)):
            found[place_of[place]].append(value)
    return {name: tuple(values) for name, values in found.items()}
