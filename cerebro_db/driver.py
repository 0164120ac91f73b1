"""The only module that knows psycopg2: addresses, calls that may take hours, bulk loading.

A call such as a fit can run for hours. A blocking psycopg2 session would hold back the server's messages,
and Ctrl-C, until it ends; so calls go through an asynchronous session of their own, which also lets a
trainer that one call left waiting serve the next. Reading goes through the SQLAlchemy engine.
"""

from __future__ import annotations

import csv
import io
import select
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, cast
from urllib.parse import unquote

import psycopg2
import sqlalchemy as sa
from psycopg2 import extensions, sql

from cerebro_db import errors

Notice = Callable[[str], None]
DRIVER = "postgresql+psycopg2"


def engine_for(target: str | sa.URL | sa.Engine) -> sa.Engine:
    """The engine itself, which must use psycopg2, or a new one for a postgresql:// or SQLAlchemy URL."""
    if not isinstance(target, sa.Engine):
        return sa.create_engine(sqlalchemy_url(target))
    if (name := f"{target.dialect.name}+{target.dialect.driver}") != DRIVER:
        raise errors.InvalidParameter(f"cannot use an engine of {name}", hint=f"Create it for {DRIVER}://.")
    return target


def sqlalchemy_url(target: str | sa.URL) -> sa.URL:
    """The URL as SQLAlchemy wants it; libpq's forms of it are understood.

    >>> sqlalchemy_url("postgresql://ann@%2Frun%2Fpg:5433/flowers").render_as_string()
    'postgresql+psycopg2://ann@/run/pg:5433/flowers'
    """
    try:
        url = sa.make_url(target)
    except sa.exc.ArgumentError as error:
        raise errors.InvalidParameter(
            f"not a database URL: {target!r}", hint="Write it as postgresql://user@host:port/database."
        ) from error
    if url.drivername not in ("postgresql", "postgres", DRIVER):
        raise errors.InvalidParameter(
            f"cannot use the database URL scheme {url.drivername!r}", hint="Use postgresql:// instead."
        )
    return url.set(drivername=DRIVER, host=unquote(url.host) if url.host else url.host)


@contextmanager
def translated() -> Iterator[None]:
    """Raises what the driver reports as an error of cerebro_db.errors, with the driver's as its cause."""
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise errors.from_driver(error.orig or error) from error
    except psycopg2.Error as error:
        raise errors.from_driver(error) from error


def copy_rows(
    connection: sa.Connection, table: Sequence[str], columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """COPY `rows` into the table named by its parts; a list becomes a one-dimensional array."""
    lines = io.StringIO()
    csv.writer(lines).writerows([_field(value) for value in row] for row in rows)
    lines.seek(0)
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
        sql.Identifier(*table), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    session = cast(extensions.connection, connection.connection.driver_connection)
    with translated(), session.cursor() as cursor:
        cursor.copy_expert(statement, lines)


def _field(value: object) -> object:
    return "{" + ",".join(map(str, value)) + "}" if isinstance(value, list) else value


class _Messages(list[str]):
    """What psycopg2 appends the server's messages to, as they come in."""

    def __init__(self, receive: Notice) -> None:
        super().__init__()
        self.receive = receive

    def append(self, message: str) -> None:
        self.receive(message.rstrip())


class Caller:
    """One database session for calls of SQL functions, one call at a time.

    It connects when first used, with the connection parameters of the engine; settings that the engine's
    event handlers make are not seen, those in the URL's `options` are. Every call is a transaction.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._session: extensions.connection | None = None

    def call(
        self, function: Sequence[str], arguments: Mapping[str, object], on_notice: Notice = lambda _: None
    ) -> list[tuple[Any, ...]]:
        """The rows of SELECT * FROM function(name => value, …).

        Messages of the server reach `on_notice` when they are sent. Ctrl-C cancels the statement, waits
        for its end and raises KeyboardInterrupt.
        """
        named = (sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in arguments)
        statement = sql.SQL("SELECT * FROM {}({})").format(sql.Identifier(*function), sql.SQL(", ").join(named))
        with translated():
            session = self._connected()
            if session.isexecuting():
                raise errors.ObjectNotReady(
                    "a call goes on in this session already", hint="Wait for it, or use a session of its own."
                )
            session.notices = _Messages(on_notice)
            cursor = session.cursor()
            cursor.execute(statement, arguments)
            self._wait_or_cancel(session)
            return cursor.fetchall()

    @property
    def pid(self) -> int | None:
        """The server process of the session; None before it is connected."""
        return None if self._session is None else self._session.info.backend_pid

    def cancel(self) -> None:
        """Cancels the call in progress, from another thread; nothing when there is none."""
        if self._session is not None:
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
            self._session = psycopg2.connect(address, async_=True)
            _wait(self._session)
        return self._session

    @staticmethod
    def _wait_or_cancel(session: extensions.connection) -> None:
        try:
            _wait(session)
        except KeyboardInterrupt:
            session.cancel()
            with suppress(extensions.QueryCanceledError):
                _wait(session)
            raise


def _wait(session: extensions.connection) -> None:
    """Until what the session does is done; the driver takes messages in at every poll."""
    while (state := session.poll()) != extensions.POLL_OK:
        reading, writing = state == extensions.POLL_READ, state == extensions.POLL_WRITE
        select.select([session] if reading else [], [session] if writing else [], [])
