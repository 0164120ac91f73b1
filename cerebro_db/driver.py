"""The only module that uses psycopg2: database URLs, long calls and bulk loading.

A call such as a fit can run for hours. In a blocking psycopg2 session, the server's messages and
Ctrl-C would take effect only after the call. Calls therefore use an asynchronous session of their
own; a trainer that remains idle after one call serves the next. Queries that only read use the
SQLAlchemy engine.
"""

from __future__ import annotations

import csv
import io
import logging
import select
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

import numpy as np
import psycopg2
import sqlalchemy as sa
from psycopg2 import extensions, sql

from cerebro_db.errors import (
    CerebroError,
    ConnectionFailure,
    InvalidParameter,
    ObjectNotReady,
    convert_driver_error,
)

NoticeHandler = Callable[[str], None]
TickHandler = Callable[[], None]
Rows: TypeAlias = list[tuple[Any, ...]]
DRIVER = "postgresql+psycopg2"
TICK_SECONDS = 0.5
"""Longest time without a call of `on_tick` while the server works."""
LOG = logging.getLogger("cerebro_db")


def choose_level(message: str) -> int:
    """Return the level of Python's logging for a message of the server."""
    if message.startswith("WARNING"):
        return logging.WARNING
    return logging.INFO


def get_engine(target: str | sa.URL | sa.Engine) -> sa.Engine:
    """Return the engine itself, or a new engine for a URL of PostgreSQL or SQLAlchemy.

    Raises:
        InvalidParameter: the engine uses another driver, or the URL is invalid.
    """
    if not isinstance(target, sa.Engine):
        return sa.create_engine(parse_url(target))
    driver = f"{target.dialect.name}+{target.dialect.driver}"
    if driver != DRIVER:
        raise InvalidParameter(
            f"cannot use an engine of {driver}", hint=f"Create it for {DRIVER}://."
        )
    return target


def parse_url(target: str | sa.URL) -> sa.URL:
    """Return a database URL, which may have one of libpq's forms, in the form of SQLAlchemy.

    >>> parse_url("postgresql://ann@%2Frun%2Fpg:5433/flowers").render_as_string()
    'postgresql+psycopg2://ann@/run/pg:5433/flowers'
    """
    try:
        url = sa.make_url(target)
    except sa.exc.ArgumentError as error:
        raise InvalidParameter(
            f"not a database URL: {target!r}",
            hint="Write it as postgresql://user@host:port/database.",
        ) from error
    if url.drivername not in ("postgresql", "postgres", DRIVER):
        raise InvalidParameter(
            f"cannot use the database URL scheme {url.drivername!r}",
            hint="Use postgresql:// instead.",
        )
    host = url.host and unquote(url.host)
    return url.set(drivername=DRIVER, host=host)


