"""The only module that knows psycopg2: addresses, calls that may take hours, bulk loading.

A call such as a fit can run for hours. A blocking psycopg2 session would hold back the server's
messages, and Ctrl-C, until it ends; so calls go through an asynchronous session of their own, which
also lets a trainer that one call left waiting serve the next. Reading goes through the SQLAlchemy
engine.
"""

from __future__ import annotations

import csv
import io
import logging
import select
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, cast
from urllib.parse import unquote

import numpy as np
import psycopg2
import sqlalchemy as sa
from psycopg2 import extensions, sql

from cerebro_db import errors

NoticeHandler = Callable[[str], None]
DRIVER = "postgresql+psycopg2"
TICK_SECONDS = 0.5
LOG = logging.getLogger("cerebro_db")


def log_notice(message: str) -> None:
    """A message of the server in the log of Python: a warning as such, everything else as
    information.
    """
    LOG.log(logging.WARNING if message.startswith("WARNING") else logging.INFO, "%s", message)


def get_engine(target: str | sa.URL | sa.Engine) -> sa.Engine:
    """The engine itself, which must use psycopg2, or a new one for a postgresql:// or SQLAlchemy
    URL.
    """
    if not isinstance(target, sa.Engine):
        return sa.create_engine(parse_url(target))
    if (name := f"{target.dialect.name}+{target.dialect.driver}") != DRIVER:
        raise errors.InvalidParameter(
            f"cannot use an engine of {name}", hint=f"Create it for {DRIVER}://."
        )
    return target


def parse_url(target: str | sa.URL) -> sa.URL:
    """The URL as SQLAlchemy wants it; libpq's forms of it are understood.

    >>> parse_url("postgresql://ann@%2Frun%2Fpg:5433/flowers").render_as_string()
    'postgresql+psycopg2://ann@/run/pg:5433/flowers'
    """
    try:
        url = sa.make_url(target)
    except sa.exc.ArgumentError as error:
        raise errors.InvalidParameter(
            f"not a database URL: {target!r}",
            hint="Write it as postgresql://user@host:port/database.",
        ) from error
    if url.drivername not in ("postgresql", "postgres", DRIVER):
        raise errors.InvalidParameter(
            f"cannot use the database URL scheme {url.drivername!r}",
            hint="Use postgresql:// instead.",
        )
    return url.set(drivername=DRIVER, host=unquote(url.host) if url.host else url.host)


