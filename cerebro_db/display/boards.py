"""Format a run for a terminal: its leaderboard, parameters of configs, and progress."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeGuard

from rich import box
from rich.console import Console
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from cerebro_db.records import Point, Progress, Standing
from cerebro_db.result_set import escape_controls

WIDTH = 120
TEMPLATE_WIDTH = 16
"""Width from which on the name of a template is folded, such as that of a network of a table."""


def escape_text(text: str) -> Text:
    """Return a user's text without markup, and with control characters as escapes.

    >>> escape_text("a[bold]\\x1b[2Jb").plain
    'a[bold]\\\\x1b[2Jb'
    """
    return Text(escape_controls(text))


def describe_differences(params: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return for each config the parameters that not all configs share.

    A single config is described by all of its parameters.

    >>> describe_differences([{"model_id": 1, "fit_params": "batch_size=8,epochs=1"},
    ...                       {"model_id": 1, "fit_params": "batch_size=16,epochs=1"}])
    ['batch_size=8', 'batch_size=16']
    """
    configs = [list(_list_settings(config)) for config in params]
    shared = set.intersection(*map(set, configs)) if len(configs) > 1 else set()
    return [
        ", ".join(setting for setting in settings if setting not in shared) for settings in configs
    ]


def _list_settings(params: object) -> Iterator[str]:
    items = params.items() if isinstance(params, Mapping) else [("params", params)]
    for key, value in items:
        if key.endswith("_params") and isinstance(value, str):
            for setting in split_settings(value):
                yield setting.replace("'", "").removeprefix("optimizer=")
        elif isinstance(value, float):
            yield f"{key}={value:.6g}"
        else:
            yield f"{key}={value}"


def split_settings(text: str) -> list[str]:
    """Split a parameter string at the commas outside of brackets and quotes.

    >>> split_settings("optimizer='Adam(lr=0.01, beta_1=0.9)', metrics=['mae']")
    ["optimizer='Adam(lr=0.01, beta_1=0.9)'", "metrics=['mae']"]
    """
    settings = [""]
    depth = 0
    quote = ""
    for letter in text:
        if quote:
            quote = quote.replace(letter, "")  # the same letter ends it
        elif letter in "'\"":
            quote = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth and not quote:
            settings.append("")
        else:
            settings[-1] += letter
    return [setting.strip() for setting in settings if setting.strip()]


def is_finite(value: float | None) -> TypeGuard[float]:
    """Return whether a value of a metric is present and finite."""
    return value is not None and math.isfinite(value)


def describe_configs(standings: Sequence[Standing]) -> dict[int, str]:
    """Return the parameters that distinguish each config from the others, by mst_key."""
    texts = describe_differences([standing.params for standing in standings])
    return {standing.mst_key: text for standing, text in zip(standings, texts, strict=True)}


def join_template(standing: Standing, text: str) -> str:
    """Return the text about a config behind the name of its template, if it has one."""
    return " ".join(filter(None, (standing.template, text)))


def find_newest_losses(points: Iterable[Point], dataset: str) -> dict[int, float]:
    """Return the newest loss of each config on a data set, by mst_key."""
    losses = {}
    for point in sorted(points, key=lambda point: point.epoch):
        if (point.dataset, point.name) == (dataset, "loss") and point.value is not None:
            losses[point.mst_key] = point.value
    return losses


