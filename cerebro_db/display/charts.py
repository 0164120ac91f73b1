"""Charts of a run as PNG or SVG files: how its configs learned, and what each worker did when.

Parameters and names are users' texts: nothing in them is read as mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from cerebro_db.display.axis_limits import Frame, frame
from cerebro_db.display.boards import plain
from cerebro_db.display.chart_style import Style, colour, hatch, save, style
from cerebro_db.display.gantt import Occupancy, occupancy
from cerebro_db.records import Point, Span

# With more configs than this a legend hides more than it tells; only the best one is named then.
FEW = 16
PALE = 0.35
LEGEND_WIDTH = 44


class Curve(NamedTuple):
    """One config's values of one metric on one data set, by ascending epoch."""

    mst_key: int
    dataset: str
    name: str
    epochs: tuple[int, ...]
    values: tuple[float, ...]


def curves(points: Iterable[Point]) -> list[Curve]:
    """One curve per (config, data set, metric); a value that is missing or no finite number is left
    out.

    >>> from datetime import datetime
    >>> moment = datetime(2030, 1, 1)
    >>> point = dict(run_id=1, mst_key=7, dataset="training", name="loss", time=moment)
    >>> curves([Point(**point, epoch=2, value=0.5), Point(**point, epoch=1, value=0.9)])
    [Curve(mst_key=7, dataset='training', name='loss', epochs=(1, 2), values=(0.9, 0.5))]
    """

    def line(point: Point) -> tuple[str, str, int]:
        return (point.name, point.dataset, point.mst_key)

    known = sorted(
        (p for p in points if p.value is not None and math.isfinite(p.value)),
        key=lambda p: (*line(p), p.epoch),
    )
    result = []
    for (name, dataset, mst_key), group in groupby(known, key=line):
        pairs = [(point.epoch, float(point.value or 0.0)) for point in group]
        epochs, values = zip(*pairs, strict=True)
        result.append(Curve(mst_key, dataset, name, epochs, values))
    return result


def draw_learning_curves(
    points: Iterable[Point],
    path: Path,
    *,
    best: int | None = None,
    params: Mapping[int, str] | None = None,
    title: str = "",
) -> Path:
    """One panel per metric (rows) and data set (columns), one line per config, `best` on top of
    them.

    `params` says what tells a config apart, for the legend. A title says which configs leave the
    frame of a metric.
    """
    lines = curves(points)
    names = sorted({line.name for line in lines}) or ["loss"]
    datasets = sorted({line.dataset for line in lines}) or ["training"]
    figure = Figure(figsize=(5.5 * len(datasets) + 3.5, 3.6 * len(names)), layout="constrained")
    panels = figure.subplots(len(names), len(datasets), squeeze=False, sharex=True, sharey="row")
    for row, name in enumerate(names):
        values: dict[int, list[float]] = {}
        for line in lines:
            values.setdefault(line.mst_key, []).extend(line.values if line.name == name else ())
        shown = frame(values, best)
        for column, dataset in enumerate(datasets):
            its = [line for line in lines if (line.name, line.dataset) == (name, dataset)]
            _draw_panel(panels[row, column], its, best, shown)
            told = _outside(shown.outside, len(values)) if column == 0 else ""
            panels[row, column].set_title(f"{dataset}{told}", fontsize="medium")
            panels[row, column].set(xlabel="epoch")
            panels[row, column].set_ylabel(plain(name).plain, parse_math=False)
            panels[row, column].label_outer()
    keys = sorted({line.mst_key for line in lines})
    handles: list[Artist] = [
        Line2D(
            [],
            [],
            color=_shade(key, best, len(keys)),
            linestyle=_style(key, best),
            marker=".",
            label=_label(key, best, params or {}),
        )
        for key in keys
        if len(keys) <= FEW or key == best
    ]
    return save(figure, path, title, handles)


def draw_occupancy(
    spans: Sequence[Span], path: Path, *, params: Mapping[int, str] | None = None, title: str = ""
) -> Path:
    """Workers from top to bottom, time from left to right; a colour per config, evaluations
    pale.
    """
    shown = occupancy(spans)
    rows = sorted({bar.row for bar in shown.bars})
    figure = Figure(figsize=(14, 1.8 + 0.5 * len(rows)), layout="constrained")
    panel = figure.subplots()
    for bar in shown.bars:
        panel.broken_barh(
            [(bar.start, bar.length)],
            (bar.row - 0.4, 0.8),
            facecolor=colour(bar.mst_key),
            hatch=hatch(bar.mst_key),
            alpha=PALE if bar.kind == "evaluate" else 1.0,
        )
    panel.set_yticks(rows, [_worker(row, shown) for row in rows])
    panel.invert_yaxis()
    panel.set(
        xlabel="seconds since the first visit"
        + (", without those before it was resumed" if shown.breaks else "")
    )
    for at, lasted in shown.breaks:
        panel.axvline(at, color="black", linestyle="--")
        panel.annotate(
            f" resumed after {timedelta(seconds=round(lasted.total_seconds()))}",
            (at, 1),
            xycoords=("data", "axes fraction"),
            verticalalignment="bottom",
            fontsize="small",
        )
    keys = sorted({bar.mst_key for bar in shown.bars})
    handles: list[Artist] = []
    if 0 < len(keys) <= FEW:
        handles += [
            Patch(facecolor=colour(key), hatch=hatch(key), label=_label(key, None, params or {}))
            for key in keys
        ]
    if any(bar.kind == "evaluate" for bar in shown.bars):
        handles.append(Patch(color="grey", alpha=PALE, label="pale: evaluation, not training"))
    return save(figure, path, title, handles)


def _worker(row: int, shown: Occupancy) -> str:
    segments = sorted({bar.segment_id for bar in shown.bars if bar.row == row})
    word = "segment" if len(segments) == 1 else "segments"
    return f"worker {row + 1} ({word} {', '.join(map(str, segments))})"


def _draw_panel(panel: Axes, lines: Sequence[Curve], best: int | None, shown: Frame) -> None:
    for line in lines:
        panel.plot(
            line.epochs,
            line.values,
            marker=".",
            color=_shade(line.mst_key, best, len(lines)),
            linestyle=_style(line.mst_key, best),
            linewidth=2.5 if line.mst_key == best else 1.0,
            zorder=3 if line.mst_key == best else 2,
        )
    panel.set_yscale("log" if shown.logarithmic else "linear")
    if shown.outside:
        panel.set_ylim(shown.low, shown.high)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))


def _outside(keys: Sequence[int], configs: int) -> str:
    """What the first panel of a metric says of the configs that leave its frame."""
    named = ", ".join(map(str, keys[:5])) + (", …" if len(keys) > 5 else "")
    return f"; {len(keys)} of {configs} configs leave the frame: {named}" if keys else ""


def _label(mst_key: int, best: int | None, params: Mapping[int, str]) -> str:
    known = f"config {mst_key}{' (best)' if mst_key == best else ''}"
    return fill(f"{known}: {params[mst_key]}", LEGEND_WIDTH) if params.get(mst_key) else known


def _shade(mst_key: int, best: int | None, configs: int) -> str:
    if mst_key == best:
        return "black"
    return colour(mst_key) if configs <= FEW else "silver"


def _style(mst_key: int, best: int | None) -> Style:
    return "-" if mst_key == best else style(mst_key)
