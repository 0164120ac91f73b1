"""Colours, labels and files of all charts.

The colour-blind can distinguish the colours, and texts of users are shown as data. Figures are
drawn by matplotlib's Agg without pyplot, so that no window opens and no global state changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten, wrap
from typing import Any

from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cerebro_db.display.boards import escape_text

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442")
"""The palette of Okabe and Ito without black, which marks the best config."""
LINE_STYLES = ("-", "--", ":", "-.")
HATCHES = ("", "///", "...", "xxx")
COLOUR_MAP = colormaps["cividis"]
"""Colours of numbers, from dark to light."""
MAX_LABEL_LENGTH = 28
MAX_LABEL_LINES = 3
PADDING = 0.15
"""Blank inches around a figure."""


def choose_colour(mst_key: int) -> str:
    """Return the colour of a config; configs of one colour differ in line style and hatch."""
    return COLOURS[mst_key % len(COLOURS)]


def choose_line_style(mst_key: int) -> str:
    """Return the line style of a config.

    >>> [(choose_colour(key), choose_line_style(key)) for key in (1, 8)]
    [('#E69F00', '-'), ('#E69F00', '--')]
    """
    return LINE_STYLES[mst_key // len(COLOURS) % len(LINE_STYLES)]


def choose_hatch(mst_key: int) -> str:
    """Return the pattern that fills the bars of a config."""
    return HATCHES[mst_key // len(COLOURS) % len(HATCHES)]


def make_label(text: object, length: int = MAX_LABEL_LENGTH) -> str:
    """Return a user's text as one line of this length, with control characters as escapes.

    >>> make_label("a\\x1b[2J" + 30 * " long")
    'a\\\\x1b[2J long long long …'
    """
    return shorten(escape_text(str(text)).plain, length, placeholder=" …") or "…"


def wrap_label(text: object, width: int) -> str:
    """Return a user's text in lines of this width, three at most.

    >>> wrap_label("Gentoo penguin (Pygoscelis papua)", 16)
    'Gentoo penguin\\n(Pygoscelis\\npapua)'
    """
    lines = wrap(escape_text(str(text)).plain, width, max_lines=MAX_LABEL_LINES, placeholder=" …")
    return "\n".join(lines) or "…"


def label_ticks(panel: Axes, axis: str, names: Sequence[str]) -> None:
    """Label the positions 0, 1, … of an axis, without reading the names as formulas."""
    labelled = panel.xaxis if axis == "x" else panel.yaxis
    labels = [wrap_label(name, MAX_LABEL_LENGTH) for name in names]
    labelled.set_ticks(range(len(names)), labels)
    for label in labelled.get_ticklabels():
        label.set_parse_math(False)


def _place_legend(columns: int | None) -> dict[str, Any]:
    """Return the place and the look of a legend, as arguments of matplotlib."""
    look = {"fontsize": "small", "frameon": False}
    if columns is None:
        return {**look, "loc": "outside right upper"}
    return {**look, "loc": "upper left", "bbox_to_anchor": (0, 0), "ncols": columns}


def save_figure(
    figure: Figure,
    path: Path,
    title: str,
    handles: Sequence[Artist] = (),
    *,
    columns: int | None = None,
) -> Path:
    """Save a figure in the format of the path's suffix; return the path.

    Args:
        handles: the entries of the legend.
        columns: columns of a legend below the figure; None for a legend to its right.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if title:
        figure.suptitle(escape_text(title).plain, parse_math=False)
    if handles:
        legend = figure.legend(handles=list(handles), **_place_legend(columns))
        for text in legend.get_texts():
            text.set_parse_math(False)
    FigureCanvasAgg(figure)
    # A legend may be higher than the figure, and a figure larger than what it shows.
    figure.savefig(path, bbox_inches="tight", pad_inches=PADDING)
    return path
