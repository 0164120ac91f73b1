"""The list of runs, which a shell shows in the width of a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from cerebro_db.display.boards import format_duration
from cerebro_db.records import Run
from cerebro_db.result_set import MAX_ROWS, Records, escape_controls

OPTIONAL = ("epochs", "owner", "duration")
"""Columns that narrow tables lack, the first to be left out first."""


class RunList(Records[Run]):
    """Runs, the newest first; errors stand below the table."""

    def __init__(self, runs: Records[Run]) -> None:
        super().__init__(runs, runs.columns, optional=OPTIONAL)

    def format_cells(self, count: int) -> tuple[Sequence[str], list[list[str]]]:
        """Return the headings, and the cells of the first `count` runs."""
        headings = ("run_id", "name", "owner", "status", "started_at", "duration", "epochs")
        return headings, [_make_row(run) for run in self[:count]]

    def format_footer(self) -> list[str]:
        """Return a line for each error, and the number of runs that are not shown."""
        return [*_list_errors(self[:MAX_ROWS]), *super().format_footer()]


def _list_errors(runs: Iterable[Run]) -> list[str]:
    return [
        f"run {run.run_id} {run.status}: {escape_controls(' '.join(run.error.split()))}"
        for run in runs
        if run.error
    ]


def _make_row(run: Run) -> list[str]:
    duration = None
    if run.ended_at is not None:
        duration = run.ended_at - run.started_at
    return [
        str(run.run_id),
        run.name or "",
        run.owner,
        run.status,
        _format_minute(run.started_at),
        format_duration(duration).replace("?", ""),
        str(run.epochs),
    ]


def _format_minute(moment: datetime) -> str:
    """Return a moment to the minute, without its zone."""
    return moment.strftime("%Y-%m-%d %H:%M")
