"""Rows of a DataFrame as a table: a model can be trained on what a notebook holds, and the database
keeps what it was.

The type of a column is that of its values, not of its array: frames of pandas and of polars become
the same table.
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

from cerebro_db import errors, records
from cerebro_db.driver import translate_errors

if TYPE_CHECKING:
    import pandas
    import polars

    Frame: TypeAlias = pandas.DataFrame | polars.DataFrame

COMMENT = "Rows of a DataFrame, written by cerebro_db"
"""By this a table is told that may be written anew."""
ROWS = 10_000
"""Sent at a time."""
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
"""The type of a column by that of its values; a subclass comes before its parent."""


def write_frame(engine: sa.Engine, frame: Frame, table: str) -> None:
    """Makes a table, named as in SQL, of the rows and columns of a DataFrame, in one transaction.

    A table of that name is replaced where it was written from a frame itself; DuplicateTable of any
    other. InvalidParameter where values of a column are of different types, or of one that the
    database has not.
    """
    columns = {name: _values(frame, name) for name in frame.columns}
    for name in columns:
        if not isinstance(name, str) or not name:
            raise errors.InvalidParameter(
                f"a column of the DataFrame is called {name!r}; expected a text that is not empty",
                hint="frame.columns = [...] names columns.",
            )
    if not columns or len(columns) != len(frame.columns):
        raise errors.InvalidParameter(
            f"the DataFrame has the columns {list(frame.columns)!r:.200}; expected at least one, "
            "each of its own name"
        )
    fields = [sa.Column(name, _type(name, its)) for name, its in columns.items()]
    with translate_errors(), engine.begin() as connection:
        named = connection.execute(sa.select(sa.func.parse_ident(table))).scalar_one()
        made = sa.Table(
            named[-1], sa.MetaData(), *fields, schema=".".join(named[:-1]) or None, comment=COMMENT
        )
        if _is_of_frame(connection, table):
            made.drop(connection)
        made.create(connection)
        _insert(connection, made, columns)


def _values(frame: Frame, name: str) -> Sequence[Any]:
    """The values of a column as Python's own, None where one is missing."""
    column: Any = frame[name]
    if getattr(column, "ndim", 1) != 1:
        raise errors.InvalidParameter(f"the DataFrame has several columns that are called {name!r}")
    if not hasattr(column, "isna"):
        return column.to_list()  # type: ignore[no-any-return]  # of polars
    return [_plain(value) for value in column.astype(object).where(column.notna(), None)]


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _type(name: str, values: Sequence[Any]) -> sa.types.TypeEngine[Any]:
    """The type that holds all values of a column; texts where there are none.

    >>> _type("x", [1, None, 0.5]), _type("x", [None]), _type("x", [[1, 2], [0.5]])
    (DOUBLE_PRECISION(), Text(), ARRAY(DOUBLE_PRECISION()))
    """
    kinds = {type(value) for value in values if value is not None}
    if kinds == {list}:
        inner = [item for value in values if value is not None for item in value]
        if not any(isinstance(item, list) for item in inner):
            return postgresql.ARRAY(_type(name, inner))
        return postgresql.ARRAY(
            _type(name, [item for row in inner for item in row or []]), dimensions=2
        )
    if kinds == {int, float}:
        return TYPES[float]
    fitting = [known for known in TYPES if kinds and all(issubclass(kind, known) for kind in kinds)]
    if not kinds:
        return TYPES[str]
    if not fitting:
        raise errors.InvalidParameter(
            f"column {name!r} of the DataFrame has values of type "
            f"{', '.join(sorted(kind.__name__ for kind in kinds))}; expected one of numbers, "
            "texts, dates or times, bytes, or lists of numbers",
            hint=f"For example frame[{name!r}] = frame[{name!r}].astype(str)",
        )
    if fitting[0] is datetime:
        return postgresql.TIMESTAMP(
            timezone=any(value is not None and value.tzinfo for value in values)
        )
    return TYPES[fitting[0]]


def _is_of_frame(connection: sa.Connection, table: str) -> bool:
    """Whether there is such a table; DuplicateTable where it was not made of a frame."""
    relation = records.CLASS.c
    described = sa.func.obj_description(relation.oid, "pg_class")
    found = connection.execute(
        sa.select(described).where(relation.oid == sa.func.to_regclass(table))
    ).first()
    if found is not None and found[0] != COMMENT:
        raise errors.DuplicateTable(
            f"table {table} exists, and was not written from a DataFrame",
            hint="Drop it, or give another name: table='my_rows'.",
        )
    return found is not None


def _insert(
    connection: sa.Connection, table: sa.Table, columns: Mapping[str, Sequence[Any]]
) -> None:
    rows: Iterator[tuple[Any, ...]] = zip(*columns.values(), strict=True)
    while some := [dict(zip(columns, row, strict=True)) for row in islice(rows, ROWS)]:
        try:
            connection.execute(table.insert(), some)
        except ValueError as error:  # such as a text with a zero byte
            raise errors.InvalidParameter(
                f"the driver cannot send a value of the DataFrame: {error}"
            ) from error
