"""The database session in which functions are called, and which schema they are in."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from types import TracebackType
from typing import Any, TypeVar

import sqlalchemy as sa

from cerebro_db import errors, tables
from cerebro_db.arguments import plain
from cerebro_db.driver import Caller, Notice, translated
from cerebro_db.runs import RunReader

C = TypeVar("C", bound="Calls")


class Calls(RunReader):
    """Calls run one at a time in one database session, and each commits; what is read comes through the engine.

    `on_notice` gets each message of the server when it is sent.
    """

    def __init__(self, engine: sa.Engine, *, owns_engine: bool, on_notice: Notice) -> None:
        super().__init__(engine)
        self._owns_engine = owns_engine
        self._caller = Caller(engine, on_notice)

    def __enter__(self: C) -> C:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the database session of the calls, and the engine where this session made it."""
        self._caller.close()
        if self._owns_engine:
            self.engine.dispose()

    def cancel(self) -> None:
        """Cancels the call that goes on in another thread; what its run has completed stays."""
        self._caller.cancel()

    def current_run(self) -> int | None:
        """The newest run that this session started; while a fit goes on in another thread, that one."""
        pid = self._caller.pid
        return None if pid is None else self.newest_run_of(pid)

    @cached_property
    def schema(self) -> str:
        """The schema that holds the functions: the one named in CREATE EXTENSION."""
        query = (
            sa.select(tables.NAMESPACE.c.nspname)
            .join(tables.EXTENSION, tables.EXTENSION.c.extnamespace == tables.NAMESPACE.c.oid)
            .where(tables.EXTENSION.c.extname == "cerebro_db")
        )
        with translated(), self.engine.connect() as connection:
            name = connection.execute(query).scalar_one_or_none()
        if name is None:
            raise errors.ObjectNotReady(
                f"database {self.engine.url.database!r} does not have the extension cerebro_db",
                hint="Run CREATE EXTENSION cerebro_db CASCADE in it as a superuser.",
            )
        return str(name)

    def _call(self, function: str, on_tick: Callable[[], None] = lambda: None, **arguments: object) -> Any:
        """What a function in the extension's schema returns; an argument that is None has its default."""
        return self._called((self.schema, function), on_tick, arguments)

    def _call_cerebro(self, function: str, **arguments: object) -> Any:
        """The same of a function in schema cerebro."""
        return self._called(("cerebro", function), lambda: None, arguments)

    def _called(self, function: tuple[str, str], on_tick: Callable[[], None], arguments: dict[str, object]) -> Any:
        given = {name: plain(value) for name, value in arguments.items() if value is not None}
        ((result,),) = self._caller.call(function, given, on_tick)
        return result
