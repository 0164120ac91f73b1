"""Databases that go through pg_dump: made, dumped, restored under another name, and compared."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg2
from processes import eventually
from servers import Address, Database, Server
from workbench import Workbench, compile_text, drop_database, opened, several

from cerebro_db.server import installation, provision

LONG = ["batch_size=1,epochs=20"]
SEGMENTS, EPOCHS = 2, 2
VISITS = 2 * SEGMENTS * EPOCHS


class Programs:
    """pg_dump and its kind, as they came with a server."""

    def __init__(self, administrator: Workbench) -> None:
        self._environment = dict(os.environ)
        if administrator.greenplum:
            places: dict[str, str] = dict(administrator.rows("SELECT name, setting FROM pg_config"))
            self._folder = Path(places["BINDIR"])
            self._environment["LD_LIBRARY_PATH"] = places["LIBDIR"]
        else:
            self._folder = installation.find().bindir

    def run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        command = [str(self._folder / name), *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=self._environment)

    def done(self, name: str, *arguments: str) -> None:
        """Run a program, which must not fail."""
        ended = self.run(name, *arguments)
        assert ended.returncode == 0, f"{name} {arguments}: {ended.stderr}"

    def run_script(self, file: Path, target: str) -> list[str]:
        """Run a script that a dump is; the errors of the server."""
        return errors(self.run("psql", "--no-psqlrc", "--quiet", "--file", str(file), target))


def errors(ended: subprocess.CompletedProcess[str]) -> list[str]:
    """The errors of the server that a program was told of; it went on after each of them."""
    assert ended.returncode == 0 or "errors ignored on restore" in ended.stderr, ended.stderr
    return sorted(
        line.partition("ERROR:  ")[2] for line in ended.stderr.splitlines() if "ERROR:  " in line
    )


def repeated(administrator: Workbench) -> list[str]:
    """The errors of a restore of this database.

    The pg_dump of Greenplum, as that of PostgreSQL 12, dumps policies of tables that an extension
    makes with them.
    """
    query = """SELECT format('policy "%s" for table "%s" already exists', p.polname, c.relname)
               FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
                   WHERE c.relnamespace = 'cerebro'::regnamespace"""
    return sorted(text for (text,) in administrator.rows(query)) if administrator.greenplum else []


@contextmanager
def empty(address: Address, name: str) -> Iterator[Database]:
    """A database with nothing in it, in which the ordinary role may work; gone afterwards."""
    made = Database(
        name=name, url=address(name, provision.ROLE), superuser_url=address(name, "postgres")
    )
    with opened(address("postgres", "postgres")) as administrator:
        administrator.rows(f"CREATE DATABASE {name} TEMPLATE template0")
        administrator.rows(f"GRANT CREATE ON DATABASE {name} TO {provision.ROLE}")
        administrator.rows(f"ALTER DATABASE {name} SET search_path = public, {provision.SCHEMA}")
        try:
            yield made
        finally:
            drop_database(administrator, name)


@contextmanager
def sessions(server: Server, database: Database) -> Iterator[tuple[Workbench, Workbench]]:
    """Open sessions of the superuser and of the ordinary role.

    The database gets the settings of its server.
    """
    with provision.connect_superuser(server.socket, server.port) as connection:
        rows = connection.exec_driver_sql("SELECT name, value FROM cerebro.setting")
        settings = [tuple(row) for row in rows]
    with provision.connect_superuser(server.socket, server.port, database.name) as connection:
        for row in settings:  # older versions have no cerebro.set
            connection.exec_driver_sql(
                "INSERT INTO cerebro.setting (name, value) VALUES (%s, %s) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                row,
            )
    with opened(database.superuser_url) as administrator, opened(database.url) as owner:
        yield administrator, owner


def plain(programs: Programs, source: str, target: str, file: Path) -> None:
    """Dump as SQL, and restore with psql."""
    programs.done("pg_dump", "--file", str(file), source)
    with opened(source) as administrator:
        assert programs.run_script(file, target) == repeated(administrator)


def custom(programs: Programs, source: str, target: str, file: Path) -> None:
    """Dump in pg_dump's own format, and restore with pg_restore, two jobs at a time.

    On Greenplum one: privileges on columns of one table, which it notes for the table, collide
    there.
    """
    programs.done("pg_dump", "--format", "custom", "--file", str(file), source)
    with opened(source) as administrator:
        jobs = "1" if administrator.greenplum else "2"
        restored = programs.run("pg_restore", "--jobs", jobs, "--dbname", target, str(file))
        assert errors(restored) == repeated(administrator), restored.stderr


def fill(bench: Workbench) -> tuple[int, int]:
    """Packed tables, a run that is completed with a model of each config, and one that was
    cancelled; their ids.
    """
    bench.pack("packed", SEGMENTS)
    bench.configure("two", [compile_text("Adam(learning_rate=0.01)"), *several(1)])
    completed = bench.fit("packed", "model", "two", EPOCHS, validation_table="packed", name="first")
    bench.rows("SELECT madlib_predict('model', 'points', 'id', 'x', 'predicted', mst_key => 1)")
    bench.rows("SELECT madlib_evaluate('model', 'packed', 'evaluated', mst_key => 2)")
    bench.configure("long", several(2), LONG)
    cancelled = interrupted(
        bench, lambda session: bench.rows("SELECT pg_cancel_backend(%s)", session.pid())
    )
    return completed, cancelled


def interrupted(bench: Workbench, end: Callable[[Workbench], object]) -> int:
    """A run of the configurations `long` that is ended, by whatever `end` does, once a visit is
    completed.
    """
    session, before = bench.another(), bench.last_run_id()
    done = "SELECT count(*) FROM cerebro.visit WHERE run_id > %s AND status = 'completed'"
    with session.fitting("packed", "rest", "long", EPOCHS) as fitted:
        eventually(lambda: bench.value(done, before) >= 1 or fitted.done())
        end(session)
        try:
            fitted.result()
        except psycopg2.Error:
            return bench.newest_run()
        finally:
            session.close()
    raise AssertionError("the run was not interrupted")
