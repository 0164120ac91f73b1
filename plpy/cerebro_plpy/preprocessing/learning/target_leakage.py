"""Columns that leak the target: nearly all of it follows from one of them alone.

Rows are sorted by a column. If the column decides the target, a row has the class of the row
before, or nearly its number. This needs neither bins nor an assumption about the relation. Points
in time are not tested: whatever changes slowly is close to its value before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.preprocessing.recipe import encoding
from cerebro_plpy.preprocessing.recipe.recipe import MISSING, Recipe
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values.expression import Expression, combined_values

MOST_ROWS = 5000
FEWEST_ROWS = 300
MOST_VALUES = 300_000
"""Of many columns, fewer rows are read."""
FEWEST_SURPRISES = 20
"""Rows that would differ from the row before if a column had no influence; fewer prove nothing."""
MAX_LEFT = {True: 0.02, False: 0.001}
"""The largest share of surprises, or of the variance of numbers, that a column may leave."""
LEAST_CORRELATION = 0.9995
LEAST_PAIRS = 0.5
"""The least share of rows that have a value, and a row before with one."""


class Leak(NamedTuple):
    """A column that leaks the target."""

    column: str
    share: float  # of the uncertainty about the target that the column removes

    def __str__(self) -> str:
        """Return the text of a NOTICE about the column."""
        return (
            f"it nearly gives the target away: it alone explains {100 * self.share:.1f} % of the "
            "target"
        )


class _Input(NamedTuple):
    """A number or code of a row."""

    column: str
    is_category: bool  # only equality counts
    missing_flag: int | None  # the position of its flag; None without a flag, 0 to ignore all rows


class _Comparison(NamedTuple):
    """Rows in the order of an input, compared with the row before."""

    position: int  # of the input
    pairs: int  # rows that are compared
    difference: float | None  # the share of pairs with other classes, or half the mean square
    correlation: float | None


def find_leaks(
    reader: Reader, source: Source, recipe: Recipe, rows: int, label: Expression, classes: bool
) -> tuple[Leak, ...]:
    """Return the columns that leak the target of training rows, the worst first.

    Columns that are an input of their own are not tested.

    Args:
        classes: the label is a class.
    """
    inputs = list(_list_inputs(recipe))
    if not inputs:
        return ()
    size = min(MOST_ROWS, max(FEWEST_ROWS, MOST_VALUES // len(inputs)))
    numbers, codes = encoding.encode(recipe)
    sample = source.choose_rows(rows, size)
    label_type = "classes"
    correlation = "NULL::double precision"
    if not classes:
        label_type = "numbers"
        correlation = "pg_catalog.corr(v.value, v.label::double precision)"
    statement = sql(
        "features.giveaways",
        compared=sql(f"features.compared_{label_type}"),
        expected=sql(f"features.expected_{label_type}"),
        correlation=correlation,
        numbers=numbers.text,
        codes=codes.text,
        label=label.text,
        order=sample.hash.text,
        source=sample.table,
        side=sample.side.text,
    )
    values = combined_values((numbers, codes, label, sample.hash, sample.side))
    categories = [column_input.is_category for column_input in inputs]
    flags = [column_input.missing_flag for column_input in inputs]
    shares: dict[str, float] = {}
    for total, expected, *cells in reader.run(statement, (*values, categories, flags)):
        compared = _Comparison(*cells)
        column = inputs[compared.position - 1].column
        share = _leaked_share(compared, total, expected, classes)
        if share > shares.get(column, 0.0):
            shares[column] = share
    leaks = [Leak(column, share) for column, share in shares.items()]
    return tuple(sorted(leaks, key=lambda leak: -leak.share))


def _leaked_share(compared: _Comparison, rows: int, expected: float | None, classes: bool) -> float:
    """Return the share of the target that follows from an input; 0 if it does not leak.

    Args:
        expected: the difference of pairs if the input had no influence.
    """
    if not expected or compared.difference is None or compared.pairs < LEAST_PAIRS * rows:
        return 0.0
    surprises: float = rows
    difference = compared.difference
    if classes:
        surprises = expected * rows
        difference = max(0.0, difference - 1 / compared.pairs)  # classes have a border
    if surprises < FEWEST_SURPRISES:
        return 0.0
    if difference / expected <= MAX_LEFT[classes]:
        return 1 - difference / expected
    if compared.correlation is not None and abs(compared.correlation) >= LEAST_CORRELATION:
        return float(compared.correlation**2)
    return 0.0


def _list_inputs(recipe: Recipe) -> Iterator[_Input]:
    """Yield the numbers of a row, then its codes."""
    numbers = recipe.numbers
    flags = {column: number for number, (column, part) in enumerate(numbers, 1) if part == MISSING}
    times = {feature.column for feature in recipe.inputs if feature.is_time}
    for column, part in numbers:
        if part == MISSING:
            yield _Input(column, True, None)
        elif column in times:
            yield _Input(column, False, 0)
        else:
            yield _Input(column, False, flags.get(column))
    for column in recipe.category_columns:
        yield _Input(column, True, None)
