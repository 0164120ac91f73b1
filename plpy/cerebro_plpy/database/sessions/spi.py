"""The module that uses PL/Python's `plpy`; only `sql_errors` has its class of errors as well.

Values are passed as typed parameters. Errors raised here keep PostgreSQL's SQLSTATE. A cancel is
never caught: it passes through as the exception that `plpy` raised.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from cerebro_plpy.database import reading
from cerebro_plpy.database.call_limit import CallLimit
from cerebro_plpy.database.call_status import CallStatus
from cerebro_plpy.database.platform_protocol import Globals as Globals
from cerebro_plpy.database.platform_protocol import Platform
from cerebro_plpy.database.platform_protocol import Row as Row
from cerebro_plpy.database.queries import split_placeholders, sql
from cerebro_plpy.database.reading import Reading, SettingValues
from cerebro_plpy.database.sessions import client_connection
from cerebro_plpy.database.sessions.cpu_priority import CpuYield, lower_priority
from cerebro_plpy.database.sessions.sql_errors import decode_sqlstate
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.literals import parameter_type
from cerebro_plpy.database.sql.named_query import ResultColumn
from cerebro_plpy.errors import (
    LOCK_NOT_AVAILABLE,
    MESSAGE_PREFIX,
    CerebroError,
    ConfigFailure,
    LockNotAvailable,
    OutOfMemory,
    QueryCanceled,
    ServerGone,
    TrainerFailure,
    UndefinedTable,
    find_error_class,
    locked_log_error,
)

HANDLED_ERRORS = (ConfigFailure, LockNotAvailable, OutOfMemory, TrainerFailure)
STREAM_ROWS = 128  # rows that a stream fetches at a time
SAFE_PATH = "pg_catalog, pg_temp"
# Limit of waits for a locked table of schema cerebro if the caller has no lock_timeout.
LOCK_WAIT_SECONDS = 60
PLANS: dict[tuple[str, tuple[str, ...]], Any] = {}
DATA_EXCEPTION = "22"  # the class of SQLSTATEs about values
NO_QUERY = ("42601", "0A000")
"""SQLSTATEs of a text that is not a single query, or of one that does not only read."""
T = TypeVar("T")


def number_placeholders(statement: str) -> str:
    """Replace the `%s` placeholders of a driver by the `$n` of a prepared statement.

    >>> number_placeholders("SELECT %s, %s::json")
    'SELECT $1, $2::json'
    """
    first, *parts = split_placeholders(statement)
    return first + "".join(f"${number}{part}" for number, part in enumerate(parts, 1))


class Database:
    """The caller's session and transaction, through SPI."""

    def __init__(self, plpy: Any, platform: Platform) -> None:
        self._plpy = plpy
        self.platform = platform
        self._postmaster = os.getppid()
        self.caller_path = ""
        self.caller_settings: SettingValues = {}  # by the names of reading.CALLER
        self.caller_schema: str | None = None
        self.name = ""
        self.call_limit = CallLimit()
        self.status = CallStatus(self.notice)
        self.in_procedure = False
        self._client_replaced = False
        self._priority_pending = False
        self._cpu_yield = CpuYield()
        self._queries: dict[str, str] = {}  # queries of the caller, by their names in statements

    def rows(self, statement: str, *values: object) -> list[Row]:
        """Return the rows of a statement whose `%s` placeholders take the values."""
        if values:
            result = self._plpy.execute(self._plan(statement, values), list(values))
        else:
            result = self._plpy.execute(self._insert_queries(statement))
        self._cpu_yield.yield_cpu()
        return list(result)

    def _plan(self, statement: str, values: Sequence[object]) -> Any:
        types = [parameter_type(value) for value in values]
        return self._plpy.prepare(self._insert_queries(number_placeholders(statement)), types)

    def name_query(self, query: str) -> str:
        """Return a quoted name that statements may have in place of a query of the caller.

        Nothing in the query is then read as a placeholder of a statement.
        """
        name = quote_identifier(f"query {secrets.token_hex(8)}")
        self._queries[name] = f"(\n{query}\n)"
        return name

    def _insert_queries(self, statement: str) -> str:
        for name, query in self._queries.items():
            statement = statement.replace(name, query)
        return statement

    def check_statement(self, statement: str) -> None:
        """Raise PostgreSQL's error if a text of the caller is not a statement, or several."""
        self._plpy.prepare(statement)

    def describe_query(self, statement: str) -> tuple[tuple[ResultColumn, ...], str | None]:
        """Return the columns of a query that reads no row, or the error if it is not a query."""
        try:
            result = self._plpy.execute(self._insert_queries(statement))
        except self._plpy.SPIError as error:
            if decode_sqlstate(error.spidata[0]) not in NO_QUERY:
                raise
            return (), str(error).removeprefix(MESSAGE_PREFIX)
        described = zip(result.colnames(), result.coltypes(), result.coltypmods())
        return tuple(ResultColumn(*column) for column in described), None

    def guarded_rows(self, statement: str, *values: object) -> list[Row]:
        """Return rows like `rows`, but raise errors of trainers and locks as our own.

        Our own errors can be handled.
        """
        try:
            return self.rows(statement, *values)
        except self._plpy.SPIError as error:
            code, detail, hint = error.spidata[:3]
            error_class = find_error_class(decode_sqlstate(code))
            if error_class not in HANDLED_ERRORS:
                raise
            message = str(error).removeprefix(MESSAGE_PREFIX)
            raise error_class(message, detail=detail, hint=hint) from error

    def peek(self, statement: str, *values: object) -> list[Row]:
        """Return rows of tables of schema cerebro without keeping their locks.

        If the caller's transaction kept such a lock, a session that wants to change the table would
        wait for the caller, and the caller's own workers for that session. The statement runs in a
        subtransaction that is undone, which releases its locks.
        """
        return self.undone(lambda: self._run_with_limit(statement, values))

    @contextmanager
    def limited_lock_wait(self) -> Iterator[None]:
        """Limit how long statements within wait for locks on tables of schema cerebro."""
        settings = self.value(sql("session.settings"), ["lock_timeout"])
        with self._limit_lock_wait():
            yield
        self._configure(settings)

    @contextmanager
    def _limit_lock_wait(self) -> Iterator[None]:
        """Do the same, but leave lock_timeout changed until the subtransaction ends."""
        self._run_cached(sql("session.wait_for"), (float(LOCK_WAIT_SECONDS),))
        try:
            yield
        except self._plpy.SPIError as error:
            if decode_sqlstate(error.spidata[0]) != LOCK_NOT_AVAILABLE:
                raise
            holders = self.rows(sql("session.holders"))
            raise locked_log_error(next(iter(holders), None)) from error

    def _run_cached(self, statement: str, values: Sequence[object]) -> list[Row]:
        """Return the rows of a statement that is planned once in this process.

        Use it only for tables of schema cerebro, whose columns do not change.
        """
        key = (statement, tuple(map(parameter_type, values)))
        if key not in PLANS:
            PLANS[key] = self._plan(statement, values)
        result = self._plpy.execute(PLANS[key], list(values))
        self._cpu_yield.yield_cpu()
        return list(result)

    def protect_table(self, table: str) -> bool:
        """Prevent that a table is emptied or dropped until the transaction ends.

        Returns:
            False if the table was dropped already.
        """
        try:
            with self._subtransaction():
                self.rows(sql("session.hold", table=table))
        except self._plpy.SPIError as error:
            if decode_sqlstate(error.spidata[0]) != UndefinedTable.sqlstate:
                raise
            return False
        return True

    def row(self, statement: str, *values: object) -> Row:
        """Return the first row of a statement that returns at least one."""
        return self.rows(statement, *values)[0]

    def value(self, statement: str, *values: object) -> Any:
        """Return the first column of the first row; None if there is no row."""
        for row in self.rows(statement, *values):
            return next(iter(row.values()))
        return None

    def value_in_caller_path(self, statement: str, *values: object) -> Any:
        """Return like `value` what depends on the caller's search_path: the object of a name."""
        with self.configured(search_path=self.caller_path):
            return self.value(statement, *values)

    def stream(self, statement: str, *values: object) -> Iterator[Row]:
        """Yield rows through a cursor, so that only a few are in memory at a time."""
        for block in self.stream_blocks(statement, STREAM_ROWS, *values):
            yield from block

    def stream_blocks(self, statement: str, size: int, *values: object) -> Iterator[list[Row]]:
        """Return an iterator over blocks of rows; its cursor is already open."""
        cursor = self._plpy.cursor(self._plan(statement, values), list(values))
        return iter(lambda: list(cursor.fetch(size)), [])

    def prepare(self, statement: str, *values: object) -> Callable[..., list[Row]]:
        """Return a function that runs a statement, which is planned once.

        Args:
            values: examples of values, for the types of the parameters.
        """
        plan = self._plan(statement, values)
        return lambda *values: list(self._plpy.execute(plan, list(values)))

    def skip_invalid_values(self, work: Callable[[], T]) -> T | None:
        """Do the work; return None if a statement refuses a value, such as a malformed number."""
        try:
            return work()
        except self._plpy.SPIError as error:
            if not decode_sqlstate(error.spidata[0]).startswith(DATA_EXCEPTION):
                raise
            return None

    def explain_timeout(self, work: Callable[[], T]) -> T:
        """Do the work; add a hint to the error of a statement that statement_timeout ended."""
        try:
            return work()
        except self._plpy.SPIError as error:
            self._raise_timeout(error, decode_sqlstate(error.spidata[0]))
            raise
        except self._plpy.Error as error:  # by a message to the caller, during which it was ended
            self._raise_timeout(error, getattr(error, "sqlstate", None))
            raise

    def _raise_timeout(self, error: Exception, sqlstate: str | None) -> None:
        """Raise an error with a hint instead of a cancel, if that was a timeout."""
        if sqlstate == QueryCanceled.sqlstate and self.call_limit.has_passed():
            message = str(error).removeprefix(MESSAGE_PREFIX)
            raise QueryCanceled(message, hint=self.call_limit.hint) from error

    def find_error(self, work: Callable[[], object]) -> Exception | None:
        """Do the work; return its error, unless it is a cancel.

        The error has undone its statement.
        """
        try:
            work()
        except (CerebroError, MemoryError) as error:
            return error
        except self._plpy.SPIError as error:
            if decode_sqlstate(error.spidata[0]) == QueryCanceled.sqlstate:
                raise
            spi_error: Exception = error
            return spi_error
        return None

    @contextmanager
    def atomic(self, **settings: str) -> Iterator[None]:
        """Run statements under other settings; an error undoes all of them."""
        with self._subtransaction(), self.configured(**settings):
            yield

    def undone(self, work: Callable[[], T]) -> T:
        """Return the result of work whose changes and locks are undone at once."""
        with suppress(_Undo), self._subtransaction():
            result = work()
            raise _Undo
        return result

    def _run_with_limit(self, statement: str, values: Sequence[object]) -> list[Row]:
        with self._limit_lock_wait():
            return self._run_cached(statement, values)

    @contextmanager
    def _subtransaction(self) -> Iterator[None]:
        """Run statements in a subtransaction, which an error undoes.

        No cancel takes effect while it begins or ends. Greenplum ends the session if a cancel
        interrupts the end, because PL/Python then ends the same subtransaction again.
        """
        subtransaction = self._plpy.subtransaction()
        with self.platform.uninterrupted():
            subtransaction.__enter__()
        try:
            yield
        except BaseException as error:
            with self.platform.uninterrupted():
                subtransaction.__exit__(type(error), error, error.__traceback__)
            raise
        with self.platform.uninterrupted():
            subtransaction.__exit__(None, None, None)

    def check_interrupts(self) -> None:
        """Let a cancel, a timeout or a termination of this session take effect here.

        A call that trains also reports what it is doing, if a line is due.

        PostgreSQL notices the death of its postmaster only while it waits itself, not here.
        """
        self.platform.check_interrupts(self)
        self.status.report_if_due()
        if os.getppid() != self._postmaster:
            raise ServerGone("the database server was ended while this statement ran")
        if self._client_replaced:
            self._plpy.commit()  # a snapshot would hold back vacuum for as long as the call takes
        if self._priority_pending:
            self._priority_pending = not lower_priority(os.getpid())

    def detach_client(self) -> None:
        """Work without a client, in a procedure.

        From now on, each check for interrupts commits the transaction.
        """
        self.value(sql("session.silence"))
        client_connection.replace_client(int(self.value(sql("session.setting"), "port")))
        self._client_replaced = True
        self._priority_pending = True  # the client may still have had to lower it, and has left
        self.check_interrupts()

    def commit(self) -> None:
        """Commit the transaction of a procedure and begin another one."""
        self._plpy.commit()

    def rollback(self) -> None:
        """Undo the transaction of a procedure and begin another one."""
        self._plpy.rollback()

    def lock(self, name: str, key: object) -> bool:
        """Take an advisory lock until the transaction ends; in a procedure, until the session ends.

        Does not wait: any role may take any advisory lock, and could block the call forever.

        Returns:
            False if another session has the lock.
        """
        function = "pg_try_advisory_lock" if self.in_procedure else "pg_try_advisory_xact_lock"
        return bool(self.value(sql(f"session.{name}", lock=function), key))

    def info(self, message: str) -> None:
        """Send the user a message that client_min_messages does not suppress."""
        if not self._client_replaced:
            self._plpy.info(message)

    def notice(self, message: str) -> None:
        """Send the user a message that client_min_messages may suppress."""
        self._plpy.notice(message)

    @contextmanager
    def pinned_path(self) -> Iterator[None]:
        """Work under a path with only PostgreSQL's own objects; remember the caller's settings.

        Numbers as texts, such as classes, have all their digits. NULL in an array literal is not a
        text. Tables of the extension show rows by their policies, which a caller's `row_security =
        off` would turn into an error.
        """
        caller = self.row(sql("read.caller"), list(reading.CALLER))
        self.caller_path = caller["path"]
        self.caller_schema = caller["schema"]
        self.name = caller["database"]
        self.caller_settings = json.loads(caller["settings"])
        self.call_limit.begin(caller["began"], caller["timeout_seconds"], caller["timeout"])
        with self.configured(
            search_path=SAFE_PATH, extra_float_digits="1", array_nulls="on", row_security="on"
        ):
            yield

    def adopt_caller(self, path: str, settings: Mapping[str, object]) -> None:
        """Work for a caller whose session had this path and these settings at its call.

        Args:
            settings: by name; names that are not in reading.CALLER are ignored.
        """
        self.caller_path = path
        adopted = {name: str(settings[name]) for name in settings if name in reading.CALLER}
        self.caller_settings = {**self.caller_settings, **adopted}

    @property
    def reading(self) -> Reading:
        """Return the settings under which the caller reads a source."""
        return reading.read_current(self.caller_path, self.caller_settings)

    @contextmanager
    def configured(self, **values: str) -> Iterator[None]:
        """Work with other settings; after an error the rollback restores them.

        All settings are changed by one statement: some servers crash if a cancel arrives when a
        statement begins.
        """
        original = self.value(sql("session.settings"), list(values))
        self._configure(json.dumps(values))
        yield
        self._configure(original)

    def _configure(self, values: str) -> None:
        self.rows(sql("session.configure"), values)


class _Undo(Exception):
    """Undoes a subtransaction that has done its work."""