def to_driver_value(value: object) -> object:
    """The value as the driver can send it: a scalar of numpy, such as an mst_key from a DataFrame,
    as Python's.

    >>> to_driver_value([np.int64(3), 4]), to_driver_value(np.float32(0.5)), to_driver_value("prob")
    ([3, 4], 0.5, 'prob')
    """
    if isinstance(value, list):
        return [to_driver_value(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raises what the driver reports as an error of cerebro_db.errors, with the driver's as its
    cause.
    """
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise _translation(error.orig or error) from error
    except sa.exc.TimeoutError as error:
        raise errors.ConnectionFailure(
            f"the engine had no connection to spare: {error}",
            hint="Give it a larger pool, or close connections.",
        ) from error
    except psycopg2.Error as error:
        raise _translation(error) from error


def _translation(error: BaseException) -> errors.CerebroError:
    """Without a SQLSTATE the server was not asked: it was not there, or the driver cannot send a
    value.
    """
    if isinstance(error, psycopg2.ProgrammingError) and error.pgcode is None:
        return errors.InvalidParameter(str(error).strip())
    return errors.convert_driver_error(error)


def copy_rows(
    connection: sa.Connection,
    table: Sequence[str],
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
) -> None:
    """COPY `rows` into the table named by its parts; a list becomes a one-dimensional array."""
    lines = io.StringIO()
    csv.writer(lines).writerows([_field(value) for value in row] for row in rows)
    lines.seek(0)
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
        sql.Identifier(*table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    session = cast(extensions.connection, connection.connection.driver_connection)
    with translate_errors(), session.cursor() as cursor:
        cursor.copy_expert(statement, lines)


def _field(value: object) -> object:
    return "{" + ",".join(map(str, value)) + "}" if isinstance(value, list) else value


class CallSession:
    """One database session for calls of SQL functions, one call at a time.

    It connects when first used, with the connection parameters of the engine; settings that the
    engine's event handlers make are not seen, those in the URL's `options` are. Every call is a
    transaction.
    """

    def __init__(self, engine: sa.Engine, on_notice: NoticeHandler = log_notice) -> None:
        self._engine = engine
        self._on_notice = on_notice
        self._session: extensions.connection | None = None

    def call(
        self,
        function: Sequence[str],
        arguments: Mapping[str, object],
        on_tick: Callable[[], None] = lambda: None,
    ) -> list[tuple[Any, ...]]:
        """The rows of SELECT * FROM function(name => value, …).

        Messages of the server reach `on_notice` when they are sent. `on_tick` is called in between,
        at least twice a second. Ctrl-C, or an error in one of these, cancels the statement, waits
        for its end and goes on to the caller.
        """
        with translate_errors():
            session = self._connected()
            if session.isexecuting():
                raise errors.ObjectNotReady(
                    "a call goes on in this session already",
                    hint="Wait for it, or use a session of its own.",
                )
            messages: deque[str] = (
                deque()
            )  # of a list the driver would drop the oldest beyond fifty
            session.notices = cast(list[str], messages)

            def attend() -> None:
                while messages:
                    self._on_notice(messages.popleft().rstrip())
                on_tick()

            cursor = session.cursor()
            _send(cursor, function, arguments)
            _wait_or_cancel(session, attend)
            return cursor.fetchall()

    @property
    def pid(self) -> int | None:
        """The server process of the session; None before it is connected."""
        return None if self._session is None else self._session.info.backend_pid

    def cancel(self) -> None:
        """Cancels the call in progress, from another thread; nothing when there is none."""
        if self._session is not None:
            with translate_errors():
                self._session.cancel()

    def close(self) -> None:
        """Ends the database session, and with it the trainers that wait in it."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _connected(self) -> extensions.connection:
        if self._session is None or self._session.closed:
            with self._engine.connect() as model:
                info = cast(extensions.connection, model.connection.driver_connection).info
                address = extensions.make_dsn(**{**info.dsn_parameters, "password": info.password})
            session = psycopg2.connect(address, async_=True)
            _wait(session)
            self._session = session
        return self._session


def _send(
    cursor: extensions.cursor, function: Sequence[str], arguments: Mapping[str, object]
) -> None:
    """Begins SELECT * FROM function(name => value, …)."""
    named = (
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name))
        for name in arguments
    )
    statement = sql.SQL("SELECT * FROM {}({})").format(
        sql.Identifier(*function), sql.SQL(", ").join(named)
    )
    try:
        cursor.execute(statement, arguments)
    except ValueError as error:  # such as a text with a zero byte
        raise errors.InvalidParameter(
            f"the driver cannot send an argument of {function[-1]}: {error}"
        ) from error


def _wait_or_cancel(session: extensions.connection, attend: Callable[[], None]) -> None:
    """Until the statement has ended, by itself or because attending to it failed."""
    try:
        _wait(session, attend)
    except BaseException:
        if not session.closed and session.isexecuting():
            session.cancel()
            with suppress(psycopg2.Error):
                _wait(session)
        raise


def _wait(session: extensions.connection, attend: Callable[[], None] = lambda: None) -> None:
    """Until what the session does is done; the driver takes messages in at every poll.

    It swallows what the receiver of a message raises, so messages are handed on here.
    """
    while True:
        try:
            state = session.poll()
        except psycopg2.Error:
            attend()
            raise
        attend()
        if state == extensions.POLL_OK:
            return
        reading, writing = state == extensions.POLL_READ, state == extensions.POLL_WRITE
        select.select([session] if reading else [], [session] if writing else [], [], TICK_SECONDS)
