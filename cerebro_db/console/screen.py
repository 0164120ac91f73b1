"""The screen of a live run: progress, lanes of segments, leaderboard with curves, and help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from textwrap import wrap

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from cerebro_db.console.key_bindings import CLONE_PROMPT, HELP, KeyState
from cerebro_db.display.boards import (
    WIDTH,
    describe_configs,
    escape_text,
    format_number,
    format_progress,
    join_template,
    make_progress_bar,
    name_metric,
)
from cerebro_db.display.sparklines import ASCII_LEVELS, LEVELS, make_sparkline
from cerebro_db.display.timeline import Cell, choose_window, make_lanes
from cerebro_db.nouns import count_nouns
from cerebro_db.records import Point, Progress, Span, Standing
from cerebro_db.run_reader import group_by_config

CURVE_WIDTH = 16
MAX_LANES = 8
COLOURS = ("blue", "yellow", "green", "red", "cyan", "magenta")
NARROW_CURVE_WIDTH = 8
MAX_PROGRESS_LINES = 3
OTHER_LINES = 9
"""Lines of bar, headings, notes, help, and the space between them."""


@dataclass(frozen=True)
class Snapshot:
    """The state of a run at one time."""

    progress: Progress
    standings: Sequence[Standing]
    points: Sequence[Point]
    spans: Sequence[Span]
    message: str = ""  # result of the newest command

    @property
    def configs(self) -> list[int]:
        """The mst_keys of the configs from top to bottom."""
        return [standing.mst_key for standing in self.standings]


def draw_screen(snapshot: Snapshot, keys: KeyState, console: Console) -> RenderableType:
    """Return the screen, which is not higher than the terminal."""
    lanes = _draw_lanes(snapshot.spans, console.width)
    progress = escape_text(format_progress(snapshot.progress)).plain
    lines = wrap(progress, console.width, max_lines=MAX_PROGRESS_LINES, placeholder=" …")
    rows = max(console.height - OTHER_LINES - len(lines) - len(lanes), 3)
    note = keys.note or snapshot.message or _describe_selected(snapshot.standings, keys.selected)
    if keys.change_text is not None:
        note = CLONE_PROMPT + keys.change_text + "_"
    return Group(
        *map(Text, lines),
        make_progress_bar(snapshot.progress),
        *lanes,
        _draw_leaderboard(snapshot, keys.selected, rows, console),
        _cut_line(escape_text(note)),
        _cut_line(Text(HELP, style="dim")),
    )


def _cut_line(text: Text) -> Text:
    """Cut a text with an ellipsis instead of wrapping it."""
    text.no_wrap = True
    text.overflow = "ellipsis"
    return text


def _draw_lanes(spans: Sequence[Span], width: int) -> list[Text]:
    times = [span.ended_at or span.started_at for span in spans]
    now = max([datetime.now(UTC), *times])  # the server's clock may be ahead
    lanes = make_lanes(spans, now, choose_window(spans[-500:]), max(width - 14, 1))
    lines = [_draw_lane(segment, cells) for segment, cells in islice(lanes.items(), MAX_LANES)]
    if len(lanes) > MAX_LANES:
        lines.append(Text(f"and {count_nouns(len(lanes) - MAX_LANES, 'more segment')}"))
    return lines


def _draw_lane(segment: int, cells: Sequence[Cell | None]) -> Text:
    """Draw a cell as the last digit of its config, dim if the config is evaluated."""
    line = Text(f"segment {segment:<4} ")
    for cell in cells:
        if cell is None:
            line.append(".", "dim")
            continue
        style = "dim" if cell.kind == "evaluate" else "reverse"
        line.append(str(cell.mst_key % 10), f"{style} {COLOURS[cell.mst_key % len(COLOURS)]}")
    return _cut_line(line)


def _draw_leaderboard(
    snapshot: Snapshot, selected: int | None, rows: int, console: Console
) -> Table:
    standings = snapshot.standings
    points = group_by_config(snapshot.points)
    texts = describe_configs(standings)
    levels = ASCII_LEVELS if console.options.ascii_only else LEVELS
    metric = name_metric(standings)
    curve_width = CURVE_WIDTH
    is_wide = console.width >= WIDTH
    if not is_wide:
        metric = metric.replace(" ", "\n", 1)
        curve_width = NARROW_CURVE_WIDTH
    heading_lines = [escape_text(line) for line in metric.split("\n")]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    for heading in ("", "rank", "mst_key", "status"):
        table.add_column(heading, no_wrap=True)
    table.add_column("params", no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(Text("\n").join(heading_lines), justify="right", no_wrap=True)
    table.add_column("curve", no_wrap=True, min_width=curve_width)
    if is_wide:
        table.add_column("epochs", justify="right", no_wrap=True)
    for standing in standings[choose_rows(snapshot.configs, selected, rows)]:
        marker = ""
        style = ""
        if standing.mst_key == selected:
            marker = ">"
            style = "bold reverse"
        values = _select_values(standing, points[standing.mst_key])
        cells = (
            marker,
            str(standing.rank),
            str(standing.mst_key),
            escape_text(standing.status),
            escape_text(join_template(standing, texts[standing.mst_key])),
            format_number(standing.value),
            make_sparkline(values, curve_width, levels),
            str(standing.epochs),
        )
        table.add_row(*cells[: len(table.columns)], style=style)
    return table


def _describe_selected(standings: Sequence[Standing], selected: int | None) -> str:
    """Return all that distinguishes the selected config, which its row may lack room for."""
    texts = describe_configs(standings)
    for standing in standings:
        if standing.mst_key == selected:
            return f"config {selected}: {join_template(standing, texts[selected])}"
    return ""


def choose_rows(configs: Sequence[int], selected: int | None, rows: int) -> slice:
    """Return the slice of the configs that is visible; it contains the selected config.

    >>> choose_rows([1, 2, 3, 4], 4, 3), choose_rows([1, 2, 3, 4], None, 3)
    (slice(1, 4, None), slice(0, 3, None))
    """
    position = configs.index(selected) if selected in configs else 0
    start = max(min(position - rows // 2, len(configs) - rows), 0)
    return slice(start, start + rows)


def _select_values(standing: Standing, points: Sequence[Point]) -> list[float | None]:
    """Return the values of the metric that ranks the config, by epoch."""
    return [
        point.value
        for point in points
        if point.dataset == standing.dataset and point.name == standing.metric
    ]
