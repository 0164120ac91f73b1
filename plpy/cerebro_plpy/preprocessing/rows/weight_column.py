"""Columns that a call names: found by name; and the column of weights."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cerebro_plpy.database.platform_protocol import Reader, Table
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sql.identifiers import Names, split_columns
from cerebro_plpy.database.sql.spelling import (
    match_names,
    suggest_columns,
    suggest_similar,
)
from cerebro_plpy.database.sql.view_hints import is_expression
from cerebro_plpy.errors import DatatypeMismatch, InvalidName, InvalidParameter, UndefinedColumn
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values import column_values
from cerebro_plpy.preprocessing.values.column_hints import (
    make_free_name,
    suggest_argument,
    suggest_view,
)
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import NUMBERS


def find_column(
    module: str,
    columns: Sequence[RawColumn],
    name: str,
    argument: str,
    place: str = "",
    table: Table | None = None,
) -> RawColumn:
    """Return the column that an argument names; raises UndefinedColumn if it is missing.

    Args:
        place: the table, for the message, if it is not the source of the call.
        table: the source of the call, for the hint.
    """
    for column in columns:
        if column.name == name:
            return column
    if place:
        hint = suggest_similar(name, [column.name for column in columns])
    else:
        hint = suggest_argument(argument, name, columns, table)
    raise UndefinedColumn(
        f"{module} error: there is no column {name!r}{place}, which {argument} names.", hint=hint
    )


def read_column_name(
    module: str,
    names: Collection[str],
    text: str,
    argument: str,
    spelling: str,
) -> str:
    """Return the column that a text names as in SQL, folded to lower case if it is not quoted.

    Args:
        spelling: the name of the table, for the message.
    """
    try:
        (name,) = split_columns(text)
    except (ValueError, InvalidName):
        name = ""
    if name not in names:
        hint = suggest_columns(argument, text, names)
        raise UndefinedColumn(
            f"{module} error: {spelling} has no column {text!r}, which {argument} names.", hint=hint
        )
    return name


def read_column_names(
    module: str, columns: Sequence[RawColumn], text: str, argument: str, table: Table
) -> Names:
    """Return the columns that a list names as in SQL, without repetition.

    Args:
        table: the source of the call.
    """
    names = [column.name for column in columns]
    try:
        listed = split_columns(text)
    except InvalidName:
        listed = ()
    if not listed or not {*listed} <= {*names}:
        hint = suggest_columns(argument, text, names)
        if not match_names(text, names) and is_expression(text, names):
            name = make_free_name(f"{argument}_value", names)
            hint = suggest_view(table, {name: text}, {argument: name})
        raise UndefinedColumn(
            f"{module} error: {table.spelling} has no column {text!r}, which {argument} names.",
            hint=hint,
        )
    return tuple(dict.fromkeys(listed))


def find_weight_column(
    module: str, columns: Sequence[RawColumn], name: str | None, table: Table | None = None
) -> RawColumn | None:
    """Return the column of weights, if a call names one.

    Raises DatatypeMismatch if it does not have numbers.
    """
    if name is None:
        return None
    column = find_column(module, columns, name, "weight", table=table)
    if column.family not in NUMBERS:
        raise DatatypeMismatch(
            f"{module} error: weight names column {name!r} of type {column.type}; expected a "
            "column of numbers.",
            hint="A weight is how much a row counts: 0 for nothing, 2 for two rows.",
        )
    return column


def weight_of_row(reader: Reader, module: str, source: Source, column: RawColumn) -> Expression:
    """Return the weight of a row in the training loss: its value divided by the mean of all.

    So losses are comparable with those without weights. Raises InvalidParameter if a value is not a
    weight.
    """
    weight = column_values.number(column.name, column.family or "")
    statement = sql(
        "features.weights", source=source.table, weight=weight.text, side=source.side.text
    )
    ((rows, usable, mean),) = reader.run(statement, (*weight.values, *source.side.values))
    if usable < rows or not mean:
        invalid = count_nouns(rows - usable, "value", "is")
        raise InvalidParameter(
            f"{module} error: weight names column {column.name!r}, in which {invalid} NULL, "
            f"negative or not finite, of {count_nouns(rows, 'training row')}, and "
            f"{'some are' if mean else 'none is'} above 0.",
            hint="A weight is how much a row counts: 0 for nothing, 2 for two rows.",
        )
    return Expression(f"({weight.text}) / %s::double precision", (*weight.values, mean))
