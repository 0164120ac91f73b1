"""The only module that opens psycopg2 connections: worker and control sessions of a run.

A session is opened as the calling user, to the same server, past any pooler. It is asynchronous, so
that one backend can drive many and stay open to a cancel. Each string of statements is one
transaction.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import psycopg2
from psycopg2 import extensions

from cerebro_plpy.database.platform_protocol import Platform
from cerebro_plpy.database.queries import escape_percent, sql
from cerebro_plpy.database.sessions.async_dispatcher import ready
from cerebro_plpy.database.sessions.connection_options import translate
from cerebro_plpy.database.sessions.cpu_priority import Beginning, give_way
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import (
    CerebroError,
    ConnectionFailure,
    InsufficientPrivilege,
    SegmentLost,
    TooManyConnections,
)
from cerebro_plpy.records import dataclass

CONNECT_SECONDS, CLOSING_SECONDS = 10.0, 0.1
AT_WORK = sql("session.work_for", lock="pg_try_advisory_lock_shared")
# What a server says that has no slot, to anybody or to this role, or in this database.
NO_ROOM = re.compile(r"too many (clients|connections)|connection slots are reserved")


def driver_version() -> str:
    """Return the version of psycopg2, with how it was built."""
    return str(vars(psycopg2)["__version__"])  # unknown to its type information


@dataclass(frozen=True)
class Identity:
    """Who the caller is, and which server this is: what a session must match. It is opened with
    these `options`, and keeps to these `cores` while it begins, to any where there are none."""

    session_user: str
    current_user: str
    conninfo: str
    server: str
    platform: Platform
    options: Mapping[str, str]
    cores: tuple[int, ...] = ()


def identity(db: Database, conninfo: str | None, cores: tuple[int, ...] = ()) -> Identity:
    """The identity of the caller's own session; `conninfo` replaces how the server is reached."""
    row = db.row(sql("session.identity"))
    if row["session_superuser"] and not row["current_superuser"]:
        # RESET ROLE inside the user's own SQL would make a superuser of it again.
        row["session_user"] = row["current_user"]
    if not row["may_log_in"] and row["session_user"] == row["current_user"]:
        raise InsufficientPrivilege(
            f"role {row['current_user']!r} cannot log in, so no worker session can be opened as it",
            hint=f"ALTER ROLE {quote_identifier(row['current_user'])} LOGIN; or connect as a role "
            "that can log in and is a member of it, and SET ROLE to it.",
        )
    here = conninfo or own_address("postmaster.pid")
    return Identity(
        session_user=row["session_user"],
        current_user=row["current_user"],
        server=row["server"],
        conninfo=extensions.make_dsn(here, dbname=row["database"], user=row["session_user"]),
        platform=db.platform,
        options=db.platform.session_options(db),
        cores=cores,
    )


