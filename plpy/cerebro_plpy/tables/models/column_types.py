"""The types that the columns of a version had at training.

A version records them, so that predictions do not depend on its source. The source may have been
renamed, changed, dropped or replaced since. Versions of older releases have no such record: their
types are those of the table that has the source's name now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.errors import DataCorrupted

COLUMNS_KEY = "types"
TARGET_KEY = "target_base"
"""Keys of the record of a version's reading."""


class ColumnTypes(NamedTuple):
    """The types of a source's columns; only base types of PostgreSQL's own."""

    columns: Mapping[str, str]  # by name; others have a type of a user
    target_base: str | None  # base type of the target, without its length


def read_source_types(reader: Reader, source: str, target_type: str) -> ColumnTypes:
    """Return the types of a table as it is now.

    Args:
        source: quoted name of the table.
        target_type: the type of the target, as PostgreSQL writes it.
    """
    return ColumnTypes(read_column_types(reader, source), read_base_type(reader, target_type))


def read_column_types(reader: Reader, source: str) -> dict[str, str]:
    """Return the base types of the columns of a table; nothing if the table does not exist."""
    rows = reader.run(sql("predict.types"), (source,))
    return {str(name): str(type_) for name, type_ in rows}


def read_types_of(reader: Reader, source: Table) -> dict[str, str]:
    """Return the base types of the columns of a table or a query that a call reads."""
    if source.query is None:
        return read_column_types(reader, source.quoted)
    names = [column.name for column in source.query.columns]
    types = [column.type for column in source.query.columns]
    rows = reader.run(sql("predict.result_types"), (names, types))
    return {str(name): str(type_) for name, type_ in rows}


def read_base_type(reader: Reader, type_: str) -> str | None:
    """Return the type that a domain is based on; None if the type does not exist."""
    bases = reader.run(sql("predict.base"), (type_,))
    return next((str(base) for (base,) in bases), None)


def to_record(types: ColumnTypes) -> dict[str, Any]:
    """Return the entries of the record that a version stores of its reading."""
    return {COLUMNS_KEY: dict(types.columns), TARGET_KEY: types.target_base}


def from_record(record: Any) -> ColumnTypes | None:
    """Return the types in the record of a version's reading; None for older versions.

    Raises:
        DataCorrupted: the owner has changed the record.
    """
    if not isinstance(record, Mapping) or COLUMNS_KEY not in record:
        return None
    columns = record[COLUMNS_KEY]
    base = record.get(TARGET_KEY)
    is_valid = isinstance(columns, Mapping) and isinstance(base, (str, type(None)))
    if not is_valid or not all(isinstance(type_, str) for type_ in columns.values()):
        raise DataCorrupted(
            f"the record of a version's column types is {record!r:.100}; expected texts",
            hint="Train the model again.",
        )
    return ColumnTypes(dict(columns), base)


def keep_existing_types(reader: Reader, types: Mapping[str, str]) -> dict[str, str]:
    """Return the types that PostgreSQL itself has: they will be part of a statement."""
    names = list(types.values())
    existing = {name for (name,) in reader.run(sql("granted.types"), (names,))}
    return {column: type_ for column, type_ in types.items() if type_ in existing}
