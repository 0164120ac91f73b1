"""Import of the optional libraries that the package's extras install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cerebro_db.errors import MissingLibrary

MODEL_EXTRAS = "export,tensorflow"
"""Extras that install all libraries of an exported model, so that one hint is enough."""


def import_library(name: str, extra: str) -> Any:
    """Return the module of that name.

    Args:
        extra: extras of the package that install the module, separated by commas.

    Raises:
        MissingLibrary: the module, or one that it imports, is not installed.

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
