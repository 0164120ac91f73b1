"""How a run is put in words for a terminal: its leaderboard, what tells configs apart, a line of
progress.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from rich import box
from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cerebro_db.records import Point, Progress, Standing
from cerebro_db.result_set import escape_controls

WIDTH = 120


def plain(text: str) -> Text:
    """A text of a user as data: no markup, and what moves a cursor, rings or reverses the writing
    as an escape.

    >>> plain("a[bold]\\x1b[2Jb").plain
    'a[bold]\\\\x1b[2Jb'
    """
    return Text(escape_controls(text))


def distinctions(params: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each config by those of its parameters that not all configs share; by all where it is the
    only one.

    >>> distinctions([{"model_id": 1, "fit_params": "batch_size=8,epochs=1"},
    ...               {"model_id": 1, "fit_params": "batch_size=16,epochs=1"}])
    ['batch_size=8', 'batch_size=16']
    """
    settings = [list(_settings(one)) for one in params]
    shared = set.intersection(*map(set, settings)) if len(settings) > 1 else set()
    return [", ".join(text for text in one if text not in shared) for one in settings]


def _settings(params: object) -> Iterator[str]:
    for key, value in params.items() if isinstance(params, Mapping) else [("params", params)]:
        if key.endswith("_params") and isinstance(value, str):
            for setting in split_settings(value):
                yield setting.replace("'", "").removeprefix("optimizer=")
        else:
            yield f"{key}={value}"


def split_settings(text: str) -> list[str]:
    """A parameter string cut at the commas that no bracket or quote encloses.

    >>> split_settings("optimizer='Adam(lr=0.01, beta_1=0.9)', metrics=['mae']")
    ["optimizer='Adam(lr=0.01, beta_1=0.9)'", "metrics=['mae']"]
    """
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def newest_losses(points: Iterable[Point], dataset: str) -> dict[int, float]:
    """The loss of each config on a data set after the last epoch at which it was computed."""
    losses = [p for p in points if (p.dataset, p.name) == (dataset, "loss") and p.value is not None]
    return {
        p.mst_key: p.value for p in sorted(losses, key=lambda p: p.epoch) if p.value is not None
    }


def leaderboard_table(
    standings: Sequence[Standing], points: Iterable[Point], width: int = WIDTH
) -> Table:
    """The configs, best first, each with its newest loss and the seconds that its visits took.

    Where the width is less than usual, the seconds are left out, and the parameters get their room.
    """
    narrow = width < WIDTH
    dataset, metric = (standings[0].dataset, standings[0].metric) if standings else ("", "metric")
    losses = newest_losses(points, dataset)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0) if narrow else (0, 1))
    for heading in ("rank", "mst_key"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("params", overflow="fold")
    metric_heading = Text("\n" if narrow else " ").join(
        plain(part) for part in (dataset, metric) if part
    )
    for numbers in (metric_heading, Text("loss"), *([] if narrow else [Text("seconds")])):
        table.add_column(numbers, justify="right", no_wrap=True)
    for standing, text in zip(standings, distinctions([s.params for s in standings]), strict=True):
        value = standing.status if standing.status == "failed" else number(standing.value)
        loss = number(losses.get(standing.mst_key))
        row = (
            str(standing.rank),
            str(standing.mst_key),
            plain(text),
            value,
            loss,
            seconds(standing),
        )
        table.add_row(*(row[:-1] if narrow else row))
    return table


def seconds(standing: Standing) -> str:
    """How long the visits of a config took, to a tenth."""
    return "" if standing.training_time is None else f"{standing.training_time.total_seconds():.1f}"


def standard_output() -> Console:
    """The standard output, as wide as its terminal; wide enough for a leaderboard where it is
    none.
    """
    return Console(width=None if sys.stdout.isatty() else WIDTH)


def number(value: float | None) -> str:
    """Four decimals, fewer digits where they would be lost in the size of the number; nothing for
    None.

    >>> number(0.98333), number(0.00001), number(12345.6), number(None)
    ('0.9833', '1.00e-05', '1.23e+04', '')
    """
    if value is None:
        return ""
    return f"{value:.4f}" if value == 0 or 0.0001 <= abs(value) < 1000 else f"{value:.2e}"


def clock(time: timedelta | None) -> str:
    """Hours, minutes and seconds, '?' while unknown.

    >>> clock(timedelta(seconds=75.8)), clock(None)
    ('0:01:15', '?')
    """
    return "?" if time is None else str(timedelta(seconds=int(time.total_seconds())))


def progress_line(progress: Progress) -> str:
    """Where a run is, in one line."""
    parts = [
        f"run {progress.run_id} {progress.status}",
        f"epoch {progress.epoch} of {progress.epochs}",
        f"visit {progress.visits_done} of {progress.visits_total}",
        f"elapsed {clock(progress.elapsed)}",
    ]
    if progress.queue_position is not None:
        parts.insert(1, f"position {progress.queue_position}")
    if progress.status == "running":
        parts.append(f"eta {clock(progress.eta)}")
    if progress.configs_failed:
        parts.append(f"{progress.configs_failed} failed")
    if progress.best_mst_key is not None:
        parts.append(f"best: mst_key={progress.best_mst_key} {number(progress.best_value)}")
    return ", ".join(parts)


def landmark(progress: Progress) -> tuple[object, ...]:
    """What must change for another line: the epoch, the failures, a twentieth of the visits, or the
    position.
    """
    twentieth = 20 * progress.visits_done // max(progress.visits_total, 1)
    return (progress.epoch, progress.configs_failed, twentieth, progress.queue_position)


def progress_bar(progress: Progress) -> Table:
    """The visits done, of all visits, on a line of its own: a bar of rich does not end the line
    that it is on.
    """
    line = Table.grid(expand=True)
    line.add_row(ProgressBar(total=max(progress.visits_total, 1), completed=progress.visits_done))
    return line
