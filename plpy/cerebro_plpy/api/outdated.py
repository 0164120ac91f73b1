"""Refusal of calls by functions of an older version of the extension.

A database keeps the functions of its version until ALTER EXTENSION, while a new package is
installed for all databases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cerebro_plpy.api.entry import Globals, call, read_package_version, report_errors
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import ObjectNotReady


@report_errors
def refuse(plpy: Any, gd: Globals, *arguments: Any) -> None:
    """Refuse a call of any function, because the versions differ."""

    def refuse_call(db: Database) -> None:
        raise ObjectNotReady(
            f"the Python package {read_package_version()} of cerebro_db has no such function"
        )

    call(plpy, gd, refuse_call)


def __getattr__(name: str) -> Callable[..., None]:
    """Return the refusing function, whatever the name."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return refuse
