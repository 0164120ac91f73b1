"""The only module that opens psycopg2 connections: worker and control sessions of a run.

A session is opened as the calling user, to the same server, past any pooler. It is asynchronous, so that
one backend can drive many and stay open to a cancel. Each string of statements is one transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
from psycopg2 import extensions

from cerebro_plpy.db import Database
from cerebro_plpy.dispatch import ready
from cerebro_plpy.errors import CerebroError, ConnectionFailure, InsufficientPrivilege, by_sqlstate
from cerebro_plpy.queries import around_placeholders, sql

CONNECT_SECONDS = 10.0
# What a session must not inherit from the role, the database or the caller.
OPTIONS = {
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "client_connection_check_interval": "500",
    "default_transaction_isolation": "read\\ committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "row_security": "on",
    "synchronous_commit": "off",
    # A hashed aggregate would hold all blocks of a table in memory at once.
    "enable_hashagg": "off",
    # All rows of a cursor are fetched.
    "cursor_tuple_fraction": "1",
    # What is read in order is read by an index; sorting a state would write it to disk.
    "enable_sort": "off",
    # Compiling a statement takes longer than the few calls in it.
    "jit": "off",
    "search_path": "pg_catalog,pg_temp",
    "standard_conforming_strings": "on",
    "bytea_output": "hex",
    # Values that travel as texts, such as the ids of predicted rows.
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "extra_float_digits": "1",
    "array_nulls": "on",
    "client_encoding": "UTF8",
    "client_min_messages": "warning",
}


@dataclass(frozen=True)
class Identity:
    """Who the caller is, and which server this is: what a session must match."""

    session_user: str
    current_user: str
    conninfo: str
    server: str


def identity(db: Database, conninfo: str | None) -> Identity:
    """The identity of the caller's own session; `conninfo` replaces how the server is reached."""
    row = db.row(sql("session.identity"))
    if row["session_superuser"] and not row["current_superuser"]:
        # RESET ROLE inside the user's own SQL would make a superuser of it again.
        row["session_user"] = row["current_user"]
    here = conninfo or own_address(Path("postmaster.pid"))
    return Identity(
        session_user=row["session_user"], current_user=row["current_user"], server=row["server"],
        conninfo=extensions.make_dsn(here, dbname=row["database"], user=row["session_user"]),
    )  # fmt: skip


def own_address(pid_file: Path) -> str:
    """How this very server is reached: its port, and its first socket folder or localhost.

    Read from the file that the postmaster keeps in the data folder, which is the working directory of
    every backend: most roles may not see the setting unix_socket_directories.
    """
    lines = pid_file.read_text(encoding="utf-8").splitlines()
    return str(extensions.make_dsn(host=lines[4] or "localhost", port=lines[3]))


