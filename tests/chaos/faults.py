"""What may befall a run, by name: each is a small function that strikes once, and puts back what it
changed.

It returns False where there is nothing yet that it could strike; it is then tried again.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psycopg2
from premises import ROLE, Premises
from processes import command_line, parent, trainers
from workbench import Workbench, opened

AWAY = "away"
STATES = "SELECT unnest(state_tables) FROM cerebro.config WHERE run_id = %s"
LOG = "cerebro.run_log, cerebro.config_log, cerebro.visit, cerebro.evaluation, cerebro.metric"
ENDED = """
    SELECT worker_pid, extract(epoch FROM max(ended_at))::float8 FROM cerebro.visit
    WHERE run_id = %s AND status = 'completed' GROUP BY worker_pid"""
NOT_LOCKED = (
    psycopg2.errors.LockNotAvailable,
    psycopg2.errors.UndefinedTable,
    psycopg2.errors.DeadlockDetected,
)
"""Errors of who locks several tables of a run that goes on. The server ends either of two that wait
for each other.
"""
LABELLED = (
    "SELECT pid FROM pg_stat_activity WHERE application_name LIKE %s AND datname = "
    "current_database()"
)


@dataclass
class Scene:
    """A round as a fault finds it: `caller` is the session of the call that goes on now, `run` its
    run, or 0.
    """

    premises: Premises
    draw: random.Random
    output: str
    packed: str
    caller: Workbench | None = None
    run: int = 0
    afterwards: ExitStack = field(default_factory=ExitStack)  # when the call has ended

    def hold(self) -> None:
        """Let some time pass, as long as a fault lasts."""
        time.sleep(self.draw.uniform(0.3, 3))

    def one(self, found: set[int]) -> int:
        """One of these processes; 0 where there is none."""
        return self.draw.choice(sorted(found)) if found else 0

    def backends(self, label: str) -> set[int]:
        """The backends of sessions with such a name."""
        with opened(self.premises.superuser_url) as session:
            return {pid for (pid,) in session.rows(LABELLED, label)}

    def worker(self) -> int:
        """The backend of a worker session; 0 where there is none."""
        return self.one(self.backends("cerebro\\_db%worker"))

    def orchestrator(self) -> int:
        """The backend that drives the workers: one in the background, or the caller's; 0 where
        neither is there.
        """
        if found := self.backends("cerebro\\_db%background"):
            return min(found)
        return self.caller.pid() if self.caller and not self.caller.connection.closed else 0


Strike = Callable[[Scene], bool]


class Fault(NamedTuple):
    """How it strikes, and what its caller has set before, of settings with a time."""

    strike: Strike
    setting: str | None = None


def signalled(number: int, scene: Scene) -> bool:
    """A signal to a trainer."""
    pid = scene.one(scene.premises.trainers())
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    return bool(pid)


def stopped(scene: Scene) -> bool:
    """A trainer stands still for ever: one that has trained, for while it starts nobody notices for
    ten minutes.
    """
    with opened(scene.premises.superuser_url) as session:
        ended = session.rows(ENDED, scene.run)
    seen = scene.premises.seen
    pid = scene.one(
        {pid for worker, at in ended for pid in trainers({worker}) if seen.get(pid, at) < at}
    )
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    return bool(pid)


def paused(choose: Callable[[Scene], int], scene: Scene) -> bool:
    """A process stands still for a while."""
    pid = choose(scene)
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            scene.hold()
            os.kill(pid, signal.SIGCONT)
    return bool(pid)


def crashed(choose: Callable[[Scene], int], scene: Scene) -> bool:
    """The kernel ends a process of the server, which restarts all of it."""
    pid = choose(scene)
    if pid:
        scene.premises.crash(pid)
    return bool(pid)


def checkpointer(scene: Scene) -> int:
    with opened(scene.premises.superuser_url) as session:
        return int(
            session.value("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
        )


def a_trainer(scene: Scene) -> int:
    return scene.one(scene.premises.trainers())


def a_nursery(scene: Scene) -> int:
    """The process that has forked a trainer; 0 where a backend has executed it."""
    pid = parent(a_trainer(scene))
    return (
        pid if command_line(pid)[:1] and command_line(pid)[0].startswith("cerebro_nursery") else 0
    )


def nursery_killed(scene: Scene) -> bool:
    """With all of its trainers."""
    pid = a_nursery(scene)
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pid)


def nursery_stopped(scene: Scene) -> bool:
    """Until the call has ended; whoever needs a trainer meanwhile executes it."""
    pid = a_nursery(scene)
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
        scene.afterwards.callback(ended, pid)
    return bool(pid)


def ended(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def told(function: str, choose: Callable[[Scene], int], scene: Scene) -> bool:
    """pg_cancel_backend or pg_terminate_backend, by an administrator."""
    pid = choose(scene)
    if pid:
        with opened(scene.premises.superuser_url) as session:
            session.rows(f"SELECT {function}(%s)", pid)
    return bool(pid)


def all_ended(scene: Scene) -> bool:
    """Every session of the call but its orchestrator's."""
    found = scene.backends("cerebro\\_db%worker") | scene.backends("cerebro\\_db%control")
    with opened(scene.premises.superuser_url) as session:
        for pid in found:
            session.rows("SELECT pg_terminate_backend(%s)", pid)
    return bool(found)


