"""Columns whose values have values, such as tags and keys, with expressions to learn from."""

from __future__ import annotations

from collections.abc import Iterator

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import quote_text
from cerebro_plpy.preprocessing.remarks.column_remarks import ColumnRemark, view_column
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values.column_hints import input_expressions
from cerebro_plpy.preprocessing.values.columns import RawColumn

SAMPLED_OBJECTS = 2000
MOST_KEYS = 5
"""Keys of an object that a remark shows."""


def describe_unusable(column: RawColumn) -> str:
    """Return why a column of some type is left out, with expressions to write in a view.

    >>> describe_unusable(RawColumn("place", "point", None, False))
    'no input can be made of type point: in a view, write "place"[0] AS "place_x", \
"place"[1] AS "place_y"'
    """
    name = quote_identifier(column.name)
    items = [
        view_column(new_name, expression.replace(f"t.{name}", name))
        for new_name, expression in input_expressions(column).items()
    ]
    reason = f"no input can be made of type {column.type}: in a view, write {', '.join(items)}"
    if column.type in ("text[]", "character varying[]"):
        reason += f"; or for each value that matters, 'new' = ANY ({name}) AS is_new"
    return reason


def remark_objects(
    reader: Reader, source: Source, column: RawColumn, rows: int
) -> Iterator[ColumnRemark]:
    """Yield the remark about a column of JSON with objects, with the most frequent of their keys.

    Args:
        rows: the number of rows of the source.
    """
    sample = source.choose_rows(rows, SAMPLED_OBJECTS)
    name = quote_identifier(column.name)
    statement = sql(
        "features.keys", value=f"t.{name}::json", source=sample.table, side=sample.side.text
    )
    keys = [key for (key,) in reader.run(statement, (*sample.side.values, MOST_KEYS))]
    if keys:
        expressions = ", ".join(
            view_column(f"{column.name}_{key}", f"{name} ->> {quote_text(key)}") for key in keys
        )
        yield ColumnRemark(
            column.name,
            f"its values are objects of JSON. To learn from their keys, write {expressions} in a "
            "view, and train on that",
        )
