"""The distribution of each raw column in training rows, which other rows are compared with.

Predictions do not need this profile, so it is stored beside the recipe. Its owner could have
changed it: like a recipe, it is checked completely whenever it is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.source_rows import SourceRows, copied_columns, copy_item
from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.rows.column_batches import MOST_SETS, group_by_each, split_batches
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.rows.statistics import ColumnPart
from cerebro_plpy.preprocessing.values.checks import Json, is_finite
from cerebro_plpy.preprocessing.values.column_values import LARGEST
from cerebro_plpy.preprocessing.values.expression import Expression, combined_values
from cerebro_plpy.records import dataclass

VERSION = 1
SAMPLED_ROWS = 10_000
"""Training rows of a sample: with so many, a stability index of 0.01 is not due to chance."""
FEWEST_ROWS = 500
"""Rows of a sample even if each row is large."""
MOST_NUMBERS = 1 << 25
"""Numbers of four bytes in a sample, because it is copied."""
QUANTILES = 10
MOST_ROWS = 1 << 53
PRIOR = 0.5
"""Rows that are added to each bin, so that an empty one has no infinite weight."""


@dataclass(frozen=True)
class Histogram:
    """The rows in each bin of a part of a column.

    Numbers lie between `edges`; a bin includes its lower edge. A category has no edges: bin 0 is
    for values that the recipe does not have, then the most frequent values have one each.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Rows that have a value."""
        return sum(self.counts)


@dataclass(frozen=True)
class Profile:
    """The distributions of the inputs of a recipe."""

    missing: Mapping[str, int]  # rows without a value, by column
    parts: Mapping[ColumnPart, Histogram]

    def missing_share(self, column: str, part: str) -> float | None:
        """Return the share of rows in which a column has no value; None if there are no rows."""
        missing = self.missing[column]
        rows = missing + self.parts[column, part].rows
        return missing / rows if rows else None

    def to_json(self) -> Json:
        """Return the profile as `from_json` reads it."""
        columns: Json = {
            name: {"missing": count, "parts": {}} for name, count in self.missing.items()
        }
        for (column, part), histogram in self.parts.items():
            columns[column]["parts"][part] = {
                "edges": list(histogram.edges),
                "counts": list(histogram.counts),
            }
        return {"version": VERSION, "columns": columns}

    @classmethod
    def from_json(cls, value: object, recipe: Recipe) -> Profile:
        """Read a stored profile; raises DataCorrupted if it is not one of the recipe's inputs."""
        entry = _check_record(value, "profile", ("version", "columns"))
        if entry["version"] != VERSION:
            raise _wrong("version", entry["version"], f"{VERSION}")
        names = [feature.column for feature in recipe.inputs]
        columns = _check_record(entry["columns"], "columns", names)
        missing: dict[str, int] = {}
        histograms: dict[ColumnPart, Histogram] = {}
        for feature in recipe.inputs:
            column = _check_record(columns[feature.column], "column", ("missing", "parts"))
            missing[feature.column] = _check_count(column["missing"])
            parts = _check_record(column["parts"], "parts", feature.drift_parts)
            for part, histogram in parts.items():
                histograms[feature.column, part] = _read_histogram(feature, histogram)
        return cls(missing, histograms)


class CountStatement(NamedTuple):
    """A statement that counts the rows in bins of some parts."""

    statement: Expression
    parts: Mapping[int, ColumnPart]  # by their number in the result


def measure(rows: SourceRows, source: Source, count: int, recipe: Recipe) -> Profile:
    """Return the profile of a source of `count` rows; must be called in a transaction."""
    reader = rows.session
    missing: dict[str, int] = {}
    parts: dict[ColumnPart, Histogram] = {}
    for inputs in split_batches(recipe.inputs):
        batch = Recipe(tuple(inputs))
        table = rows.name_table("sample")
        sample = _copy_sample(reader, source, table, count, batch)
        profile = measure_bins(reader, sample, batch, _choose_edges(reader, sample, batch))
        reader.run(sql("reading.drop", table=table))
        missing |= profile.missing
        parts |= profile.parts
    return Profile(missing, parts)


def measure_bins(
    reader: Reader, table: str, recipe: Recipe, edges: Mapping[ColumnPart, Sequence[float]]
) -> Profile:
    """Return the profile of all rows of a table for given edges.

    Args:
        table: an item of FROM.
    """
    counts: dict[ColumnPart, dict[int | None, int]] = {}
    for count in build_counts(table, recipe, edges):
        for place, number, rows in reader.run(*count.statement):
            counts.setdefault(count.parts[place], {})[number] = rows
    return _make_profile(recipe, edges, counts)


def build_counts(
    table: str, recipe: Recipe, edges: Mapping[ColumnPart, Sequence[float]]
) -> Iterator[CountStatement]:
    """Yield the statements that count the rows in the bins of all parts."""
    bins = {
        (feature.column, part): feature.drift_bin(part, edges[feature.column, part])
        for feature in recipe.inputs
        for part in feature.drift_parts
    }
    for parts in split_batches(list(bins), MOST_SETS):
        sets = group_by_each([bins[part] for part in parts])
        text = sql("drift.bins", **sets.clauses, source=table)
        yield CountStatement(Expression(text, sets.values), dict(zip(sets.numbers, parts)))