def connection_cut(scene: Scene) -> bool:
    """The caller's client is gone."""
    if scene.caller is None or scene.caller.connection.closed:
        return False
    with socket.socket(fileno=os.dup(scene.caller.connection.fileno())) as end:
        end.shutdown(socket.SHUT_RDWR)
    return True


def nothing(scene: Scene) -> bool:
    """It is the caller's own setting that strikes."""
    return True


def locked(tables: Callable[[Scene], str], mode: str, scene: Scene) -> bool:
    """Somebody else holds a lock for some seconds, or waits for it as long."""
    names = tables(scene)
    if names:
        with opened(scene.premises.superuser_url) as session:
            session.rows("SET lock_timeout = '3s'")
            with suppress(*NOT_LOCKED):
                session.connection.autocommit = False
                session.rows(f"LOCK TABLE {names} IN {mode} MODE")
                scene.hold()
    return bool(names)


def log(scene: Scene) -> str:
    return LOG


def packed(scene: Scene) -> str:
    return scene.packed


def a_state(scene: Scene) -> str:
    found = states(scene)
    return scene.draw.choice(found) if found else ""


def states(scene: Scene) -> list[str]:
    """The names of the tables with the states of the run that there are."""
    with opened(scene.premises.superuser_url) as session:
        session.rows("SET lock_timeout = '3s'")
        return [name for (name,) in session.rows(STATES, scene.run) if session.exists(name)]


def backup(scene: Scene) -> bool:
    """Somebody reads all that there is, for as long as the call takes."""
    names = states(scene)
    if names:
        session = scene.premises.superuser()
        scene.afterwards.callback(session.close)
        session.rows("SET lock_timeout = '3s'")
        session.connection.autocommit = False
        with suppress(*NOT_LOCKED):
            session.rows(
                f"LOCK TABLE {', '.join(names)}, {scene.packed}, {LOG} IN ACCESS SHARE MODE"
            )
    return bool(names)


def rewritten(scene: Scene) -> bool:
    """An administrator tidies up the log."""
    with opened(scene.premises.superuser_url) as session:
        session.rows("SET lock_timeout = '3s'")
        for name in LOG.split(", "):
            with suppress(psycopg2.errors.LockNotAvailable):
                session.rows(f"VACUUM FULL {name}")
    return True


