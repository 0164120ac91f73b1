"""One function per SQL function, a module per file of sql/: the way in, and nothing below knows of
it.

A session may make one call in its life, and waits for what it imports. So where the functions of a
module do different things, each imports what its own call is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from cerebro_plpy.api import outdated


def __getattr__(name: str) -> Callable[..., None]:
    """What functions up to version 0.2.0 call; a module must look missing here until it is
    imported.
    """
    if name.startswith("_") or find_spec(f"{__name__}.{name}"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return outdated.refuse
