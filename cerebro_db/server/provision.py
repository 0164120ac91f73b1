"""Provisioning of the embedded server's database: role, extension and settings.

Every step can be repeated, so that the next start completes an interrupted one.
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

# Only the server knows the version of its Python, and whether that Python has psycopg2.
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


def make_url(socket: Path, port: int, role: str = ROLE, database: str = DATABASE) -> str:
    """Return the URL of a database behind a socket, for libpq, psycopg2 and SQLAlchemy.

    It has no `&`, at which a shell would end the command.
    """
    return f"postgresql://{role}@:{port}/{database}?host={quote(str(socket), safe='')}"


def make_conninfo(socket: Path, port: int) -> str:
    """Return a connection string without role and database, which a worker session adds."""
    quoted = str(socket).replace("\\", "\\\\").replace("'", "\\'")
    return f"host='{quoted}' port={port}"


@contextmanager
def connect_superuser(socket: Path, port: int, database: str = DATABASE) -> Iterator[sa.Connection]:
    """Open a session of the superuser in which every statement commits."""
    url = parse_url(make_url(socket, port, "postgres", database))
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    # In a statement without parameters, % is not a placeholder.
    engine = engine.execution_options(no_parameters=True)
    with translate_errors(), engine.connect() as connection:
        connection.exec_driver_sql("SET lock_timeout = '10s'")
        yield connection


def create_database(connection: sa.Connection) -> None:
    """Create the role and the database if they are missing.

    Args:
        connection: session in another database.
    """
    if not _exists(connection, "SELECT FROM pg_roles WHERE rolname = %s", ROLE):
        connection.exec_driver_sql(f"CREATE ROLE {ROLE} LOGIN")
    connection.exec_driver_sql(f"GRANT pg_monitor TO {ROLE}")
    if not _exists(connection, "SELECT FROM pg_database WHERE datname = %s", DATABASE):
        connection.exec_driver_sql(f"CREATE DATABASE {DATABASE}")


def find_extension_folder(connection: sa.Connection) -> Path:
    """Return the folder of the server's extensions."""
    query = "SELECT setting FROM pg_config WHERE name = 'SHAREDIR'"
    return Path(connection.exec_driver_sql(query).scalar_one()) / "extension"


def grant_database(connection: sa.Connection, database: str) -> None:
    """Grant the role the use of a database that has the extension, or will have it.

    The search_path does not contain "$user": the schema of that name holds the runs, and users
    must not create tables in it.
    """
    for statement in (
        f'GRANT CREATE ON DATABASE "{database}" TO {ROLE}',
        f'ALTER DATABASE "{database}" SET search_path = public, {SCHEMA}',
        f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
        f"GRANT ALL ON SCHEMA public TO {ROLE}",
    ):
        connection.exec_driver_sql(statement)


def probe_python(connection: sa.Connection) -> tuple[str, bool]:
    """Return the minor version of the server's Python, and whether it can import psycopg2."""
    connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS plpython3u")
    connection.exec_driver_sql(PROBE)
    report = connection.exec_driver_sql("SHOW cerebro_db.python").scalar_one()
    python, has_psycopg2 = report.split()
    return python, has_psycopg2 == "yes"


def install_extension(
    connection: sa.Connection, build: Build, digest_file: Path, report: Callable[[str], None]
) -> None:
    """Create the extension, update it, or replace another build of the same version.

    Args:
        digest_file: contains the digest of the build in the database.
        report: receives messages for the user.
    """
    installed = connection.exec_driver_sql(
        "SELECT extversion FROM pg_extension WHERE extname = 'cerebro_db'"
    ).scalar()
    is_same_build = digest_file.exists() and digest_file.read_text() == build.digest
    if installed == build.version and not is_same_build:
        report(
            f"another build of version {build.version}: making the extension anew, its runs are "
            "dropped"
        )
        connection.exec_driver_sql("DROP EXTENSION cerebro_db CASCADE")
        installed = None
    if installed is None:
        connection.exec_driver_sql(f"CREATE EXTENSION cerebro_db SCHEMA {SCHEMA} CASCADE")
    elif installed != build.version:
        report(f"updating the extension from version {installed} to {build.version}")
        connection.exec_driver_sql("ALTER EXTENSION cerebro_db UPDATE")
    digest_file.write_text(build.digest)
    connection.exec_driver_sql(f"SELECT cerebro.grant_usage('{ROLE}')")


def write_settings(connection: sa.Connection, settings: Mapping[str, str]) -> None:
    """Store values of settings."""
    for name, value in settings.items():
        connection.exec_driver_sql("SELECT cerebro.set(%s, %s)", (name, value))


def _exists(connection: sa.Connection, query: str, name: str) -> bool:
    return connection.exec_driver_sql(query, (name,)).first() is not None
