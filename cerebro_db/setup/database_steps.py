"""Steps in the database: the database itself, the extension, its settings, roles with their
schemas.
"""

from __future__ import annotations

import sqlalchemy as sa

from cerebro_db.errors import DuplicateObject, FeatureNotSupported
from cerebro_db.server import deployment
from cerebro_db.setup.server_address import MAINTENANCE
from cerebro_db.setup.step import Step
from cerebro_db.setup.target import SCHEMA, Target, database_exists, format_statement

EXTENSION = "SELECT e.extversion FROM pg_catalog.pg_extension e WHERE e.extname = 'cerebro_db'"
ROLE = "SELECT r.rolcanlogin FROM pg_catalog.pg_roles r WHERE r.rolname::text = %s::text"
HAS_SCHEMA = "SELECT FROM pg_catalog.pg_namespace n WHERE n.nspname::text = %s::text"
# What was granted to a role itself: functions, tables, columns, schemas.
PRIVILEGES = """
SELECT 'function', p.oid::bigint, 0, a.privilege_type
FROM pg_catalog.pg_proc p CROSS JOIN LATERAL pg_catalog.aclexplode(p.proacl) a
WHERE a.grantee = %(role)s::text::pg_catalog.regrole
UNION
SELECT 'relation', c.oid::bigint, 0, a.privilege_type
FROM pg_catalog.pg_class c CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) a
WHERE a.grantee = %(role)s::text::pg_catalog.regrole
UNION
SELECT 'column', t.attrelid::bigint, t.attnum, a.privilege_type
FROM pg_catalog.pg_attribute t CROSS JOIN LATERAL pg_catalog.aclexplode(t.attacl) a
WHERE a.grantee = %(role)s::text::pg_catalog.regrole
UNION
SELECT 'schema', n.oid::bigint, 0, a.privilege_type
FROM pg_catalog.pg_namespace n CROSS JOIN LATERAL pg_catalog.aclexplode(n.nspacl) a
WHERE a.grantee = %(role)s::text::pg_catalog.regrole
"""
SEARCH_PATH = """
SELECT pg_catalog.substr(c.line, 13)
FROM pg_catalog.pg_db_role_setting s JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase,
     pg_catalog.unnest(s.setconfig) c (line)
WHERE s.setrole = 0 AND d.datname = pg_catalog.current_database() AND c.line LIKE 'search_path=%%'
"""
DEFAULT_PATH = '"$user", public'


def plan_database(target: Target) -> Step:
    """Plan the database, whose encoding must be UTF8."""
    with target.address.connect() as connection:
        query = (
            "SELECT pg_catalog.pg_encoding_to_char(d.encoding)::text "
            "FROM pg_catalog.pg_database d WHERE d.datname::text = %s::text"
        )
        encoding = connection.exec_driver_sql(query, (target.database,)).scalar()
        template = connection.exec_driver_sql(query, ("template1",)).scalar()
        form = "CREATE DATABASE %I"
        if template != "UTF8":
            form += " TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'"
        statement = format_statement(connection, form, target.database)
    if encoding is not None and encoding != "UTF8":
        raise FeatureNotSupported(
            f"the database {target.database} has the encoding {encoding}; expected UTF8",
            hint="Choose another database with --database; one that is missing is made with UTF8.",
        )
    if encoding:
        return Step(name="database", summary=target.database)
    return plan_statements(target, "database", target.database, [statement], MAINTENANCE)


def plan_extension(target: Target) -> Step:
    """Plan the extension: created, or updated to this version."""
    version = deployment.read_build().version
    statements = [
        f"CREATE SCHEMA IF NOT EXISTS {SCHEMA};",
        f"CREATE EXTENSION cerebro_db SCHEMA {SCHEMA} CASCADE;",
    ]
    with target.address.connect() as connection:
        if not database_exists(connection, target.database):
            return plan_statements(target, "extension", f"version {version}", statements)
    with target.address.connect(target.database) as connection:
        present_version = connection.exec_driver_sql(EXTENSION).scalar()
    if present_version == version:
        return Step(name="extension", summary=f"version {version} in {target.database}")
    if present_version is None:
        return plan_statements(target, "extension", f"version {version}", statements)
    summary = f"from version {present_version} to {version}"
    return plan_statements(target, "extension", summary, ["ALTER EXTENSION cerebro_db UPDATE;"])


