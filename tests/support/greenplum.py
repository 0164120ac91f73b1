"""A Greenplum server that somebody has started, with the extension installed on it: databases of
the tests' own.

It must run on this machine, because its trainers run with this interpreter.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg2
from servers import Database
from sqlalchemy.engine import make_url
from workbench import Workbench, drop_database, opened

from cerebro_db.server import provision

FOLDER = "tests/integration/greenplum"
URL = "CEREBRO_TEST_GREENPLUM_URL"
MISSING = (
    f"no Greenplum is given: {URL} is not set to a superuser's URL, such as "
    "postgresql://gpadmin@/postgres?host=/tmp"
)
SUPERUSER = "postgres"


def given() -> bool:
    """Whether there is a server to test on."""
    return bool(os.environ.get(URL))


@contextmanager
def database(name: str) -> Iterator[Database]:
    """A new database, with the roles that the tests expect."""
    with opened(os.environ[URL]) as administrator:
        for role, options in (
            (provision.ROLE, "LOGIN IN ROLE pg_monitor"),
            (SUPERUSER, "LOGIN SUPERUSER"),
        ):
            with suppress(psycopg2.errors.DuplicateObject, psycopg2.errors.UniqueViolation):
                administrator.rows(f"CREATE ROLE {role} {options}")
        administrator.rows(f"DROP DATABASE IF EXISTS {name}")  # of tests that were ended
        administrator.rows(f"CREATE DATABASE {name}")
    try:
        with opened(address(name, SUPERUSER)) as superuser:
            _provide(superuser, name)
        yield Database(
            name=name, url=address(name, provision.ROLE), superuser_url=address(name, SUPERUSER)
        )
    finally:
        with opened(
            os.environ[URL]
        ) as administrator:  # the first session may have lost a segment meanwhile
            drop_database(administrator, name)


def _provide(superuser: Workbench, name: str) -> None:
    for statement in (
        f"CREATE SCHEMA {provision.SCHEMA}",
        f"CREATE EXTENSION cerebro_db SCHEMA {provision.SCHEMA} CASCADE",
        f"GRANT USAGE ON SCHEMA {provision.SCHEMA} TO {provision.ROLE}",
        f"GRANT CREATE ON DATABASE {name} TO {provision.ROLE}",
        f"GRANT ALL ON SCHEMA public TO {provision.ROLE}",
        f"ALTER DATABASE {name} SET search_path = public, {provision.SCHEMA}",
        f"SELECT cerebro.grant_usage('{provision.ROLE}')",
    ):
        superuser.rows(statement)
    superuser.rows("SELECT cerebro.set('trainer_python', %s)", sys.executable)


def address(name: str, role: str) -> str:
    """The URL of a database of the server for a role."""
    return (
        make_url(os.environ[URL])
        .set(database=name, username=role)
        .render_as_string(hide_password=False)
    )


def backends(bench: Workbench) -> set[int]:
    """Processes that serve a session, on the coordinator and on segments of the same machine."""
    return {pid for (pid,) in bench.rows("SELECT pid FROM gp_backend_info()")}
