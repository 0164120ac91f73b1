"""The function of sql/32-series.sql."""

from __future__ import annotations

from typing import Any

from cerebro_plpy.api.entry import Globals, call, check_counts, report_errors
from cerebro_plpy.operations.fit.window_series import WindowArguments, make_windows


@report_errors
@check_counts
def window_series(
    plpy: Any,
    gd: Globals,
    source: str | None,
    output: str | None,
    id: str | None,
    ts: str | None,
    columns: str | None,
    width: int | None,
    stride: int | None,
    label: str | None,
    label_rule: str | None,
    max_gap: str | None,
) -> None:
    """Create a table of the windows of series."""
    arguments = WindowArguments(
        source, output, id, ts, columns, width, stride, label, label_rule, max_gap
    )
    call(plpy, gd, lambda db: make_windows(db, arguments))