def make_leaderboard_table(
    standings: Sequence[Standing], points: Iterable[Point], width: int = WIDTH
) -> Table:
    """Return the configs, best first, with their newest losses and the seconds of their visits.

    A table narrower than WIDTH lacks the seconds, to leave room for the parameters.
    """
    is_wide = width >= WIDTH
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, int(is_wide)))
    for heading in ("rank", "mst_key"):
        table.add_column(heading, justify="right", no_wrap=True)
    has_templates = any(standing.template for standing in standings)
    if has_templates:
        table.add_column("template", overflow="fold", max_width=TEMPLATE_WIDTH)
    table.add_column("params", overflow="fold")
    metric = escape_controls(name_metric(standings))
    number_headings = [metric, "loss", "seconds"]
    if not is_wide:
        number_headings = [metric.replace(" ", "\n", 1), "loss"]
    for number_heading in number_headings:
        table.add_column(Text(number_heading), justify="right", no_wrap=True)
    texts = describe_configs(standings)
    losses = find_newest_losses(points, next((standing.dataset for standing in standings), ""))
    for standing in standings:
        value = format_number(standing.value)
        if standing.status == "failed":
            value = standing.status
        cells: list[str | Text] = [str(standing.rank), str(standing.mst_key)]
        if has_templates:
            cells.append(escape_text(standing.template or ""))
        cells += [
            escape_text(texts[standing.mst_key]),
            value,
            format_number(losses.get(standing.mst_key)),
            format_seconds(standing),
        ]
        table.add_row(*cells[: len(table.columns)])
    return table


def name_metric(standings: Sequence[Standing]) -> str:
    """Return the data set and the metric that rank a leaderboard."""
    if not standings:
        return "metric"
    return f"{standings[0].dataset} {standings[0].metric}"


def format_seconds(standing: Standing) -> str:
    """Return the duration of a config's visits in seconds, to a tenth."""
    if standing.training_time is None:
        return ""
    return f"{standing.training_time.total_seconds():.1f}"


def make_console() -> Console:
    """Return the console of the standard output, as wide as a table of records."""
    if sys.stdout.isatty():
        return Console()
    return Console(width=shutil.get_terminal_size((WIDTH, 0)).columns)


def format_number(value: float | None) -> str:
    """Return a number with four decimals, or in scientific notation if it is small or large.

    >>> format_number(0.98333), format_number(0.00001), format_number(12345.6), format_number(None)
    ('0.9833', '1.00e-05', '1.23e+04', '')
    """
    if value is None:
        return ""
    if value == 0 or 0.0001 <= abs(value) < 1000:
        return f"{value:.4f}"
    return f"{value:.2e}"


def format_duration(duration: timedelta | None) -> str:
    """Return hours, minutes and seconds, or '?' for an unknown duration.

    >>> format_duration(timedelta(seconds=75.8)), format_duration(None)
    ('0:01:15', '?')
    """
    if duration is None:
        return "?"
    return str(timedelta(seconds=int(duration.total_seconds())))


def format_progress(progress: Progress) -> str:
    """Return the progress of a run in one line."""
    parts = [
        f"run {progress.run_id} {progress.status}",
        f"epoch {progress.epoch or 1} of {progress.epochs or '?'}",
        f"visit {progress.visits_done} of {progress.visits_total}",
        f"elapsed {format_duration(progress.elapsed)}",
    ]
    if progress.phase:
        parts.insert(1, progress.phase)
    if progress.queue_position is not None:
        parts.insert(1, f"position {progress.queue_position}")
    if progress.status == "running":
        parts.append(f"eta {format_duration(progress.eta)}")
    if progress.configs_failed:
        parts.append(f"{progress.configs_failed} failed")
    if progress.best_mst_key is not None:
        best_value = format_number(progress.best_value)
        parts.append(f"best: mst_key={progress.best_mst_key} {best_value}")
    return ", ".join(parts)


def make_progress_key(progress: Progress) -> tuple[object, ...]:
    """Return a key that changes when a new line of progress is due.

    It consists of the phase, the epoch, the failures, the twentieth of the time, and the queue
    position.
    """
    twentieth = int(20 * (progress.share or 0.0))
    return (
        progress.phase,
        progress.epoch,
        progress.configs_failed,
        twentieth,
        progress.queue_position,
    )


def make_progress_bar(progress: Progress) -> Table:
    """Return a bar of the time, in a grid, because a bar of rich does not end its line."""
    grid = Table.grid(expand=True)
    grid.add_row(ProgressBar(total=1.0, completed=progress.share or 0.0))
    return grid
