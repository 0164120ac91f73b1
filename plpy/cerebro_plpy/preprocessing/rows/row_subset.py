"""The rows of one side of a raw table: their number, classes, and the table to pack from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Platform, Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.split_encoding import packed_inputs
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression, combined_values


class RowSubset(NamedTuple):
    """The rows of one side, and what is computed from each."""

    table: str  # quoted
    side: Expression  # the condition that a row belongs to the side
    recipe: Recipe
    label: Expression
    order: Expression
    columns: Sequence[RawColumn]  # of the table
    weight: Expression | None = None


def count_rows(reader: Reader, part: RowSubset) -> int:
    """Return the number of rows."""
    statement = sql("features.rows", source=part.table, side=part.side.text)
    return int(reader.run(statement, part.side.values)[0][0])


def read_labels(reader: Reader, part: RowSubset) -> set[str]:
    """Return the classes of the rows."""
    statement = sql(
        "features.labels", label=part.label.text, source=part.table, side=part.side.text
    )
    return {row[0] for row in reader.run(statement, (*part.label.values, *part.side.values))}


def both_hold(first: Expression, second: Expression) -> Expression:
    """Return the conjunction of two conditions."""
    return Expression(f"({first.text}) AND ({second.text})", (*first.values, *second.values))


def raw_rows_statement(
    platform: Platform, part: RowSubset, output: str, group: Expression | None = None
) -> Expression:
    """Return the statement that creates a table of raw inputs and labels.

    Values of the rows decide their order, so that the order in the source does not matter.

    Args:
        output: the quoted name of the table.
        group: orders rows by their group first.
    """
    columns = {entry.name: entry.value for entry in packed_inputs(part.recipe)}
    columns["label"] = part.label
    if part.weight is not None:
        columns["weight"] = part.weight
    order = [part.order]
    if group is not None:
        order.insert(0, group)
    clauses = {
        "columns": ", ".join(f"{value.text} AS {name}" for name, value in columns.items()),
        "source": part.table,
        "side": part.side.text,
        "order": ", ".join(expression.inlined() for expression in order),
    }
    values = (*combined_values(columns.values()), *part.side.values)
    return Expression(platform.ordered_rows_sql(output, clauses), values)
