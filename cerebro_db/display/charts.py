"""Draw charts of a run as PNG or SVG files: learning curves, and the Gantt chart of its workers.

Parameters and names are texts of users, which are never read as formulas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from cerebro_db.display.axis_limits import AxisLimits, choose_limits
from cerebro_db.display.boards import escape_text, is_finite
from cerebro_db.display.chart_style import (
    choose_colour,
    choose_hatch,
    choose_line_style,
    save_figure,
)
from cerebro_db.display.gantt import GanttChart, make_gantt_chart
from cerebro_db.nouns import count_nouns, match_verb
from cerebro_db.records import Point, Span

MAX_LEGEND_CONFIGS = 16
"""Largest number of configs for which a legend is readable; above, it has the best one only."""
EVALUATION_ALPHA = 0.35
LEGEND_WIDTH = 44
LEGEND_LINES = 3
LEGEND_COLUMNS = 4
"""Columns of the legend below a Gantt chart, which is wider than high."""
ConfigTexts = Mapping[int, str]  # the parameters of configs, by mst_key


class Curve(NamedTuple):
    """The values of a metric of one config on one data set, by ascending epoch."""

    mst_key: int
    dataset: str
    name: str
    epochs: tuple[int, ...]
    values: tuple[float, ...]


def make_curves(points: Iterable[Point]) -> list[Curve]:
    """Return a curve for each config, data set and metric, without values that are not finite.

    >>> from datetime import datetime
    >>> moment = datetime(2030, 1, 1)
    >>> point = dict(run_id=1, mst_key=7, dataset="training", name="loss", time=moment)
    >>> make_curves([Point(**point, epoch=2, value=0.5), Point(**point, epoch=1, value=0.9)])
    [Curve(mst_key=7, dataset='training', name='loss', epochs=(1, 2), values=(0.9, 0.5))]
    """
    pairs_by_curve: dict[tuple[str, str, int], list[tuple[int, float]]] = {}
    for point in sorted(points, key=lambda point: point.epoch):
        if is_finite(point.value):
            key = (point.name, point.dataset, point.mst_key)
            pairs_by_curve.setdefault(key, []).append((point.epoch, float(point.value)))
    curves = []
    for (name, dataset, mst_key), pairs in sorted(pairs_by_curve.items()):
        epochs, values = zip(*pairs, strict=True)
        curves.append(Curve(mst_key, dataset, name, epochs, values))
    return curves


def draw_learning_curves(
    points: Iterable[Point],
    path: Path,
    *,
    best: int | None = None,
    params: ConfigTexts | None = None,
    title: str = "",
) -> Path:
    """Draw a panel for each metric and data set, with a line for each config; return the path.

    The title of a panel names the configs that leave the limits of its axis.

    Args:
        best: the mst_key of the best config, which is drawn in black over the others.
        params: the parameters of configs in the legend, by mst_key.
    """
    curves = make_curves(points)
    metrics = sorted({curve.name for curve in curves}) or ["loss"]
    datasets = sorted({curve.dataset for curve in curves}) or ["training"]
    figure = Figure(figsize=(5.5 * len(datasets) + 3.5, 3.6 * len(metrics)), layout="constrained")
    panels = figure.subplots(len(metrics), len(datasets), squeeze=False, sharex=True, sharey="row")
    mst_keys = sorted({curve.mst_key for curve in curves})
    for metric, metric_panels in zip(metrics, panels, strict=True):
        values: dict[int, list[float]] = {mst_key: [] for mst_key in mst_keys}
        for curve in curves:
            if curve.name == metric:
                values[curve.mst_key] += curve.values
        limits = choose_limits(values, best)
        note = _describe_outliers(limits.outside, len(values))
        for panel, dataset in zip(metric_panels, datasets, strict=True):
            panel_curves = [
                curve for curve in curves if (curve.name, curve.dataset) == (metric, dataset)
            ]
            _draw_panel(panel, panel_curves, best, limits)
            panel.set_title(dataset + note, fontsize="medium")
            note = ""  # only the first panel has it
            panel.set(xlabel="epoch")
            panel.set_ylabel(escape_text(metric).plain, parse_math=False)
            panel.label_outer()
    handles: list[Artist] = [
        Line2D(
            [],
            [],
            marker=".",
            label=_make_legend_label(mst_key, best, params or {}),
            **_choose_line_style(mst_key, best, len(mst_keys)),
        )
        for mst_key in mst_keys
        if len(mst_keys) <= MAX_LEGEND_CONFIGS or mst_key == best
    ]
    return save_figure(figure, path, title, handles)


def draw_gantt_chart(
    spans: Sequence[Span], path: Path, *, params: ConfigTexts | None = None, title: str = ""
) -> Path:
    """Draw the spans of each worker in a row, in the colours of configs; return the path.

    Args:
        params: the parameters of configs in the legend, by mst_key.
    """
    chart = make_gantt_chart(spans)
    rows = sorted({bar.row for bar in chart.bars})
    figure = Figure(figsize=(14, 1.8 + 0.5 * len(rows)), layout="constrained")
    panel = figure.subplots()
    for bar in chart.bars:
        panel.broken_barh(
            [(bar.start, bar.length)],
            (bar.row - 0.4, 0.8),
            facecolor=choose_colour(bar.mst_key),
            hatch=choose_hatch(bar.mst_key),
            alpha=EVALUATION_ALPHA if bar.kind == "evaluate" else 1.0,
        )
    panel.set_yticks(rows, [_name_worker(row, chart) for row in rows])
    panel.invert_yaxis()
    xlabel = "seconds since the first visit"
    if chart.breaks:
        xlabel += ", without those before it was resumed"
    panel.set(xlabel=xlabel)
    for position, duration in chart.breaks:
        panel.axvline(position, color="black", linestyle="--")
        panel.annotate(
            f" resumed after {timedelta(seconds=round(duration.total_seconds()))}",
            (position, 1),
            xycoords=("data", "axes fraction"),
            verticalalignment="bottom",
            fontsize="small",
        )
    handles = _make_gantt_legend(chart, params or {})
    return save_figure(figure, path, title, handles, columns=LEGEND_COLUMNS)


def _make_gantt_legend(chart: GanttChart, params: ConfigTexts) -> list[Artist]:
    mst_keys = sorted({bar.mst_key for bar in chart.bars})
    handles: list[Artist] = []
    if len(mst_keys) <= MAX_LEGEND_CONFIGS:
        handles += [
            Patch(
                facecolor=choose_colour(mst_key),
                hatch=choose_hatch(mst_key),
                label=_make_legend_label(mst_key, None, params),
            )
            for mst_key in mst_keys
        ]
    else:
        label = f"colours and hatching: {count_nouns(len(mst_keys), 'config')}"
        handles.append(Patch(facecolor="white", edgecolor="black", label=label))
    if any(bar.kind == "evaluate" for bar in chart.bars):
        label = "pale: evaluation, not training"
        handles.append(Patch(color="grey", alpha=EVALUATION_ALPHA, label=label))
    return handles


def _name_worker(row: int, chart: GanttChart) -> str:
    segments = sorted({bar.segment_id for bar in chart.bars if bar.row == row})
    word = "segment" if len(segments) == 1 else "segments"
    return f"worker {row + 1} ({word} {', '.join(map(str, segments))})"


def _draw_panel(panel: Axes, curves: Sequence[Curve], best: int | None, limits: AxisLimits) -> None:
    for curve in curves:
        style = _choose_line_style(curve.mst_key, best, len(curves))
        (line,) = panel.plot(curve.epochs, curve.values, marker=".", linewidth=1.0, **style)
        if curve.mst_key == best:
            line.set(linewidth=2.5, zorder=3)
    if limits.is_logarithmic:
        panel.set_yscale("log")
    if limits.outside:
        panel.set_ylim(limits.low, limits.high)
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))


def _describe_outliers(mst_keys: Sequence[int], configs: int) -> str:
    """Return a note on the configs that leave the limits of a metric's axis."""
    if not mst_keys:
        return ""
    names = ", ".join(map(str, mst_keys[:5]))
    if len(mst_keys) > 5:
        names += ", …"
    outliers = len(mst_keys)
    verb = match_verb(outliers, "leaves")
    return f"; {outliers} of {count_nouns(configs, 'config')} {verb} the frame: {names}"


def _make_legend_label(mst_key: int, best: int | None, params: ConfigTexts) -> str:
    name = f"config {mst_key}"
    if mst_key == best:
        name += " (best)"
    if not params.get(mst_key):
        return name
    text = f"{name}: {params[mst_key]}"
    return fill(text, LEGEND_WIDTH, max_lines=LEGEND_LINES, placeholder=" …")


def _choose_line_style(mst_key: int, best: int | None, configs: int) -> dict[str, Any]:
    """Return the colour and the dashes of a line, as arguments of matplotlib."""
    if mst_key == best:
        return {"color": "black", "linestyle": "-"}
    colour = "silver"
    if configs <= MAX_LEGEND_CONFIGS:
        colour = choose_colour(mst_key)
    return {"color": colour, "linestyle": choose_line_style(mst_key)}
