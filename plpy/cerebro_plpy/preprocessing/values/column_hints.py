"""Hints with views: expressions of a column whose type a call cannot take as it is."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from cerebro_plpy.database.platform_protocol import Table
from cerebro_plpy.database.sql.identifiers import quote_identifier, split_qualified
from cerebro_plpy.database.sql.spelling import (
    match_name,
    spell_name,
    spell_names,
    suggest_columns,
    suggest_name,
    suggest_similar,
)
from cerebro_plpy.database.sql.view_hints import is_expression, split_list, view_with_columns
from cerebro_plpy.errors import quote_text
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import ARRAYS, MOMENTS, NUMBERS, POINTS

NUMBER_PATTERN = r"^\s*([-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)\s*$"
"""Texts that PostgreSQL reads as a number; others become NULL."""
MAX_SELECTED = 20
"""Columns that a hint selects by name; of more it excludes one."""
RANGES = ("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange")


def name_view(table: Table) -> str:
    """Return a name for a view of a table."""
    return f"{split_qualified(table.quoted)[-1][:50]}_view"


def suggest_view(table: Table, expressions: Mapping[str, str], arguments: Mapping[str, str]) -> str:
    """Return a hint with a view that has more columns, and the arguments of a call with it."""
    view = name_view(table)
    values = {"source": spell_name(view), **arguments}
    argument_list = ", ".join(f"{name} => {quote_text(value)}" for name, value in values.items())
    return f"{view_with_columns(view, table.quoted, expressions)} then {argument_list}."


def suggest_argument(
    argument: str, text: str, columns: Sequence[RawColumn], table: Table | None
) -> str:
    """Return a hint for an argument that takes the name of one column as it is.

    Args:
        text: the argument, which is not the name of a column.
        table: the source of the call; None if the hint cannot name it.
    """
    names = [column.name for column in columns]
    if not argument.isidentifier():
        return suggest_similar(text, names)
    if table is None or match_name(text, names) or not is_expression(text, names):
        return suggest_name(argument, text, names)
    name = make_free_name(f"{argument}_value", names)
    return suggest_view(table, {name: text}, {argument: name})


def suggest_list(text: str, prefix: str, columns: Sequence[RawColumn], table: Table | None) -> str:
    """Return a hint for the argument `columns` if it has something else than names of columns."""
    names = [column.name for column in columns]
    parts = split_list(text)
    expressions = {
        part: make_free_name(f"value_{number}", names)
        for number, part in enumerate(parts, 1)
        if match_name(part.strip('"'), names) is None and is_expression(part, names)
    }
    column_names = [match_name(part.strip('"'), names) for part in parts if part not in expressions]
    if table is None or prefix or not expressions or None in column_names:
        return suggest_columns("columns", text, names, prefix)
    selected = [expressions.get(part) or match_name(part.strip('"'), names) or "" for part in parts]
    new_columns = {name: part for part, name in expressions.items()}
    return suggest_view(table, new_columns, {"columns": spell_names(selected)})


def make_free_name(name: str, names: Collection[str]) -> str:
    """Return a name for a new column that no column of a table has."""
    while name in names:
        name += "_"
    return name


def number_expression(column: RawColumn) -> str:
    """Return an expression of the number that a text is; NULL for other texts."""
    return f"pg_catalog.substring({_name(column)}::text, {quote_text(NUMBER_PATTERN)})::numeric"


def input_expressions(column: RawColumn) -> dict[str, str]:
    """Return expressions that models can learn from, of a column of a type that they cannot."""
    name = _name(column)
    if column.type in RANGES:
        return {
            f"{column.name}_from": f"pg_catalog.lower({name})",
            f"{column.name}_to": f"pg_catalog.upper({name})",
        }
    if column.type == "point":
        return {f"{column.name}_x": f"{name}[0]", f"{column.name}_y": f"{name}[1]"}
    if column.type == "boolean[]":
        return {f"{column.name}_numbers": f"{name}::integer[]"}
    if column.type.endswith("[]"):
        return {f"{column.name}_words": f"pg_catalog.array_to_string({name}, ' ')"}
    return {f"{column.name}_text": f"{name}::text"}


def target_expressions(column: RawColumn) -> dict[str, str]:
    """Return an expression that can be a target, of a column of a type that cannot."""
    name = _name(column)
    if column.family in ARRAYS:
        return {f"{column.name}_1": f"({name}::real[])[1]"}
    if column.family in MOMENTS:
        seconds = f"pg_catalog.date_part('epoch', {name})"
        return {f"{column.name}_seconds": seconds}
    return {f"{column.name}_text": f"{name}::text"}


def group_expressions(column: RawColumn) -> dict[str, str]:
    """Return an expression that rows can be grouped by, of a column by which they cannot."""
    name = _name(column)
    if column.family in POINTS:
        return {f"{column.name}_month": f"pg_catalog.date_trunc('month', {name})::date"}
    if column.family in NUMBERS:
        return {f"{column.name}_whole": f"pg_catalog.floor({name}::numeric)::bigint"}
    return {f"{column.name}_text": f"{name}::text"}


def suggest_target(table: Table, column: RawColumn, expressions: Mapping[str, str]) -> str:
    """Return a hint with a view that has a target instead of a column."""
    target = next(iter(expressions))
    columns = f"* except {spell_name(column.name)}"
    return suggest_view(table, expressions, {"target": target, "columns": columns})


def suggest_types(types: Mapping[str, str], unknown: str, columns: Sequence[RawColumn]) -> str:
    """Return a hint for an entry of `types` that does not name a column."""
    names = [column.name for column in columns]
    name = match_name(unknown.strip('"'), names)
    if name is None:
        return suggest_similar(unknown, names)
    corrected = {name if key == unknown else key: kind for key, kind in types.items()}
    return write_types(corrected)


def suggest_kind(
    types: Mapping[str, str],
    name: str,
    possible: Sequence[str],
    columns: Sequence[RawColumn],
    table: Table,
) -> str:
    """Return a hint for an entry of `types` with a kind that the column cannot have.

    Args:
        possible: kinds that it can have; none for a type that no input is made of.
    """
    from difflib import get_close_matches  # of no use to a call that goes well

    if possible:
        close = get_close_matches(types[name], possible, n=1, cutoff=0.5)
        if close or types[name] != "number":
            return write_types({**types, name: (*close, *possible)[0]})
    column = next(column for column in columns if column.name == name)
    expressions = {f"{name}_number": number_expression(column)}
    if not possible:
        expressions = input_expressions(column)
    other_types = {key: kind for key, kind in types.items() if key != name}
    selection = f"* except {spell_name(name)}"
    if len(columns) <= MAX_SELECTED:
        selection = spell_names([*(c.name for c in columns if c.name != name), *expressions])
    arguments = {"columns": selection, "types": json.dumps(other_types, ensure_ascii=False)}
    return suggest_view(table, expressions, arguments)


def write_types(types: Mapping[str, str]) -> str:
    """Return a hint with the argument `types`."""
    return f"Write types => {quote_text(json.dumps(types, ensure_ascii=False))}."


def _name(column: RawColumn) -> str:
    return f"t.{quote_identifier(column.name)}"
