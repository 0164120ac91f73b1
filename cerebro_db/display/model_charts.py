"""Charts of a model by name: what its columns are worth to it, and which classes it takes for
which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from cerebro_db.display.chart_style import COLOURS, SCALE, name_ticks, save

MOST = 40
"""So many columns are shown: those that are worth most."""
LEGIBLE = 20
"""With more classes than this no numbers are written into the cells."""


class Worth(NamedTuple):
    """By how much the metric gets worse without a column, and its standard error."""

    column: str
    importance: float
    error: float


def worth(rows: Iterable[Mapping[str, Any]], column: str) -> list[Worth]:
    """Of what cerebro.importance or cerebro.feature has, the largest first; what has no importance
    is left out.

    >>> row = {"column": "a", "importance": 0.1, "importance_error": None}
    >>> worth([row, {"column": "b", "importance": None}], "column")
    [Worth(column='a', importance=0.1, error=0.0)]
    """
    known = [row for row in rows if row["importance"] is not None]
    found = [
        Worth(str(row[column]), row["importance"], row["importance_error"] or 0.0) for row in known
    ]
    return sorted(found, key=lambda one: (-one.importance, one.column))


def draw_importance(
    found: Sequence[Worth], path: Path, *, metric: str = "", title: str = ""
) -> Path:
    """A bar for each column with its standard error, the largest on top."""
    shown = found[:MOST]
    figure = Figure(figsize=(8, 1.5 + 0.32 * len(shown)), layout="constrained")
    panel = figure.subplots()
    panel.barh(
        range(len(shown)),
        [one.importance for one in shown],
        xerr=[one.error for one in shown],
        color=COLOURS[0],
        ecolor="black",
        capsize=2,
    )
    name_ticks(panel, "y", [one.column for one in shown])
    panel.invert_yaxis()
    rest = f"; {len(found) - MOST} more columns are worth less" if len(found) > MOST else ""
    panel.set_xlabel(
        f"how much worse {metric or 'the metric'} is without the column{rest}", parse_math=False
    )
    return save(figure, path, title)


class Confusion(NamedTuple):
    """Classes, and for each the share and the number of its rows for which each was predicted."""

    classes: tuple[str, ...]
    shares: list[list[float]]
    rows: list[list[int]]


def confusion(evaluated: Iterable[Mapping[str, Any]]) -> Confusion:
    """The confusion matrix of all rows, of what cerebro.evaluate says.

    >>> row = {"group": None, "metric": "confusion", "class": "a", "predicted": "b", "value": 1.0,
    ...     "rows": 3}
    >>> confusion([row])
    Confusion(classes=('a', 'b'), shares=[[0.0, 1.0], [0.0, 0.0]], rows=[[0, 3], [0, 0]])
    """
    cells = [row for row in evaluated if row["metric"] == "confusion" and row["group"] is None]
    named = [row[role] for role in ("class", "predicted") for row in cells]
    classes = tuple(dict.fromkeys(map(str, named)))
    found = {(str(row["class"]), str(row["predicted"])): row for row in cells}
    shares = [
        [found.get((one, other), {}).get("value") or 0.0 for other in classes] for one in classes
    ]
    rows = [[found.get((one, other), {}).get("rows") or 0 for other in classes] for one in classes]
    return Confusion(classes, shares, rows)


def draw_confusion(found: Confusion, path: Path, *, title: str = "") -> Path:
    """A row for each class, a column for each prediction; light is a large share of the rows of the
    class.
    """
    size = max(4.0, min(0.6 * len(found.classes), 16.0))
    figure = Figure(figsize=(size + 2.5, size + 1), layout="constrained")
    panel = figure.subplots()
    image = panel.imshow(found.shares, cmap=SCALE, vmin=0, vmax=1)
    name_ticks(panel, "x", found.classes)
    name_ticks(panel, "y", found.classes)
    panel.tick_params(axis="x", rotation=90)
    panel.set(xlabel="predicted", ylabel="class")
    figure.colorbar(image, ax=panel, label="share of the rows of the class")
    if len(found.classes) <= LEGIBLE:
        for y, (shares, counts) in enumerate(zip(found.shares, found.rows, strict=True)):
            for x, (share, count) in enumerate(zip(shares, counts, strict=True)):
                panel.text(
                    x,
                    y,
                    str(count),
                    ha="center",
                    va="center",
                    color="black" if share > 0.5 else "white",
                )
    return save(figure, path, title)
