"""The context of a call: its settings and its sessions.

The sessions of a call are separate from the caller's, unless its tables are visible only there.
Sessions of a finished call wait, with their trainers, for the next call of the same database
session; the server ends them after trainer_idle_seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.custom_settings import CustomSettings, escape_startup_options
from cerebro_plpy.database.platform_protocol import read_value
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions import client_connection
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database, Globals
from cerebro_plpy.database.sessions.worker_sessions import (
    ControlSession,
    Identity,
    WorkerSession,
    no_slot_error,
    read_identity,
)
from cerebro_plpy.database.table_visibility import needs_own_session
from cerebro_plpy.errors import (
    ActiveTransaction,
    CerebroError,
    ConnectionFailure,
    InsufficientPrivilege,
    QueryCanceled,
    TooManyConnections,
)
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.platform.connection_limit import (
    BACKGROUND,
    CONTROL,
    WATCH,
    ConnectionLimit,
    preparation_label,
    session_label,
)
from cerebro_plpy.platform.lock_watch import LockWatch
from cerebro_plpy.platform.training_platform import TrainingPlatform
from cerebro_plpy.platform.visit_protocol import Worker, session_role
from cerebro_plpy.records import replace
from cerebro_plpy.trainer_client import segment_functions, settings, usage_ledger
from cerebro_plpy.trainer_client.process import host_resources

OPEN_ERRORS = (ConnectionFailure, InsufficientPrivilege, TooManyConnections)
POOL = "cerebro_sessions"
LOOK_SECONDS = 1.0  # between two checks for a lost client and for waits
END_SECONDS = 5.0
PAUSE_SECONDS = 0.05


class CallContext:
    """The settings and sessions of one call.

    Args:
        gd: global data of the database session, with its idle sessions.
        is_local: work only in the caller's own session.
        requested_workers: the number of workers that the caller asks for; None if it does not.
        custom_settings: the caller's, for sessions that read a source, and for no others.
    """

    def __init__(
        self,
        db: Database,
        gd: Globals,
        call_settings: settings.Settings,
        is_local: bool,
        requested_workers: int | None = None,
        custom_settings: CustomSettings | None = None,
    ) -> None:
        assert isinstance(db.platform, TrainingPlatform)
        self.db = db
        self.platform: TrainingPlatform = db.platform
        self.settings = call_settings
        self.is_local = is_local
        self.requested_workers = requested_workers
        self._session = gd
        # The control session has no trainer: it must not be given to a worker while sessions with a
        # trainer are idle.
        self._pool: dict[str, list[WorkerSession]] = gd.setdefault(POOL, {CONTROL: []})
        cores = host_resources.startup_cores(call_settings.spare_cores)
        self._identity = read_identity(db, call_settings.worker_conninfo, cores)
        self.custom_settings = custom_settings or CustomSettings({})
        escaped = escape_startup_options(self.custom_settings)
        options = CustomSettings({**self._identity.options, **escaped})
        self._reader_identity = replace(self._identity, options=options)
        self._open: list[tuple[str, WorkerSession]] = []
        self._trainers: dict[str, str] = {}  # dispatch clauses of trainers, by role
        self._workers: dict[tuple[tuple[int | None, ...], str], Sequence[Worker]] = {}
        self._segment_lost = False  # noticed by a session that has been closed
        self._run_id: int | None = None
        self.is_preparing = False  # the label of the control session has a phase
        self.lock_watch = LockWatch(db, is_local, lambda: self._take(WATCH), self._close)
        self._last_look = time.monotonic()
        self._client: int | None = None
        if not db.in_procedure:
            port = int(db.value(sql("session.setting"), "port"))
            self._client = client_connection.find_client_socket(port)
        self._session_clocks = usage_ledger.SessionClocks(gd)
        self.all_workers: list[Worker] = []  # also those that have ended
        self._control: ControlSession | None = None
        self._limit = ConnectionLimit(
            db, call_settings.max_workers_total, self._read_sessions, self.check
        )
        self.queued_seconds = 0.0  # time that its run has waited in the queue

    @property
    def control(self) -> ControlSession:
        """The session that writes the log; it is opened when it is used first."""
        if self._control is None:
            control = self._take(CONTROL)
            assert isinstance(control, ControlSession)
            self._control = control
            self._session_clocks.look(control.pid)
        return self._control

    @property
    def reader(self) -> Session:
        """The session that reads the caller's tables."""
        return LocalSession(self.db) if self.is_local else self.control

    def disconnect_control(self) -> None:
        """Free the control session's slot while a run in the background waits.

        Its next statement connects again.
        """
        if self.db.in_procedure and self.platform.caller_holds_run_lock:
            self.control.disconnect(self._label(CONTROL))

    @property
    def role(self) -> str:
        """The name of the calling role at the time of the call."""
        return self._identity.current_user

    @property
    def segment_lost(self) -> bool:
        """True if a session of this call, and so the caller's transaction, has lost a segment."""
        return self._segment_lost or any(session.segment_lost for _, session in self._open)

    def take_session_seconds(self) -> float:
        """Return the new CPU seconds of the caller's session and the control session."""
        self._session_clocks.look(self.control.pid)  # it may have been connected again
        return self._session_clocks.take_seconds()

    def _take(self, role: str) -> WorkerSession:
        """Return an idle session, or a new one."""
        idle = self._pool.setdefault(role, [])
        while idle:
            session = idle.pop()
            try:
                if session.identity == self._identity_of(role):
                    session.wake(self.check, self._label(role))
                    return self._add(role, session)
            except CerebroError:
                pass  # the server has ended it after its idle time
            session.close()
        return self._add(role, self._create(role))

    def _identity_of(self, role: str) -> Identity:
        return self._reader_identity if role in (CONTROL, BACKGROUND) else self._identity

    def _add(self, role: str, session: WorkerSession) -> WorkerSession:
        self._open.append((role, session))
        if role in self._trainers:
            session.work_for(self._run_id)
        return session

    def _create(self, role: str) -> WorkerSession:
        """Open a new session, if the limit allows it."""
        session_class = ControlSession if role == CONTROL else WorkerSession
        if role == WATCH:  # other sessions, which would read the limit, may be busy
            return session_class(self._identity_of(role), self._label(role), self.check)
        self._limit.check_room(self._end_idle, background=role == BACKGROUND)
        try:
            return session_class(self._identity_of(role), self._label(role), self.check)
        except InsufficientPrivilege as error:
            # The server may have reported in another language that it has no slot.
            if self._read_sessions("session.room")[0] > 0:
                raise
            raise no_slot_error(error.message) from error

    def _read_sessions(self, name: str, *values: object) -> Sequence[Any]:
        """Return the row of a statement about the existing sessions.

        The control session runs it if there is one: the caller's transaction keeps the first state
        of other sessions that it sees.
        """
        if self._control is not None:
            return self._control.run(sql(name), values)[0]
        self.db.rows(sql("session.look_anew"))
        return list(self.db.row(sql(name), *values).values())

    def _end_idle(self) -> bool:
        """End the idle sessions of this database session; return True if there were any."""
        idle = [session for sessions in self._pool.values() for session in sessions]
        for sessions in self._pool.values():
            sessions.clear()
        for session in idle:
            session.close()
        self._limit.wait_for_end([session.pid for session in idle])
        return bool(idle)

    def _label(self, role: str) -> str:
        return session_label(role, self._run_id)

    def show_preparation(self, run_id: int, phase: str) -> None:
        """Show other sessions what this call does before its run is in the log.

        A label leaves nothing behind if the call is refused or its session is lost.

        Args:
            phase: a constant of `call_status`.
        """
        self.db.status.enter(phase)
        self.is_preparing = True
        self.control.run(sql("session.label"), (preparation_label(run_id, phase),))

    def show_run(self, run_id: int) -> None:
        """Show other sessions which run these sessions work for."""
        self.is_preparing = False
        self._run_id = run_id
        for role, session in self._open:
            session.run(sql("session.label"), (self._label(role),))
            if role in self._trainers:
                session.work_for(run_id)
        if self.is_local:
            self.db.value(sql("session.work_for", lock="pg_try_advisory_xact_lock_shared"), run_id)
        if self.db.in_procedure:
            self.db.value(sql("session.label"), self._label(BACKGROUND))

    def check(self) -> None:
        """Let a cancel take effect; each second, check for a lost client and for deadlocks."""
        self.db.check_interrupts()
        now = time.monotonic()
        if now - self._last_look < LOOK_SECONDS:
            return
        self._last_look = now
        for _, session in self._open:
            session.lower_priority()
        if self._client is not None and client_connection.has_hung_up(self._client):
            raise QueryCanceled("the client closed its connection while the call was under way")
        self.lock_watch.look([session.pid for _, session in self._open], now)

    def open_workers(
        self, segments: Sequence[int | None], frameworks: Sequence[str]
    ) -> list[Worker]:
        """Open a worker for each framework and each of these segments.

        A local call has one worker, in the caller's session.

        Args:
            segments: see `Platform.assign_segments`.
        """
        if self.is_local and len(frameworks) > 1:
            raise ActiveTransaction(
                "this run needs trainers of several frameworks, but works in the caller's own "
                "session, which has one",
                hint="COMMIT first, so that other sessions can see the tables.",
            )
        if self.is_local:
            return [Worker(0, LocalSession(self.db), frameworks[0])]
        workers: list[Worker] = []
        for number, segment in enumerate(segments):
            try:
                workers += [self.add_worker(number, name, segment) for name in frameworks]
            except OPEN_ERRORS as error:
                # After a first session, the obstacle is a limit, such as max_connections.
                if not number or segment is not None:
                    raise
                self.db.notice(
                    f"going on with {number} of {count_nouns(len(segments), 'worker')}: "
                    f"{error.message}"
                )
                break
        return workers

    def add_worker(self, number: int, framework: str, segment: int | None = None) -> Worker:
        """Open one more worker, which can serve any segment unless it belongs to one."""
        role = session_role(framework, segment)
        self._trainers[role] = self.platform.dispatch_clause(segment)
        worker = Worker(number, self._take(role), framework, segment)
        self.all_workers.append(worker)
        return worker

    def reuse_workers(self, segments: Sequence[int | None], framework: str) -> Sequence[Worker]:
        """Return this call's workers for these segments, with their trainers, or open new ones."""
        key = (tuple(segments), framework)
        workers = self._workers.get(key, ())
        sessions = [session for _, session in self._open]
        are_open = self.is_local or all(worker.session in sessions for worker in workers)
        if not workers or not are_open:
            workers = self.open_workers(segments, (framework,))
            self._workers[key] = workers
        return workers

    def open_background(self) -> WorkerSession:
        """Open a session that can work without this call."""
        session = self._create(BACKGROUND)
        self._open.append((BACKGROUND, session))
        lock_timeout = self.db.value(sql("session.setting"), "lock_timeout")
        session.run(sql("background.prepare"), (lock_timeout,))
        return session

    def detach(self, session: WorkerSession) -> None:
        """Disconnect from a session, which completes its statement."""
        session.leave()
        self._open = [(role, other) for role, other in self._open if other is not session]

    def close_workers(self, workers: Sequence[Worker]) -> None:
        """End the sessions of workers, and so their trainers."""
        self._close([worker.session for worker in workers])

    def _close(self, sessions: Sequence[Session]) -> None:
        for session in sessions:
            self._segment_lost |= isinstance(session, WorkerSession) and session.segment_lost
            session.close()
        self._open = [(role, session) for role, session in self._open if session not in sessions]

    def reopen(self, worker: Worker) -> bool:
        """Open a new session for a worker whose session the server has ended.

        Returns:
            False if that is not possible.
        """
        self.db.check_interrupts()  # the whole server may have ended
        self.close_workers([worker])
        try:
            self.platform.wait_for_segments(self.control)
            worker.session = self._take(worker.role)
        except OPEN_ERRORS:
            return False
        return True

    def close(self, keep: bool) -> None:
        """End the sessions and the caller's own trainer, or park them for the next call."""
        idle_seconds = self.settings.trainer_idle_seconds if keep else 0
        if self.is_local:  # later code in this session may belong to another role
            segment_functions.park_trainer(self._session, idle_seconds)
        for role, session in self._open:
            if idle_seconds and self._park(role, session):
                self._pool[role].append(session)
            else:
                session.close()
        self._open = []

    def _park(self, role: str, session: WorkerSession) -> bool:
        """Let the server end a session if no call comes; return False if the session is lost."""
        try:
            if role in self._trainers:
                session.work_for(None)
            if role == CONTROL:  # its run may be removed from the log
                session.run(sql("session.label"), (session_label(role),))
            session.park(self.settings.trainer_idle_seconds, self._trainers.get(role))
        except CerebroError:
            return False
        return True

    def stop_workers(self) -> None:
        """End the worker sessions and wait for their end: none may commit after later log rows.

        Call this after a cancel was noticed: the control session ignores cancels from now on.
        """
        self.control.ignore_cancels()
        workers = [session for role, session in self._open if role != CONTROL]
        for session in workers:
            session.close()
        pids = [session.pid for session in workers]
        deadline = time.monotonic() + END_SECONDS
        while read_value(self.control, sql("session.still_there"), (pids,)):
            if time.monotonic() > deadline:
                return
            time.sleep(PAUSE_SECONDS)


@contextmanager
def open_context(
    db: Database,
    gd: Globals,
    relations: Iterable[Relation],
    workers: int | None,
    custom_settings: CustomSettings | None = None,
) -> Iterator[CallContext]:
    """Open the context of a call that reads these tables; an error ends its sessions."""
    call_settings = settings.read(db)
    is_local = needs_own_session(db, relations, workers)
    settings.check_trainer(call_settings)
    context = CallContext(db, gd, call_settings, is_local, workers, custom_settings)
    try:
        # Open this session first, so that the call reads nothing if no slot is free.
        assert context.control.idle
        yield context
    except BaseException:
        context.close(keep=False)
        raise
    context.close(keep=not db.in_procedure)
