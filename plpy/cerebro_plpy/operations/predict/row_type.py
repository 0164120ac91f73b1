"""The row type of `cerebro.predict_rows`: the columns of a row, and the text that it travels as.

PL/Python cannot return rows of a type that only the call knows. A row is therefore sent as text,
and `cerebro_internal.rows_of_texts` makes a row of it again. The text is the same under all
settings, so that each value is read back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import STYLES, TEXTS
from cerebro_plpy.database.sql.identifiers import Names, quote_identifier
from cerebro_plpy.database.sql.spelling import spell_name
from cerebro_plpy.errors import DatatypeMismatch, NullNotAllowed, UndefinedColumn
from cerebro_plpy.operations.predict.prediction_source import RawSource
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import (
    BIT,
    BOOLEAN,
    BYTES,
    CITEXT,
    JSON,
    TEXT,
)

PINNED_FAMILIES = frozenset(
    (
        *(TEXT, CITEXT, BOOLEAN, BIT, BYTES, JSON),
        *("integer", "real", "numeric", "integer[]", "real[]", "numeric[]"),
    )
)
"""Families whose text is the same in all readings, which pin the settings that it depends on."""
POINT_FAMILIES = frozenset(("date", "timestamp", "timestamptz", "time"))
"""Families whose text is the same if the style of dates is ISO, whatever the time zone."""
ISO = "ISO"
ROW_KIND = "c"
MODIFIER = re.compile(r"\([0-9, ]+\)")


class RowType(NamedTuple):
    """The type of the rows that a call returns: that of a table or view, or a composite type."""

    name: str  # qualified, and quoted if necessary
    has_rows: bool  # a table or view has this name
    types: dict[str, str]  # types of its columns by name, as PostgreSQL writes them

    def choose_source(self, module: str, source: str | None) -> str:
        """Return the name of the table to read: that of the call, else that of the type.

        Raises:
            NullNotAllowed: the call names none, and the type is not that of a table.
        """
        if source is not None:
            return source
        if not self.has_rows:
            raise NullNotAllowed(
                f"{module} error: source is NULL, and row type {self.name} is not that of a table.",
                hint="Name the table or view with the rows in the argument source.",
            )
        return self.name

    def find_columns(self, catalog: Catalog, source: RawSource) -> Names:
        """Return the columns of the type, each of which the source must have with its type.

        Raises:
            UndefinedColumn, DatatypeMismatch: the source cannot give rows of the type.
        """
        source_types = {column.name: column.type for column in source.columns}
        missing = [name for name in self.types if name not in source_types]
        spelling = source.table.spelling
        if missing:
            raise UndefinedColumn(
                f"{catalog.module} error: {spelling} has no column {quote_identifier(missing[0])}, "
                f"which row type {self.name} has.",
                hint=_suggest_row_type(source),
            )
        for name, type_ in self.types.items():
            if type_ not in (source_types[name], MODIFIER.sub("", source_types[name])):
                raise DatatypeMismatch(
                    f"{catalog.module} error: column {quote_identifier(name)} of {spelling} is of "
                    f"type {source_types[name]}; expected {type_}, as in row type {self.name}.",
                    hint=_suggest_row_type(source),
                )
        return tuple(self.types)


def read_row_type(catalog: Catalog, oid: int) -> RowType:
    """Return the row type with an oid.

    Raises:
        DatatypeMismatch: the type is not one of rows.
    """
    (row,) = catalog.db.rows(sql("predict.row_type"), oid)
    if row["kind"] != ROW_KIND or not row["names"]:
        raise DatatypeMismatch(
            f"{catalog.module} error: row_type is of type {row['type']}; expected the row type of "
            "a table.",
            hint="Write NULL with the name of the table as its type, such as NULL::passengers.",
        )
    return RowType(row["type"], row["has_rows"], dict(zip(row["names"], row["types"])))


def make_row_text(source: RawSource, names: Sequence[str]) -> Expression:
    """Return the text of a row of these columns."""
    row = ", ".join(f"t.{quote_identifier(name)}" for name in names)
    families = {column.family for column in source.columns if column.name in names}
    if _has_one_text(families, source.settings["datestyle"]):
        return Expression(f"ROW({row})::text")
    parameters = ", ".join(["%s::text"] * len(STYLES))
    values = tuple(TEXTS[name] for name in STYLES)
    return Expression(f"cerebro_internal.text_under(ROW({row}), {parameters})", values)


def _has_one_text(families: Collection[str | None], datestyle: str) -> bool:
    """Return whether values have the text that TEXTS gives them, under the settings of a reading.

    >>> _has_one_text(["date"], "ISO, DMY"), _has_one_text(["date"], "SQL, DMY")
    (True, False)
    """
    plain = PINNED_FAMILIES
    if datestyle.startswith(ISO):
        plain |= POINT_FAMILIES
    return all(family in plain for family in families)


def _suggest_row_type(source: RawSource) -> str:
    """Return a hint with the row type of the source itself."""
    if not source.table.schema:
        return "Cast the column in the query, or take a row type with its columns."
    name = f"{spell_name(source.table.schema)}.{spell_name(source.table.name)}"
    return f"Take the row type of the source, NULL::{name}, and leave out source."
