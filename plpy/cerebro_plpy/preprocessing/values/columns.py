"""The raw columns of a table: which are taken, and of which family each is, by its type alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sql.identifiers import split_columns
from cerebro_plpy.errors import InvalidParameter, UndefinedColumn
from cerebro_plpy.preprocessing.values.canonical_text import MONEY
from cerebro_plpy.preprocessing.values.families import BYTES, CAST, JSON

ALL = "*"
EXCEPT = "* except "
TEXT = "text"
ZONED = "timestamptz"
FAMILIES = {
    "int2": "integer", "int4": "integer", "int8": "integer", "float4": "real", "float8": "real",
    "numeric": "numeric", "money": MONEY,
    "date": "date", "timestamp": "timestamp", "timestamptz": "timestamptz", "time": "time",
    "timetz": "time",
    "interval": "interval",
    "_int2": "integer[]", "_int4": "integer[]", "_int8": "integer[]", "_float4": "real[]",
    "_float8": "real[]",
    "_numeric": "numeric[]", BYTES: BYTES,
    "json": JSON, "jsonb": JSON, "bool": TEXT, "uuid": TEXT, "inet": TEXT, "cidr": TEXT,
    "macaddr": TEXT,
}  # fmt: skip
"""By the name of the type that a domain stands for. Those of TEXT are told apart by their texts."""
TIMES = ("date", "timestamp", "timestamptz")


class RawColumn(NamedTuple):
    """A column of a table or view."""

    name: str
    type: str  # as PostgreSQL writes it
    family: str | None  # None if no input can be made of it
    key: bool  # whether it is of a primary key whose columns may all be read
    compared: str = (
        "text"  # the type that its values are compared as, which means the same on any path
    )
    readable: bool = True  # whether the current user may read it


def read_columns(reader: Reader, oid: int) -> tuple[RawColumn, ...]:
    """Return all columns of the table or view that has this oid, in their order."""
    rows = reader.run(sql("features.columns"), (oid,))
    has_readable_key = all(readable for *_, key, readable in rows if key)
    return tuple(
        RawColumn(
            name,
            type_,
            _family(base, kind, category, castable),
            key and has_readable_key,
            compared,
            readable,
        )
        for name, type_, base, kind, category, castable, key, compared, readable in rows
    )


def _family(base: str, kind: str, category: str, castable: bool) -> str | None:
    if kind == "e" or category == "S":  # an enum, or a type of character strings
        return TEXT
    return FAMILIES.get(base) or (CAST if castable else None)


def growing_columns(columns: Sequence[RawColumn]) -> tuple[str, ...]:
    """Return the columns that rise from one row to the next in many tables: numbers of a key, and
    points of time.
    """
    return tuple(
        c.name
        for c in columns
        if c.readable and (c.family in TIMES or (c.key and c.family == "integer"))
    )


def select_columns(
    module: str, columns: Sequence[RawColumn], wanted: str | None, others: Collection[str]
) -> tuple[RawColumn, ...]:
    """The columns that a call asks for: '*', '* except a, b', or a list; none of those of another
    role.
    """
    text = (wanted or ALL).strip()
    without = text.lower().startswith(EXCEPT)
    named = () if text == ALL else split_columns(text[len(EXCEPT) :] if without else text)
    known = {column.name for column in columns}
    for name in named:
        if name not in known:
            raise UndefinedColumn(
                f"{module} error: there is no column {name!r}, which columns names.",
                hint=f"The table has: {', '.join(sorted(known))}.",
            )
    chosen = [
        c for c in columns if c.name not in others and (text == ALL or (c.name in named) != without)
    ]
    if not chosen:
        raise InvalidParameter(
            f"{module} error: columns is {wanted!r}, which leaves no column to learn from.",
            hint=f"There are: {', '.join(sorted(known - set(others))) or 'no others'}.",
        )
    return tuple(chosen)
