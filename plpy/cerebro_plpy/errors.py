"""Errors, with one class per SQLSTATE, so that a caller in SQL can distinguish them by code.

A message contains what was received and what is expected; the hint is an action. Only the entry
from SQL converts them into PostgreSQL errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LOCK_NOT_AVAILABLE = "55P03"  # lock_timeout ended a wait
LIST_RUNS = "SELECT run_id, name, status FROM cerebro.run;"
"""The hint of errors about the id of a run."""
MESSAGE_PREFIX = "cerebro_db: "
"""Beginning of messages to SQL that do not begin with the function, as in `train error: `."""
# Another session has created a table of that name. PostgreSQL looks for the table, then for its row
# type, and then writes both into unique indexes. The error depends on when the other transaction
# commits.
CREATED_CONCURRENTLY = ("42P07", "42710", "23505")


class CerebroError(Exception):
    """Base of all errors that reach the user as a PostgreSQL error."""

    sqlstate = "XX000"

    def __init__(self, message: str, *, hint: str | None = None, detail: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.detail = detail


class InvalidParameter(CerebroError):
    """An argument has a value outside what is allowed."""

    sqlstate = "22023"


class NullNotAllowed(CerebroError):
    """A required value is NULL."""

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
    """Sessions of a run wait for a lock of the caller, who waits for them."""

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


class DuplicateTable(CerebroError):
    """An output table exists already."""

    sqlstate = "42P07"


class DuplicateObject(CerebroError):
    """An object of that name exists already."""

    sqlstate = "42710"


class DuplicateColumn(CerebroError):
    """A table would have two columns of one name."""

    sqlstate = "42701"


class WrongObjectType(CerebroError):
    """A relation is not of the expected kind, such as a table that was not packed."""

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
    """An object is not in the state that this step needs."""

    sqlstate = "55000"


class LockNotAvailable(CerebroError):
    """Another session has locked a table for longer than this one waits."""

    sqlstate = LOCK_NOT_AVAILABLE


class ObjectInUse(CerebroError):
    """Another session is using the object."""

    sqlstate = "55006"


class ConnectionFailure(CerebroError):
    """A worker session could not be opened or was lost."""

    sqlstate = "08006"


class SegmentLost(ConnectionFailure):
    """Greenplum lost a session's process on a segment; the session itself can continue."""


class QueryCanceled(CerebroError):
    """The call was cancelled, timed out, or its client is gone."""

    sqlstate = "57014"


class OutOfTime(QueryCanceled):
    """The budget of a call ended while it read a table."""


class ServerGone(CerebroError):
    """The postmaster or the session was terminated during a call."""

    sqlstate = "57P01"


class OutOfMemory(CerebroError):
    """A trainer needed more memory than it may have."""

    sqlstate = "53200"


class DiskFull(CerebroError):
    """A table would leave too little of the server's disk free."""

    sqlstate = "53100"


class TooManyConnections(CerebroError):
    """A limit of the server, role, database or administrator does not allow a further session."""

    sqlstate = "53300"


class ConfigurationLimit(CerebroError):
    """A limit set by the administrator was reached."""

    sqlstate = "53400"


class LimitExceeded(CerebroError):
    """A value is larger than PostgreSQL allows."""

    sqlstate = "54000"


class TrainerFailure(CerebroError):
    """A trainer could not be started, ended early, or sent an invalid response."""

    sqlstate = "58000"


class DataCorrupted(CerebroError):
    """Stored data differ from what was written."""

    sqlstate = "XX001"


class ConfigFailure(CerebroError):
    """One configuration cannot be trained; the others of its run can.

    Its code is not a standard one (class MS), because the orchestrator must distinguish this error
    from every error that ends the run.
    """

    sqlstate = "MS001"


def find_error_class(sqlstate: str) -> type[CerebroError]:
    """Return the class of a SQLSTATE; CerebroError if it does not have one.

    >>> find_error_class("42P01").__name__
    'UndefinedTable'
    """
    for cls in CerebroError.__subclasses__():
        if cls.sqlstate == sqlstate:
            return cls
    return CerebroError


def hidden_run(run_id: int, module: str | None = None) -> UndefinedObject:
    """Return the error of a run that is missing, or that row security hides from the caller."""
    text = f"there is no run {run_id} that you may see"
    return UndefinedObject(f"{module} error: {text}." if module else text, hint=LIST_RUNS)


def quote_text(text: str) -> str:
    """Return a text as a person would type it in a statement, for hints.

    >>> print(quote_text("a model"), quote_text("Ann's"))
    'a model' 'Ann''s'
    """
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def locked_log_error(holder: Mapping[str, Any] | None) -> ObjectInUse:
    """Return the error for a table of schema cerebro that stayed locked beyond the limit."""
    table = "a table of schema cerebro"
    detail = None
    if holder:
        table = holder["table"]
        detail = f"Process {holder['pid']}: {holder['query'] or 'its statement is not shown'}"
    return ObjectInUse(
        f"{table}, which every call needs, is locked by another session",
        detail=detail,
        hint="Call again, or cerebro.resume() the run, when that is done; an administrator can "
        "end it by pg_cancel_backend(). Set lock_timeout to wait longer.",
    )
