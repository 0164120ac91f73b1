"""The SQL function that explains the others."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, read_reference, report_errors
from cerebro_plpy.operations.admin import help


@report_errors
def explain(plpy: Any, gd: Globals, name: str | None, message: str | None) -> str:
    """Return the section of the reference about a function."""
    return call(plpy, gd, lambda db: help.explain(read_reference(), name, message))
