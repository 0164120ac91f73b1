"""Show a run until it ends, in a session of its own that only reads."""

from __future__ import annotations

import time
from itertools import groupby

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table

from cerebro_db.display.boards import (
    escape_text,
    format_progress,
    make_leaderboard_table,
    make_progress_bar,
    make_progress_key,
)
from cerebro_db.records import Progress, Span
from cerebro_db.run_reader import RunReader

POLL_SECONDS = 0.5
LIVE_STATUSES = ("running", "queued", "paused")
"""The statuses of a run that has not ended."""


def follow(reader: RunReader, run_id: int, console: Console) -> str:
    """Show a run until it ends: live on a terminal, else line by line; return its status."""
    if console.is_terminal:
        status = _show_live(reader, run_id, console)
    else:
        status = _print_lines(reader, run_id, console)
    console.print(escape_text(format_progress(reader.progress(run_id))), soft_wrap=True)
    return status


def _show_live(reader: RunReader, run_id: int, console: Console) -> str:
    progress = reader.progress(run_id)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while progress.status in LIVE_STATUSES:
            live.update(_make_view(reader, progress, console), refresh=True)
            time.sleep(POLL_SECONDS)
            progress = reader.progress(run_id)
    return progress.status


def _print_lines(reader: RunReader, run_id: int, console: Console) -> str:
    last_key: tuple[object, ...] = ()
    while (progress := reader.progress(run_id)).status in LIVE_STATUSES:
        key = make_progress_key(progress)
        if key != last_key:
            console.print(escape_text(format_progress(progress)), soft_wrap=True)
            last_key = key
        time.sleep(POLL_SECONDS)
    return progress.status


def _make_view(reader: RunReader, progress: Progress, console: Console) -> RenderableType:
    run_id = progress.run_id
    running = [span for span in reader.timeline(run_id) if span.status == "running"]
    return Group(
        escape_text(format_progress(progress)),
        make_progress_bar(progress),
        make_activity_table(running),
        make_current_leaderboard(reader, run_id, console),
    )


def make_current_leaderboard(reader: RunReader, run_id: int, console: Console) -> Table:
    """Return the current leaderboard of a run, in the width of the console."""
    return make_leaderboard_table(
        reader.leaderboard(run_id), reader.learning_curve(run_id), console.width
    )


def make_activity_table(running: list[Span]) -> Table:
    """Return a line for each segment that has running spans."""
    table = Table.grid(padding=(0, 2))
    spans = sorted(running, key=lambda span: (span.segment_id, span.mst_key))
    for segment, group in groupby(spans, key=lambda span: span.segment_id):
        activities = ", ".join(
            f"{name_activity(span.kind)} config {span.mst_key}, epoch {span.epoch}"
            for span in group
        )
        table.add_row(f"segment {segment}", activities)
    return table


def name_activity(kind: str) -> str:
    """Return a verb for the kind of a span."""
    return "trains" if kind == "train" else "evaluates"
