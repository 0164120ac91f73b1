"""Libraries that exports use, each of an extra of the package: imported when they are needed, and named if missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cerebro_db.errors import MissingLibrary

EXTRA = "export"


def needed(name: str) -> Any:
    """The module of that name; MissingLibrary says what to install."""
    try:
        return import_module(name)
    except ImportError as error:
        missing = str(error.name or name).partition(".")[0]
        framework = ",tensorflow" if missing in ("keras", "tensorflow", "jax") else ""
        raise MissingLibrary(
            f"the export needs a library that is not installed: {missing}",
            hint=f"In a clone of cerebro_db: pip install '.[{EXTRA}{framework}]'",
            name=missing,
        ) from error
