"""The raw columns of a table, with the family of their types, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sql.named_query import ResultColumn
from cerebro_plpy.preprocessing.values.canonical_text import MONEY
from cerebro_plpy.preprocessing.values.families import (
    BIT,
    BOOLEAN,
    BYTES,
    CAST,
    CITEXT,
    JSON,
    POINTS,
    TEXT,
)

ONE_BIT = "bit(1)"
FAMILIES = {
    "int2": "integer", "int4": "integer", "int8": "integer",
    "float4": "real", "float8": "real",
    "numeric": "numeric", "money": MONEY,
    "date": "date", "timestamp": "timestamp", "timestamptz": "timestamptz",
    "time": "time", "timetz": "time", "interval": "interval",
    "_int2": "integer[]", "_int4": "integer[]", "_int8": "integer[]",
    "_float4": "real[]", "_float8": "real[]", "_numeric": "numeric[]",
    BYTES: BYTES,
    "json": JSON, "jsonb": JSON,
    "bool": BOOLEAN, "uuid": TEXT, "inet": TEXT, "cidr": TEXT, "macaddr": TEXT,
}  # fmt: skip
"""Families by the name of the type that a domain is based on; texts tell values of TEXT apart."""


class RawColumn(NamedTuple):
    """A column of a table or view."""

    name: str
    type: str  # as PostgreSQL writes it
    family: str | None  # None if no input can be made of it
    key: bool  # it is of a primary key whose columns can all be read
    compared: str = "text"  # the type that values are compared as, the same on any path
    readable: bool = True  # the current user may read it
    names_row: bool = False  # it is a primary key alone; a part of a key may be an input
    is_folded: bool = False  # its collation takes texts with different letters for equal


def read_columns(reader: Reader, oid: int) -> tuple[RawColumn, ...]:
    """Return all columns of the table or view that has this oid, in their order."""
    return _make_columns(reader.run(sql("features.columns"), (oid,)))


def read_source_columns(reader: Reader, source: Table) -> tuple[RawColumn, ...]:
    """Return all columns of the table, view or query that a call reads, in their order."""
    if source.query is not None:
        return read_result_columns(reader, source.query.columns)
    return read_columns(reader, source.oid)


def read_result_columns(reader: Reader, columns: Sequence[ResultColumn]) -> tuple[RawColumn, ...]:
    """Return the columns of the rows of a query, in their order."""
    names, types, modifiers = zip(*columns) if columns else ((), (), ())
    rows = reader.run(sql("features.result_columns"), (list(names), list(types), list(modifiers)))
    return _make_columns(rows)


def _make_columns(rows: Sequence[tuple[Any, ...]]) -> tuple[RawColumn, ...]:
    has_readable_key = all(readable for *_, key, _, readable, _, _ in rows if key)
    columns: list[RawColumn] = []
    for name, type_, base, kind, category, castable, key, *properties in rows:
        compared, readable, is_sole_key, is_folded = properties
        family = _find_family(type_, base, kind, category, castable)
        is_key = key and has_readable_key
        names_row = is_sole_key and is_key
        columns.append(
            RawColumn(name, type_, family, is_key, compared, readable, names_row, is_folded)
        )
    return tuple(columns)


def _find_family(type_: str, base: str, kind: str, category: str, castable: bool) -> str | None:
    if type_ == ONE_BIT:
        return BIT
    if base == CITEXT and category == "S":
        return CITEXT
    if kind == "e" or category == "S":  # an enum, or a type of character strings
        return TEXT
    return FAMILIES.get(base) or (CAST if castable else None)


def growing_columns(columns: Sequence[RawColumn]) -> tuple[str, ...]:
    """Return the columns that grow with new rows in many tables: whole keys and points in time."""
    return tuple(
        column.name
        for column in columns
        if column.readable
        and (column.family in POINTS or (column.key and column.family == "integer"))
    )
