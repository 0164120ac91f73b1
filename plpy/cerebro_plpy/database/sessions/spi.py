"""The only door to PL/Python's `plpy`, so that everything else is ordinary Python that tests can
import.

Values travel as typed parameters. Errors raised here keep the SQLSTATE that PostgreSQL gave them,
and a cancel is never caught: it passes through as the exception that `plpy` raised.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from cerebro_plpy.database import reading
from cerebro_plpy.database.platform_protocol import Platform
from cerebro_plpy.database.platform_protocol import Row as Row
from cerebro_plpy.database.queries import around_placeholders, sql
from cerebro_plpy.database.reading import Reading
from cerebro_plpy.database.sessions import client_connection
from cerebro_plpy.database.sessions.cpu_priority import Pauses, give_way
from cerebro_plpy.database.sql.literals import parameter_type
from cerebro_plpy.errors import (
    LOCK_NOT_AVAILABLE,
    CerebroError,
    ConfigFailure,
    LockNotAvailable,
    ObjectInUse,
    OutOfMemory,
    QueryCanceled,
    ServerGone,
    TrainerFailure,
    UndefinedTable,
    by_sqlstate,
)

HANDLED = (ConfigFailure, LockNotAvailable, OutOfMemory, TrainerFailure)
FETCHED = 128  # rows at a time
SAFE_PATH = "pg_catalog, pg_temp"
PATIENCE_SECONDS = (
    60  # with who has locked a table of schema cerebro, where the caller has no lock_timeout
)
PLANS: dict[tuple[str, tuple[str, ...]], Any] = {}
DATA_EXCEPTION = "22"  # the class of SQLSTATEs that tell of a value
T = TypeVar("T")


def number_placeholders(sql: str) -> str:
    """The `%s` placeholders of a driver as the `$n` of a prepared statement.

    >>> number_placeholders("SELECT %s, %s::json")
    'SELECT $1, $2::json'
    """
    parts = around_placeholders(sql)
    return "".join(part + (f"${n}" if n < len(parts) else "") for n, part in enumerate(parts, 1))


class Database:
    """The caller's session and transaction, through SPI; `platform` is what the server is."""

    def __init__(self, plpy: Any, platform: Platform) -> None:
        self._plpy = plpy
        self.platform = platform
        self._postmaster = os.getppid()
        self.caller_path = ""
        self.caller_settings: Mapping[str, str] = {}  # by the names of reading.CALLER
        self.caller_schema: str | None = None
        self.name = ""
        self.in_procedure = False
        self._alone = self._to_give_way = False
        self._pauses = Pauses()

    def rows(self, statement: str, *values: object) -> list[Row]:
        """Rows of a statement whose `%s` placeholders take the values; [] where it returns none."""
        if values:
            plan = self._plpy.prepare(
                number_placeholders(statement), [parameter_type(v) for v in values]
            )
            result = self._plpy.execute(plan, list(values))
        else:
            result = self._plpy.execute(statement)
        self._pauses.pause()
        return list(result)

    def guarded_rows(self, statement: str, *values: object) -> list[Row]:
        """Like `rows`; what a trainer or a lock was the reason of, is raised as our own error and
        can be handled.
        """
        try:
            return self.rows(statement, *values)
        except self._plpy.SPIError as error:
            code, detail, hint = error.spidata[:3]
            kind = by_sqlstate(sqlstate_of(code))
            if kind not in HANDLED:
                raise
            raise kind(str(error).removeprefix("plpy.Error: "), detail=detail, hint=hint) from error

    def glance(self, statement: str, *values: object) -> list[Row]:
        """Like `rows`, for tables of schema cerebro: their locks do not stay with the caller's
        transaction.

        Else who wants to change such a table would wait for the caller, and the caller's own
        workers behind that one. A lock goes with the subtransaction that took it, if that is
        undone.
        """
        found: list[Row] = []
        with suppress(_Undone), self._subtransaction(), self._patient():
            found = self._planned(statement, values)
            raise _Undone
        return found

    @contextmanager
    def patience(self) -> Iterator[None]:
        """Within, a table of schema cerebro is waited for so long, and not for ever."""
        before = self.value(sql("session.settings"), ["lock_timeout"])
        with self._patient():
            yield
        self._configure(before)

    @contextmanager
    def _patient(self) -> Iterator[None]:
        """The same, but how long is waited stays so until the subtransaction ends."""
        self._planned(sql("session.wait_for"), (float(PATIENCE_SECONDS),))
        try:
            yield
        except self._plpy.SPIError as error:
            if sqlstate_of(error.spidata[0]) != LOCK_NOT_AVAILABLE:
                raise
            raise locked_log(next(iter(self.rows(sql("session.holders"))), None)) from error

    def _planned(self, statement: str, values: Sequence[object]) -> list[Row]:
        """Rows of a statement over tables of schema cerebro, whose columns stay: it is planned once
        in this process.
        """
        types = tuple(map(parameter_type, values))
        if (statement, types) not in PLANS:
            PLANS[statement, types] = self._plpy.prepare(
                number_placeholders(statement), list(types)
            )
        result = self._plpy.execute(PLANS[statement, types], list(values))
        self._pauses.pause()
        return list(result)

    def hold(self, table: str) -> bool:
        """Keep a table from being emptied or dropped until the transaction ends; False where it is
        gone already.
        """
        try:
            with self._subtransaction():
                self.rows(sql("session.hold", table=table))
        except self._plpy.SPIError as error:
            if sqlstate_of(error.spidata[0]) != UndefinedTable.sqlstate:
                raise
            return False
        return True

    def row(self, statement: str, *values: object) -> Row:
        """The first row of a statement that returns at least one."""
        return self.rows(statement, *values)[0]

    def value(self, statement: str, *values: object) -> Any:
        """The first column of the first row; None where there is no row."""
        rows = self.rows(statement, *values)
        return next(iter(rows[0].values())) if rows else None

    def stream(self, statement: str, *values: object) -> Iterator[Row]:
        """Rows one after another, through a cursor, so that few of them are held at a time."""
        for batch in self.blocks(statement, FETCHED, *values):
            yield from batch

    def blocks(self, statement: str, size: int, *values: object) -> Iterator[list[Row]]:
        """Rows so many at a time, through a cursor, which is open when this returns."""
        plan = self._plpy.prepare(
            number_placeholders(statement), [parameter_type(v) for v in values]
        )
        cursor = self._plpy.cursor(plan, list(values))
        return iter(lambda: list(cursor.fetch(size)), [])

    def repeated(self, statement: str, *values: object) -> Callable[..., list[Row]]:
        """A statement that is planned once for many calls, each with values of these types."""
        plan = self._plpy.prepare(
            number_placeholders(statement), [parameter_type(v) for v in values]
        )
        return lambda *values: list(self._plpy.execute(plan, list(values)))

    def unless_refused(self, work: Callable[[], T]) -> T | None:
        """What a statement gives; None where it does not take a value, such as a text that is no
        number.
        """
        try:
            return work()
        except self._plpy.SPIError as error:
            if not sqlstate_of(error.spidata[0]).startswith(DATA_EXCEPTION):
                raise
            return None

    def failure(self, work: Callable[[], object]) -> Exception | None:
        """The error that ends the work, for later, but for a cancel: the statement that it is of
        has left nothing.
        """
        try:
            work()
        except (CerebroError, MemoryError) as error:
            return error
        except self._plpy.SPIError as error:
            if sqlstate_of(error.spidata[0]) == QueryCanceled.sqlstate:
                raise
            found: Exception = error
            return found
        return None

    @contextmanager
    def together(self, **settings: str) -> Iterator[None]:
        """Several statements that leave nothing where one of them fails, under other settings."""
        with self._subtransaction(), self.configured(**settings):
            yield

    @contextmanager
    def _subtransaction(self) -> Iterator[None]:
        """A subtransaction, which an error undoes; no cancel takes effect while it begins or ends.

        Greenplum ends the session if a cancel interrupts the end: PL/Python then ends the same
        subtransaction again.
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

        PostgreSQL notices the death of its postmaster only where it waits itself, which it does not
        here.
        """
        self.platform.check_interrupts(self)
        if os.getppid() != self._postmaster:
            raise ServerGone("the database server was ended while this statement ran")
        if self._alone:
            self._plpy.commit()  # a snapshot would hold back vacuum for as long as the call takes
        if self._to_give_way:
            self._to_give_way = not give_way(os.getpid())

    def leave_client(self) -> None:
        """In a procedure: from now on nobody listens, and every look for a cancel ends a
        transaction.
        """
        self.value(sql("session.silence"))
        client_connection.leave_client(int(self.value(sql("session.setting"), "port")))
        self._alone = True
        self._to_give_way = True  # the client may have been told to ask again, and is gone
        self.check_interrupts()

    def commit(self) -> None:
        """In a procedure: end a transaction and begin another one."""
        self._plpy.commit()

    def rollback(self) -> None:
        """In a procedure: undo a transaction and begin another one."""
        self._plpy.rollback()

    def lock(self, name: str, key: object) -> bool:
        """Take an advisory lock until the transaction ends, in a procedure the session; False where
        it is taken.

        Does not wait: anyone may take any of them, and would stop the call for good.
        """
        function = "pg_try_advisory_lock" if self.in_procedure else "pg_try_advisory_xact_lock"
        return bool(self.value(sql(f"session.{name}", lock=function), key))

    def info(self, message: str) -> None:
        """Tell the user something, whatever client_min_messages says."""
        if not self._alone:
            self._plpy.info(message)

    def notice(self, message: str) -> None:
        """Tell the user something that they may have switched off."""
        self._plpy.notice(message)

    @contextmanager
    def pinned_path(self) -> Iterator[None]:
        """Work under a path that only PostgreSQL's own objects are on; remember the caller's.

        Numbers become texts, such as classes, with all their digits; NULL in an array literal is no
        text. Tables of the extension show rows by their policies, which a caller's `row_security =
        off` would make an error.
        """
        caller = self.row(sql("read.caller"), list(reading.CALLER))
        self.caller_path, self.caller_schema, self.name = (
            caller["path"],
            caller["schema"],
            caller["database"],
        )
        self.caller_settings = json.loads(caller["settings"])
        with self.configured(
            search_path=SAFE_PATH, extra_float_digits="1", array_nulls="on", row_security="on"
        ):
            yield

    def take_caller(self, path: str, settings: Mapping[str, object]) -> None:
        """Work for a session that had this path and these settings, by the names of reading.CALLER,
        when it called.
        """
        self.caller_path = path
        self.caller_settings = {
            **self.caller_settings,
            **{n: str(v) for n, v in settings.items() if n in reading.CALLER},
        }

    @property
    def reading(self) -> Reading:
        """The settings under which the caller reads a source."""
        return reading.read_current(self.caller_path, self.caller_settings)

    @contextmanager
    def configured(self, **values: str) -> Iterator[None]:
        """Work with other settings; an error needs no restoring, for its rollback does that.

        All by one statement each: where a cancel meets the beginning of one, some servers fall.
        """
        before = self.value(sql("session.settings"), list(values))
        self._configure(json.dumps(values))
        yield
        self._configure(before)

    def _configure(self, values: str) -> None:
        self.rows(sql("session.configure"), values)


