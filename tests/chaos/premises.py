"""The server that the loop disturbs, and what there is on it: sessions, processes, and what is left
of a round.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psycopg2
from models import NOISY
from processes import alive, descendants, eventually, parent, trainers
from servers import started
from workbench import Row, Workbench, opened

CONNECTIONS = 30
"""Few, so that the connection table is soon full."""
SEGMENTS = (2, 3)
ROLE = "cerebro"
FOLDERS = "cerebro_trainer-*"
LEFT = {
    "sessions": "SELECT pid, application_name FROM pg_stat_activity WHERE application_name LIKE "
    "'cerebro\\_db%'",
    "advisory locks": "SELECT pid, classid, objid FROM pg_locks WHERE locktype = 'advisory'",
    "open transactions": "SELECT pid, state, query FROM pg_stat_activity WHERE xact_start IS NOT "
    "NULL AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
    "temporary tables": "SELECT oid::regclass::text FROM pg_class WHERE relpersistence = 't'",
    "runs": "SELECT run_id FROM cerebro.run_log WHERE status = 'running'",
    "configurations": "SELECT run_id, mst_key, status FROM cerebro.config_log WHERE status IN "
    "('waiting', 'running')",
    "visits": "SELECT run_id, mst_key, visit_no, attempt FROM cerebro.visit WHERE status = "
    "'running'",
    "evaluations": "SELECT run_id, mst_key, epoch, attempt FROM cerebro.evaluation WHERE status = "
    "'running'",
    "states of nothing": """
        SELECT t.relname FROM pg_class t WHERE t.relkind = 'r'
            AND t.relnamespace = 'cerebro_state'::regnamespace
        AND NOT EXISTS (SELECT FROM cerebro.config_log c
                        WHERE format('cerebro_state."%s"', t.relname) = ANY (c.state_tables))
        AND NOT EXISTS (SELECT FROM cerebro.run_log r
                        WHERE t.relname ~ format('^r%s_(training|validation|m-?[0-9])', r.run_id))
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.refclassid = 'pg_class'::regclass
            AND d.refobjid = t.oid
                        AND d.deptype = 'n')""",
}
"""What must have ended, or be in the log as ended, once nobody works any more."""
KEPT = {
    "runs": "SELECT run_id FROM cerebro.run_log",
    "visits": "SELECT run_id FROM cerebro.visit",
    "tables of states": "SELECT relname FROM pg_class WHERE relkind = 'r'"
    " AND relnamespace = 'cerebro_state'::regnamespace",
}
"""What goes when somebody removes runs and models."""


def check_passing(error: psycopg2.Error) -> None:
    """Raise what does not say that a session was lost, refused or kept waiting; of a lost one there
    may be no code.
    """
    if error.pgcode is not None and not isinstance(
        error, (psycopg2.OperationalError, psycopg2.InterfaceError)
    ):
        raise error


class Observer:
    """A superuser's session that waits for no lock, and is opened again when it is lost."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session: Workbench | None = None

    def ask(self, query: str, *values: object) -> list[Row] | None:
        """The rows; None while the server does not answer, or a table is locked."""
        try:
            if self._session is None:
                self._session = Workbench(self._url)
                self._session.rows("SET lock_timeout = '200ms'")
            return self._session.rows(query, *values)
        except psycopg2.Error as error:
            self.close()
            check_passing(error)
            return None

    def close(self) -> None:
        """End the session; the next question opens another one."""
        if self._session is not None:
            self._session.close()
        self._session = None


class Premises:
    """A server with tables to train on."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self.url = started(data)
        self.superuser_url = self.url.replace(f"//{ROLE}@", "//postgres@", 1)
        self.elsewhere = self.superuser_url.replace("/cerebro?", "/postgres?", 1)
        self.postmaster = 0
        self.abandoned = False
        self.seen: dict[
            int, float
        ] = {}  # processes of the server, and what they started, and since when
        self._others = (
            _folders()
        )  # left by others, whose processes may have had the numbers that come now
        with opened(self.superuser_url) as session:
            self.postmaster = parent(session.pid())
            session.rows(f"ALTER SYSTEM SET max_connections = {CONNECTIONS}")
        self.restart(signal.SIGINT)
        with opened(self.url) as session:
            session.data()
            assert session.model(NOISY) == 2
            for segments in SEGMENTS:
                session.pack(f"packed_{segments}", segments)

    def session(self) -> Workbench:
        """A session of the ordinary role, as soon as one can be had."""
        return eventually(lambda: _opened(self.url))[0]

    def superuser(self) -> Workbench:
        """A session of the superuser, as soon as one can be had."""
        return eventually(lambda: _opened(self.superuser_url))[0]

    def restart(self, number: int) -> None:
        """End the server by a signal to its first process, and start it again."""
        os.kill(self.postmaster, number)
        eventually(lambda: not alive({self.postmaster}))
        started(self._data)
        with opened(self.superuser_url) as session:
            self.postmaster = parent(session.pid())

    def crash(self, pid: int) -> None:
        """Kill a process of the server, which then restarts by itself, and see it done."""
        witness = self.superuser()
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: _lost(witness))
        self.superuser().close()

    def abandon(self) -> None:
        """End the server, and with it whatever goes on: a round has failed."""
        self.abandoned = True
        with suppress(ProcessLookupError):
            os.kill(self.postmaster, signal.SIGQUIT)

    def watch(self) -> None:
        """Remember the processes that there are, to know later what is left of them."""
        backends = descendants(self.postmaster)
        for pid in backends | trainers(backends):
            self.seen.setdefault(pid, time.time())

    def trainers(self) -> set[int]:
        """Trainers of backends that were seen."""
        return trainers(set(self.seen))

    def folders(self) -> set[str]:
        """Private folders of trainers of backends that were seen."""
        found = {str(folder): folder.name.split("-")[1] for folder in _folders() - self._others}
        return {folder for folder, pid in found.items() if pid.isdigit() and int(pid) in self.seen}

    def left(self, queries: dict[str, str]) -> dict[str, object]:
        """What is left, by what it is; nothing should be."""
        with opened(self.superuser_url) as session:
            rows = {name: session.rows(query) for name, query in queries.items()}
        found = {"trainers": self.trainers(), "folders": self.folders(), **rows}
        return {name: what for name, what in found.items() if what}


def _folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob(FOLDERS))


def _opened(url: str) -> list[Workbench]:
    """A session; none while the server takes none."""
    try:
        return [Workbench(url)]
    except psycopg2.Error as error:
        check_passing(error)
        return []


def _lost(session: Workbench) -> bool:
    try:
        session.rows("SELECT 1")
    except psycopg2.Error as error:
        check_passing(error)
        return True
    return False
