"""Where a call works: in sessions of its own, or in the caller's where its tables are visible only
there.

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
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions import client_connection
from cerebro_plpy.database.sessions.async_dispatcher import Session
from cerebro_plpy.database.sessions.control_session import ControlSession
from cerebro_plpy.database.sessions.local_session import LocalSession
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sessions.worker_sessions import (
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
from cerebro_plpy.platform.connection_limit import BACKGROUND, CONTROL, WATCH, Room, label
from cerebro_plpy.platform.lock_watch import LockWatch
from cerebro_plpy.platform.visit_protocol import TrainingPlatform, Worker, session_role
from cerebro_plpy.records import replace
from cerebro_plpy.trainer_client import segment_functions, settings, usage_ledger
from cerebro_plpy.trainer_client.process import host_resources

NOT_OPENED = (ConnectionFailure, InsufficientPrivilege, TooManyConnections)
POOL = "cerebro_sessions"
LOOK_SECONDS = 1.0  # no deadlock detector sees a backend that waits for its own worker sessions
END_SECONDS = 5.0
PAUSE_SECONDS = 0.05


class Workplace:
    """Sessions of one call, for which it asks for so many workers `together`, None where it leaves
    that open.

    The caller's `custom_settings` are those of the sessions that read a source, and of no others.
    """

    def __init__(
        self,
        db: Database,
        gd: dict[str, Any],
        chosen: settings.Settings,
        local: bool,
        together: int | None = None,
        custom_settings: CustomSettings | None = None,
    ) -> None:
        assert isinstance(db.platform, TrainingPlatform)
        self.db = db
        self.platform: TrainingPlatform = db.platform
        self.settings = chosen
        self.local = local
        self.together = together
        self._session = gd
        # The control session has no trainer: it must not be given to a worker while those with one
        # wait.
        self._pool: dict[str, list[WorkerSession]] = gd.setdefault(POOL, {CONTROL: []})
        self._who = read_identity(
            db, chosen.worker_conninfo, host_resources.apart(chosen.spare_cores)
        )
        self.custom_settings = custom_settings or CustomSettings({})
        options = CustomSettings(
            {**self._who.options, **escape_startup_options(self.custom_settings)}
        )
        self._reader = replace(self._who, options=options)
        self._open: list[tuple[str, WorkerSession]] = []
        self._trainers: dict[str, str] = {}  # what sends statements to those of sessions, by role
        self._standing: dict[tuple[tuple[int | None, ...], str], Sequence[Worker]] = {}
        self._segment_lost = False  # as a session noticed that is no longer open
        self._run_id: int | None = None
        self.lock_watch = LockWatch(db, local, lambda: self._take(WATCH), self._end)
        self._looked = time.monotonic()
        listened = not db.in_procedure
        self._client = (
            client_connection.find_client_socket(int(db.value(sql("session.setting"), "port")))
            if listened
            else None
        )
        self._sessions = usage_ledger.Sessions(gd)
        self.crew: list[Worker] = []  # all workers that there were
        self._control: ControlSession | None = None
        self._room = Room(db, chosen.max_workers_total, self._asked, self.check)
        self.queued_seconds = 0.0  # for which its run has waited for places

    @property
    def control(self) -> ControlSession:
        """The session that writes the log, opened when it is needed first."""
        if self._control is None:
            control = self._take(CONTROL)
            assert isinstance(control, ControlSession)
            self._control = control
            self._sessions.look(control.pid)
        return self._control

    @property
    def reader(self) -> Session:
        """The session that reads the caller's tables."""
        return LocalSession(self.db) if self.local else self.control

    def step_back(self) -> None:
        """A run in the background that waits needs no session but its own: the one that writes its
        log comes back.
        """
        if self.db.in_procedure and self.platform.caller_holds_run_lock:
            self.control.disconnect(self._label(CONTROL))

    @property
    def role(self) -> str:
        """The role that calls, by the name that it had then."""
        return self._who.current_user

    @property
    def segment_lost(self) -> bool:
        """Whether any session of this call lost a segment, and so the caller's transaction did."""
        return self._segment_lost or any(session.segment_lost for _, session in self._open)

    def spent_seconds(self) -> float:
        """Processor seconds, since the last time, of the caller's session and of the one that
        writes the log.
        """
        self._sessions.look(self.control.pid)  # it may have come back as another process
        return self._sessions.taken()

    def _take(self, role: str) -> WorkerSession:
        waiting = self._pool.setdefault(role, [])
        while waiting:
            session = waiting.pop()
            try:
                if session.identity == self._identity(role):
                    session.wake(self.check, self._label(role))
                    return self._opened(role, session)
            except CerebroError:
                pass  # it waited too long: the server ended it
            session.close()
        kind = ControlSession if role == CONTROL else WorkerSession
        return self._opened(role, self._new(kind, role))

    def _identity(self, role: str) -> Identity:
        return self._reader if role in (CONTROL, BACKGROUND) else self._who

    def _opened(self, role: str, session: WorkerSession) -> WorkerSession:
        self._open.append((role, session))
        if role in self._trainers:
            session.work_for(self._run_id)
        return session

    def _new(self, kind: type[WorkerSession], role: str) -> WorkerSession:
        """A session that nobody had before, if there is room for it."""
        if role == WATCH:  # while the others may be at work
            return kind(self._identity(role), self._label(role), self.check)
        self._room.make(self._end_waiting, background=role == BACKGROUND)
        try:
            return kind(self._identity(role), self._label(role), self.check)
        except InsufficientPrivilege as error:
            # The server may have said in another language that it is full.
            if self._asked("session.room")[0] > 0:
                raise
            raise no_slot_error(error.message) from error

    def _asked(self, name: str, *values: object) -> Sequence[Any]:
        """The row of a statement about the sessions that there are now, which the caller's
        transaction sees only once.

        So the log's session is asked, and the caller's own for that one alone.
        """
        if self._control is not None:
            return self._control.run(sql(name), values)[0]
        self.db.rows(sql("session.look_anew"))
        return list(self.db.row(sql(name), *values).values())

    def _end_waiting(self) -> bool:
        """End the sessions that wait for a next call of this database session; whether there were
        any.
        """
        waiting = [session for sessions in self._pool.values() for session in sessions]
        for sessions in self._pool.values():
            sessions.clear()
        for session in waiting:
            session.close()
        self._room.left([session.pid for session in waiting])
        return bool(waiting)

    def _label(self, role: str) -> str:
        return label(role, self._run_id)

    def show(self, run_id: int) -> None:
        """Let others see which run these sessions work for."""
        self._run_id = run_id
        for role, session in self._open:
            session.run(sql("session.label"), (self._label(role),))
            if role in self._trainers:
                session.work_for(run_id)
        if self.local:
            self.db.value(sql("session.work_for", lock="pg_try_advisory_xact_lock_shared"), run_id)
        if self.db.in_procedure:
            self.db.value(sql("session.label"), self._label(BACKGROUND))

    def check(self) -> None:
        """Let a cancel take effect; each second, look for a client that is gone and a wait that
        would never end.
        """
        self.db.check_interrupts()
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        for _, session in self._open:
            session.lower_priority()
        if self._client is not None and client_connection.has_hung_up(self._client):
            raise QueryCanceled("the client closed its connection while the call was under way")
        self.lock_watch.look([session.pid for _, session in self._open], now)

    def workers(self, posts: Sequence[int | None], frameworks: Sequence[str]) -> list[Worker]:
        """A worker on each post for each framework; one, in the caller's session, where tables are
        visible only there.

        See `Platform.posts`.
        """
        if self.local and len(frameworks) > 1:
            raise ActiveTransaction(
                "this run needs trainers of several frameworks, but works in the caller's own "
                "session, which has one",
                hint="COMMIT first, so that other sessions can see the tables.",
            )
        if self.local:
            return [Worker(0, LocalSession(self.db), frameworks[0])]
        made: list[Worker] = []
        for number, post in enumerate(posts):
            try:
                made += [self._worker(number, framework, post) for framework in frameworks]
            except NOT_OPENED as error:
                # The first ones could be: what stands in the way is a limit, such as
                # max_connections.
                if not number or post is not None:
                    raise
                self.db.notice(f"going on with {number} of {len(posts)} workers: {error.message}")
                break
        return made

    def hire(self, number: int, framework: str) -> Worker:
        """One more worker, which can serve any segment."""
        return self._worker(number, framework, None)

    def _worker(self, number: int, framework: str, post: int | None) -> Worker:
        role = session_role(framework, post)
        self._trainers[role] = self.platform.dispatch_clause(post)
        self.crew.append(Worker(number, self._take(role), framework, post))
        return self.crew[-1]

    def standing(self, posts: Sequence[int | None], framework: str) -> Sequence[Worker]:
        """Workers that this call has had on these posts before, with what their trainers hold; else
        new ones.
        """
        key = (tuple(posts), framework)
        known, there = self._standing.get(key, ()), [session for _, session in self._open]
        if not known or not all(self.local or worker.session in there for worker in known):
            known = self._standing[key] = self.workers(posts, (framework,))
        return known

    def background(self) -> WorkerSession:
        """A session that can be left alone with what it does."""
        session = self._new(WorkerSession, BACKGROUND)
        self._open.append((BACKGROUND, session))
        session.run(
            sql("background.prepare"), (self.db.value(sql("session.setting"), "lock_timeout"),)
        )
        return session

    def leave(self, session: WorkerSession) -> None:
        """Let a session go on by itself."""
        session.leave()
        self._open = [(role, other) for role, other in self._open if other is not session]

    def dismiss(self, workers: Sequence[Worker]) -> None:
        """End the sessions of workers that are not needed after all, and so their trainers."""
        self._end([worker.session for worker in workers])

    def _end(self, gone: Sequence[Session]) -> None:
        for session in gone:
            self._segment_lost |= isinstance(session, WorkerSession) and session.segment_lost
            session.close()
        self._open = [(role, session) for role, session in self._open if session not in gone]

    def reopen(self, worker: Worker) -> bool:
        """Give a worker a new session, after the server ended the one it had; False where none can
        be had.
        """
        self.db.check_interrupts()  # the server may be gone altogether
        self.dismiss([worker])
        try:
            self.platform.wait_for_segments(self.control)
            worker.session = self._take(worker.role)
        except NOT_OPENED:
            return False
        return True

    def close(self, keep: bool) -> None:
        """End the sessions and the trainer of the caller's own, or let them wait for the next
        call.
        """
        if self.local:  # whose code runs in this session next may be of another role
            segment_functions.rest(self._session, self.settings.trainer_idle_seconds if keep else 0)
        for role, session in self._open:
            if keep and self.settings.trainer_idle_seconds and self._put_aside(role, session):
                self._pool[role].append(session)
            else:
                session.close()
        self._open = []

    def _put_aside(self, role: str, session: WorkerSession) -> bool:
        """Let the server end a session if no call comes; False where the session is gone
        already.
        """
        try:
            if role in self._trainers:
                session.work_for(None)
            session.park(self.settings.trainer_idle_seconds, self._trainers.get(role))
        except CerebroError:
            return False
        return True

    def stop_workers(self) -> None:
        """End the worker sessions and see them gone, so that none commits after what is logged
        next.

        A cancel has been noticed already: from now on the control session waits without looking for
        one.
        """
        self.control.ignore_cancels()
        workers = [session for role, session in self._open if role != CONTROL]
        for session in workers:
            session.close()
        deadline = time.monotonic() + END_SECONDS
        while self.control.run(sql("session.still_there"), ([s.pid for s in workers],))[0][0]:
            if time.monotonic() > deadline:
                return
            time.sleep(PAUSE_SECONDS)


@contextmanager
def open_workplace(
    db: Database,
    gd: dict[str, Any],
    relations: Iterable[Relation],
    workers: int | None,
    custom_settings: CustomSettings | None = None,
) -> Iterator[Workplace]:
    """A workplace for a call that reads these tables; on an error its sessions end at once."""
    chosen = settings.read(db)
    held = needs_own_session(db, relations, workers)
    settings.check_trainer(chosen)
    workplace = Workplace(db, gd, chosen, held, workers, custom_settings)
    try:
        assert (
            workplace.control.idle
        )  # opened before anything is read, so that nothing begins where there is no room
        yield workplace
    except BaseException:
        workplace.close(keep=False)
        raise
    workplace.close(keep=not db.in_procedure)
