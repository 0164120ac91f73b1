"""`cerebro-db check` on a server that is whole, and on servers of which one part is missing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from commands import called
from psycopg2.extensions import connection as Connection
from servers import Database
from sqlalchemy.engine import make_url


def check(url: str) -> tuple[int, dict[str, str]]:
    """The exit status, and the state of each step that was taken."""
    done = called("check", "--url", url)
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stdout.splitlines() if line[0] != " "]
    states = {line[5:].partition(":")[0].strip(): line[:5].strip() for line in lines}
    return done.returncode, states


def execute(connection: Connection, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def chosen(superuser: Connection, setting: str, value: str) -> None:
    insert = f"INSERT INTO cerebro.setting VALUES ('{setting}', '{value}')"
    execute(superuser, f"{insert} ON CONFLICT (name) DO UPDATE SET value = excluded.value")


def test_a_whole_server(database: Database) -> None:
    status, states = check(database.url)
    assert status == 0
    if "cancels" in states:  # of Greenplum alone, by its release
        assert states.pop("cancels") in ("OK", "WARN")
    if "boosted trees" in states:  # not on Greenplum, where there are none
        assert states.pop("boosted trees") == "OK"
    assert states == dict.fromkeys(
        ("server", "extension", "PL/Python", "trainer", "worker sessions"), "OK"
    )


def test_without_a_url_libpq_s_variables_say_which(database: Database) -> None:
    """As in the image, where they lead to its server, and no embedded one runs."""
    url = make_url(database.url)
    named = {
        "PGHOST": str(url.query.get("host", url.host)),
        "PGPORT": str(url.port),
    }
    named |= {"PGDATABASE": str(url.database), "PGUSER": str(url.username)}
    command = [sys.executable, "-I", "-m", "cerebro_db", "check"]
    done = subprocess.run(
        command, cwd="/", capture_output=True, text=True, env={**os.environ, **named}
    )
    assert f"database {url.database}, as {url.username}" in done.stdout


def test_a_superuser_is_told_more(database: Database) -> None:
    status, states = check(database.superuser_url)
    assert status == 0
    assert states["out of memory"] in ("OK", "WARN")
    assert states["compiled code"] == "OK"


def test_compiled_code_that_has_no_place(database: Database, superuser: Connection) -> None:
    chosen(superuser, "compilation_cache", "")
    assert check(database.superuser_url)[1]["compiled code"] == "OK"
    chosen(superuser, "compilation_cache", "/tmp")
    assert check(database.superuser_url)[1]["compiled code"] == "FAIL"


def test_no_server() -> None:
    assert check("postgresql:///x?host=/nowhere") == (1, {"server": "FAIL"})


def test_no_extension(database: Database, superuser: Connection) -> None:
    execute(superuser, "DROP EXTENSION cerebro_db CASCADE")
    assert check(database.url) == (1, {"server": "OK", "extension": "FAIL"})


@pytest.mark.long_for(value="/usr/bin/false")
@pytest.mark.parametrize(
    ("setting", "value", "step"),
    [
        ("trainer_python", "/nowhere/python", "trainer"),
        ("trainer_python", "/usr/bin/false", "trainer"),
        ("worker_conninfo", "host=/nowhere", "worker sessions"),
    ],
)
def test_a_wrong_setting(
    database: Database, superuser: Connection, setting: str, value: str, step: str
) -> None:
    chosen(superuser, setting, value)
    status, states = check(database.url)
    assert status == 1
    assert [name for name, state in states.items() if state == "FAIL"] == [step]


def test_how_to_let_workers_in(database: Database, superuser: Connection, platform: str) -> None:
    """The lines to add name the role and the database."""
    chosen(superuser, "worker_conninfo", "host=/nowhere")
    told = called("check", "--url", database.url).stdout
    command = f"`cerebro-db setup --database {database.name} --role cerebro`"
    assert (command in told) is (platform != "greenplum")
    assert f'local  "{database.name}"  "cerebro"  peer  map=cerebro' in told
    assert f'cerebro  {"gpadmin " if platform == "greenplum" else "postgres"}   "cerebro"' in told
