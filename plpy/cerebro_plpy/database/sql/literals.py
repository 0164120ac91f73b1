"""PostgreSQL types of parameters, and literals for statements that take no parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

DOUBLE = "double precision"
SCALARS = ((bool, "boolean"), (int, "bigint"), (float, DOUBLE), (bytes, "pg_catalog.bytea"))
"""PostgreSQL types by Python types.

Names that are not SQL keywords are qualified, because the caller's path may have types of these
names.
"""
TEXT = "pg_catalog.text"


def parameter_type(value: object) -> str:
    """Return the PostgreSQL type of a value; text if PostgreSQL is to convert it.

    >>> (parameter_type(3), parameter_type("a"), parameter_type([[None], [1.5]]),
    ...  parameter_type(None))
    ('bigint', 'pg_catalog.text', 'double precision[]', 'pg_catalog.text')
    """
    if isinstance(value, (list, tuple)):
        types = [parameter_type(leaf) for leaf in _leaves(value) if leaf is not None]
        element_type = next(iter(types), TEXT)
        if DOUBLE in types:
            element_type = DOUBLE
        return f"{element_type}[]"
    return next((name for python_type, name in SCALARS if isinstance(value, python_type)), TEXT)


def literal(value: object) -> str:
    """Return a value as a literal, for a statement that takes no parameters.

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
        return f"{_quote(_text(value))}::pg_catalog.bytea"
    if isinstance(value, bool):
        return _text(value)
    if isinstance(value, int):
        return str(value) if value >= 0 else f"({value})"  # a cast binds tighter than a minus sign
    return _quote(str(value))


def show_value(value: object) -> str:
    """Return a value as a message shows it: NULL for None."""
    if value is None:
        return "NULL"
    return str(value)


def array_literal(values: Sequence[object]) -> str:
    """Return an array as a quoted SQL string; nested lists are further dimensions.

    >>> print(array_literal(["a'b", None, ["c", "d"]]))
    E'{"a''b",NULL,{"c","d"}}'
    """
    has_elements = any(True for _ in _leaves(values))
    return _quote(_array(values) if has_elements else "{}")


def _array(values: Sequence[object]) -> str:
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, (list, tuple)):
        return _array(value)
    return '"' + _text(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _leaves(values: Sequence[object]) -> Iterator[object]:
    """Yield the elements of an array of any number of dimensions."""
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


def _quote(text: str) -> str:
    """Return a text in quotes that do not depend on standard_conforming_strings."""
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
