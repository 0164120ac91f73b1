"""The only module that opens psycopg2 connections: worker and control sessions of a run.

A session is opened as the calling user, to the same server, past any pooler. It is asynchronous, so
that one backend can drive many sessions and still react to a cancel. Each string of statements is
one transaction.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psycopg2
from psycopg2 import extensions

from cerebro_plpy.database.platform_protocol import Check, Platform
from cerebro_plpy.database.queries import escape_percent, sql
from cerebro_plpy.database.reading import SettingValues
from cerebro_plpy.database.sessions.async_dispatcher import Rows, wait_for_any
from cerebro_plpy.database.sessions.connection_options import translate
from cerebro_plpy.database.sessions.cpu_priority import StartupCores, lower_priority
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.errors import (
    CerebroError,
    ConnectionFailure,
    InsufficientPrivilege,
    InvalidParameter,
    SegmentLost,
    TooManyConnections,
)
from cerebro_plpy.records import dataclass

CONNECT_SECONDS = 10.0
# Time for a segment to recover: Greenplum promotes a mirror, or starts the segment again.
RECOVERY_SECONDS = 120.0
PAUSE_SECONDS = 0.5
CLOSING_SECONDS = 0.1  # until the caller notices that the server has ended
WORK_LOCK = sql("session.work_for", lock="pg_try_advisory_lock_shared")
# Messages of a server without a free slot: for any role, this role or this database.
NO_SLOT = re.compile(r"too many (clients|connections)|connection slots are reserved")


def driver_version() -> str:
    """Return the version of psycopg2 and its build."""
    return str(vars(psycopg2)["__version__"])  # missing in its type information


@dataclass(frozen=True)
class Identity:
    """The caller and the server, which a session must match, and settings of the session."""

    session_user: str
    current_user: str
    conninfo: str
    server: str
    platform: Platform
    options: SettingValues
    cores: tuple[int, ...] = ()  # cores to use during the first seconds; any if empty


def read_identity(db: Database, conninfo: str | None, cores: tuple[int, ...] = ()) -> Identity:
    """Return the identity of the caller's own session.

    Args:
        conninfo: replaces the address of this server.
    """
    row = db.row(sql("session.identity"))
    if row["session_superuser"] and not row["current_superuser"]:
        # RESET ROLE inside the user's own SQL would otherwise return to the superuser.
        row["session_user"] = row["current_user"]
    if not row["may_log_in"] and row["session_user"] == row["current_user"]:
        raise InsufficientPrivilege(
            f"role {row['current_user']!r} cannot log in, so no worker session can be opened as it",
            hint=f"ALTER ROLE {quote_identifier(row['current_user'])} LOGIN; or connect as a role "
            "that can log in and is a member of it, and SET ROLE to it.",
        )
    address = conninfo or read_address("postmaster.pid")
    try:
        dsn = extensions.make_dsn(address, dbname=row["database"], user=row["session_user"])
    except psycopg2.ProgrammingError as error:
        raise InvalidParameter(
            f"setting worker_conninfo is {address!r}; expected a connection string, such as "
            f"'host=localhost port=5432': {str(error).strip()}",
            hint="As an administrator: SELECT cerebro.set('worker_conninfo', NULL);",
        ) from error
    return Identity(
        session_user=row["session_user"],
        current_user=row["current_user"],
        server=row["server"],
        conninfo=dsn,
        platform=db.platform,
        options=db.platform.session_options(db),
        cores=cores,
    )


def read_address(pid_file: str | os.PathLike[str]) -> str:
    """Return the address of this server: its port, and its first socket folder or localhost.

    It is read from the postmaster's file in the data folder, a backend's working directory, because
    most roles cannot read the setting unix_socket_directories.
    """
    with open(pid_file, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return str(extensions.make_dsn(host=lines[4] or "localhost", port=lines[3]))


class WorkerSession:
    """An asynchronous session of a run; `pid` is the process of its backend.

    Args:
        label: application_name.
        check: is called while the session waits; may raise.
    """

    def __init__(self, identity: Identity, label: str, check: Check) -> None:
        self.identity = identity
        self.check = check
        self._cursor: Any = None
        self._startup_cores = StartupCores((), ())
        self.segment_lost = False  # since the session was last parked
        self._open(label)

    def _open(self, label: str) -> None:
        self._busy = False
        self._priority_pending = False
        self._startup_cores.release()
        options = " ".join(f"-c {name}={value}" for name, value in self.identity.options.items())
        try:
            self._connection = psycopg2.connect(
                self.identity.conninfo,
                async_=1,
                options=options,
                application_name=label,
                connect_timeout=10,
            )
            self._busy = True
            self._wait(time.monotonic() + CONNECT_SECONDS)
            self.pid = int(self._connection.info.backend_pid)
        except (psycopg2.Error, ConnectionFailure) as error:
            time.sleep(CLOSING_SECONDS)  # a server that ends closes its sockets first
            self.check()
            reason = str(error.__cause__ or error).strip()
            raise connection_error(self.identity, reason) from error
        self._verify()

    @property
    def platform(self) -> Platform:
        """Return the kind of the server."""
        return self.identity.platform

    def _verify(self) -> None:
        """Check that the session has the caller's identity; assume the caller's current role."""
        identity = self.identity
        server, session_user = self.run(sql("session.server"))[0]
        if server != identity.server:
            self.close()
            raise ConnectionFailure(
                "a worker session reached another server than the caller's",
                hint="As an administrator: SELECT cerebro.set('worker_conninfo', 'host=localhost "
                "port=5432'); with the address of this server itself, not of a pooler.",
            )
        if session_user != identity.session_user:
            self.close()
            raise connection_error(identity, f"the session was opened as {session_user!r}")
        self._priority_pending = True  # only now is the process known to be one of this machine
        self._startup_cores = StartupCores((self.pid, os.getpid()), identity.cores)
        # Needed even for the session user: a setting of the role may change the role at login.
        set_role = sql("session.set_role", role=quote_identifier(identity.current_user))
        try:
            self.run(f"{set_role}; {WORK_LOCK}", (0,))
        except InsufficientPrivilege as error:
            self.close()
            raise InsufficientPrivilege(
                f"the session of {session_user!r} may not work as {identity.current_user!r}: "
                f"{error.message}",
                hint="A SECURITY DEFINER function cannot train for its callers: connect as its "
                "owner, or as a role that is a member of it.",
            ) from error

    def work_for(self, run_id: int | None) -> None:
        """Take the lock that lets other calls count this session as a worker of a run.

        Args:
            run_id: None for a session that works for no run.
        """
        unlock = sql("session.work_for_nobody")
        self.run(f"{unlock}; {WORK_LOCK}", (run_id or 0,))

    @property
    def idle(self) -> bool:
        """True if no statement is running."""
        return not self._busy

    def fileno(self) -> int:
        """Return the descriptor for poll(2)."""
        return int(self._connection.fileno())

    def start(self, statement: str, values: Sequence[object] = ()) -> None:
        """Send statements, which are one transaction; return immediately."""
        self._busy = True
        try:
            self._cursor = self._connection.cursor()
            if values:
                adapted = [adapt(value) for value in values]
                self._cursor.execute(escape_percent(statement), adapted)
            else:  # a % of a user's query is no placeholder
                self._cursor.execute(statement)
        except psycopg2.Error as error:
            raise self._translate(error) from error

    def poll(self) -> int:
        """Make progress without waiting.

        Returns:
            POLL_OK if the result is complete, else the event to wait for.
        """
        self._startup_cores.release_if_over()
        self.lower_priority()
        try:
            state = int(self._connection.poll())
        except psycopg2.Error as error:
            raise self._translate(error) from error
        self._busy = state != extensions.POLL_OK
        return state

    def lower_priority(self) -> None:
        """Lower the backend's CPU priority, if that is pending."""
        if self._priority_pending:
            self._priority_pending = not lower_priority(self.pid)

    def _translate(self, error: psycopg2.Error) -> CerebroError:
        self._busy = False
        translated = translate(error, self.platform)
        self.segment_lost |= isinstance(translated, SegmentLost)
        return translated

    def fetch(self) -> Rows:
        """Return the rows of the last statement; [] if it returned none."""
        return list(self._cursor.fetchall()) if self._cursor.description else []

    def run(self, statement: str, values: Sequence[object] = ()) -> Rows:
        """Send statements and wait for the rows of the last one; a cancel ends the wait."""
        self.start(statement, values)
        self._wait(None)
        return self.fetch()

    def _wait(self, deadline: float | None) -> None:
        while (state := self.poll()) != extensions.POLL_OK:
            if not wait_for_any([(self, state)]):
                self.check()
            if deadline is not None and time.monotonic() > deadline:
                raise ConnectionFailure(f"no answer from the server within {CONNECT_SECONDS:.0f} s")

    def ignore_cancels(self) -> None:
        """Let later waits ignore cancels, so that the end of a cancelled run can be logged."""
        deadline = time.monotonic() + CONNECT_SECONDS

        def check_deadline() -> None:
            if time.monotonic() > deadline:
                raise ConnectionFailure("the server did not answer while a run was ended")

        self.check = check_deadline
        if self._busy:
            # The cancel has interrupted this statement; later statements are separate.
            with suppress(CerebroError):
                self._wait(deadline)

    def park(self, seconds: int, target: str | None) -> None:
        """Wait for the next call; the server ends a session that is not woken in time.

        Args:
            target: the `dispatch_clause` of the trainer's process; None without a trainer.
        """
        self._startup_cores.release()
        if target is not None:
            self.run(sql("visit.trainer_rest", at=target))
        self.platform.park(self, seconds)

    def wake(self, check: Check, label: str) -> None:
        """Work again after `park`.

        Raises:
            ConnectionFailure: the server has ended the session.
        """
        self.check = check
        self.segment_lost = False
        self.platform.wake(self, label)

    def take_notices(self) -> list[str]:
        """Return the server's messages since the last call, without their level."""
        messages = [text.partition(":")[2].strip() for text in self._connection.notices]
        self._connection.notices.clear()
        return messages

    def cancel(self) -> None:
        """Request that the server stops a running statement.

        Does nothing if no statement is running, or if the session has ended.
        """
        if self._busy:
            with suppress(psycopg2.Error):
                self._connection.cancel()

    def leave(self) -> None:
        """Disconnect without waiting; the session ends when its statement is done."""
        self._startup_cores.release()
        self._connection.close()

    def close(self) -> None:
        """Stop a running statement and end the session; its trainer ends with it."""
        self._startup_cores.release()
        self._priority_pending = False
        if self._connection.closed:
            return
        self.cancel()
        self._connection.close()


