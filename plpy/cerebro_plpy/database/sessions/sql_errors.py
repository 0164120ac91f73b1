"""Errors of PL/Python: their codes, and those of this package with code, detail and hint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cerebro_plpy.errors import MESSAGE_PREFIX, CerebroError

T = TypeVar("T")
# Attributes of an exception that PL/Python reads.
ERROR_ATTRIBUTES = (
    "sqlstate",
    "detail",
    "hint",
    "schema_name",
    "table_name",
    "column_name",
    "datatype_name",
    "constraint_name",
)


def decode_sqlstate(code: int) -> str:
    """Return the five letters of a SQLSTATE from PostgreSQL's packed form, six bits each.

    >>> decode_sqlstate(67371461)
    '57014'
    """
    return "".join(chr(((code >> shift) & 0x3F) + ord("0")) for shift in range(0, 30, 6))


def read_sqlstate(error: Exception) -> str | None:
    """Return the SQLSTATE of an error that `Database.find_error` returned; None without one."""
    fields = getattr(error, "spidata", None)
    if fields:
        return decode_sqlstate(fields[0])
    return getattr(error, "sqlstate", None)


def make_printable(text: str) -> str:
    """Replace the characters that a text of PostgreSQL cannot contain.

    JSON may contain the character 0 and halves of surrogate pairs.

    >>> make_printable("a\\0b\\ud800"), make_printable("ä")
    ('a?b?', 'ä')
    """
    return text.encode("utf-8", "replace").decode().replace("\0", "?")


def raise_to_sql(plpy: Any, work: Callable[[], T]) -> T:
    """Do a step of a function that returns its rows one by one; raise its error to SQL."""
    try:
        return work()
    except CerebroError as error:
        failure = convert_to_sql_error(plpy, error)
    raise failure


def convert_to_sql_error(plpy: Any, error: CerebroError) -> Exception:
    """Return an exception that PL/Python reports with the code, message, detail and hint.

    PL/Python begins a message with the name of the exception's class, a colon and a space, and
    leaves out the module of built-in classes only. The class therefore has the first words of the
    message for its name: `train error` of "train error: there is no column 'x'.".
    """
    name, separator, text = error.message.partition(" error: ")
    if separator and name.isidentifier():
        name += " error"
    else:
        name, text = MESSAGE_PREFIX.rstrip(": "), error.message
    attributes = dict.fromkeys(ERROR_ATTRIBUTES)
    attributes["sqlstate"] = error.sqlstate
    attributes["detail"] = error.detail and make_printable(error.detail)
    attributes["hint"] = error.hint and make_printable(error.hint)
    error_class = type(name, (plpy.Error,), {"__module__": "builtins", **attributes})
    failure: Exception = error_class(make_printable(text))
    return failure
