"""What administrators and `cerebro-db check` ask: who may use the extension, and whether its parts
fit together.
"""

from __future__ import annotations

import json
import platform

from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions import worker_sessions
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.database.sessions.worker_sessions import WorkerSession, read_identity
from cerebro_plpy.trainer_client import settings


def grant_usage(db: Database, role: str, keep_trainers: bool | None) -> None:
    """Let a role use the extension. `role` comes quoted, as PostgreSQL writes a regrole.

    Whether trainers are kept from one of its sessions to another stays as it is where nothing is
    said.
    """
    schema = db.value(sql("admin.schema"))
    for row in db.rows(sql("admin.functions")):
        db.rows(sql("admin.grant_function", function=row["function"], role=role))
    db.rows(sql("admin.grant_schema", schema=schema, role=role))
    db.rows(sql("admin.grant_tables", role=role, **db.platform.clauses))
    if keep_trainers is not None:
        db.rows(sql("admin.tenants"), keep_trainers, role)


def worker_report(db: Database) -> str:
    """Open a worker session as a run of the current user would, and say as whom it was opened, as
    JSON.
    """
    worker = WorkerSession(
        read_identity(db, settings.read(db).worker_conninfo),
        "cerebro_db check",
        db.check_interrupts,
    )
    try:
        user, session_user = worker.run(sql("session.users"))[0]
        return json.dumps(
            {"user": user, "session_user": session_user, "pid": worker.pid, "same_server": True}
        )
    finally:
        worker.close()


def versions(db: Database, package: str) -> str:
    """Versions of what runs inside the backend, as JSON; `package` is that of this package."""
    return json.dumps(
        {
            "extension": db.value(sql("read.version")),
            "package": package,
            "python": platform.python_version(),
            "psycopg2": worker_sessions.driver_version(),
        }
    )