def own_address(pid_file: str | os.PathLike[str]) -> str:
    """How this very server is reached: its port, and its first socket folder or localhost.

    Read from the file that the postmaster keeps in the data folder, which is the working directory
    of every backend: most roles may not see the setting unix_socket_directories.
    """
    with open(pid_file, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return str(extensions.make_dsn(host=lines[4] or "localhost", port=lines[3]))


class WorkerSession:
    """An asynchronous session of a run; `pid` is the process id of the backend that serves it."""

    def __init__(self, who: Identity, label: str, check: Callable[[], None]) -> None:
        self.who = who
        self.check = check
        self._cursor: Any = None
        self._beginning = Beginning((), ())
        self.segment_lost = False  # since it was last put aside
        self._open(label)

    def _open(self, label: str) -> None:
        who, self._busy, self._to_give_way = self.who, False, False
        self._beginning.end()
        given = " ".join(f"-c {name}={value}" for name, value in who.options.items())
        try:
            self._connection = psycopg2.connect(
                who.conninfo, async_=1, options=given, application_name=label, connect_timeout=10
            )
            self._busy = True
            self._settle(time.monotonic() + CONNECT_SECONDS)
            self.pid = int(self._connection.info.backend_pid)
        except (psycopg2.Error, ConnectionFailure) as error:
            time.sleep(CLOSING_SECONDS)  # of a server that is gone the sockets are closed first
            self.check()
            raise connection_refusal(who, str(error.__cause__ or error).strip()) from error
        self._verify(who)

    @property
    def platform(self) -> Platform:
        """What the server is."""
        return self.who.platform

    def _verify(self, who: Identity) -> None:
        found = self.run(sql("session.server"))[0]
        if found[0] != who.server:
            self.close()
            raise ConnectionFailure(
                "a worker session reached another server than the caller's",
                hint="An administrator can set worker_conninfo in cerebro.setting to reach this "
                "server itself, past a pooler.",
            )
        if found[1] != who.session_user:
            self.close()
            raise connection_refusal(who, f"the session was opened as {found[1]!r}")
        self._to_give_way = True  # only now is it certain that the process is one of this machine
        self._beginning = Beginning((self.pid, os.getpid()), who.cores)
        # Always: the role may have a setting that makes another one of it when it connects.
        try:
            self.run(
                "; ".join(
                    [sql("session.set_role", role=quote_identifier(who.current_user)), AT_WORK]
                ),
                (0,),
            )
        except InsufficientPrivilege as error:
            self.close()
            raise InsufficientPrivilege(
                f"the session of {who.session_user!r} may not work as {who.current_user!r}: "
                f"{error.message}",
                hint="A SECURITY DEFINER function cannot train for its callers: connect as its "
                "owner, or as a role that is a member of it.",
            ) from error

    def work_for(self, run_id: int | None) -> None:
        """Hold the lock by which others count this session, as a worker of a run or of none."""
        self.run("; ".join([sql("session.work_for_nobody"), AT_WORK]), (run_id or 0,))

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        return not self._busy

    def fileno(self) -> int:
        """For poll: readable when an answer may be there."""
        return int(self._connection.fileno())

    def start(self, statement: str, values: Sequence[object] = ()) -> None:
        """Send statements, which make one transaction; returns at once."""
        self._busy = True
        try:
            self._cursor = self._connection.cursor()
            self._cursor.execute(escape_percent(statement), [adapted(v) for v in values])
        except psycopg2.Error as error:
            self._busy = False
            raise self._translated(error) from error

    def wants(self) -> int:
        """Move on without waiting: POLL_OK when the answer is complete, else what to wait for."""
        self._beginning.look()
        self.give_way()
        try:
            state = int(self._connection.poll())
        except psycopg2.Error as error:
            self._busy = False
            raise self._translated(error) from error
        self._busy = state != extensions.POLL_OK
        return state

    def give_way(self) -> None:
        """Ask the kernel for it, unless that was done before, or is not certain to be about this
        session.
        """
        if self._to_give_way:
            self._to_give_way = not give_way(self.pid)

    def _translated(self, error: psycopg2.Error) -> CerebroError:
        found = translate(error, self.platform)
        self.segment_lost |= isinstance(found, SegmentLost)
        return found

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
                self.check()
            if deadline is not None and time.monotonic() > deadline:
                raise ConnectionFailure(f"no answer from the server within {CONNECT_SECONDS:.0f} s")

    def unguarded(self) -> None:
        """From now on wait without looking for a cancel: for the words that end a cancelled run."""
        deadline = time.monotonic() + CONNECT_SECONDS

        def check() -> None:
            if time.monotonic() > deadline:
                raise ConnectionFailure("the server did not answer while a run was ended")

        self.check = check
        if self._busy:
            with suppress(
                CerebroError
            ):  # it was cut off by the cancel; what follows is a statement of its own
                self._settle(deadline)

    def rest(self, seconds: int, at: str | None) -> None:
        """Wait for the next call; a session that nobody wakes in that time is ended by the
        server.
        """
        self._beginning.end()
        self.platform.rest(self, seconds, at)

    def wake(self, check: Callable[[], None], label: str) -> None:
        """Work again; ConnectionFailure where the server has ended the session."""
        self.check = check
        self.segment_lost = False
        self.platform.wake(self, label)

    def messages(self) -> list[str]:
        """What the server said to the client since the last question, without the level."""
        said = [text.partition(":")[2].strip() for text in self._connection.notices]
        self._connection.notices.clear()
        return said

    def cancel(self) -> None:
        """Ask the server to stop what is under way; nothing where it is done, or the session has
        ended by itself.
        """
        if self._busy:
            with suppress(psycopg2.Error):
                self._connection.cancel()

    def leave(self) -> None:
        """End the session as soon as what it does is done, and do not wait for that."""
        self._beginning.end()
        self._connection.close()

    def close(self) -> None:
        """Stop what the session does and end it; its trainer ends with it."""
        self._beginning.end()
        self._to_give_way = False
        if self._connection.closed:
            return
        self.cancel()
        self._connection.close()


def adapted(value: object) -> object:
    """Return a value as the driver takes it; tuples are arrays, too."""
    if isinstance(value, (list, tuple)):
        return [adapted(each) for each in value]
    if isinstance(value, (int, float)):
        return extensions.AsIs(
            literal(value)
        )  # the driver's own are read as -(2147483648), and as numeric in arrays
    return psycopg2.Binary(value) if isinstance(value, bytes) else value


def connection_refusal(who: Identity, reason: str) -> CerebroError:
    """The error for a session that could not be opened: there is no room for it, or these lines
    would let it in.

    The driver does not pass on the SQLSTATE of a refused connection.
    """
    if NO_ROOM.search(reason):
        return no_room(f"a worker session could not be opened: {reason}")
    return InsufficientPrivilege(
        f"a worker session could not be opened as {who.session_user!r}: {reason}",
        detail=f"Tried: {who.conninfo}",
        hint="Workers connect from the server to itself as the calling user. Let them in by "
        "pg_hba.conf and pg_ident.conf (cerebro-db check prints the lines), or set "
        "worker_conninfo in cerebro.setting.",
    )


def no_room(message: str) -> TooManyConnections:
    """The error where there are as many sessions as there may be."""
    return TooManyConnections(
        message,
        hint="Wait until other runs have ended, or use fewer workers. What limits them are "
        "max_connections, the CONNECTION LIMIT of the role and the database, and "
        "max_workers_total in cerebro.setting.",
    )
