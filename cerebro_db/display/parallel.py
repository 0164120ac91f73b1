"""Parallel coordinates: a line for each config of a run through its parameters to the metric that
ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cerebro_db.display.axes import MISSING, Axis, coordinates
from cerebro_db.display.chart_style import SCALE, label, save
from cerebro_db.records import Parameter, Standing

WITHOUT = "#999999"
"""Of a config that has no value of the metric."""


class Stroke(NamedTuple):
    """How the line of a config looks: the best one is thick, and those without a value are
    broken.
    """

    colour: tuple[float, float, float, float] | str
    width: float
    style: str
    order: int


def draw_parallel(
    standings: Sequence[Standing], parameters: Iterable[Parameter], path: Path, *, title: str = ""
) -> Path:
    """A line for each config, coloured by the metric; the best one is thick and drawn last."""
    axes = coordinates(standings, parameters)
    figure = Figure(figsize=(2.4 * len(axes) + 1, 5), layout="constrained")
    panel = figure.subplots()
    best = min(standings, key=lambda standing: standing.rank).mst_key if standings else None
    for standing in standings:
        heights = [each.places[standing.mst_key] for each in axes]
        drawn = _stroke(heights[-1], standing.mst_key == best)
        panel.plot(
            range(len(axes)),
            heights,
            color=drawn.colour,
            linewidth=drawn.width,
            linestyle=drawn.style,
            zorder=drawn.order,
        )
    for number, each in enumerate(axes):
        _draw_axis(panel, number, each)
    panel.set_axis_off()
    panel.set(xlim=(-0.6, len(axes) - 0.4), ylim=(MISSING - 0.05, 1.15))
    return save(figure, path, title)


def _stroke(height: float, best: bool) -> Stroke:
    if height == MISSING:
        return Stroke(WITHOUT, 1.0, ":", 2)
    red, green, blue, alpha = SCALE(height)
    return Stroke((red, green, blue, alpha), 3.0 if best else 1.2, "-", 4 if best else 3)


def _draw_axis(panel: Axes, number: int, shown: Axis) -> None:
    panel.plot([number, number], [0, 1], color="black", linewidth=0.8, zorder=1)
    panel.text(number, 1.08, label(shown.name), ha="center", weight="bold", parse_math=False)
    above = [1.0, *(one.place - other.place for other, one in pairwise(shown.ticks))]
    for tick, room in zip(shown.ticks, above, strict=False):
        if room >= 0.03:  # texts that would lie upon each other
            panel.text(
                number + 0.03,
                tick.place,
                label(tick.text),
                va="center",
                fontsize="small",
                parse_math=False,
                zorder=5,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 1},
            )