def to_driver_value(value: object) -> object:
    """Convert numpy scalars, such as an mst_key of a DataFrame, to values of Python.

    >>> to_driver_value([np.int64(3), 4]), to_driver_value(np.float32(0.5)), to_driver_value("prob")
    ([3, 4], 0.5, 'prob')
    """
    if isinstance(value, list):
        return [to_driver_value(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise errors of the driver as errors of cerebro_db.errors; the driver's one is the cause."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise _translate(error.orig or error) from error
    except sa.exc.TimeoutError as error:
        raise ConnectionFailure(
            f"the engine had no connection to spare: {error}",
            hint="Give it a larger pool, or close connections.",
        ) from error
    except psycopg2.Error as error:
        raise _translate(error) from error


def _translate(error: BaseException) -> CerebroError:
    """Return the error of the client for an error of the driver.

    An error without a SQLSTATE does not come from the server: the connection failed, or the driver
    cannot send a value.
    """
    if isinstance(error, psycopg2.ProgrammingError) and error.pgcode is None:
        return InvalidParameter(str(error).strip())
    return convert_driver_error(error)


def copy_rows(
    connection: sa.Connection,
    table: Sequence[str],
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
) -> None:
    """Load rows into a table with COPY; a list becomes a one-dimensional array.

    Args:
        table: parts of the table's name, such as ("demo", "digits").
    """
    lines = io.StringIO()
    csv.writer(lines).writerows([_format_csv_field(value) for value in row] for row in rows)
    lines.seek(0)
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
        sql.Identifier(*table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    session = cast(extensions.connection, connection.connection.driver_connection)
    with translate_errors(), session.cursor() as cursor:
        cursor.copy_expert(statement, lines)


def _format_csv_field(value: object) -> object:
    if isinstance(value, list):
        return "{" + ",".join(map(str, value)) + "}"
    return value


class CallSession:
    """A database session that calls SQL functions, one at a time; each call is a transaction.

    The session connects at its first call, with the connection parameters of the engine. Settings
    in the URL's `options` apply; settings made by event handlers of the engine do not.
    """

    def __init__(self, engine: sa.Engine, on_notice: NoticeHandler) -> None:
        self._engine = engine
        self._on_notice = on_notice
        self._session: extensions.connection | None = None

    def query_function(
        self,
        function: Sequence[str],
        arguments: Mapping[str, object],
        on_tick: TickHandler = lambda: None,
    ) -> Rows:
        """Return the rows of SELECT * FROM function(name => value, …).

        Messages of the server are passed to `on_notice` as soon as they are sent. Ctrl-C, or an
        error of `on_notice` or `on_tick`, cancels the statement and is raised after its end.

        Args:
            function: parts of the function's name: schema and name.
            arguments: arguments by name; an argument that is None has its default.
            on_tick: called between messages, at least twice a second.

        Raises:
            ObjectNotReady: another call is in progress in this session.
        """
        with translate_errors():
            session = self._connect()
            if session.isexecuting():
                raise ObjectNotReady(
                    "a call goes on in this session already",
                    hint="Wait for it, or use a session of its own.",
                )
            # The driver drops the oldest messages of a list that has more than fifty.
            messages: deque[str] = deque()
            session.notices = cast(list[str], messages)

            def handle_messages() -> None:
                while messages:
                    self._on_notice(messages.popleft().rstrip())
                on_tick()

            cursor = session.cursor()
            non_null = {
                name: to_driver_value(value)
                for name, value in arguments.items()
                if value is not None
            }
            _send(cursor, function, non_null)
            _wait_or_cancel(session, handle_messages)
            return cursor.fetchall()

    @property
    def pid(self) -> int | None:
        """Server process of the session; None before the session connects."""
        if self._session is None:
            return None
        return self._session.info.backend_pid

    def cancel(self) -> None:
        """Cancel the call that is in progress in another thread, if there is one."""
        if self._session is not None:
            with translate_errors():
                self._session.cancel()

    def close(self) -> None:
        """Close the database session, which ends its idle trainers, too."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _connect(self) -> extensions.connection:
        if self._session is None or self._session.closed:
            with self._engine.connect() as template:
                info = cast(extensions.connection, template.connection.driver_connection).info
                dsn = extensions.make_dsn(**{**info.dsn_parameters, "password": info.password})
            session = psycopg2.connect(dsn, async_=True)
            _wait(session)
            self._session = session
        return self._session


def _send(
    cursor: extensions.cursor, function: Sequence[str], arguments: Mapping[str, object]
) -> None:
    """Start SELECT * FROM function(name => value, …)."""
    named_arguments = (
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name))
        for name in arguments
    )
    statement = sql.SQL("SELECT * FROM {}({})").format(
        sql.Identifier(*function), sql.SQL(", ").join(named_arguments)
    )
    try:
        cursor.execute(statement, arguments)
    except ValueError as error:  # such as a text with a zero byte
        raise InvalidParameter(
            f"the driver cannot send an argument of {function[-1]}: {error}"
        ) from error


def _wait_or_cancel(session: extensions.connection, handle_messages: TickHandler) -> None:
    """Wait for the end of the statement; cancel it if the handling of messages fails."""
    try:
        _wait(session, handle_messages)
    except BaseException:
        if not session.closed and session.isexecuting():
            session.cancel()
            with suppress(psycopg2.Error):
                _wait(session)
        raise


def _wait(session: extensions.connection, handle_messages: TickHandler = lambda: None) -> None:
    """Wait for the end of the session's current operation.

    The driver receives messages at every poll, and ignores errors of its own message handlers.
    Messages are therefore handled here.
    """
    while True:
        try:
            state = session.poll()
        except psycopg2.Error:
            handle_messages()
            raise
        handle_messages()
        if state == extensions.POLL_OK:
            return
        readers = [session] if state == extensions.POLL_READ else []
        writers = [session] if state == extensions.POLL_WRITE else []
        select.select(readers, writers, [], TICK_SECONDS)
