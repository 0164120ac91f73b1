"""The functions of sql/70-administration.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, database, package_version
from cerebro_plpy.database.sessions.spi import raise_to_sql
from cerebro_plpy.operations.admin import administration


def grant_usage(plpy: Any, gd: Globals, role: str, keep_trainers: bool | None) -> None:
    """Let a role use the extension."""
    call(plpy, gd, lambda db: administration.grant_usage(db, role, keep_trainers))


def worker_report(plpy: Any, gd: Globals) -> str:
    """As whom a worker session is opened."""
    return call(plpy, gd, administration.check_worker_session)


def python_version(plpy: Any, gd: Globals) -> str:
    """Versions of what runs inside the backend, also where these do not fit each other."""
    return raise_to_sql(
        plpy, lambda: administration.list_versions(database(plpy), package_version())
    )
