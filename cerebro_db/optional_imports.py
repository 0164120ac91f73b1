"""Libraries of the package's extras: imported when they are needed, and named if they are
missing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cerebro_db.errors import MissingLibrary


def import_library(name: str, extra: str) -> Any:
    """The module of that name; MissingLibrary says which extra installs what it lacks.

    >>> import_library("json", "export").loads("[1]")
    [1]
    """
    try:
        return import_module(name)
    except ImportError as error:
        missing = str(error.name or name).partition(".")[0]
        raise MissingLibrary(
            f"a library that this needs is not installed: {missing}",
            hint=f"In a clone of cerebro_db: pip install '.[{extra}]'",
            name=missing,
        ) from error
