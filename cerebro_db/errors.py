"""What can go wrong, one class per SQLSTATE: the backend's classes under the same names.

What the client itself refuses has the class, and so the SQLSTATE, that the server would give it.
The client never imports the backend's package; a test compares the two lists.
"""

from __future__ import annotations

import re
from typing import Any


class CerebroError(Exception):
    """Base of all errors of the client; itself used for a SQLSTATE that has no class of its own."""

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
    """An argument has a value outside what is allowed."""

    sqlstate = "22023"


class NullNotAllowed(CerebroError):
    """A value that must be there is NULL."""

    sqlstate = "22004"


class NumericOutOfRange(CerebroError):
    """A number left its range, such as a loss that became NaN."""

    sqlstate = "22003"


class InvalidText(CerebroError):
    """A text does not follow the syntax expected of it."""

    sqlstate = "22P02"


class InvalidName(CerebroError):
    """A table or column name is not a legal name."""

    sqlstate = "42602"


class DeadlockDetected(CerebroError):
    """Sessions of a run wait for a lock that the caller's own transaction holds."""

    sqlstate = "40P01"


class UndefinedTable(CerebroError):
    """A table that is named does not exist."""

    sqlstate = "42P01"


class UndefinedColumn(CerebroError):
    """A column that is named does not exist."""

    sqlstate = "42703"


class UndefinedObject(CerebroError):
    """A model, configuration or run that is named does not exist."""

    sqlstate = "42704"


class DuplicateObject(CerebroError):
    """Something of that name exists already."""

    sqlstate = "42710"


class DuplicateColumn(CerebroError):
    """A name would stand for two columns of an output table."""

    sqlstate = "42701"


class DuplicateTable(CerebroError):
    """An output table exists already."""

    sqlstate = "42P07"


class WrongObjectType(CerebroError):
    """A relation exists but is not of the kind expected, such as a table that was not packed."""

    sqlstate = "42809"


class DatatypeMismatch(CerebroError):
    """A column has a type that cannot be used here, or shapes do not fit."""

    sqlstate = "42804"


class FeatureNotSupported(CerebroError):
    """The request is understood but not available."""

    sqlstate = "0A000"


class InsufficientPrivilege(CerebroError):
    """The caller may not do this."""

    sqlstate = "42501"


class ActiveTransaction(CerebroError):
    """The caller's transaction does not allow this, for its isolation level or its locks."""

    sqlstate = "25001"


class ReadOnlyTransaction(CerebroError):
    """The caller's transaction is read only."""

    sqlstate = "25006"


class ObjectNotReady(CerebroError):
    """Something is not in the state that this step needs."""

    sqlstate = "55000"


class LockNotAvailable(CerebroError):
    """Another session has locked a table for longer than this one waits."""

    sqlstate = "55P03"


class ObjectInUse(CerebroError):
    """Another session works on this just now."""

    sqlstate = "55006"


class ConnectionFailure(CerebroError):
    """A worker session could not be opened or was lost."""

    sqlstate = "08006"


class QueryCanceled(CerebroError):
    """The call was cancelled, timed out, or its client is gone."""

    sqlstate = "57014"


class ServerGone(CerebroError):
    """The server ended while a call was under way."""

    sqlstate = "57P01"


class OutOfMemory(CerebroError):
    """A trainer needed more memory than it may have."""

    sqlstate = "53200"


class DiskFull(CerebroError):
    """A table would leave too little of the server's disk free."""

    sqlstate = "53100"


class TooManyConnections(CerebroError):
    """The server, the role, the database or the administrator's setting allows no further session
    now.
    """

    sqlstate = "53300"


class ConfigurationLimit(CerebroError):
    """A limit set by the administrator was reached."""

    sqlstate = "53400"


class LimitExceeded(CerebroError):
    """Something is larger than PostgreSQL can take."""

    sqlstate = "54000"


class TrainerFailure(CerebroError):
    """A trainer could not be started, ended early, or answered nonsense."""

    sqlstate = "58000"


class DataCorrupted(CerebroError):
    """What was stored is not what was written."""

    sqlstate = "XX001"


class ConfigFailure(CerebroError):
    """One configuration cannot be trained; the others of its run can."""

    sqlstate = "MS001"


class MissingLibrary(ObjectNotReady, ImportError):
    """An optional library is not installed where the client runs; `name` is that of its package."""

    def __init__(self, message: str, *, hint: str, name: str) -> None:
        super().__init__(message, hint=hint)
        self.name = name


class UnknownOption(InvalidParameter, TypeError):
    """A method has no option of that name; so it is a TypeError, as of any wrong argument in
    Python.
    """


# PL/Python puts the class of the exception before the message of an error that Python code raised.
_RAISED_BY = re.compile(r"^(?:(?:plpy|spiexceptions)\.\w+|cerebro_plpy(?:\.\w+)+): ")


def plain_message(message: str) -> str:
    """The message as its author wrote it.

    >>> plain_message("plpy.Error: Output table 'flowers' already exists.")
    "Output table 'flowers' already exists."
    """
    return _RAISED_BY.sub("", message)


def convert_driver_error(error: BaseException) -> CerebroError:
    """The error of this module for one of psycopg2; without a SQLSTATE the connection was not
    there.
    """
    sqlstate: str | None = getattr(error, "pgcode", None)
    if sqlstate is None:
        return ConnectionFailure(str(error).strip() or type(error).__name__)
    diagnostics: Any = getattr(error, "diag", None)
    message = getattr(diagnostics, "message_primary", None) or str(error).strip()
    cls = find_error_class(sqlstate)
    return cls(
        plain_message(message),
        hint=getattr(diagnostics, "message_hint", None),
        detail=getattr(diagnostics, "message_detail", None),
        sqlstate=sqlstate,
    )


def find_error_class(sqlstate: str) -> type[CerebroError]:
    """The class of a SQLSTATE; CerebroError where there is none of its own.

    >>> find_error_class("42P01").__name__
    'UndefinedTable'
    """
    return next(
        (cls for cls in CerebroError.__subclasses__() if cls.sqlstate == sqlstate), CerebroError
    )
