"""Where a call works: in sessions of its own, or in the caller's where its tables are visible only there.

Sessions of a finished call wait, with their trainers, for the next call of the same database session; the
server ends them after trainer_idle_seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cerebro_plpy.database import client
from cerebro_plpy.database.caller import Database
from cerebro_plpy.database.caller_session import LocalSession
from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.dispatch import Session
from cerebro_plpy.database.log_session import ControlSession
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions import WorkerSession, identity
from cerebro_plpy.database.visibility import alone
from cerebro_plpy.errors import (
    ActiveTransaction,
    CerebroError,
    ConnectionFailure,
    DeadlockDetected,
    InsufficientPrivilege,
    QueryCanceled,
)
from cerebro_plpy.platform.protocol import TrainingPlatform, Worker, session_role
from cerebro_plpy.trainer import segment, settings

NOT_OPENED = (ConnectionFailure, InsufficientPrivilege)
POOL = "cerebro_sessions"
BACKGROUND = "background"
CONTROL = "control"  # the role of the session that writes the log; other roles are of workers: session_role()
WATCH = "watch"  # of a session that looks for waits
LOOK_SECONDS = 1.0  # no deadlock detector sees a backend that waits for its own worker sessions
END_SECONDS = 5.0
PAUSE_SECONDS = 0.05


def label(role: str, run_id: int | None = None) -> str:
    """What others see of a session in pg_stat_activity."""
    of_run = "" if run_id is None else f" run {run_id}"
    return f"cerebro_db{of_run} {role if role in (CONTROL, BACKGROUND, WATCH) else 'worker'}"


class Workplace:
    """Sessions of one call. `control` writes the log; `reader` reads the caller's tables."""

    def __init__(self, db: Database, session: dict[str, Any], chosen: settings.Settings, local: bool) -> None:
        assert isinstance(db.platform, TrainingPlatform)
        self.db = db
        self.platform: TrainingPlatform = db.platform
        self.settings = chosen
        self.local = local
        self._session = session
        # The control session has no trainer: it must not be given to a worker while those with one wait.
        self._pool: dict[str, list[WorkerSession]] = session.setdefault(POOL, {CONTROL: []})
        self._who = identity(db, chosen.worker_conninfo)
        self._open: list[tuple[str, WorkerSession]] = []
        self._run_id: int | None = None
        self._watch: WorkerSession | None = None
        self._looked = time.monotonic()
        listened = not db.in_procedure
        self._client = client.client_socket(int(db.value(sql("session.setting"), "port"))) if listened else None
        self.control = self._take_control()
        self.reader: Session = LocalSession(db) if local else self.control

    def _take_control(self) -> ControlSession:
        control = self._take(CONTROL)
        assert isinstance(control, ControlSession)
        control.segment_lost = False
        return control

    def _take(self, role: str) -> WorkerSession:
        waiting = self._pool.setdefault(role, [])
        while waiting:
            session = waiting.pop()
            try:
                if session.who == self._who:
                    session.wake(self.check, self._label(role))
                    self._open.append((role, session))
                    return session
            except CerebroError:
                pass  # it waited too long: the server ended it
            session.close()
        kind = ControlSession if role == CONTROL else WorkerSession
        session = kind(self._who, self._label(role), self.check)
        self._open.append((role, session))
        return session

    def _label(self, role: str) -> str:
        return label(role, self._run_id)

    def show(self, run_id: int) -> None:
        """Let others see which run these sessions work for."""
        self._run_id = run_id
        for role, session in self._open:
            session.run(sql("session.label"), (self._label(role),))
        if self.db.in_procedure:
            self.db.value(sql("session.label"), self._label(BACKGROUND))

    def check(self) -> None:
        """Let a cancel take effect; each second, look for a client that is gone and a wait that would never end."""
        self.db.check_interrupts()
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        if self._client is not None and client.hung_up(self._client):
            raise QueryCanceled("the client closed its connection while the call was under way")
        if not self.local:
            self._refuse_deadlock()

    def _refuse_deadlock(self) -> None:
        ours = [session.pid for _, session in self._open]
        for pid, query in self.platform.waiting(self.db, self._watching, ours) if ours else ():
            raise DeadlockDetected(
                "this transaction holds a lock that its own worker sessions wait for",
                detail=f"Process {pid} waits for this one: {query or 'its statement is not shown'}",
                hint="COMMIT before the call: a lock on the table, or even a read of it, is held to the end of a"
                " transaction, and a queued ALTER TABLE then stops the workers behind it.",
            )

    def _watching(self) -> Session | None:
        """A session that looks for waits: any of the others may be the one that waits."""
        if self._watch is None:
            self._watch = self._take(WATCH)
        return self._watch if self._watch.idle else None

    def workers(self, posts: Sequence[int | None], frameworks: Sequence[str]) -> list[Worker]:
        """A worker on each post for each framework; one, in the caller's session, where tables are visible only there.

        See `Platform.posts`.
        """
        if self.local and len(frameworks) > 1:
            raise ActiveTransaction(
                "this run needs trainers of several frameworks, but works in the caller's own session, which has one",
                hint="COMMIT first, so that other sessions can see the tables.",
            )
        if self.local:
            return [Worker(0, LocalSession(self.db), frameworks[0])]
        made: list[Worker] = []
        for number, post in enumerate(posts):
            try:
                made += [Worker(number, self._take(session_role(f, post)), f, post) for f in frameworks]
            except NOT_OPENED as error:
                # The first ones could be: what stands in the way is a limit, such as max_connections.
                if not number or post is not None:
                    raise
                self.db.notice(f"going on with {number} of {len(posts)} workers: {error.message}")
                break
        return made

    def background(self) -> WorkerSession:
        """A session that can be left alone with what it does."""
        session = WorkerSession(self._who, self._label(BACKGROUND), self.check)
        self._open.append((BACKGROUND, session))
        session.run(sql("background.prepare"))
        return session

    def leave(self, session: WorkerSession) -> None:
        """Let a session go on by itself."""
        session.leave()
        self._open = [(role, other) for role, other in self._open if other is not session]

    def dismiss(self, workers: Sequence[Worker]) -> None:
        """End the sessions of workers that are not needed after all, and so their trainers."""
        gone = [worker.session for worker in workers]
        for session in gone:
            session.close()
        self._open = [(role, session) for role, session in self._open if session not in gone]

    def reopen(self, worker: Worker) -> bool:
        """Give a worker a new session, after the server ended the one it had; False where none can be had."""
        self.db.check_interrupts()  # the server may be gone altogether
        self.dismiss([worker])
        try:
            worker.session = self._take(worker.role)
        except NOT_OPENED:
            return False
        return True

    def close(self, keep: bool) -> None:
        """End the sessions and the trainer of the caller's own, or let them wait for the next call."""
        if self.local and not (keep and self.settings.trainer_idle_seconds):
            segment.stop_trainer(self._session)
        elif self.local:  # whose code runs in this session next may be of another role
            segment.forget(self._session)
        for role, session in self._open:
            if keep and self.settings.trainer_idle_seconds and self._put_aside(session):
                self._pool[role].append(session)
            else:
                session.close()
        self._open = []

    def _put_aside(self, session: WorkerSession) -> bool:
        """Let the server end a session if no call comes; False where the session is gone already."""
        try:
            session.rest(self.settings.trainer_idle_seconds)
        except CerebroError:
            return False
        return True

    def stop_workers(self) -> None:
        """End the worker sessions and see them gone, so that none commits after what is logged next.

        A cancel has been noticed already: from now on the control session waits without looking for one.
        """
        self.control.unguarded()
        workers = [session for role, session in self._open if role != CONTROL]
        for session in workers:
            session.close()
        deadline = time.monotonic() + END_SECONDS
        while self.control.run(sql("session.still_there"), ([s.pid for s in workers],))[0][0]:
            if time.monotonic() > deadline:
                return
            time.sleep(PAUSE_SECONDS)


@contextmanager
def opened(
    db: Database, session: dict[str, Any], relations: Iterable[Relation], workers: int | None
) -> Iterator[Workplace]:
    """A workplace for a call that reads these tables; on an error its sessions end at once."""
    chosen = settings.read(db)
    held = alone(db, relations, workers)
    settings.check_trainer(chosen)
    place = Workplace(db, session, chosen, held)
    try:
        yield place
    except BaseException:
        place.close(keep=False)
        raise
    place.close(keep=not db.in_procedure)
