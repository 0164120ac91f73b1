"""A profile: how the values of each raw column lay in training rows, by which rows of another time
are compared.

A recipe has what predictions need. This stands beside it, and like one it is checked as a whole
whenever it is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.source_rows import SourceRows, copied_columns, copy_item
from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.rows.statistics import AT_ONCE, SETS_AT_ONCE, Source
from cerebro_plpy.preprocessing.values.checks import is_finite
from cerebro_plpy.preprocessing.values.column_values import LARGEST
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.records import dataclass

VERSION = 1
SAMPLED = 10_000
"""Training rows that are looked at, by a hash: with them an index of stability of 0.01 is no chance
any more.
"""
FEWEST, MOST_NUMBERS = 500, 1 << 25
"""Of them where each has many numbers, or is as long: they are copied."""
QUANTILES = 10
MOST_ROWS = 1 << 53
PRIOR = 0.5
"""Rows that are added to each bin, so that an empty one says no more than it knows."""

Key = tuple[str, str]
"""A raw column and a part of it."""


@dataclass(frozen=True)
class Part:
    """The rows of each bin. Numbers lie between `edges`, of which the lower one belongs to the bin.

    A category has no edges: bin 0 is what the recipe does not know, then each of its values has
    one, as far as they go.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Rows that have a value."""
        return sum(self.counts)


@dataclass(frozen=True)
class Profile:
    """Of each part of the inputs of a recipe: its bins; and in how many rows each column has no
    value.
    """

    missing: Mapping[str, int]
    parts: Mapping[Key, Part]

    def missing_share(self, column: str, part: str) -> float | None:
        """The share of rows in which a column has no value; None where there are no rows."""
        missing = self.missing[column]
        rows = missing + self.parts[column, part].rows
        return missing / rows if rows else None

    def to_json(self) -> dict[str, Any]:
        """As `from_json` takes it."""
        columns: dict[str, Any] = {
            name: {"missing": count, "parts": {}} for name, count in self.missing.items()
        }
        for (column, part), found in self.parts.items():
            columns[column]["parts"][part] = {
                "edges": list(found.edges),
                "counts": list(found.counts),
            }
        return {"version": VERSION, "columns": columns}

    @classmethod
    def from_json(cls, value: object, recipe: Recipe) -> Profile:
        """The profile that this is of the inputs of a recipe; raises DataCorrupted where it is
        none, whatever it is.
        """
        found = _record(value, "profile", ("version", "columns"))
        if found["version"] != VERSION:
            raise _wrong("version", found["version"], f"{VERSION}")
        columns = _record(found["columns"], "columns", [each.column for each in recipe.inputs])
        missing: dict[str, int] = {}
        parts: dict[Key, Part] = {}
        for feature in recipe.inputs:
            column = _record(columns[feature.column], "column", ("missing", "parts"))
            missing[feature.column] = _count(column["missing"])
            named = _record(column["parts"], "parts", feature.drift_parts)
            parts |= {(feature.column, name): _part(feature, named[name]) for name in named}
        return cls(missing, parts)


class Counting(NamedTuple):
    """A statement that counts the rows of bins, and the parts that it asks for by the numbers that
    it gives them.
    """

    statement: Expression
    places: Mapping[int, Key]


def measure(rows: SourceRows, source: Source, count: int, recipe: Recipe) -> Profile:
    """Return the profile of so many rows of a source; to be called in a transaction."""
    missing: dict[str, int] = {}
    parts: dict[Key, Part] = {}
    for start in range(0, len(recipe.inputs), AT_ONCE):
        some, sample = Recipe(recipe.inputs[start : start + AT_ONCE]), rows.name_table("sample")
        kept = _sample(rows.session, (source, sample), count, some)
        profile = bins(rows.session, kept, some, _edges(rows.session, kept, some))
        rows.session.run(sql("reading.drop", table=sample))
        missing |= profile.missing
        parts |= profile.parts
    return Profile(missing, parts)


def bins(
    reader: Reader, table: str, recipe: Recipe, edges: Mapping[Key, Sequence[float]]
) -> Profile:
    """The profile of all rows of a table, by its quoted name, with these edges."""
    counts: dict[Key, dict[int | None, int]] = {}
    for each in countings(table, recipe, edges):
        for place, number, rows in reader.run(*each.statement):
            counts.setdefault(each.places[place], {})[number] = rows
    return _profile(recipe, edges, counts)


def countings(
    table: str, recipe: Recipe, edges: Mapping[Key, Sequence[float]]
) -> Iterator[Counting]:
    """The statements that count, each of as many parts as one can ask for."""
    asked = [((each.column, part), each) for each in recipe.inputs for part in each.drift_parts]
    for start in range(0, len(asked), SETS_AT_ONCE):
        some = asked[start : start + SETS_AT_ONCE]
        names = [f"c{number}" for number in range(len(some))]
        values = [feature.drift_bin(key[1], edges[key]) for key, feature in some]
        text = sql(
            "drift.bins",
            names=", ".join(names),
            columns=", ".join(f"{value.text} AS {name}" for name, value in zip(names, values)),
            sets=", ".join(f"({name})" for name in names),
            source=table,
        )
        statement = Expression(text, tuple(value for each in values for value in each.values))
        everywhere = (1 << len(some)) - 1
        # The bit of the first column is the highest.
        places = {
            everywhere - (1 << (len(some) - 1 - place)): key for place, (key, _) in enumerate(some)
        }
        yield Counting(statement, places)


def stability(before: Sequence[int], now: Sequence[int]) -> float | None:
    """The population stability index of the rows of bins: 0 where shares are the same; None where
    there are no rows.

    >>> (stability((90, 10), (900, 100)) < 1e-3 < 0.25 < stability((90, 10), (10, 90)),
    ...  stability((1, 1), (0, 0)))
    (True, None)
    """
    if not sum(before) or not sum(now):
        return None
    pairs = zip(_shares(before), _shares(now))
    return math.fsum((new - old) * math.log(new / old) for old, new in pairs)


def _shares(counts: Sequence[int]) -> list[float]:
    rows = sum(counts) + PRIOR * len(counts)
    return [(count + PRIOR) / rows for count in counts]


def _sample(reader: Reader, tables: tuple[Source, str], rows: int, recipe: Recipe) -> str:
    """Make a table of a sample of a source; return what stands in FROM for it."""
    (source, output), names = tables, [each.column for each in recipe.inputs]
    few = source.few(rows, max(FEWEST, min(SAMPLED, MOST_NUMBERS // recipe.room)))
    columns = copied_columns(names)
    text = sql("drift.sample", output=output, columns=columns, source=few.table, side=few.side.text)
    reader.run(text, few.side.values)
    return copy_item(output, names)


def _edges(reader: Reader, sample: str, recipe: Recipe) -> dict[Key, tuple[float, ...]]:
    """Of the numbers of the sample: the smallest one, quantiles, and what is larger than all of
    them.
    """
    found: dict[Key, tuple[float, ...]] = {
        (each.column, part): ()
        for each in recipe.inputs
        if not each.has_edges
        for part in each.drift_parts
    }
    asked = [
        ((each.column, part), each.drift_value(part))
        for each in recipe.inputs
        if each.has_edges
        for part in each.drift_parts
    ]
    if asked:
        shares = [place / QUANTILES for place in range(QUANTILES + 1)]
        names = [f"c{number}" for number in range(len(asked))]
        statement = sql(
            "drift.edges",
            source=sample,
            columns=", ".join(f"{value.text} AS {name}" for name, (_, value) in zip(names, asked)),
            quantiles=", ".join(sql("drift.quantiles", c=name) for name in names),
        )
        values = [value for _, expression in asked for value in expression.values]
        (row,) = reader.run(statement, (*[shares] * len(names), *values))
        found |= {key: edges_of(quantiles or ()) for (key, _), quantiles in zip(asked, row)}
    return found


def edges_of(quantiles: Sequence[float]) -> tuple[float, ...]:
    """The edges of bins by the smallest number, quantiles and the largest: what lies outside has
    bins of its own.

    >>> edges_of((0.0, 0.0, 1.0, 1.0))[:2], edges_of(()), edges_of((math.inf, math.inf))
    ((0.0, 1.0), (), ())
    """
    within = sorted({number for number in quantiles if abs(number) < LARGEST})
    return (*within, math.nextafter(within[-1], math.inf)) if within else ()


def _profile(
    recipe: Recipe,
    edges: Mapping[Key, Sequence[float]],
    counts: Mapping[Key, Mapping[int | None, int]],
) -> Profile:
    missing: dict[str, int] = {}
    parts: dict[Key, Part] = {}
    for feature in recipe.inputs:
        for name in feature.drift_parts:
            key = feature.column, name
            found = counts.get(key, {})
            missing.setdefault(feature.column, found.get(None, 0))
            numbers = range(feature.count_bins(edges[key]))
            parts[key] = Part(tuple(edges[key]), tuple(found.get(number, 0) for number in numbers))
    return Profile(missing, parts)


def _part(feature: Feature, value: object) -> Part:
    found = _record(value, "part", ("edges", "counts"))
    edges, counts = found["edges"], found["counts"]
    if not isinstance(edges, list) or not all(map(is_finite, edges)):
        raise _wrong("edges", edges, f"a list of numbers, none beyond {LARGEST:g}")
    if any(low >= high for low, high in zip(edges, edges[1:])) or (edges and not feature.has_edges):
        raise _wrong("edges", edges, "rising numbers, and none of a category")
    if (
        len(edges) > QUANTILES + 2
        or not isinstance(counts, list)
        or len(counts) != feature.count_bins(edges)
    ):
        raise _wrong("counts", counts, "a number for each bin")
    return Part(tuple(map(float, edges)), tuple(map(_count, counts)))


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_ROWS:
        raise _wrong("count", value, "a number of rows")
    return value


def _record(value: object, what: str, names: Sequence[str]) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(names):
        raise _wrong(what, value, f"an object with {', '.join(map(repr, names))}")
    return value


def _wrong(what: str, value: object, expected: str) -> DataCorrupted:
    return DataCorrupted(
        f"the profile of the model is damaged: {what} is {value!r:.100}; expected {expected:.200}",
        hint="Train the model again.",
    )