def name_taken(scene: Scene) -> bool:
    """Somebody makes a table of the name that the output is to have, and keeps it until the call
    has ended.
    """
    with opened(scene.premises.superuser_url) as session:
        session.rows("SET lock_timeout = '3s'")
        try:
            session.rows(f"CREATE TABLE {scene.output} AS SELECT 'mine' AS whose")
        except (
            psycopg2.errors.DuplicateTable,
            psycopg2.errors.UniqueViolation,
            psycopg2.errors.LockNotAvailable,
        ):
            # the run has it, perhaps since just now: it begins with its output before its end
            return False

    def given_back() -> None:
        with opened(scene.premises.superuser_url) as session:
            assert session.value(f"SELECT whose FROM {scene.output}") == "mine"
            session.rows(f"DROP TABLE {scene.output}")

    scene.afterwards.callback(given_back)
    return True


@contextmanager
def changed(url: str, there: str, back: str) -> Iterator[None]:
    """Between two statements of a session of its own."""
    with opened(url) as session:
        session.rows(there)
        try:
            yield
        finally:
            session.rows(back)


def shut_out(there: str, back: str, scene: Scene) -> bool:
    """No session can be opened for a while, when a worker's has just ended: the other database can
    be.
    """
    pid = scene.worker()
    if pid:
        with (
            changed(scene.premises.elsewhere, there, back),
            opened(scene.premises.elsewhere) as session,
        ):
            session.rows("SELECT pg_terminate_backend(%s)", pid)
            scene.hold()
    return bool(pid)


def renamed_role(scene: Scene) -> bool:
    """The caller's role has another name for a while."""
    there, back = f"ALTER ROLE {ROLE} RENAME TO {AWAY}", f"ALTER ROLE {AWAY} RENAME TO {ROLE}"
    with changed(scene.premises.elsewhere, there, back):
        scene.hold()
    return True


def renamed_table(scene: Scene) -> bool:
    """The packed table has another name for a while."""
    with opened(scene.premises.superuser_url) as session:
        session.rows("SET lock_timeout = '3s'")
        try:
            session.rows(f"ALTER TABLE {scene.packed} RENAME TO {AWAY}")
        except psycopg2.errors.UndefinedTable:
            return False  # another fault has renamed it
        except psycopg2.errors.LockNotAvailable:
            return True
        scene.hold()
        session.rows(f"SET lock_timeout = 0; ALTER TABLE {AWAY} RENAME TO {scene.packed}")
    return True


def source_renamed(scene: Scene) -> bool:
    """What is trained on has another name until the call has ended: also when what was trained is
    compared.
    """
    with opened(scene.premises.superuser_url) as session:
        session.rows("SET lock_timeout = '3s'")
        try:
            session.rows(f"ALTER TABLE {scene.packed} RENAME TO {AWAY}")
        except psycopg2.errors.UndefinedTable:
            return False  # another fault has renamed it
        except psycopg2.errors.LockNotAvailable:
            return True

    def given_back() -> None:
        with opened(scene.premises.superuser_url) as session:
            session.rows(f"ALTER TABLE {AWAY} RENAME TO {scene.packed}")

    scene.afterwards.callback(given_back)
    return True


def no_privilege(scene: Scene) -> bool:
    """The role may not use the log for a while."""
    there, back = (
        f"REVOKE USAGE ON SCHEMA cerebro FROM {ROLE}",
        f"GRANT USAGE ON SCHEMA cerebro TO {ROLE}",
    )
    with changed(scene.premises.superuser_url, there, back):
        scene.hold()
    return True


def crowded(scene: Scene) -> bool:
    """Others take all connections for a while, when a worker's has just ended."""
    pid = scene.worker()
    if not pid:
        return False
    with ExitStack() as crowd, opened(scene.premises.superuser_url) as session:
        ended = False
        with suppress(psycopg2.OperationalError):
            while True:
                crowd.enter_context(opened(scene.premises.url))
                if not ended:
                    session.rows("SELECT pg_terminate_backend(%s)", pid)
                    ended = True
        scene.hold()
    return True


def restarted(number: int, scene: Scene) -> bool:
    """The server is stopped and started."""
    scene.premises.restart(number)
    return True