def stability(training: Sequence[int], current: Sequence[int]) -> float | None:
    """Return the population stability index of two counts of rows by bin.

    It is 0 if shares are the same, and None if one of them has no rows.

    >>> stability((90, 10), (900, 100)) < 1e-3 < 0.25 < stability((90, 10), (10, 90))
    True
    >>> stability((1, 1), (0, 0))
    """
    if not sum(training) or not sum(current):
        return None
    pairs = zip(_shares(training), _shares(current))
    return math.fsum((new - old) * math.log(new / old) for old, new in pairs)


def _shares(counts: Sequence[int]) -> list[float]:
    rows = sum(counts) + PRIOR * len(counts)
    return [(count + PRIOR) / rows for count in counts]


def _copy_sample(reader: Reader, source: Source, table: str, rows: int, recipe: Recipe) -> str:
    """Create a table of a sample of a source; return its item of FROM."""
    names = [feature.column for feature in recipe.inputs]
    size = max(FEWEST_ROWS, min(SAMPLED_ROWS, MOST_NUMBERS // recipe.room))
    sample = source.choose_rows(rows, size)
    statement = sql(
        "drift.sample",
        output=table,
        columns=copied_columns(names),
        source=sample.table,
        side=sample.side.text,
    )
    reader.run(statement, sample.side.values)
    return copy_item(table, names)


def _choose_edges(
    reader: Reader, sample: str, recipe: Recipe
) -> dict[ColumnPart, tuple[float, ...]]:
    """Return the edges of the bins of all parts, from the numbers of the sample."""
    edges: dict[ColumnPart, tuple[float, ...]] = {}
    values: dict[ColumnPart, Expression] = {}
    for feature in recipe.inputs:
        for part in feature.drift_parts:
            edges[feature.column, part] = ()
            if feature.has_edges:
                values[feature.column, part] = feature.drift_value(part)
    if values:
        shares = [number / QUANTILES for number in range(QUANTILES + 1)]
        columns = [f"{value.text} AS c{number}" for number, value in enumerate(values.values())]
        quantiles = [sql("drift.quantiles", c=f"c{number}") for number in range(len(values))]
        statement = sql(
            "drift.edges",
            source=sample,
            columns=", ".join(columns),
            quantiles=", ".join(quantiles),
        )
        constants = combined_values(values.values())
        (row,) = reader.run(statement, (*[shares] * len(values), *constants))
        edges |= {part: make_edges(numbers or ()) for part, numbers in zip(values, row)}
    return edges


def make_edges(quantiles: Sequence[float]) -> tuple[float, ...]:
    """Return the edges of bins from the smallest number, quantiles and the largest number.

    Numbers outside the edges have bins of their own.

    >>> make_edges((0.0, 0.0, 1.0, 1.0))[:2], make_edges(()), make_edges((math.inf, math.inf))
    ((0.0, 1.0), (), ())
    """
    within = sorted({number for number in quantiles if abs(number) < LARGEST})
    if not within:
        return ()
    # The last bin includes the largest number.
    return (*within, math.nextafter(within[-1], math.inf))


def _make_profile(
    recipe: Recipe,
    edges: Mapping[ColumnPart, Sequence[float]],
    counts: Mapping[ColumnPart, Mapping[int | None, int]],
) -> Profile:
    """Return the profile from the rows of each part by bin; None is the bin of missing values."""
    missing: dict[str, int] = {}
    histograms: dict[ColumnPart, Histogram] = {}
    for feature in recipe.inputs:
        for part in feature.drift_parts:
            key = (feature.column, part)
            rows = counts.get(key, {})
            missing.setdefault(feature.column, rows.get(None, 0))
            numbers = range(feature.count_bins(edges[key]))
            bins = tuple(rows.get(number, 0) for number in numbers)
            histograms[key] = Histogram(tuple(edges[key]), bins)
    return Profile(missing, histograms)


def _read_histogram(feature: Feature, value: object) -> Histogram:
    entry = _check_record(value, "part", ("edges", "counts"))
    edges = entry["edges"]
    counts = entry["counts"]
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
    return Histogram(tuple(map(float, edges)), tuple(map(_check_count, counts)))


def _check_count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_ROWS:
        raise _wrong("count", value, "a number of rows")
    return value


def _check_record(value: object, part: str, names: Sequence[str]) -> Json:
    if not isinstance(value, dict) or set(value) != set(names):
        raise _wrong(part, value, f"an object with {', '.join(map(repr, names))}")
    return value


def _wrong(part: str, value: object, expected: str) -> DataCorrupted:
    return DataCorrupted(
        f"the profile of the model is damaged: {part} is {value!r:.100}; expected {expected:.200}",
        hint="Train the model again.",
    )