class WorkerSession:
    """An asynchronous session of a run; `pid` is the process id of the backend that serves it."""

    def __init__(self, who: Identity, label: str, check: Callable[[], None]) -> None:
        self.who = who
        self._check = check
        self._busy = False
        self._cursor: Any = None
        options = " ".join(f"-c {name}={value}" for name, value in OPTIONS.items())
        try:
            self._connection = psycopg2.connect(
                who.conninfo, async_=1, options=options, application_name=label, connect_timeout=10
            )
            self._busy = True
            self._settle(time.monotonic() + CONNECT_SECONDS)
            self.pid = int(self._connection.info.backend_pid)
        except (psycopg2.Error, ConnectionFailure) as error:
            raise refused(who, str(error.__cause__ or error).strip()) from error
        self._verify(who)

    def _verify(self, who: Identity) -> None:
        found = self.run(sql("session.server"))[0]
        if found[0] != who.server:
            self.close()
            raise ConnectionFailure(
                "a worker session reached another server than the caller's",
                hint="An administrator can set worker_conninfo in cerebro.setting to reach this server itself, past"
                " a pooler.",
            )
        if found[1] != who.session_user:
            self.close()
            raise refused(who, f"the session was opened as {found[1]!r}")
        # Always: the role may have a setting that makes another one of it when it connects.
        self.run(sql("session.set_role", role=extensions.quote_ident(who.current_user, self._connection)))

    def guard(self, check: Callable[[], None]) -> None:
        """From now on call this while waiting; it raises to end the wait."""
        self._check = check

    def fileno(self) -> int:
        """For poll: readable when an answer may be there."""
        return int(self._connection.fileno())

    def start(self, statement: str, values: Sequence[object] = ()) -> None:
        """Send statements, which make one transaction; returns at once."""
        self._busy = True
        try:
            self._cursor = self._connection.cursor()
            self._cursor.execute(escaped(statement), [_adapted(v) for v in values])
        except psycopg2.Error as error:
            self._busy = False
            raise translated(error) from error

    def wants(self) -> int:
        """Move on without waiting: POLL_OK when the answer is complete, else what to wait for."""
        try:
            state = int(self._connection.poll())
        except psycopg2.Error as error:
            self._busy = False
            raise translated(error) from error
        self._busy = state != extensions.POLL_OK
        return state

    def result(self) -> list[tuple[Any, ...]]:
        """The rows of the last statement; [] where it returned none."""
        return list(self._cursor.fetchall()) if self._cursor.description else []

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Send statements and wait for the rows of the last one, open to a cancel meanwhile."""
        self.start(statement, values)
        self._settle(None)
        return self.result()

    def _settle(self, deadline: float | None) -> None:
        while (state := self.wants()) != extensions.POLL_OK:
            if not ready([(self, state)]):
                self._check()
            if deadline is not None and time.monotonic() > deadline:
                raise ConnectionFailure(f"no answer from the server within {CONNECT_SECONDS:.0f} s")

    def unguarded(self) -> None:
        """From now on wait without looking for a cancel: for the words that end a cancelled run."""
        deadline = time.monotonic() + CONNECT_SECONDS

        def check() -> None:
            if time.monotonic() > deadline:
                raise ConnectionFailure("the server did not answer while a run was ended")

        self._check = check
        if self._busy:
            with suppress(CerebroError):  # it was cut off by the cancel; what follows is a statement of its own
                self._settle(deadline)

    def close(self) -> None:
        """Stop what the session does and end it; its trainer ends with it."""
        if self._connection.closed:
            return
        if self._busy:
            with suppress(psycopg2.Error):  # the session ended by itself; that was the aim
                self._connection.cancel()
        self._connection.close()


def escaped(statement: str) -> str:
    """The statement as the driver wants it: every % that is not part of a placeholder is doubled.

    >>> escaped("SELECT 7 % %s")
    'SELECT 7 %% %s'
    """
    return "%s".join(part.replace("%", "%%") for part in around_placeholders(statement))


def _adapted(value: object) -> object:
    return psycopg2.Binary(value) if isinstance(value, bytes) else list(value) if isinstance(value, tuple) else value


def translated(error: psycopg2.Error) -> CerebroError:
    """A driver's error as ours, with the code, detail and hint that the server gave."""
    if error.pgcode is None:
        return ConnectionFailure(f"a worker session was lost: {str(error).strip()}")
    diag = error.diag
    message = (diag.message_primary or str(error)).removeprefix("plpy.Error: ")
    ours = by_sqlstate(error.pgcode)(message, hint=diag.message_hint, detail=diag.message_detail)
    ours.sqlstate = error.pgcode
    if error.pgcode.startswith("57P"):
        return ConnectionFailure(f"a worker session was ended by the server: {message}")
    return ours


def refused(who: Identity, reason: str) -> CerebroError:
    """The error for a session that could not be opened, with the lines that would let it in."""
    return InsufficientPrivilege(
        f"a worker session could not be opened as {who.session_user!r}: {reason}",
        detail=f"Tried: {who.conninfo}",
        hint="Workers connect from the server to itself as the calling user. Let them in by pg_hba.conf and"
        " pg_ident.conf"
        " (cerebro-db check prints the lines), or set worker_conninfo in cerebro.setting.",
    )
