"""The functions of sql/70-administration.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, get_database, read_package_version, report_errors
from cerebro_plpy.operations.admin import administration


@report_errors
def grant_usage(plpy: Any, gd: Globals, role: str, keep_trainers: bool | None) -> None:
    """Let a role use the extension."""
    call(plpy, gd, lambda db: administration.grant_usage(db, role, keep_trainers))


@report_errors
def revoke_usage(plpy: Any, gd: Globals, role: str) -> None:
    """Revoke the use of the extension from a role."""
    call(plpy, gd, lambda db: administration.revoke_usage(db, role))


@report_errors
def worker_report(plpy: Any, gd: Globals) -> str:
    """Open a worker session; return a report with its user."""
    return call(plpy, gd, administration.check_worker_session)


@report_errors
def version(plpy: Any, gd: Globals) -> str:
    """Return the versions of the software in one line, even if they do not fit together."""
    return administration.describe_versions(get_database(plpy), read_package_version())


@report_errors
def python_version(plpy: Any, gd: Globals) -> str:
    """Return the versions of the software in the backend, even if they do not fit together."""
    return administration.list_versions(get_database(plpy), read_package_version())
