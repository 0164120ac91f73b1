"""The database session that calls the SQL functions, and the schema of these functions."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import sqlalchemy as sa

from cerebro_db.driver import CallSession, Rows, TickHandler, translate_errors
from cerebro_db.errors import ObjectNotReady
from cerebro_db.records import EXTENSION, NAMESPACE


class SqlSession(CallSession):
    """A session that calls the SQL functions of the extension by name."""

    @cached_property
    def schema(self) -> str:
        """Schema of the functions, which CREATE EXTENSION named.

        Raises:
            ObjectNotReady: the database does not have the extension.
        """
        query = (
            sa.select(NAMESPACE.c.nspname)
            .join(EXTENSION, EXTENSION.c.extnamespace == NAMESPACE.c.oid)
            .where(EXTENSION.c.extname == "cerebro_db")
        )
        with translate_errors(), self._engine.connect() as connection:
            name = connection.execute(query).scalar_one_or_none()
        if name is None:
            raise ObjectNotReady(
                f"database {self._engine.url.database!r} does not have the extension cerebro_db",
                hint="Run CREATE EXTENSION cerebro_db CASCADE in it as a superuser.",
            )
        return str(name)

    def call(
        self, function: str, on_tick: TickHandler = lambda: None, /, **arguments: object
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
        self, function: str, on_tick: TickHandler = lambda: None, /, **arguments: object
    ) -> Rows:
        """Call a function in schema cerebro that returns a table, and return the rows."""
        return self.query_function(("cerebro", function), arguments, on_tick)

    def _call_function(
        self, function: tuple[str, str], on_tick: TickHandler, arguments: dict[str, object]
    ) -> Any:
        ((result,),) = self.query_function(function, arguments, on_tick)
        return result
