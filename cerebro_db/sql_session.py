"""The database session that calls the SQL functions, and the schema of these functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from cerebro_db import errors, records
from cerebro_db.driver import CallSession, NoticeHandler, to_driver_value, translate_errors


class SqlSession:
    """One database session that calls SQL functions by name, one at a time; each call commits.

    Args:
        on_notice: receives each message of the server as soon as it is sent.
    """

    def __init__(self, engine: sa.Engine, on_notice: NoticeHandler) -> None:
        self._engine = engine
        self._call_session = CallSession(engine, on_notice)

    @property
    def pid(self) -> int | None:
        """Server process of the database session; None before the first call."""
        return self._call_session.pid

    def close(self) -> None:
        """Close the database session."""
        self._call_session.close()

    def cancel(self) -> None:
        """Cancel the call that is in progress in another thread."""
        self._call_session.cancel()

    @cached_property
    def schema(self) -> str:
        """Schema of the functions, which CREATE EXTENSION named.

        Raises:
            ObjectNotReady: the database does not have the extension.
        """
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
        """Call a function in the extension's schema and return its value.

        Args:
            on_tick: called at least twice a second during the call.
            arguments: arguments by name; an argument that is None has its default.
        """
        return self._call_function((self.schema, function), on_tick, arguments)

    def call_cerebro(self, function: str, /, **arguments: object) -> Any:
        """Call a function in schema cerebro and return its value."""
        return self._call_function(("cerebro", function), lambda: None, arguments)

    def query_cerebro(
        self, function: str, on_tick: Callable[[], None] = lambda: None, /, **arguments: object
    ) -> list[tuple[Any, ...]]:
        """Call a function in schema cerebro that returns a table, and return the rows."""
        return self._query_function(("cerebro", function), on_tick, arguments)

    def _call_function(
        self, function: tuple[str, str], on_tick: Callable[[], None], arguments: dict[str, object]
    ) -> Any:
        ((result,),) = self._query_function(function, on_tick, arguments)
        return result

    def _query_function(
        self, function: tuple[str, str], on_tick: Callable[[], None], arguments: dict[str, object]
    ) -> list[tuple[Any, ...]]:
        non_null = {
            name: to_driver_value(value) for name, value in arguments.items() if value is not None
        }
        return self._call_session.call(function, non_null, on_tick)
