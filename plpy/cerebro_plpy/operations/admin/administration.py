"""Calls of administrators and of `cerebro-db check`.

They grant the use of the extension, and report whether its parts fit together.
"""

from __future__ import annotations

import json
import platform

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions import worker_sessions
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sessions.worker_sessions import WorkerSession, read_identity
from cerebro_plpy.errors import InsufficientPrivilege, NullNotAllowed, quote_text
from cerebro_plpy.trainer_client import settings


def grant_usage(db: Database, role: str | None, keep_trainers: bool | None) -> None:
    """Let a role use the extension.

    Args:
        role: quoted, as PostgreSQL writes a regrole.
        keep_trainers: whether a trainer may be passed on from one session of the role to the next;
            None for no change.
    """
    role = _check_administrator(db, "grant_usage", role)
    schema = db.value(sql("admin.schema"))
    for row in db.rows(sql("admin.functions")):
        db.rows(sql("admin.grant_function", function=row["function"], role=role))
    db.rows(sql("admin.grant_schema", schema=schema, role=role))
    db.rows(sql("admin.grant_tables", role=role, **db.platform.clauses))
    if keep_trainers is not None:
        db.rows(sql("admin.tenants"), keep_trainers, role)


def revoke_usage(db: Database, role: str | None) -> None:
    """Revoke from a role what `grant_usage` grants, in this version or an earlier one.

    Args:
        role: quoted, as PostgreSQL writes a regrole.
    """
    role = _check_administrator(db, "revoke_usage", role)
    for row in db.rows(sql("admin.granted_functions"), role):
        db.rows(sql("admin.revoke_function", function=row["function"], role=role))
    for row in db.rows(sql("admin.granted_tables"), role):
        db.rows(sql("admin.revoke_table", table=row["name"], role=role))
    schema = db.value(sql("admin.schema"))
    db.rows(sql("admin.revoke_schemas", schema=schema, role=role))
    db.rows(sql("admin.tenants"), True, role)
    db.rows(sql("admin.no_tenants"))


def _check_administrator(db: Database, function: str, role: str | None) -> str:
    """Check that the caller may grant the use of the extension; return the role.

    Raises:
        NullNotAllowed: the role is missing.
        InsufficientPrivilege: the caller may not.
    """
    if role is None:
        raise NullNotAllowed(f"{function} error: role is NULL.", hint="Name a role.")
    if not db.value(sql("admin.administers")):
        raise InsufficientPrivilege(
            f"{function} error: only an administrator may grant or revoke the use of cerebro_db.",
            hint=f"Ask a superuser to call SELECT cerebro.{function}({quote_text(role)});",
        )
    return role


def check_worker_session(db: Database) -> str:
    """Open a worker session like a run of the current user; return its users and pid as JSON."""
    identity = read_identity(db, settings.read(db).worker_conninfo)
    worker = WorkerSession(identity, "cerebro_db check", db.check_interrupts)
    try:
        user, session_user = worker.run(sql("session.users"))[0]
        return json.dumps(
            {"user": user, "session_user": session_user, "pid": worker.pid, "same_server": True}
        )
    finally:
        worker.close()


def describe_versions(db: Database, package: str) -> str:
    """Return the versions of the software inside the backend in one line.

    Args:
        package: version of this package.
    """
    extension = db.value(sql("read.version"))
    server = str(db.value(sql("admin.server"))).partition(" on ")[0]
    return (
        f"cerebro_db {extension}, cerebro_plpy {package}, {server}, Python "
        f"{platform.python_version()}, psycopg2 {worker_sessions.driver_version()}"
    )


def list_versions(db: Database, package: str) -> str:
    """Return the versions of the software inside the backend, as JSON.

    Args:
        package: version of this package.
    """
    return json.dumps(
        {
            "extension": db.value(sql("read.version")),
            "package": package,
            "python": platform.python_version(),
            "psycopg2": worker_sessions.driver_version(),
        }
    )
