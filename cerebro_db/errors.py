"""Errors of the client, one class per SQLSTATE, with the names of the backend's classes.

An error that the client itself raises has the class and the SQLSTATE that the server would use.
The client never imports the backend's package; a test compares the two lists.
"""

from __future__ import annotations

import re
from typing import Any


class CerebroError(Exception):
    """Base class of all errors of the client, and the class of a SQLSTATE without its own class."""

    sqlstate = "XX000"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        detail: str | None = None,
        sqlstate: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.detail = detail
        self.sqlstate = sqlstate or type(self).sqlstate

    def __str__(self) -> str:
        parts = (
            self.message,
            self.detail and f"DETAIL: {self.detail}",
            self.hint and f"HINT: {self.hint}",
        )
        return "\n".join(part for part in parts if part)


class InvalidParameter(CerebroError):
    """Argument with a value outside the allowed range."""

    sqlstate = "22023"


class NullNotAllowed(CerebroError):
    """NULL as a value that is required."""

    sqlstate = "22004"


class NumericOutOfRange(CerebroError):
    """Number outside its range, such as a loss that became NaN."""

    sqlstate = "22003"


class InvalidText(CerebroError):
    """Text with invalid syntax."""

    sqlstate = "22P02"


class InvalidName(CerebroError):
    """Invalid name of a table or a column."""

    sqlstate = "42602"


class DeadlockDetected(CerebroError):
    """Wait of a run's sessions for a lock that the caller's own transaction holds."""

    sqlstate = "40P01"


class UndefinedTable(CerebroError):
    """Reference to a table that does not exist."""

    sqlstate = "42P01"


class UndefinedColumn(CerebroError):
    """Reference to a column that does not exist."""

    sqlstate = "42703"


class UndefinedObject(CerebroError):
    """Reference to a model, a configuration or a run that does not exist."""

    sqlstate = "42704"


class DuplicateObject(CerebroError):
    """Name of an object that exists already."""

    sqlstate = "42710"


class DuplicateColumn(CerebroError):
    """Name that an output table would have for two columns."""

    sqlstate = "42701"


class DuplicateTable(CerebroError):
    """Output table that exists already."""

    sqlstate = "42P07"


class WrongObjectType(CerebroError):
    """Relation of an unexpected kind, such as a table that was not packed."""

    sqlstate = "42809"


class DatatypeMismatch(CerebroError):
    """Column of an unsupported type, or shapes that do not match."""

    sqlstate = "42804"


class FeatureNotSupported(CerebroError):
    """Valid request for a feature that is not available."""

    sqlstate = "0A000"


class InsufficientPrivilege(CerebroError):
    """Action for which the caller lacks a privilege."""

    sqlstate = "42501"


class ActiveTransaction(CerebroError):
    """Action that the caller's transaction forbids by its isolation level or its locks."""

    sqlstate = "25001"


class ReadOnlyTransaction(CerebroError):
    """Write in a read-only transaction of the caller."""

    sqlstate = "25006"


class ObjectNotReady(CerebroError):
    """Object that is not in the state that this step requires."""

    sqlstate = "55000"


class LockNotAvailable(CerebroError):
    """Table that another session locked for longer than this session waits."""

    sqlstate = "55P03"


class ObjectInUse(CerebroError):
    """Object on which another session is working."""

    sqlstate = "55006"


class ConnectionFailure(CerebroError):
    """Worker session that could not be opened or was lost."""

    sqlstate = "08006"


class QueryCanceled(CerebroError):
    """Call that was cancelled, timed out, or lost its client."""

    sqlstate = "57014"


class ServerGone(CerebroError):
    """End of the server during a call."""

    sqlstate = "57P01"


class OutOfMemory(CerebroError):
    """Trainer that needed more memory than its limit."""

    sqlstate = "53200"


class DiskFull(CerebroError):
    """Table that would leave too little free space on the server's disk."""

    sqlstate = "53100"


class TooManyConnections(CerebroError):
    """Session beyond a limit of the server, the role, the database or the administrator."""

    sqlstate = "53300"


class ConfigurationLimit(CerebroError):
    """Limit of the administrator that was reached."""

    sqlstate = "53400"


class LimitExceeded(CerebroError):
    """Object larger than PostgreSQL supports."""

    sqlstate = "54000"


class TrainerFailure(CerebroError):
    """Trainer that did not start, ended early, or sent an invalid response."""

    sqlstate = "58000"


class DataCorrupted(CerebroError):
    """Stored data that differ from the data written."""

    sqlstate = "XX001"


class ConfigFailure(CerebroError):
    """Configuration that cannot be trained, unlike the other configurations of its run."""

    sqlstate = "MS001"


class MissingLibrary(ObjectNotReady, ImportError):
    """Optional library that is not installed on the client; `name` is its package."""

    def __init__(self, message: str, *, hint: str, name: str) -> None:
        super().__init__(message, hint=hint)
        self.name = name


class UnknownOption(InvalidParameter, TypeError):
    """Option that a method does not have; a TypeError, as for any wrong argument in Python."""


# PL/Python writes the class of a Python exception before its message, and the server `cerebro_db`
# before an error that does not name its function.
_EXCEPTION_CLASS = re.compile(
    r"^(?:(?:plpy|spiexceptions)\.\w+|cerebro_plpy(?:\.\w+)+|cerebro_db): "
)


# PostgreSQL itself refuses the schema, in any language, so the server has no hint.
_LOCKED_OUT = re.compile(r"\bcerebro$")


def remove_exception_class(message: str) -> str:
    """Return the message without the exception class that PL/Python adds.

    >>> remove_exception_class("plpy.SPIError: Output table 'flowers' already exists.")
    "Output table 'flowers' already exists."
    """
    return _EXCEPTION_CLASS.sub("", message)


def convert_driver_error(error: BaseException) -> CerebroError:
    """Return the error of this module for an error of psycopg2.

    An error without a SQLSTATE means that the connection failed.
    """
    sqlstate: str | None = getattr(error, "pgcode", None)
    if sqlstate is None:
        return ConnectionFailure(str(error).strip() or type(error).__name__)
    diagnostics: Any = getattr(error, "diag", None)
    message = getattr(diagnostics, "message_primary", None) or str(error).strip()
    cls = find_error_class(sqlstate)
    hint = getattr(diagnostics, "message_hint", None)
    if hint is None and sqlstate == InsufficientPrivilege.sqlstate and _LOCKED_OUT.search(message):
        hint = "An administrator lets a role in: SELECT cerebro.grant_usage('your_role');"
    return cls(
        remove_exception_class(message),
        hint=hint,
        detail=getattr(diagnostics, "message_detail", None),
        sqlstate=sqlstate,
    )


def find_error_class(sqlstate: str) -> type[CerebroError]:
    """Return the class of a SQLSTATE; CerebroError if the SQLSTATE has no class of its own.

    >>> find_error_class("42P01").__name__
    'UndefinedTable'
    """
    for cls in CerebroError.__subclasses__():
        if cls.sqlstate == sqlstate:
            return cls
    return CerebroError
