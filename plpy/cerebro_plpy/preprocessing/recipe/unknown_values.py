"""Values that a model does not know: counted in every call, and reported once per column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.rows.column_batches import split_batches
from cerebro_plpy.preprocessing.rows.row_subset import RowSubset
from cerebro_plpy.preprocessing.values.expression import Expression, combined_values

EXAMPLES = 2
CELLS = 1 + EXAMPLES
"""Results of `features.unknown_value`."""
LONGEST_EXAMPLE = 40


class UnknownValues:
    """The values in some columns of rows that a model does not know.

    Args:
        expressions: for each column, the text of such a value in a row `t`, else NULL.
    """

    def __init__(self, expressions: Mapping[str, Expression]) -> None:
        self._expressions = expressions
        self._counts = dict.fromkeys(expressions, 0)
        self._examples: dict[str, dict[str, None]] = {name: {} for name in expressions}

    @property
    def selected(self) -> Expression:
        """The unknown values of a row as an array of texts; NULL if there are none."""
        expressions = self._expressions.values()
        if not expressions:
            return Expression("NULL::text[]")
        texts = ", ".join(expression.text for expression in expressions)
        text = (
            "(SELECT CASE WHEN pg_catalog.num_nonnulls(VARIADIC u.texts) > 0 THEN u.texts END "
            f"FROM (SELECT ARRAY[{texts}]::text[] AS texts OFFSET 0) u)"
        )
        return Expression(text, combined_values(expressions))

    def without_counts(self) -> UnknownValues:
        """Return an object that counts the same columns, from 0."""
        return UnknownValues(self._expressions)

    def add(self, rows: Iterable[Sequence[str | None] | None]) -> None:
        """Count the values of rows, which are results of `selected`."""
        for values in rows:
            if values is None:
                continue
            for name, value in zip(self._counts, values):
                if value is not None:
                    self._count(name, value)

    def _count(self, name: str, value: str) -> None:
        self._counts[name] += 1
        examples = self._examples[name]
        if len(examples) < EXAMPLES:
            examples[value] = None

    def add_counted(self, counted: Mapping[str, Sequence[Any]]) -> None:
        """Add the number of unknown values of columns, each with two of them."""
        for name, (count, *examples) in counted.items():
            self._counts[name] += count
            for example in examples:
                if example is not None and len(self._examples[name]) < EXAMPLES:
                    self._examples[name][example] = None

    def describe(self) -> Iterator[tuple[str, str]]:
        """Yield each column that has such values, with their number and examples as a text."""
        for name, count in self._counts.items():
            if count:
                examples = ", ".join(map(_shorten, self._examples[name]))
                yield name, f"{count_nouns(count, 'value')}, such as {examples}"


def find_unknown_values(recipe: Recipe, row: str = "t") -> dict[str, Expression]:
    """Return the expression of an unknown value of each column of a recipe that can have some."""
    expressions = {feature.column: feature.unknown_value(row) for feature in recipe.inputs}
    return {name: expression for name, expression in expressions.items() if expression is not None}


def _shorten(value: str) -> str:
    if len(value) > LONGEST_EXAMPLE:
        value = value[: LONGEST_EXAMPLE - 1] + "…"
    return repr(value)


def count_unknown_values(
    reader: Reader, table: str, side: Expression, recipe: Recipe
) -> UnknownValues:
    """Count the unknown values of a table's rows in one pass.

    Args:
        table: an item of FROM.
        side: the condition that a row counts.
    """
    return count_values(reader, table, side, find_unknown_values(recipe))


def count_values(
    reader: Reader, table: str, side: Expression, expressions: Mapping[str, Expression]
) -> UnknownValues:
    """Count the rows in which expressions of columns have a value."""
    unknown = UnknownValues(expressions)
    for names in split_batches(list(expressions)):
        batch = [expressions[name] for name in names]
        numbers = range(len(batch))
        statement = sql(
            "features.unknown_values",
            columns=", ".join(f"{value.text} AS u{n}" for n, value in enumerate(batch)),
            aggregates=", ".join(sql("features.unknown_value", u=f"u{n}") for n in numbers),
            source=table,
            side=side.text,
        )
        (cells,) = reader.run(statement, (*combined_values(batch), *side.values))
        unknown.add_counted(dict(zip(names, split_batches(list(cells), CELLS))))
    return unknown


def describe_unknown_values(reader: Reader, part: RowSubset) -> tuple[tuple[str, str], ...]:
    """Return the columns of rows that have unknown values, and their number with examples."""
    unknown = count_unknown_values(reader, part.table, part.side, part.recipe)
    return tuple(unknown.describe())
