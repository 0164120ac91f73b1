"""What training rows say about raw columns, by set-wise SQL: one pass over the table, and one for categories.

Quantiles and how many values differ come of a sample of rows, which are chosen by a hash.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.database.platform import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.features import encoding
from cerebro_plpy.features.columns import TEXT, RawColumn
from cerebro_plpy.features.encoding import Expression
from cerebro_plpy.features.recipe import MOMENTS, MOST_CATEGORIES

SAMPLE = 50_000
AT_ONCE = 100
"""Columns in one statement, whose result may have 1,664."""
PLACES = 7
"""Where the expression of a number stands in `features.numbers`."""
SETS_AT_ONCE = 30
"""As many as GROUPING takes."""


class Source(NamedTuple):
    """Rows to learn from: a table by its quoted name, and SQL over its rows `t` that says which of them count.

    `hash` is a bigint that no other column decides but those that name the row.
    """

    table: str
    side: Expression
    hash: Expression


class Spread(NamedTuple):
    """Of a column of numbers: how many there are, the range and quartiles of the finite ones.

    Of the sample: how many there are, and how many of them differ.
    """

    rows: int
    low: float | None
    high: float | None
    quartiles: tuple[float, float, float] | None
    sampled: int
    distinct: int


class Texts(NamedTuple):
    """Of a column of texts: how many there are; of the sample how many, how many of them differ, and their words."""

    rows: int
    sampled: int
    distinct: int
    words: float


class Statistics(NamedTuple):
    """Of all columns: `spreads` by column and part, where a number itself has the part ''."""

    rows: int
    spreads: dict[tuple[str, str], Spread]
    texts: dict[str, Texts]

    def present(self, column: str) -> int:
        """In how many rows a column has a value."""
        if column in self.texts:
            return self.texts[column].rows
        return max(spread.rows for (name, _), spread in self.spreads.items() if name == column)


class _Asked(NamedTuple):
    column: str
    part: str | None
    value: Expression


def gather(reader: Reader, source: Source, columns: Sequence[RawColumn]) -> Statistics:
    """Look at all training rows, and closer at a sample of them."""
    ((rows,),) = reader.run(sql("features.rows", source=source.table, side=source.side.text), source.side.values)
    asked = [each for column in columns for each in _questions(column)]
    spreads: dict[tuple[str, str], Spread] = {}
    texts: dict[str, Texts] = {}
    for start in range(0, len(asked), AT_ONCE):
        part = asked[start : start + AT_ONCE]
        everywhere, sampled = iter(_everywhere(reader, source, part)), iter(_sampled(reader, source, part, rows))
        for each in part:
            if each.part is None:
                texts[each.column] = Texts(next(everywhere), next(sampled), next(sampled), next(sampled) or 0.0)
            else:
                count, low, high = (next(everywhere) for _ in range(3))
                quartiles, found, different = (next(sampled) for _ in range(3))
                middle = None if quartiles is None else tuple(quartiles)
                spreads[each.column, each.part] = Spread(count, low, high, middle, found, different)
    return Statistics(rows, spreads, texts)


def _questions(column: RawColumn) -> Iterator[_Asked]:
    if column.family == TEXT:
        yield _Asked(column.name, None, encoding.category(column.name))
    elif column.family in MOMENTS:
        for part in MOMENTS[column.family]:
            yield _Asked(column.name, part, encoding.moment(column.name, column.family, part))
    elif column.family is not None:
        yield _Asked(column.name, "", encoding.number(column.name, column.family))


def _everywhere(reader: Reader, source: Source, asked: Sequence[_Asked]) -> tuple[Any, ...]:
    """What all rows say. Expressions stand in several aggregates, so that nothing keeps the rows from being shared."""
    questions = (("features.texts" if each.part is None else "features.numbers", each.value.text) for each in asked)
    statement = sql(
        "features.spread",
        aggregates=", ".join(sql(name, c=value, n=f"c{n}") for n, (name, value) in enumerate(questions)),
        source=source.table,
        side=source.side.text,
    )
    times = (1 if each.part is None else PLACES for each in asked)
    values = [value for each, count in zip(asked, times) for value in each.value.values * count]
    (found,) = reader.run(statement, (*values, *source.side.values))
    return found


def _sampled(reader: Reader, source: Source, asked: Sequence[_Asked], rows: int) -> tuple[Any, ...]:
    """What the sample says."""
    names = [f"c{number}" for number in range(len(asked))]
    questions = ("features.sampled_texts" if each.part is None else "features.sampled_numbers" for each in asked)
    statement = sql(
        "features.sample",
        columns=", ".join(f"{each.value.text} AS {name}" for name, each in zip(names, asked)),
        aggregates=", ".join(sql(question, c=name) for question, name in zip(questions, names)),
        # Of the hash itself other bits say on which side a row is.
        sampled=f"(({source.hash.text}) >> 32 & 2147483647) % {max(1, rows)} < {SAMPLE}",
        source=source.table,
        side=source.side.text,
    )
    values = [value for each in asked for value in each.value.values]
    (found,) = reader.run(statement, (*values, *source.hash.values, *source.side.values))
    return found


def categories(reader: Reader, source: Source, columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The values of each of these columns that are there more than once, the most frequent first."""
    found: dict[str, list[str]] = {name: [] for name in columns}
    for start in range(0, len(columns), SETS_AT_ONCE):
        part = columns[start : start + SETS_AT_ONCE]
        names = [f"c{number}" for number in range(len(part))]
        values = [encoding.category(column) for column in part]
        statement = sql(
            "features.categories",
            names=", ".join(names),
            columns=", ".join(f"{value.text} AS {name}" for name, value in zip(names, values)),
            sets=", ".join(f"({name})" for name in names),
            source=source.table,
            side=source.side.text,
        )
        everywhere = (1 << len(part)) - 1
        # The bit of the first column is the highest.
        place_of = {everywhere - (1 << (len(part) - 1 - place)): column for place, column in enumerate(part)}
        for place, value, _ in reader.run(statement, (*source.side.values, MOST_CATEGORIES)):
            found[place_of[place]].append(value)
    return {name: tuple(values) for name, values in found.items()}
