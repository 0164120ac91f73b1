"""The ids of predicted rows: the text of a column, or of several columns as an array of JSON."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.database.catalog import Catalog
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.reading import STYLES
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.identifiers import Names, quote_identifier
from cerebro_plpy.database.sql.spelling import spell_names
from cerebro_plpy.errors import quote_text
from cerebro_plpy.operations.predict.prediction_source import RawSource
from cerebro_plpy.preprocessing.rows.weight_column import read_column_names
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import BOOLEAN, CITEXT, TEXT

NO_ID = Expression("NULL::text")
ONE_TEXT_FAMILIES = ("integer", "numeric", TEXT, CITEXT, BOOLEAN)
"""Families of types whose values have the same text under all settings."""


def choose_id_columns(catalog: Catalog, source: RawSource, text: str | None) -> Names:
    """Return the columns that identify rows: those of a call, else those of the primary key.

    A NOTICE says for a table without a key what to do. It suggests columns only if an index
    guarantees that they identify rows: a join by others would repeat rows.

    Args:
        text: the argument id_col.

    Raises:
        UndefinedColumn, InvalidName: the argument names something else.
    """
    if text is not None:
        return read_column_names(catalog.module, source.columns, text, "id_col", source.table)
    readable = {column.name for column in source.columns if column.readable}
    suggested: Names = ()
    for row in catalog.db.rows(sql("predict.key"), source.table.oid):
        columns = tuple(row["columns"])
        # A single column that is not readable is refused, as ever.
        if row["is_primary"] and (len(columns) == 1 or readable.issuperset(columns)):
            return columns
        if readable.issuperset(columns):
            suggested = columns
    way = "name the columns that identify a row by id_col"
    if suggested:
        argument = quote_text(spell_names(suggested))
        way = f"name the columns that identify a row, such as id_col => {argument}"
    elif catalog.module == "predict":
        way = f"cerebro.predict_rows returns the rows themselves; or {way}"
    catalog.db.notice(
        f"{catalog.module}: {source.table.spelling} has no primary key, so id is NULL: {way}"
    )
    return ()


def make_id_text(db: Database, source: RawSource, columns: Sequence[str]) -> Expression:
    """Return the text of a row's id: NULL without columns, an array of JSON for several.

    A number, a boolean or a text is itself in the array; another value is the text that it has in
    the caller's session.
    """
    if not columns:
        return NO_ID
    if len(columns) == 1:
        return _make_text(db, source, columns[0])
    parts = [_make_member(db, source, column) for column in columns]
    listed = ", ".join(part.text for part in parts)
    values = [value for part in parts for value in part.values]
    return Expression(f"pg_catalog.jsonb_build_array({listed})::text", tuple(values))


def _has_one_text(source: RawSource, name: str) -> bool:
    """Return whether the text of a column's values is the same under all settings."""
    return any(
        column.name == name and column.family in ONE_TEXT_FAMILIES for column in source.columns
    )


def _make_member(db: Database, source: RawSource, column: str) -> Expression:
    if _has_one_text(source, column):
        return Expression(f"t.{quote_identifier(column)}")
    return _make_text(db, source, column)


def _make_text(db: Database, source: RawSource, column: str) -> Expression:
    """Return the text of a column as the caller's session formats it."""
    value = f"t.{quote_identifier(column)}"
    if _has_one_text(source, column):
        return Expression(f"{value}::text")
    parameters = ", ".join(["%s::text"] * len(STYLES))
    styles = tuple(db.caller_settings[name] for name in STYLES)
    return Expression(f"cerebro_internal.text_under({value}, {parameters})", styles)
