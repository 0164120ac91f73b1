"""Shows a run while it goes on, from a session of its own: it only reads, and ends without a
trace.
"""

from __future__ import annotations

import time
from itertools import groupby

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table

from cerebro_db.display.boards import (
    landmark,
    leaderboard_table,
    plain,
    progress_bar,
    progress_line,
)
from cerebro_db.records import Progress, Span
from cerebro_db.run_reader import RunReader

POLL_SECONDS = 0.5
GOES_ON = ("running", "queued", "paused")
"""The statuses of a run that somebody works for, or that waits for somebody to let it go on."""


def follow(reader: RunReader, run_id: int, console: Console) -> str:
    """Shows a run until it ends and returns its status: live on a terminal, line by line
    elsewhere.
    """
    status = (_live if console.is_terminal else _lines)(reader, run_id, console)
    console.print(plain(progress_line(reader.progress(run_id))), soft_wrap=True)
    return status


def _live(reader: RunReader, run_id: int, console: Console) -> str:
    progress = reader.progress(run_id)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while progress.status in GOES_ON:
            live.update(_frame(reader, progress, console), refresh=True)
            time.sleep(POLL_SECONDS)
            progress = reader.progress(run_id)
    return progress.status


def _lines(reader: RunReader, run_id: int, console: Console) -> str:
    shown: tuple[object, ...] = ()
    while (progress := reader.progress(run_id)).status in GOES_ON:
        if (now := landmark(progress)) != shown:
            console.print(plain(progress_line(progress)), soft_wrap=True)
            shown = now
        time.sleep(POLL_SECONDS)
    return progress.status


def _frame(reader: RunReader, progress: Progress, console: Console) -> RenderableType:
    run_id = progress.run_id
    running = [span for span in reader.timeline(run_id) if span.status == "running"]
    its = board(reader, run_id, console)
    return Group(plain(progress_line(progress)), progress_bar(progress), occupation(running), its)


def board(reader: RunReader, run_id: int, console: Console) -> Table:
    """The leaderboard of the run as it is now."""
    return leaderboard_table(
        reader.leaderboard(run_id), reader.learning_curve(run_id), console.width
    )


def occupation(running: list[Span]) -> Table:
    """What each segment does now, one line per segment that does anything."""
    table = Table.grid(padding=(0, 2))
    spans = sorted(running, key=lambda span: (span.segment_id, span.mst_key))
    for segment, group in groupby(spans, key=lambda span: span.segment_id):
        doing = ", ".join(
            f"{verb(span.kind)} config {span.mst_key}, epoch {span.epoch}" for span in group
        )
        table.add_row(f"segment {segment}", doing)
    return table


def verb(kind: str) -> str:
    """What a segment does to a config, as a word."""
    return "trains" if kind == "train" else "evaluates"
