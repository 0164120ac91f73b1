"""The database session in which functions are called, and which schema they are in."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from cerebro_db import errors, records
from cerebro_db.driver import CallSession, NoticeHandler, to_driver_value, translate_errors


class SqlSession:
    """SqlSession of SQL functions by name. They run one at a time in one database session, and each
    commits.

    `on_notice` gets each message of the server when it is sent.
    """

    def __init__(self, engine: sa.Engine, on_notice: NoticeHandler) -> None:
        self._engine = engine
        self._caller = CallSession(engine, on_notice)

    @property
    def pid(self) -> int | None:
        """The server process of the database session; None before the first call."""
        return self._caller.pid

    def close(self) -> None:
        """Ends the database session."""
        self._caller.close()

    def cancel(self) -> None:
        """Cancels the call that goes on in another thread."""
        self._caller.cancel()

    @cached_property
    def schema(self) -> str:
        """The schema that holds the functions: the one named in CREATE EXTENSION."""
        query = (
            sa.select(records.NAMESPACE.c.nspname)
            .join(records.EXTENSION, records.EXTENSION.c.extnamespace == records.NAMESPACE.c.oid)
            .where(records.EXTENSION.c.extname == "cerebro_db")
        )
        with translate_errors(), self._engine.connect() as connection:
            name = connection.execute(query).scalar_one_or_none()
        if name is None:
            raise errors.ObjectNotReady(
                f"database {self._engine.url.database!r} does not have the extension cerebro_db",
                hint="Run CREATE EXTENSION cerebro_db CASCADE in it as a superuser.",
            )
        return str(name)

    def call(
        self, function: str, on_tick: Callable[[], None] = lambda: None, /, **arguments: object
    ) -> Any:
        """What a function in the extension's schema returns; an argument that is None has its
        default.
        """
        return self._call_function((self.schema, function), on_tick, arguments)

    def call_cerebro(self, function: str, /, **arguments: object) -> Any:
        """The same of a function in schema cerebro."""
        return self._call_function(("cerebro", function), lambda: None, arguments)

    def query_cerebro(
        self, function: str, on_tick: Callable[[], None] = lambda: None, /, **arguments: object
    ) -> list[tuple[Any, ...]]:
        """The rows of a function in schema cerebro that returns a table."""
        return self._query_function(("cerebro", function), on_tick, arguments)

    def _call_function(
        self, function: tuple[str, str], on_tick: Callable[[], None], arguments: dict[str, object]
    ) -> Any:
        ((result,),) = self._query_function(function, on_tick, arguments)
        return result

    def _query_function(
        self, function: tuple[str, str], on_tick: Callable[[], None], arguments: dict[str, object]
    ) -> list[tuple[Any, ...]]:
        given = {
            name: to_driver_value(value) for name, value in arguments.items() if value is not None
        }
        return self._caller.call(function, given, on_tick)
