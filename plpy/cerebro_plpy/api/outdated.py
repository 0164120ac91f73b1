"""What functions of an older version's script find here: each call of theirs is refused with what
there is to do.

A database keeps the functions of its version until ALTER EXTENSION, while a new package is
installed for all databases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cerebro_plpy.api.entry import Globals, call, package_version
from cerebro_plpy.database.sessions.spi import Database
from cerebro_plpy.errors import ObjectNotReady


def refuse(plpy: Any, gd: Globals, *arguments: Any) -> None:
    """Refuse a call, whatever function it is of: the versions differ."""

    def missing(db: Database) -> None:
        raise ObjectNotReady(
            f"the Python package {package_version()} of cerebro_db has no such function"
        )

    call(plpy, gd, missing)


def __getattr__(name: str) -> Callable[..., None]:
    """Any function."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return refuse
