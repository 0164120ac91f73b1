"""Brings the database of the embedded server to what the client expects: role, extension, settings.

Every step can be repeated, so that a start which was interrupted is completed by the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa

from cerebro_db.driver import parse_url, translate_errors
from cerebro_db.server.deployment import Build

DATABASE = "cerebro"
ROLE = "cerebro"
SCHEMA = "madlib"

# Which Python the server embeds, and whether that one has psycopg2: only the server itself knows.
PROBE = """
DO LANGUAGE plpython3u $$
    import sys
    try:
        import psycopg2
    except ImportError:
        psycopg2 = None
    found = "%d.%d %s" % (*sys.version_info[:2], "yes" if psycopg2 else "no")
    plpy.execute("SELECT set_config('cerebro_db.python', %s, false)" % plpy.quote_literal(found))
$$
"""


def url(socket: Path, port: int, role: str = ROLE, database: str = DATABASE) -> str:
    """The address of a database behind a socket, in the form that libpq, psycopg2 and SQLAlchemy
    read.
    """
    return f"postgresql://{role}@/{database}?host={quote(str(socket), safe='')}&port={port}"


def conninfo(socket: Path, port: int) -> str:
    """The same server in libpq's other form, without role and database: a worker session adds its
    own.
    """
    quoted = str(socket).replace("\\", "\\\\").replace("'", "\\'")
    return f"host='{quoted}' port={port}"


@contextmanager
def superuser(socket: Path, port: int, database: str = DATABASE) -> Iterator[sa.Connection]:
    """A session of the superuser in which every statement commits."""
    address = parse_url(url(socket, port, "postgres", database))
    engine = sa.create_engine(address, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    engine = engine.execution_options(
        no_parameters=True
    )  # a % in a statement without parameters is a %
    with translate_errors(), engine.connect() as connection:
        connection.exec_driver_sql("SET lock_timeout = '10s'")
        yield connection


def make_database(connection: sa.Connection) -> None:
    """Makes the role and the database where they are missing; `connection` is to another
    database.
    """
    if not _exists(connection, "SELECT FROM pg_roles WHERE rolname = %s", ROLE):
        connection.exec_driver_sql(f"CREATE ROLE {ROLE} LOGIN")
    connection.exec_driver_sql(f"GRANT pg_monitor TO {ROLE}")
    if not _exists(connection, "SELECT FROM pg_database WHERE datname = %s", DATABASE):
        connection.exec_driver_sql(f"CREATE DATABASE {DATABASE}")


def extension_folder(connection: sa.Connection) -> Path:
    """Where the server looks for extensions."""
    query = "SELECT setting FROM pg_config WHERE name = 'SHAREDIR'"
    return Path(connection.exec_driver_sql(query).scalar_one()) / "extension"


def open_database(connection: sa.Connection, database: str) -> None:
    """Lets the role work in a database that has the extension, or will have it.

    The path has no "$user": that would be the schema that holds the runs, where nobody makes
    tables.
    """
    for statement in (
        f'GRANT CREATE ON DATABASE "{database}" TO {ROLE}',
        f'ALTER DATABASE "{database}" SET search_path = public, {SCHEMA}',
        f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
        f"GRANT ALL ON SCHEMA public TO {ROLE}",
    ):
        connection.exec_driver_sql(statement)


def embedded_python(connection: sa.Connection) -> tuple[str, bool]:
    """The minor version of the server's Python, and whether it can import psycopg2."""
    connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS plpython3u")
    connection.exec_driver_sql(PROBE)
    told = connection.exec_driver_sql("SHOW cerebro_db.python").scalar_one()
    python, has_psycopg2 = told.split()
    return python, has_psycopg2 == "yes"


def install(
    connection: sa.Connection, build: Build, remembered: Path, say: Callable[[str], None]
) -> None:
    """Brings the extension to this build: creates it, updates it, or makes an unreleased version
    anew.

    The digest of the build that is in the database is kept in the file `remembered`.
    """
    installed = connection.exec_driver_sql(
        "SELECT extversion FROM pg_extension WHERE extname = 'cerebro_db'"
    ).scalar()
    same_build = remembered.exists() and remembered.read_text() == build.digest
    if installed == build.version and not same_build:
        say(
            f"another build of version {build.version}: making the extension anew, its runs are "
            "dropped"
        )
        connection.exec_driver_sql("DROP EXTENSION cerebro_db CASCADE")
        installed = None
    if installed is None:
        connection.exec_driver_sql(f"CREATE EXTENSION cerebro_db SCHEMA {SCHEMA} CASCADE")
    elif installed != build.version:
        say(f"updating the extension from version {installed} to {build.version}")
        connection.exec_driver_sql("ALTER EXTENSION cerebro_db UPDATE")
    remembered.write_text(build.digest)
    connection.exec_driver_sql(f"SELECT cerebro.grant_usage('{ROLE}')")


def write_settings(connection: sa.Connection, settings: Mapping[str, str]) -> None:
    """Writes rows of cerebro.setting."""
    for name, value in settings.items():
        connection.exec_driver_sql(
            "INSERT INTO cerebro.setting (name, value) VALUES (%s, %s) ON CONFLICT (name) DO "
            "UPDATE SET value = excluded.value WHERE setting.value <> excluded.value",
            (name, value),
        )


def _exists(connection: sa.Connection, query: str, name: str) -> bool:
    return connection.exec_driver_sql(query, (name,)).first() is not None
