"""The functions of sql/70-administration.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, database, package_version
from cerebro_plpy.calls import administration
from cerebro_plpy.database.caller import raise_to_sql


def grant_usage(plpy: Any, session: Globals, role: str) -> None:
    """Let a role use the extension."""
    call(plpy, session, lambda db: administration.grant_usage(db, role))


def worker_report(plpy: Any, session: Globals) -> str:
    """As whom a worker session is opened."""
    return call(plpy, session, administration.worker_report)


def python_version(plpy: Any, session: Globals) -> str:
    """Versions of what runs inside the backend, also where these do not fit each other."""
    return raise_to_sql(plpy, lambda: administration.versions(database(plpy), package_version()))
