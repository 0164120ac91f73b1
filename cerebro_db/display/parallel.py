"""Draw parallel coordinates: a line for each config through its parameters to the metric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from cerebro_db.display.axes import MISSING, Axis, make_axes
from cerebro_db.display.boards import escape_text
from cerebro_db.display.chart_style import COLOUR_MAP, make_label, save_figure, wrap_label
from cerebro_db.records import Parameter, Standing

MISSING_COLOUR = "#999999"
"""Colour of configs without a value of the metric."""
MAX_WIDTH = 22.0
"""Largest width of all axes, in inches."""
NAME_WIDTH = 14
"""Letters of an axis' name in a line."""
MIN_TICK_DISTANCE = 0.03
"""Smallest distance of two ticks whose texts do not overlap."""


def draw_parallel(
    standings: Sequence[Standing], parameters: Iterable[Parameter], path: Path, *, title: str = ""
) -> Path:
    """Draw a line for each config in the colour of its metric; return the path.

    The best config is thick and drawn last. Configs without a value of the metric are dotted.
    """
    axes = make_axes(standings, parameters)
    axis_width = min(2.4, MAX_WIDTH / len(axes))
    figure = Figure(figsize=(axis_width * len(axes) + 1, 5), layout="constrained")
    panel = figure.subplots()
    best = min(standings, key=lambda standing: standing.rank).mst_key if standings else None
    for standing in standings:
        positions = [axis.positions[standing.mst_key] for axis in axes]
        _draw_line(panel, positions, standing.mst_key == best)
    for index, axis in enumerate(axes):
        _draw_axis(panel, index, axis)
    _draw_colours(figure, panel, axes[-1])
    panel.set_axis_off()
    panel.set(xlim=(-0.6, len(axes) - 0.4), ylim=(MISSING - 0.05, 1.2))
    return save_figure(figure, path, title)


def _draw_colours(figure: Figure, panel: Axes, metric: Axis) -> None:
    """Draw the scale of the colours, which are those of the metric."""
    ticks = [tick for tick in metric.ticks if tick.position != MISSING]
    colour_bar = figure.colorbar(ScalarMappable(Normalize(0, 1), COLOUR_MAP), ax=panel, pad=0.01)
    colour_bar.set_ticks(
        [tick.position for tick in ticks], labels=[make_label(tick.text) for tick in ticks]
    )
    colour_bar.ax.set_ylabel(escape_text(f"colour: {metric.name}").plain, parse_math=False)


def _draw_line(panel: Axes, positions: Sequence[float], is_best: bool) -> None:
    x = range(len(positions))
    metric = positions[-1]
    if metric == MISSING:
        panel.plot(x, positions, color=MISSING_COLOUR, linewidth=1.0, linestyle=":", zorder=2)
    elif is_best:
        panel.plot(x, positions, color=COLOUR_MAP(metric), linewidth=3.0, linestyle="-", zorder=4)
    else:
        panel.plot(x, positions, color=COLOUR_MAP(metric), linewidth=1.2, linestyle="-", zorder=3)


def wrap_name(name: str) -> str:
    """Return the name of a field in lines, which may end behind an underscore.

    >>> wrap_name("label_smoothing"), wrap_name("lr")
    ('label_\\nsmoothing', 'lr')
    """
    return wrap_label(name.replace("_", "_ "), NAME_WIDTH).replace("_ ", "_")


def _draw_axis(panel: Axes, index: int, axis: Axis) -> None:
    panel.plot([index, index], [0, 1], color="black", linewidth=0.8, zorder=1)
    name = wrap_name(axis.name)
    panel.text(index, 1.05, name, ha="center", va="bottom", weight="bold", parse_math=False)
    distances = [1.0, *(upper.position - lower.position for lower, upper in pairwise(axis.ticks))]
    for tick, distance in zip(axis.ticks, distances, strict=False):
        if distance >= MIN_TICK_DISTANCE:
            panel.text(
                index + 0.03,
                tick.position,
                make_label(tick.text),
                va="center",
                fontsize="small",
                parse_math=False,
                zorder=5,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1},
            )
