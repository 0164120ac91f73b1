"""Rows of a DataFrame as a table, so that a model can be trained on the data of a notebook.

The type of a column follows from its values, not from the type of its array. Frames of pandas and
of polars therefore become the same table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from cerebro_db.driver import translate_errors
from cerebro_db.errors import DuplicateTable, InvalidParameter
from cerebro_db.records import CLASS

if TYPE_CHECKING:
    import pandas
    import polars

    Frame: TypeAlias = pandas.DataFrame | polars.DataFrame

COMMENT = "Rows of a DataFrame, written by cerebro_db"
"""Marks a table that may be replaced."""
BATCH_ROWS = 10_000
"""Rows of one INSERT."""
TYPES: Mapping[type, sa.types.TypeEngine[Any]] = {
    bool: sa.Boolean(),
    int: sa.BigInteger(),
    float: postgresql.DOUBLE_PRECISION(),
    Decimal: sa.Numeric(),
    str: sa.Text(),
    bytes: sa.LargeBinary(),
    datetime: postgresql.TIMESTAMP(),
    date: sa.Date(),
    time: sa.Time(),
    timedelta: sa.Interval(),
}
"""Type of a column by the type of its values; a subclass comes before its parent."""


def write_frame(engine: sa.Engine, frame: Frame, table: str) -> None:
    """Create a table from the rows and columns of a DataFrame, in one transaction.

    A table of that name is replaced if it was written from a frame.

    Args:
        table: name of the table, as in SQL.

    Raises:
        DuplicateTable: the table exists and was not written from a frame.
        InvalidParameter: the table is not named as in SQL, a name of a column is missing or occurs
            twice, or the values of a column have different types or a type that the database does
            not support.
    """
    columns = {name: _read_column(frame, name) for name in frame.columns}
    for name in columns:
        if not isinstance(name, str) or not name:
            raise InvalidParameter(
                f"a column of the DataFrame is called {name!r}; expected a text that is not empty",
                hint="frame.columns = [...] names columns.",
            )
    if not columns or len(columns) != len(frame.columns):
        raise InvalidParameter(
            f"the DataFrame has the columns {list(frame.columns)!r:.200}; expected at least one, "
            "each of its own name"
        )
    sql_columns = [sa.Column(name, _choose_type(name, values)) for name, values in columns.items()]
    with translate_errors(), engine.begin() as connection:
        *schema, table_name = _parse_name(connection, table)
        new_table = sa.Table(
            table_name,
            sa.MetaData(),
            *sql_columns,
            schema=".".join(schema) or None,
            comment=COMMENT,
        )
        if _has_frame_table(connection, table):
            new_table.drop(connection)
        new_table.create(connection)
        _insert(connection, new_table, columns)


def _parse_name(connection: sa.Connection, table: str) -> Sequence[str]:
    """Return the parts of a name in SQL."""
    try:
        parts: Sequence[str] = connection.execute(
            sa.select(sa.func.parse_ident(table))
        ).scalar_one()
    except sa.exc.DataError as error:
        quoted = '"{}"'.format(table.replace('"', '""'))
        raise InvalidParameter(
            f"the table is called {table!r}; expected a name as in SQL",
            hint=f"Put a name with spaces, capitals or other signs in double quotes: '{quoted}'",
        ) from error
    return parts


def _read_column(frame: Frame, name: str) -> Sequence[Any]:
    """Return the values of a column as values of Python; a missing one is None."""
    column: Any = frame[name]
    if getattr(column, "ndim", 1) != 1:
        raise InvalidParameter(f"the DataFrame has several columns that are called {name!r}")
    if not hasattr(column, "isna"):  # a column of polars
        return column.to_list()  # type: ignore[no-any-return]
    return [_to_python(value) for value in column.astype(object).where(column.notna(), None)]


def _to_python(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value


def _choose_type(name: str, values: Sequence[Any]) -> sa.types.TypeEngine[Any]:
    """Return a type for all values of a column; text if the column has no values.

    >>> _choose_type("x", [1, None, 0.5]), _choose_type("x", [None])
    (DOUBLE_PRECISION(), Text())
    >>> _choose_type("x", [[1, 2], [0.5]])
    ARRAY(DOUBLE_PRECISION())
    """
    present_values = [value for value in values if value is not None]
    value_types = set(map(type, present_values))
    if not value_types:
        return TYPES[str]
    if value_types == {list}:
        items = [item for value in present_values for item in value]
        if not any(isinstance(item, list) for item in items):
            return postgresql.ARRAY(_choose_type(name, items))
        inner_items = [item for row in items for item in row or []]
        return postgresql.ARRAY(_choose_type(name, inner_items), dimensions=2)
    if value_types == {int, float}:
        return TYPES[float]
    matching_types = [
        python_type
        for python_type in TYPES
        if all(issubclass(value_type, python_type) for value_type in value_types)
    ]
    if not matching_types:
        raise InvalidParameter(
            f"column {name!r} of the DataFrame has values of type "
            f"{', '.join(sorted(value_type.__name__ for value_type in value_types))}; expected one "
            "of numbers, texts, dates or times, bytes, or lists of numbers",
            hint=f"For example frame[{name!r}] = frame[{name!r}].astype(str)",
        )
    if matching_types[0] is datetime:
        has_zone = any(value.tzinfo for value in present_values)
        return postgresql.TIMESTAMP(timezone=has_zone)
    return TYPES[matching_types[0]]


def _has_frame_table(connection: sa.Connection, table: str) -> bool:
    """Return whether the table exists.

    Raises:
        DuplicateTable: the table was not written from a frame.
    """
    relation = CLASS.c
    comment = sa.func.obj_description(relation.oid, "pg_class")
    query = sa.select(comment).where(relation.oid == sa.func.to_regclass(table))
    existing = connection.execute(query).first()
    if existing is not None and existing[0] != COMMENT:
        raise DuplicateTable(
            f"table {table} exists, and was not written from a DataFrame",
            hint="Drop it, or give another name: table='my_rows'.",
        )
    return existing is not None


def _insert(
    connection: sa.Connection, table: sa.Table, columns: Mapping[str, Sequence[Any]]
) -> None:
    rows: Iterator[tuple[Any, ...]] = zip(*columns.values(), strict=True)
    while batch := [dict(zip(columns, row, strict=True)) for row in islice(rows, BATCH_ROWS)]:
        try:
            connection.execute(table.insert(), batch)
        except ValueError as error:  # such as a text with a zero byte
            raise InvalidParameter(
                f"the driver cannot send a value of the DataFrame: {error}"
            ) from error
