"""The SQL function that explains the others; see `api`."""

from __future__ import annotations

from typing import Any

from cerebro_plpy import manual
from cerebro_plpy.api import Globals, call
from cerebro_plpy.installed import reference


def explain(plpy: Any, session: Globals, function: str | None, message: str | None) -> str:
    """What the reference says of a function."""
    return call(plpy, session, lambda db: manual.answer(reference(), function, message))
