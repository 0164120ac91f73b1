"""Values as PostgreSQL reads them: the type that a parameter has, and literals for statements that
take none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

DOUBLE = "double precision"
SCALARS = ((bool, "boolean"), (int, "bigint"), (float, DOUBLE), (bytes, "pg_catalog.bytea"))
"""Types of Python by the types of PostgreSQL that they are sent as. Names that are no words of SQL
are qualified: the caller's path may have types of its own."""
TEXT = "pg_catalog.text"


def parameter_type(value: object) -> str:
    """Return the PostgreSQL type of a value: text if PostgreSQL is to convert the value.

    >>> (parameter_type(3), parameter_type("a"), parameter_type([[None], [1.5]]),
    ...  parameter_type(None))
    ('bigint', 'pg_catalog.text', 'double precision[]', 'pg_catalog.text')
    """
    if isinstance(value, (list, tuple)):
        kinds = [parameter_type(leaf) for leaf in _leaves(value) if leaf is not None]
        return f"{DOUBLE}[]" if DOUBLE in kinds else f"{next(iter(kinds), TEXT)}[]"
    return next((name for kind, name in SCALARS if isinstance(value, kind)), TEXT)


def literal(value: object) -> str:
    """Return a value as it stands in a statement that takes no parameters.

    >>> print(literal([[1.5], [None]]), literal(-7), literal(True), literal(None))
    E'{{"1.5"},{NULL}}'::double precision[] (-7) true NULL
    """
    if value is None:
        return "NULL"
    if isinstance(value, (list, tuple)):
        return f"{array_literal(value)}::{parameter_type(value)}"
    if isinstance(value, float):
        return f"'{value!r}'::double precision"
    if isinstance(value, bytes):
        return f"{_quoted(_text(value))}::pg_catalog.bytea"
    if isinstance(value, bool):
        return _text(value)
    if isinstance(value, int):
        return str(value) if value >= 0 else f"({value})"  # a cast binds stronger than a minus sign
    return _quoted(str(value))


def quoted_text(text: str) -> str:
    """Return a text as a person types it in a statement, for hints.

    >>> print(quoted_text("a model"), quoted_text("Ann's"))
    'a model' 'Ann''s'
    """
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def array_literal(values: Sequence[object]) -> str:
    """Return an array as a quoted SQL string; lists in lists are further dimensions.

    >>> print(array_literal(["a'b", None, ["c", "d"]]))
    E'{"a''b",NULL,{"c","d"}}'
    """
    return _quoted(_array(values) if any(True for _ in _leaves(values)) else "{}")


def _array(values: Sequence[object]) -> str:
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, (list, tuple)):
        return _array(value)
    return '"' + _text(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _leaves(values: Sequence[object]) -> Iterator[object]:
    """Return the elements of an array of any number of dimensions."""
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _leaves(value)
        else:
            yield value


def _text(value: object) -> str:
    """Return the text that PostgreSQL reads as a value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    return repr(value) if isinstance(value, float) else str(value)


def _quoted(text: str) -> str:
    """Return a text in quotes that are read alike whatever standard_conforming_strings is."""
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
