"""What all charts share: colours that the colour-blind tell apart, texts of users as data, and the
file.

Figures are drawn by matplotlib's Agg without pyplot, so no window opens and no global state
changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import Literal, TypeAlias

from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cerebro_db.display.boards import plain

# Of Okabe and Ito, without black, which is the best config's.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#F0E442")
Style: TypeAlias = Literal["-", "--", ":", "-."]
STYLES: tuple[Style, ...] = ("-", "--", ":", "-.")
HATCHES = ("", "///", "...", "xxx")
SCALE = colormaps["cividis"]
"""From dark to light, for numbers."""
LONGEST = 28


def colour(key: int) -> str:
    """The colour of a config; keys that have the same one differ by style and hatch."""
    return COLOURS[key % len(COLOURS)]


def style(key: int) -> Style:
    """How the line of a config is drawn.

    >>> [(colour(key), style(key)) for key in (1, 8)]
    [('#E69F00', '-'), ('#E69F00', '--')]
    """
    return STYLES[key // len(COLOURS) % len(STYLES)]


def hatch(key: int) -> str:
    """How the bars of a config are filled."""
    return HATCHES[key // len(COLOURS) % len(HATCHES)]


def label(text: object) -> str:
    """A text of a user on one short line, in which nothing is a command.

    >>> label("a\\x1b[2J" + 30 * " long")
    'a\\\\x1b[2J long long long …'
    """
    return shorten(plain(str(text)).plain, LONGEST, placeholder=" …") or "…"


def name_ticks(panel: Axes, axis: str, names: Sequence[str]) -> None:
    """Places 0, 1, … of an axis with their names, which are no formulas."""
    chosen = panel.xaxis if axis == "x" else panel.yaxis
    chosen.set_ticks(range(len(names)), list(map(label, names)))
    for told in chosen.get_ticklabels():
        told.set_parse_math(False)


def save(figure: Figure, path: Path, title: str, handles: Sequence[Artist] = ()) -> Path:
    """Writes the figure in the format that the name of the file ends in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if title:
        figure.suptitle(plain(title).plain, parse_math=False)
    if handles:
        legend = figure.legend(
            handles=list(handles), loc="outside right upper", fontsize="small", frameon=False
        )
        for told in legend.get_texts():
            told.set_parse_math(False)
    FigureCanvasAgg(figure)
    figure.savefig(path)
    return path