class ControlSession(WorkerSession):
    """The session that writes the log of a run, which must record even failures.

    It repeats statements that a lost segment prevented from being committed. It may be disconnected
    while its run waits.
    """

    _reconnect_label: str | None = None  # application_name after a disconnect

    def disconnect(self, label: str) -> None:
        """Free the connection slot; the next statement connects again under this label."""
        self.close()
        self._reconnect_label = label

    def start(self, statement: str, values: Sequence[object] = ()) -> None:
        """See `WorkerSession.start`."""
        label = self._reconnect_label
        if label is not None:
            self._reconnect_label = None
            try:
                self._open(label)
            except CerebroError:
                self._reconnect_label = label
                raise
        super().start(statement, values)

    def run(self, statement: str, values: Sequence[object] = ()) -> Rows:
        """See `WorkerSession.run`."""
        start = time.monotonic()
        while True:
            try:
                return super().run(statement, values)
            except SegmentLost:
                if time.monotonic() - start > RECOVERY_SECONDS:
                    raise
            time.sleep(PAUSE_SECONDS)
            self.check()


def adapt(value: object) -> object:
    """Return a value for the driver; tuples are arrays, too."""
    if isinstance(value, (list, tuple)):
        return [adapt(item) for item in value]
    if isinstance(value, (int, float)):
        # The driver's own literals are read as -(2147483648), and as numeric in arrays.
        return extensions.AsIs(literal(value))
    return psycopg2.Binary(value) if isinstance(value, bytes) else value


def connection_error(identity: Identity, reason: str) -> CerebroError:
    """Return the error for a session that could not be opened.

    The driver does not pass on the SQLSTATE of a refused connection, so that its text decides.
    """
    if NO_SLOT.search(reason):
        return no_slot_error(f"a worker session could not be opened: {reason}")
    return InsufficientPrivilege(
        f"a worker session could not be opened as {identity.session_user!r}: {reason}",
        detail=f"Tried: {identity.conninfo}",
        hint="Workers connect from the server to itself as the calling user. Let them in by "
        "pg_hba.conf and pg_ident.conf (cerebro-db check prints the lines), or, as an "
        "administrator: SELECT cerebro.set('worker_conninfo', 'host=localhost port=5432');",
    )


def no_slot_error(message: str) -> TooManyConnections:
    """Return the error for a limit of sessions that has been reached."""
    return TooManyConnections(
        message,
        hint="Wait until other runs have ended, or use fewer workers. What limits them are "
        "max_connections, the CONNECTION LIMIT of the role and the database, and "
        "max_workers_total in cerebro.setting.",
    )
