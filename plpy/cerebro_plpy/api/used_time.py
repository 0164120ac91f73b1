"""The function of sql/84-used-time.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call_with_declared_path, report_errors
from cerebro_plpy.operations.admin import cpu_usage


@report_errors
def count_time(
    plpy: Any, gd: Globals, run_id: int | None, ticket: str | None, seconds: float | None
) -> bool:
    """Add CPU seconds to the run that the ticket belongs to."""
    return call_with_declared_path(
        plpy, gd, lambda db: cpu_usage.count_time(db, run_id, ticket, seconds)
    )