def folder_removed(scene: Scene) -> bool:
    """Somebody cleans /tmp."""
    found = sorted(scene.premises.folders())
    if found:
        shutil.rmtree(Path(tempfile.gettempdir()) / scene.draw.choice(found), ignore_errors=True)
    return bool(found)


FAULTS = {
    "a trainer is killed": Fault(partial(signalled, signal.SIGKILL)),
    "a trainer is told to end": Fault(partial(signalled, signal.SIGTERM)),
    "a trainer is stopped for good": Fault(stopped),
    "a trainer is stopped for a while": Fault(partial(paused, a_trainer)),
    "a nursery is killed": Fault(nursery_killed),
    "a nursery is stopped for a while": Fault(partial(paused, a_nursery)),
    "a nursery is stopped for good": Fault(nursery_stopped),
    "a trainer's folder is removed": Fault(folder_removed),
    "a worker's session is ended": Fault(partial(told, "pg_terminate_backend", Scene.worker)),
    "a worker's statement is cancelled": Fault(partial(told, "pg_cancel_backend", Scene.worker)),
    "a worker's backend is stopped for a while": Fault(partial(paused, Scene.worker)),
    "a worker's backend is killed": Fault(partial(crashed, Scene.worker)),
    "all sessions of the call are ended": Fault(all_ended),
    "the caller's session is ended": Fault(
        partial(told, "pg_terminate_backend", Scene.orchestrator)
    ),
    "the caller's statement is cancelled": Fault(
        partial(told, "pg_cancel_backend", Scene.orchestrator)
    ),
    "the caller's backend is stopped for a while": Fault(partial(paused, Scene.orchestrator)),
    "the caller's backend is killed": Fault(partial(crashed, Scene.orchestrator)),
    "the caller's client is gone": Fault(connection_cut),
    "the checkpointer is killed": Fault(partial(crashed, checkpointer)),
    "the caller has a statement_timeout": Fault(nothing, "statement_timeout"),
    "the caller has a lock_timeout, and the log is locked": Fault(
        partial(locked, log, "ACCESS EXCLUSIVE"), "lock_timeout"
    ),
    "the log is locked": Fault(partial(locked, log, "ACCESS EXCLUSIVE")),
    "the log is rewritten": Fault(rewritten),
    "the packed table is locked": Fault(partial(locked, packed, "ACCESS EXCLUSIVE")),
    "the packed table is renamed": Fault(renamed_table),
    "the source is renamed until the call has ended": Fault(source_renamed),
    "a table of states is locked": Fault(partial(locked, a_state, "ACCESS EXCLUSIVE")),
    "a backup is made": Fault(backup),
    "the output's name is taken": Fault(name_taken),
    "the role is renamed": Fault(renamed_role),
    "the role loses its privilege": Fault(no_privilege),
    "the role may not log in": Fault(
        partial(shut_out, f"ALTER ROLE {ROLE} NOLOGIN", f"ALTER ROLE {ROLE} LOGIN")
    ),
    "the database takes no connections": Fault(
        partial(
            shut_out,
            "ALTER DATABASE cerebro ALLOW_CONNECTIONS false",
            "ALTER DATABASE cerebro ALLOW_CONNECTIONS true",
        )
    ),
    "all connections are taken": Fault(crowded),
    "the server is restarted": Fault(partial(restarted, signal.SIGINT)),
    "the server is restarted at once": Fault(partial(restarted, signal.SIGQUIT)),
    "the postmaster is killed": Fault(partial(restarted, signal.SIGKILL)),
}


def own_trainer_killed(scene: Scene) -> bool:
    """The trainer of the caller's own session, which predicts, is killed."""
    assert scene.caller is not None
    pid = scene.one(trainers({scene.caller.pid()}))
    if pid:
        ended(pid)
    return bool(pid)


OF_PREDICTIONS = {
    "its trainer is killed": Fault(own_trainer_killed),
    "its nursery is stopped for good": Fault(nursery_stopped),
}
"""What befalls a prediction with a model by name, which has to be right all the same."""
