"""Databases that go through pg_dump: made, dumped, restored under another name, and compared."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg2
from processes import eventually
from servers import Database, Server
from workbench import Workbench, compile_text, several

from cerebro_db import installation, provision

LONG = ["batch_size=1,epochs=20"]
SEGMENTS, EPOCHS = 2, 2
VISITS = 2 * SEGMENTS * EPOCHS


def program(name: str) -> str:
    """A program that came with the tests' server, by its path."""
    return str(installation.find().bindir / name)


@contextmanager
def empty(server: Server, name: str) -> Iterator[Database]:
    """A database with nothing in it, in which the ordinary role may work; gone afterwards."""
    with provision.superuser(server.socket, server.port, "postgres") as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE template0")
        connection.exec_driver_sql(f"GRANT CREATE ON DATABASE {name} TO {provision.ROLE}")
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET search_path = public, {provision.SCHEMA}")
    try:
        yield Database(name=name, url=server.url(name), superuser_url=server.url(name, "postgres"))
    finally:
        with provision.superuser(server.socket, server.port, "postgres") as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


def plain(source: str, target: str, file: Path) -> None:
    """Dump as SQL, and restore with psql."""
    done(program("pg_dump"), "--file", str(file), source)
    run_script(file, target)


def run_script(file: Path, target: str) -> None:
    """Run a script that a dump is; the first error in it ends it."""
    done(program("psql"), "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--file", str(file), target)


def custom(source: str, target: str, file: Path) -> None:
    """Dump in pg_dump's own format, and restore with pg_restore, two jobs at a time."""
    done(program("pg_dump"), "--format", "custom", "--file", str(file), source)
    done(program("pg_restore"), "--exit-on-error", "--jobs", "2", "--dbname", target, str(file))


def done(*command: str) -> str:
    """What a program says, which must not fail."""
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, f"{command}: {ended.stderr}"
    return ended.stdout


def fill(bench: Workbench) -> tuple[int, int]:
    """Packed tables, a run that is completed with a model of each config, and one that was cancelled; their ids."""
    bench.pack("packed", SEGMENTS)
    bench.configure("two", [compile_text("Adam(learning_rate=0.01)"), *several(1)])
    completed = bench.fit("packed", "model", "two", EPOCHS, validation_table="packed", name="first")
    bench.rows("SELECT madlib_predict('model', 'points', 'id', 'x', 'predicted', mst_key => 1)")
    bench.rows("SELECT madlib_evaluate('model', 'packed', 'evaluated', mst_key => 2)")
    bench.configure("long", several(2), LONG)
    cancelled = interrupted(bench, lambda session: bench.rows("SELECT pg_cancel_backend(%s)", session.pid()))
    return completed, cancelled


def interrupted(bench: Workbench, end: Callable[[Workbench], object]) -> int:
    """A run of the configurations `long` that is ended, by whatever `end` does, once a visit is completed."""
    session, before = bench.another(), bench.newest_run()
    done = "SELECT count(*) FROM cerebro.visit WHERE run_id > %s AND status = 'completed'"
    with ThreadPoolExecutor(1) as pool:
        fitted = pool.submit(session.fit, "packed", "rest", "long", EPOCHS)
        eventually(lambda: bench.value(done, before) >= 1 or fitted.done())
        end(session)
        try:
            fitted.result()
        except psycopg2.Error:
            return bench.newest_run()
        finally:
            session.close()
    raise AssertionError("the run was not interrupted")
