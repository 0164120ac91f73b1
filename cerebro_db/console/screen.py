"""A run drawn to the size of a terminal: progress, lanes of segments, the leaderboard with its
curves, help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from cerebro_db.console.key_bindings import ASKED, HELP, Pad
from cerebro_db.display.boards import (
    describe_differences,
    escape_text,
    format_number,
    format_progress,
    make_progress_bar,
)
from cerebro_db.display.sparklines import ASCII_LEVELS, LEVELS, make_sparkline
from cerebro_db.display.timeline import Cell, choose_window, make_lanes
from cerebro_db.records import Point, Progress, Span, Standing
from cerebro_db.run_reader import group_by_config

CURVE = 16
MOST_LANES = 8
COLOURS = ("blue", "yellow", "green", "red", "cyan", "magenta")
BESIDE = 9
"""Lines that are neither lanes nor configs: progress, bar, headings, notes, help, and space between
them.
"""


@dataclass(frozen=True)
class Look:
    """What was found of a run at one time, and what became of the newest act."""

    progress: Progress
    standings: Sequence[Standing]
    points: Sequence[Point]
    spans: Sequence[Span]
    told: str = ""

    @property
    def configs(self) -> list[int]:
        """The configs from top to bottom."""
        return [standing.mst_key for standing in self.standings]


def frame(look: Look, pad: Pad, console: Console) -> RenderableType:
    """All of it, no higher than the terminal."""
    drawn = _lanes(look.spans, console.width)
    rows = max(console.height - BESIDE - len(drawn), 3)
    note = ASKED + pad.typed + "_" if pad.typed is not None else pad.note or look.told
    return Group(
        _line(escape_text(format_progress(look.progress))),
        make_progress_bar(look.progress),
        *drawn,
        _board(look, pad.chosen, rows, console),
        _line(escape_text(note)),
        _line(Text(HELP, style="dim")),
    )


def _line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _lanes(spans: Sequence[Span], width: int) -> list[Text]:
    moments = [span.ended_at or span.started_at for span in spans]
    now = max([datetime.now(UTC), *moments])  # the server's clock may be ahead
    found = make_lanes(spans, now, choose_window(spans[-500:]), max(width - 14, 1))
    rest = [Text(f"and {len(found) - MOST_LANES} more segments")] if len(found) > MOST_LANES else []
    return [_lane(segment, cells) for segment, cells in [*found.items()][:MOST_LANES]] + rest


def _lane(segment: int, cells: Sequence[Cell | None]) -> Text:
    """A letter a cell: the last digit of the config, dim where it is evaluated."""
    line = Text(f"segment {segment:<4} ")
    for cell in cells:
        if cell is None:
            line.append(".", "dim")
        else:
            colour = COLOURS[cell.mst_key % len(COLOURS)]
            line.append(
                str(cell.mst_key % 10),
                f"dim {colour}" if cell.kind == "evaluate" else f"reverse {colour}",
            )
    return _line(line)


def _board(look: Look, chosen: int | None, rows: int, console: Console) -> Table:
    shown = window(look.configs, chosen, rows)
    curves = group_by_config(look.points)
    texts = describe_differences([standing.params for standing in look.standings])
    metric = (
        f"{look.standings[0].dataset} {look.standings[0].metric}" if look.standings else "metric"
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), expand=True)
    for heading in ("", "rank", "mst_key", "status"):
        table.add_column(heading, no_wrap=True)
    table.add_column("params", no_wrap=True, overflow="ellipsis", ratio=1)
    for numbers in (escape_text(metric), Text("epochs")):
        table.add_column(numbers, justify="right", no_wrap=True)
    table.add_column("curve", no_wrap=True, min_width=CURVE)
    for standing, text in [*zip(look.standings, texts, strict=True)][shown]:
        mine = standing.mst_key == chosen
        levels = ASCII_LEVELS if console.options.ascii_only else LEVELS
        table.add_row(
            ">" if mine else "",
            str(standing.rank),
            str(standing.mst_key),
            escape_text(standing.status),
            escape_text(text),
            format_number(standing.value),
            str(standing.epochs),
            make_sparkline(_curve(standing, curves), CURVE, levels),
            style="bold reverse" if mine else "",
        )
    return table


def window(configs: Sequence[int], chosen: int | None, rows: int) -> slice:
    """Which of the configs are in view, so that the chosen one is.

    >>> window([1, 2, 3, 4], 4, 3), window([1, 2, 3, 4], None, 3)
    (slice(1, 4, None), slice(0, 3, None))
    """
    place = configs.index(chosen) if chosen is not None and chosen in configs else 0
    first = max(min(place - rows // 2, len(configs) - rows), 0)
    return slice(first, first + rows)


def _curve(standing: Standing, points: Mapping[int, Sequence[Point]]) -> list[float | None]:
    """The metric that ranks the config, by epoch."""
    its = points.get(standing.mst_key, [])
    return [
        point.value
        for point in its
        if (point.dataset, point.name) == (standing.dataset, standing.metric)
    ]
