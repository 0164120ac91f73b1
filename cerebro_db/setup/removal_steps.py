"""Steps that undo the setup: rights of roles, lines for their logins, at request the extension."""

from __future__ import annotations

import shlex

from cerebro_db.errors import ObjectNotReady, UndefinedObject
from cerebro_db.setup.database_steps import EXTENSION, SEARCH_PATH, plan_statements
from cerebro_db.setup.login_files import read_files
from cerebro_db.setup.marked_block import read_hba
from cerebro_db.setup.step import Step
from cerebro_db.setup.target import SCHEMA, Target, format_statement

# Roles with the right to use the schema, except its owner and PUBLIC.
GRANTEES = """
SELECT DISTINCT r.rolname::text
FROM pg_catalog.pg_namespace n
CROSS JOIN LATERAL pg_catalog.aclexplode(n.nspacl) a
JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
WHERE n.nspname = 'cerebro' AND a.grantee <> n.nspowner ORDER BY 1
"""
ROLES = "SELECT r.rolname::text FROM pg_catalog.pg_roles r"
IS_EMPTY = """
SELECT NOT EXISTS (
    SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_namespace n ON n.oid = d.refobjid
    WHERE d.refclassid = 'pg_catalog.pg_namespace'::pg_catalog.regclass
      AND n.nspname::text = %s::text AND d.deptype = 'n'
      AND NOT (d.classid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND d.objid =
          (SELECT e.oid FROM pg_catalog.pg_extension e WHERE e.extname = 'cerebro_db'))
      AND NOT EXISTS (
          SELECT FROM pg_catalog.pg_depend m
          WHERE m.classid = d.classid AND m.objid = d.objid AND m.deptype = 'e'))
"""


def list_grantees(target: Target) -> tuple[str, ...]:
    """Return the roles that may use the extension in the database."""
    with target.address.connect(target.database) as connection:
        return tuple(connection.exec_driver_sql(GRANTEES).scalars())


def check_roles(target: Target) -> None:
    """Check that each role exists, or that a line for its logins is left.

    Raises:
        UndefinedObject: a role has no trace, such as a name with a mistake.
    """
    with target.address.connect() as connection:
        roles = set(connection.exec_driver_sql(ROLES).scalars())
        roles |= {entry.role for entry in read_hba(read_files(connection).hba.text)}
    for role in target.roles:
        if role not in roles:
            grantees = ", ".join(list_grantees(target)) or "no role"
            raise UndefinedObject(
                f"there is no role {role}, and no line for its logins",
                hint=f"{grantees} may use cerebro in {target.database}.",
            )


def plan_revocation(target: Target, role: str) -> Step:
    """Plan to take the right to use the extension from a role, whose tables and models stay."""
    if role not in list_grantees(target):
        return Step(name=f"role {role}", summary="may not use cerebro")
    with target.address.connect(target.database) as connection:
        query = "SELECT pg_catalog.to_regprocedure('cerebro.revoke_usage(regrole)')"
        if connection.exec_driver_sql(query).scalar() is None:
            raise ObjectNotReady(
                f"the extension in {target.database} is older than this command",
                hint="Update it first: ./setup --database "
                f"{shlex.quote(target.database)}, or remove it with --drop-extension.",
            )
        quoted_role = format_statement(connection, "%I", role)  # as a regrole reads it
        statement = format_statement(connection, "SELECT cerebro.revoke_usage(%L);", quoted_role)
    return plan_statements(target, f"role {role}", "may no longer use cerebro", [statement])


def plan_drop(target: Target) -> Step:
    """Plan to drop the extension with all runs and models, and its schema if that is empty."""
    with target.address.connect(target.database) as connection:
        if connection.exec_driver_sql(EXTENSION).scalar() is None:
            return Step(name="extension", summary=f"not in {target.database}")
        statements = ["DROP EXTENSION cerebro_db CASCADE;"]
        if connection.exec_driver_sql(IS_EMPTY, (SCHEMA,)).scalar_one():
            statements.append(f"DROP SCHEMA IF EXISTS {SCHEMA};")
    summary = "dropped, with all runs and models of this database"
    return plan_statements(target, "extension", summary, statements)


def plan_path_removal(target: Target) -> Step:
    """Plan to take the extension's schema out of the database's search_path."""
    with target.address.connect(target.database) as connection:
        path = connection.exec_driver_sql(SEARCH_PATH).scalar() or ""
        names = [name.strip() for name in path.split(",")]
        if SCHEMA not in names:
            return Step(name="search_path", summary=f"does not contain {SCHEMA}")
        names.remove(SCHEMA)
        path = ", ".join(names) or "''"
        form = f"ALTER DATABASE %I SET search_path = {path.replace('%', '%%')};"
        statement = format_statement(connection, form, target.database)
    return plan_statements(target, "search_path", path, [statement])
