"""Columns that give the target away: from one of them alone nearly all of it follows.

Rows are put into the order of a column; where it decides, a row has the class of the one before, or
nearly its number. That needs no bins, and no assumption about what the relation is. Of points of
time it says nothing: what changes slowly is near to what it was before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.preprocessing.recipe import encoding
from cerebro_plpy.preprocessing.recipe.recipe import MISSING, Recipe
from cerebro_plpy.preprocessing.rows.statistics import Source
from cerebro_plpy.preprocessing.values.expression import Expression

MOST_ROWS, MOST_VALUES, FEWEST_ROWS = 5000, 300_000, 300
"""So many rows are looked at, but of many columns fewer."""
FEWEST_SURPRISES = 20
"""So many rows would differ from the one before where a column says nothing; of fewer nothing can
be said.
"""
DIFFERENT = {True: 0.02, False: 0.001}
"""A column that gives classes away leaves at most this share of the surprises; of numbers, of their
variance.
"""
LEAST_CORRELATION = 0.9995
LEAST_PAIRS = 0.5
"""Of the rows have a value, and are not alone with it."""


class Giveaway(NamedTuple):
    """A column, and how much of what cannot be known without it follows from it."""

    column: str
    share: float

    def __str__(self) -> str:
        """What is said of it."""
        return (
            f"it all but gives the target away: {100 * self.share:.1f} % of what there is to "
            "predict follows from it"
        )


class _Place(NamedTuple):
    """An input of a network: its column, whether only equality counts, and the place that says
    where it is missing.
    """

    column: str
    category: bool
    missing: int | None


class _Found(NamedTuple):
    place: int
    pairs: int
    left: float | None
    correlation: float | None


def find_leaks(
    reader: Reader, source: Source, recipe: Recipe, rows: int, label: Expression, classes: bool
) -> tuple[Giveaway, ...]:
    """Those of the recipe's columns, by training rows; the first gives away most. Inputs of their
    own are not asked.
    """
    places = list(_places(recipe))
    if not places:
        return ()
    size = min(MOST_ROWS, max(FEWEST_ROWS, MOST_VALUES // max(1, len(places))))
    numbers, codes = encoding.encode(recipe)
    few = source.few(rows, size)
    statement = sql(
        "features.giveaways",
        compared=sql("features.compared_classes" if classes else "features.compared_numbers"),
        expected=sql("features.expected_classes" if classes else "features.expected_numbers"),
        correlation="NULL::double precision"
        if classes
        else "pg_catalog.corr(v.value, v.label::double precision)",
        numbers=numbers.text,
        codes=codes.text,
        label=label.text,
        order=few.hash.text,
        source=few.table,
        side=few.side.text,
    )
    values = (*numbers.values, *codes.values, *label.values, *few.hash.values)
    asked = ([each.category for each in places], [each.missing for each in places])
    found = reader.run(statement, (*values, *few.side.values, *asked))
    best: dict[str, float] = {}
    for total, expected, *what in found:
        each = _Found(*what)
        share = _share(each, total, expected, classes)
        column = places[each.place - 1].column
        if share is not None and share > best.get(column, 0.0):
            best[column] = share
    return tuple(Giveaway(*each) for each in sorted(best.items(), key=lambda each: -each[1]))


def _share(found: _Found, rows: int, expected: float | None, classes: bool) -> float | None:
    """How much follows, where it is nearly all; `expected` is what would be left if nothing did."""
    surprises = (expected or 0.0) * rows if classes else rows
    if (
        surprises < FEWEST_SURPRISES
        or found.pairs < LEAST_PAIRS * rows
        or not expected
        or found.left is None
    ):
        return None
    # Where there are two classes there is a border.
    left = max(0.0, found.left - classes / found.pairs) / expected
    if left <= DIFFERENT[classes]:
        return 1 - left
    if found.correlation is not None and abs(found.correlation) >= LEAST_CORRELATION:
        return float(found.correlation**2)
    return None


def _places(recipe: Recipe) -> Iterator[_Place]:
    """Yield the places of a row's numbers, then those of its codes."""
    names = recipe.numbers
    flags = {column: place for place, (column, part) in enumerate(names, 1) if part == MISSING}
    times = {feature.column for feature in recipe.inputs if feature.is_time}
    for column, part in names:
        if part == MISSING:  # a flag is never missing
            yield _Place(column, True, None)
        elif column in times:  # a point in time counts nowhere
            yield _Place(column, False, 0)
        else:
            yield _Place(column, False, flags.get(column))
    for column in recipe.category_columns:
        yield _Place(column, True, None)
