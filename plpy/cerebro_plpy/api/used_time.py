"""The functions of sql/84-used-time.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call_declared
from cerebro_plpy.calls import used_time


def count_time(plpy: Any, gd: Globals, run_id: int | None, seconds: float | None) -> bool:
    """Count processor seconds of a run of the caller's."""
    return call_declared(plpy, gd, lambda db: used_time.count_time(db, gd, run_id, seconds))


def add_time(plpy: Any, gd: Globals) -> bool:
    """Add what the caller of this process has asked for, with the rights of the extension's owner."""
    return call_declared(plpy, gd, lambda db: used_time.add_time(db, gd))
