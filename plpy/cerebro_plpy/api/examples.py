"""The function of sql/34-examples.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, report_errors
from cerebro_plpy.operations.admin import examples


@report_errors
def load_example(plpy: Any, gd: Globals, name: str | None, output: str | None) -> str:
    """Create a table of example data; return its quoted name."""
    return call(plpy, gd, lambda db: examples.load(db, name, output))
