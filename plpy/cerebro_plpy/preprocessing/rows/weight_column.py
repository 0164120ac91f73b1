"""The columns that a call names beside those that it learns from, and how much a row counts by one
of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cerebro_plpy.configs.params.keras_names import near_matches
from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sql.identifiers import split_columns
from cerebro_plpy.errors import DatatypeMismatch, InvalidName, InvalidParameter, UndefinedColumn
from cerebro_plpy.preprocessing.rows.statistics import Source
from cerebro_plpy.preprocessing.values import column_values
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.expression import Expression
from cerebro_plpy.preprocessing.values.families import NUMBERS


def find_column(
    module: str, columns: Sequence[RawColumn], name: str, what: str, where: str = ""
) -> RawColumn:
    """The column of that name, by which `what` is meant; raises UndefinedColumn where there is
    none.
    """
    for column in columns:
        if column.name == name:
            return column
    known = [column.name for column in columns]
    raise UndefinedColumn(
        f"{module} error: there is no column {name!r}{where}, which {what} names.",
        hint=near_matches(name, known),
    )


def read_column_name(
    module: str, names: Collection[str], text: str, what: str, spelling: str
) -> str:
    """The name that is written so, as in SQL: small letters where it is not quoted; `spelling` is
    that of the table.
    """
    try:
        (name,) = split_columns(text)
    except (ValueError, InvalidName):
        name = ""
    if name not in names:
        raise UndefinedColumn(
            f"{module} error: {spelling} has no column {text!r}, which {what} names.",
            hint=f"Its columns are: {', '.join(names)}. Put a name with capitals or other signs in "
            "double quotes.",
        )
    return name


def find_weight_column(
    module: str, columns: Sequence[RawColumn], name: str | None
) -> RawColumn | None:
    """The column of weights, if one is wanted; raises DatatypeMismatch where it has no numbers."""
    if name is None:
        return None
    column = find_column(module, columns, name, "weight")
    if column.family not in NUMBERS:
        raise DatatypeMismatch(
            f"{module} error: weight names column {name!r} of type {column.type}; expected a "
            "column of numbers.",
            hint="A weight is how much a row counts: 0 for nothing, 2 for two rows.",
        )
    return column


def weight_of_row(reader: Reader, module: str, source: Source, column: RawColumn) -> Expression:
    """How much a row counts in the training loss: its weight by the mean of all, so that losses are
    as without.
    """
    weight = column_values.number(column.name, column.family or "")
    text = sql("features.weights", source=source.table, weight=weight.text, side=source.side.text)
    ((rows, usable, mean),) = reader.run(text, (*weight.values, *source.side.values))
    if usable < rows or not mean:
        raise InvalidParameter(
            f"{module} error: weight names column {column.name!r}, which has {rows - usable} "
            f"values that are NULL, negative or not finite in {rows} training rows, and "
            f"{'some' if mean else 'none'} above 0.",
            hint="A weight is how much a row counts: 0 for nothing, 2 for two rows.",
        )
    return Expression(f"({weight.text}) / %s::double precision", (*weight.values, mean))