class _Undone(Exception):
    """Undoes a subtransaction that did what it was for."""


def locked_log(holder: Row | None) -> ObjectInUse:
    """The error where somebody has locked a table of schema cerebro for longer than anybody
    waits.
    """
    table = holder["table"] if holder else "a table of schema cerebro"
    return ObjectInUse(
        f"{table}, which every call needs, is locked by another session",
        detail=f"Process {holder['pid']}: {holder['query'] or 'its statement is not shown'}"
        if holder
        else None,
        hint="Call again, or cerebro.resume() the run, when that is done; an administrator can "
        "end it by pg_cancel_backend(). Set lock_timeout to wait longer.",
    )


def sqlstate_of(code: int) -> str:
    """The five letters of a SQLSTATE from PostgreSQL's packed form, six bits each.

    >>> sqlstate_of(67371461)
    '57014'
    """
    return "".join(chr(((code >> shift) & 0x3F) + ord("0")) for shift in range(0, 30, 6))


def printable(text: str) -> str:
    """A text as PostgreSQL can pass it on: JSON may hold the character 0 and halves of surrogate
    pairs, texts cannot.

    >>> printable("a\\0b\\ud800"), printable("ä")
    ('a?b?', 'ä')
    """
    return text.encode("utf-8", "replace").decode().replace("\0", "?")


def raise_to_sql(plpy: Any, work: Callable[[], T]) -> T:
    """Do the work; an error of ours becomes a PostgreSQL error with its code, detail and hint."""
    try:
        return work()
    except CerebroError as error:
        extras = {k: printable(v) for k, v in (("detail", error.detail), ("hint", error.hint)) if v}
        plpy.error(printable(error.message), sqlstate=error.sqlstate, **extras)
        raise
