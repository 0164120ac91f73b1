"""The columns that a call selects to learn from."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cerebro_plpy.database.platform_protocol import Table
from cerebro_plpy.database.sql.identifiers import split_columns
from cerebro_plpy.database.sql.spelling import spell_names
from cerebro_plpy.errors import InvalidName, InvalidParameter, UndefinedColumn, quote_text
from cerebro_plpy.preprocessing.values.column_hints import suggest_list
from cerebro_plpy.preprocessing.values.columns import RawColumn

ALL = "*"
EXCEPT = "* except "
NO_OTHERS = "The table has no column but those that the call names otherwise: add some in a view."


def select_columns(
    module: str,
    columns: Sequence[RawColumn],
    selection: str | None,
    excluded: Collection[str | None],
    table: Table | None = None,
) -> tuple[RawColumn, ...]:
    """Return the columns that a call selects.

    Args:
        selection: '*', '* except a, b', or a list.
        excluded: columns that are never selected.
        table: the source of the call, for hints.
    """
    text = (selection or ALL).strip()
    is_exception = text == ALL or text.lower().startswith(EXCEPT)
    listed = _read_names(module, columns, text, table)
    names = {column.name for column in columns}
    selected = tuple(
        column
        for column in columns
        if column.name not in excluded and (column.name in listed) != is_exception
    )
    if not selected:
        possible = spell_names(sorted(names.difference(excluded)))
        hint = f"Write columns => {quote_text(possible)}."
        if not possible:
            hint = NO_OTHERS
        raise InvalidParameter(
            f"{module} error: columns is {selection!r}, which leaves no column to learn from.",
            hint=hint,
        )
    return selected


def _read_names(
    module: str, columns: Sequence[RawColumn], text: str, table: Table | None
) -> tuple[str, ...]:
    """Return the names that a selection lists; all of them exist."""
    if text == ALL:
        return ()
    prefix = text[: len(EXCEPT)] if text.lower().startswith(EXCEPT) else ""
    listed = text[len(prefix) :]
    names = {column.name for column in columns}
    try:
        selected = split_columns(listed)
    except InvalidName as error:
        hint = suggest_list(listed, prefix, columns, table)
        raise InvalidName(
            f"{module} error: columns is {text!r}: {error.message}.",
            detail=error.detail,
            hint=hint,
        ) from error
    for name in selected:
        if name not in names:
            raise UndefinedColumn(
                f"{module} error: there is no column {name!r}, which columns names.",
                hint=suggest_list(listed, prefix, columns, table),
            )
    return selected