def plan_settings(target: Target) -> Step:
    """Plan the setting that names the trainers' interpreter."""
    python = str(deployment.find_interpreter())
    summary = f"trainer_python is {python}"
    with target.address.connect() as connection:
        statement = format_statement(
            connection,
            "SELECT cerebro.set('trainer_python', %L);",
            python,
        )
    present_value = read_setting(target, "trainer_python")
    if present_value == python:
        return Step(name="settings", summary=summary)
    if present_value is not None:
        summary += f", no longer {present_value}"

    return plan_statements(target, "settings", summary, [statement])


def plan_role(target: Target, role: str) -> Step:
    """Plan a role with a schema for its tables, and its right to use the extension."""
    name = f"role {role}"
    with target.address.connect() as connection:
        can_log_in = connection.exec_driver_sql(ROLE, (role,)).scalar()
        create_role = format_statement(connection, "CREATE ROLE %I LOGIN;", role)
        create_schema = format_statement(connection, "CREATE SCHEMA %1$I AUTHORIZATION %1$I;", role)
        quoted_role = format_statement(connection, "%I", role)  # as a regrole reads it
        grant = format_statement(connection, "SELECT cerebro.grant_usage(%L);", quoted_role)
    if can_log_in is False:
        raise DuplicateObject(
            f"the role {role} exists, but cannot log in",
            hint="Name its members that train, each with --role; as a group it needs no more than\n"
            + grant,
        )
    summary = "may use cerebro, and has a schema for its tables"
    statements = [] if can_log_in else [create_role]
    if not _has_extension(target):
        return plan_statements(target, name, summary, [*statements, create_schema, grant])
    with target.address.connect(target.database) as connection:
        if connection.exec_driver_sql(HAS_SCHEMA, (role,)).first() is None:
            statements.append(create_schema)
        if not can_log_in or _adds_privileges(connection, grant, quoted_role):
            statements.append(grant)
    return plan_statements(target, name, summary, statements)


def plan_search_path(target: Target) -> Step:
    """Plan the search_path of the database, to which the extension's schema is added."""
    path = DEFAULT_PATH
    if _has_extension(target):
        with target.address.connect(target.database) as connection:
            path = connection.exec_driver_sql(SEARCH_PATH).scalar() or DEFAULT_PATH
    names = [name.strip() for name in path.split(",")]
    if SCHEMA in names:
        return Step(name="search_path", summary=path)
    path += f", {SCHEMA}"
    with target.address.connect() as connection:
        form = f"ALTER DATABASE %I SET search_path = {path.replace('%', '%%')};"
        statement = format_statement(connection, form, target.database)
    return plan_statements(target, "search_path", path, [statement])


def plan_statements(
    target: Target, name: str, summary: str, statements: list[str], database: str | None = None
) -> Step:
    """Return a step that runs statements in the target's database, or in another one."""

    def run() -> None:
        with target.address.connect(database or target.database) as connection:
            connection.exec_driver_sql("SET lock_timeout = '30s'")
            connection.exec_driver_sql("SET client_min_messages = warning")
            for statement in statements:
                connection.exec_driver_sql(statement)

    commands = tuple(_in(target, statement, database) for statement in statements)
    return Step(name=name, summary=summary, commands=commands, apply=run)


def _in(target: Target, statement: str, database: str | None = None) -> str:
    return f"{database or target.database}=# {statement}"


def read_setting(target: Target, name: str) -> str | None:
    """Return a setting of the database; None for its default, or without the extension."""
    if not _has_extension(target):
        return None
    with target.address.connect(target.database) as connection:
        query = "SELECT s.value FROM cerebro.setting s WHERE s.name = %s::text"
        value: str | None = connection.exec_driver_sql(query, (name,)).scalar()
        return value


def _adds_privileges(connection: sa.Connection, grant: str, role: str) -> bool:
    """Return whether a grant would add a privilege, such as on a function that an update brought.

    The server tries it in a transaction that is rolled back: only it knows what is granted.
    """
    arguments = {"role": role}
    connection.exec_driver_sql("BEGIN")
    try:
        old_privileges = set(map(tuple, connection.exec_driver_sql(PRIVILEGES, arguments)))
        connection.exec_driver_sql(grant)
        new_privileges = set(map(tuple, connection.exec_driver_sql(PRIVILEGES, arguments)))
    finally:
        connection.exec_driver_sql("ROLLBACK")
    return new_privileges != old_privileges


def _has_extension(target: Target) -> bool:
    with target.address.connect() as connection:
        if not database_exists(connection, target.database):
            return False
    with target.address.connect(target.database) as connection:
        return connection.exec_driver_sql(EXTENSION).scalar() is not None
