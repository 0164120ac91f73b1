"""Entry points: one function per SQL function, one module per file of sql/.

A session may make only one call in its life, and waits for its imports. If the functions of a
module do different things, each function therefore imports its own operation.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from cerebro_plpy.api import outdated


def __getattr__(name: str) -> Callable[..., None]:
    """Return a function that refuses every call.

    Functions of databases up to version 0.2.0 call functions of this package. A module must look
    missing here until it is imported.
    """
    if name.startswith("_") or find_spec(f"{__name__}.{name}"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return outdated.refuse
