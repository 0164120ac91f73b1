"""Looks for a marker that stands as the value of a custom setting, in all that a server keeps and
shows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event

from processes import command_line, processes
from workbench import Workbench

PAUSE = 0.01
LOGGED = {
    "log_statement": "all",
    "log_min_duration_statement": "0",
    "log_duration": "on",
    "log_error_verbosity": "verbose",
    "log_parameter_max_length_on_error": "-1",
}
UNLOGGED = "SET log_statement = 'none'; SET log_min_duration_statement = -1; SET log_duration = off"
RELATIONS = """
    SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'm') AND n.nspname = ANY (%s) AND NOT c.relispartition
        ORDER BY 1"""
SHOWN = "SELECT concat_ws(' ', a.query, a.application_name, a.usename) FROM pg_stat_activity a"


class Watch:
    """A look at what the server shows of its sessions and processes, again and again."""

    def __init__(self, superuser: Workbench, marker: str) -> None:
        self.marker = marker
        self.seen: list[str] = []
        self.looks = 0
        self._superuser = superuser
        self._ended = Event()

    def run(self) -> None:
        """Look until the end, and keep what has the marker in it."""
        with closing(self._superuser.another()) as session:
            session.rows(UNLOGGED)
            while not self._ended.wait(PAUSE):
                shown = [text for (text,) in session.rows(SHOWN)]
                titles = [" ".join(command_line(pid)) for pid in processes()]
                self.seen += [text for text in (*shown, *titles) if self.marker in text]
                self.looks += 1

    def end(self) -> None:
        """End the look."""
        self._ended.set()


@contextmanager
def everything_logged(superuser: Workbench) -> Iterator[None]:
    """Have new sessions of the database log all that they do."""
    name = superuser.value("SELECT quote_ident(current_database())")
    for setting, value in LOGGED.items():
        superuser.rows(f"ALTER DATABASE {name} SET {setting} = %s", value)
    try:
        yield
    finally:
        for setting in LOGGED:
            superuser.rows(f"ALTER DATABASE {name} RESET {setting}")


@contextmanager
def watching(superuser: Workbench, marker: str) -> Iterator[Watch]:
    """Look at sessions and processes within the block."""
    watch = Watch(superuser, marker)
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(watch.run)
        try:
            yield watch
        finally:
            watch.end()
        looking.result()


def tables_with(superuser: Workbench, marker: str, *schemas: str) -> list[str]:
    """Return the tables of these schemas that have a marker in any column, in a text or in
    bytes.
    """
    found = []
    with closing(superuser.another()) as session:
        session.rows(UNLOGGED)
        for (table,) in session.rows(RELATIONS, list(schemas)):
            # A table of a run may go meanwhile.
            if not session.exists(table):
                continue
            # In halves, for others look at the statements of this session.
            statement = (
                f"SELECT EXISTS (SELECT FROM {table} t WHERE strpos(t::text, %s || %s) + "
                "strpos(t::text, %s) > 0)"
            )
            half = len(marker) // 2
            if session.value(statement, marker[:half], marker[half:], marker.encode().hex()):
                found.append(table)
    return found


def log_file() -> Path:
    """Return the log of the tests' server."""
    return Path(os.environ["CEREBRO_DB_TEST_FOLDER"]) / "server" / "postgresql.log"


def lines_with(marker: str, begin: int) -> list[str]:
    """Return the lines of the server's log with a marker in them, from this byte on."""
    lines = log_file().read_bytes()[begin:].decode(errors="replace").splitlines()
    return [line for line in lines if marker in line]
