"""Charts of a run as PNG files: how its configs learned, and what each segment did when.

Figures are drawn by matplotlib's Agg without pyplot, so no window opens and no global state changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from cerebro_db.records import Point, Span

# With more configs than this a legend hides more than it tells; only the best one is named then.
FEW = 10
COLOURS = colormaps["tab20"]


class Curve(NamedTuple):
    """One config's values of one metric on one data set, by ascending epoch."""

    mst_key: int
    dataset: str
    name: str
    epochs: tuple[int, ...]
    values: tuple[float, ...]


class Bar(NamedTuple):
    """What a segment did, in seconds from the first start of the run."""

    segment_id: int
    mst_key: int
    kind: str
    start: float
    length: float


def curves(points: Iterable[Point]) -> list[Curve]:
    """One curve per (config, data set, metric); a value that is missing is left out.

    >>> moment = datetime(2030, 1, 1)
    >>> point = dict(run_id=1, mst_key=7, dataset="training", name="loss", time=moment)
    >>> curves([Point(**point, epoch=2, value=0.5), Point(**point, epoch=1, value=0.9)])
    [Curve(mst_key=7, dataset='training', name='loss', epochs=(1, 2), values=(0.9, 0.5))]
    """

    def line(point: Point) -> tuple[str, str, int]:
        return (point.name, point.dataset, point.mst_key)

    known = sorted((p for p in points if p.value is not None), key=lambda p: (*line(p), p.epoch))
    result = []
    for (name, dataset, mst_key), group in groupby(known, key=line):
        pairs = [(point.epoch, float(point.value or 0.0)) for point in group]
        epochs, values = zip(*pairs, strict=True)
        result.append(Curve(mst_key, dataset, name, epochs, values))
    return result


def bars(spans: Sequence[Span], now: datetime | None = None) -> list[Bar]:
    """Spans on a common clock; one that has not ended ends `now`, or is left out when that is None."""
    ended = [(span, span.ended_at or now) for span in spans]
    origin = min((span.started_at for span in spans), default=None)
    return [
        Bar(
            span.segment_id,
            span.mst_key,
            span.kind,
            (span.started_at - origin).total_seconds(),
            (end - span.started_at).total_seconds(),
        )
        for span, end in ended
        if end is not None and origin is not None
    ]


def draw_learning_curves(points: Iterable[Point], path: Path, *, best: int | None = None) -> Path:
    """One panel per metric (rows) and data set (columns), one line per config, `best` on top of them."""
    lines = curves(points)
    names = sorted({line.name for line in lines}) or ["loss"]
    datasets = sorted({line.dataset for line in lines}) or ["training"]
    figure = Figure(figsize=(5.5 * len(datasets), 3.6 * len(names)), layout="constrained")
    panels = figure.subplots(len(names), len(datasets), squeeze=False, sharex=True, sharey="row")
    for row, name in enumerate(names):
        for column, dataset in enumerate(datasets):
            shown = [line for line in lines if (line.name, line.dataset) == (name, dataset)]
            _draw_panel(panels[row, column], shown, best)
            panels[row, column].set(title=dataset, ylabel=name, xlabel="epoch")
            panels[row, column].label_outer()
    return _save(figure, path)


def draw_occupancy(spans: Sequence[Span], path: Path) -> Path:
    """Segments from top to bottom, time from left to right; a colour per config, evaluations pale."""
    shown = bars(spans)
    segments = sorted({bar.segment_id for bar in shown})
    figure = Figure(figsize=(11, 1.5 + 0.5 * len(segments)), layout="constrained")
    panel = figure.subplots()
    for bar in shown:
        panel.broken_barh(
            [(bar.start, bar.length)],
            (segments.index(bar.segment_id) - 0.4, 0.8),
            facecolor=_colour(bar.mst_key),
            alpha=1.0 if bar.kind == "train" else 0.35,
        )
    panel.set_yticks(range(len(segments)), [f"segment {segment}" for segment in segments])
    panel.invert_yaxis()
    panel.set(xlabel="seconds since the first visit")
    keys = sorted({bar.mst_key for bar in shown})
    if 0 < len(keys) <= 2 * FEW:
        handles = [Patch(color=_colour(key), label=f"config {key}") for key in keys]
        figure.legend(handles=handles, loc="outside right upper", fontsize="small", frameon=False)
    return _save(figure, path)


def _draw_panel(panel: Axes, lines: Sequence[Curve], best: int | None) -> None:
    few = len(lines) <= FEW
    for line in lines:
        is_best = line.mst_key == best
        panel.plot(
            line.epochs,
            line.values,
            marker=".",
            color="black" if is_best else _colour(line.mst_key) if few else "silver",
            linewidth=2.5 if is_best else 1.0,
            zorder=3 if is_best else 2,
            label=f"config {line.mst_key}{' (best)' if is_best else ''}" if few or is_best else None,
        )
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    if any(few or line.mst_key == best for line in lines):
        panel.legend(fontsize="small", frameon=False)


def _colour(mst_key: int) -> tuple[float, float, float, float]:
    red, green, blue, alpha = COLOURS(mst_key % COLOURS.N)
    return (red, green, blue, alpha)


def _save(figure: Figure, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure)
    figure.savefig(path, format="png")
    return path
