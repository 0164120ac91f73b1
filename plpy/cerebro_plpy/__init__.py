"""The part of cerebro_db that runs inside a PostgreSQL backend.

It uses the standard library only (and psycopg2 in one module), so that loading it can neither crash
a backend nor start a thread in it. Everything numerical happens in the trainer, a process of its
own.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """Return a module whose functions refuse every call.

    Functions of databases up to version 0.2.0 import such modules, for example `segment_api`.
    """
    if name.endswith("_api"):
        return import_module("cerebro_plpy.api.outdated")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
