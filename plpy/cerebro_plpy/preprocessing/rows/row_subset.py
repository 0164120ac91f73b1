"""The rows of a side of a raw table, and what is made of them: how many they are, of which classes,
what is packed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Platform, Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.split_encoding import packed_inputs
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression


class RowSubset(NamedTuple):
    """The rows of a side: the quoted table where they lie, which they are, and what is made of
    each, in which order.

    `columns` are those of the table.
    """

    table: str
    side: Expression
    recipe: Recipe
    label: Expression
    order: Expression
    columns: Sequence[RawColumn]
    weight: Expression | None = None


def count_rows(reader: Reader, part: RowSubset) -> int:
    """How many there are."""
    return int(
        reader.run(sql("features.rows", source=part.table, side=part.side.text), part.side.values)[
            0
        ][0]
    )


def read_labels(reader: Reader, part: RowSubset) -> set[str]:
    """The classes that they have."""
    statement = sql(
        "features.labels", label=part.label.text, source=part.table, side=part.side.text
    )
    return {row[0] for row in reader.run(statement, (*part.label.values, *part.side.values))}


def both_hold(one: Expression, other: Expression) -> Expression:
    """Whether two conditions hold."""
    return Expression(f"({one.text}) AND ({other.text})", (*one.values, *other.values))


def raw_rows_statement(
    platform: Platform, part: RowSubset, output: str, group: Expression | None = None
) -> Expression:
    """The statement that makes a table of the rows of a side: raw inputs, and what a network is to
    give for them.

    Rows decide themselves in which order they lie, so that it does not matter how they lie in the
    table they are of; that of their `group` comes first.
    """
    inputs = packed_inputs(part.recipe)
    named = {**{each.name: each.value for each in inputs}, "label": part.label}
    if part.weight is not None:
        named["weight"] = part.weight
    rows = {
        "columns": ", ".join(f"{each.text} AS {name}" for name, each in named.items()),
        "source": part.table,
        "side": part.side.text,
        "order": ", ".join(each.inlined() for each in (group, part.order) if each is not None),
    }
    values = (*(value for each in named.values() for value in each.values), *part.side.values)
    return Expression(platform.ordered_rows_sql(output, rows), values)
