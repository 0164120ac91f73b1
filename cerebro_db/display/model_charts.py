"""Draw charts of a model by name: the importance of its columns, and its confusion matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from cerebro_db.display.chart_style import COLOUR_MAP, COLOURS, label_ticks, save_figure
from cerebro_db.nouns import count_nouns

MAX_COLUMNS = 40
"""Largest number of columns in a chart."""
MAX_NUMBERED_CLASSES = 20
"""Largest number of classes for which the cells contain numbers."""


class Importance(NamedTuple):
    """The permutation importance of a column: the loss of the metric without the column."""

    column: str
    importance: float
    error: float  # the standard error


def list_importances(rows: Iterable[Mapping[str, Any]]) -> list[Importance]:
    """Return the importances of columns, the largest first; rows without one are left out.

    Args:
        rows: rows of cerebro.importance or cerebro.feature.

    >>> row = {"column_name": "a", "importance": 0.1, "importance_error": None}
    >>> list_importances([row, {"column_name": "b", "importance": None}])
    [Importance(column='a', importance=0.1, error=0.0)]
    """
    importances = [
        Importance(str(row["column_name"]), row["importance"], row["importance_error"] or 0.0)
        for row in rows
        if row["importance"] is not None
    ]
    return sorted(importances, key=lambda entry: (-entry.importance, entry.column))


def draw_importance(
    importances: Sequence[Importance], path: Path, *, metric: str = "", title: str = ""
) -> Path:
    """Draw a bar for each column with its standard error, the largest on top; return the path."""
    entries = importances[:MAX_COLUMNS]
    figure = Figure(figsize=(8, 1.5 + 0.32 * len(entries)), layout="constrained")
    panel = figure.subplots()
    panel.barh(
        range(len(entries)),
        [entry.importance for entry in entries],
        xerr=[entry.error for entry in entries],
        color=COLOURS[0],
        ecolor="black",
        capsize=2,
    )
    label_ticks(panel, "y", [entry.column for entry in entries])
    panel.invert_yaxis()
    xlabel = f"how much worse {metric or 'the metric'} is without the column"
    if len(importances) > MAX_COLUMNS:
        xlabel += f"; {count_nouns(len(importances) - MAX_COLUMNS, 'more column', 'is')} worth less"
    panel.set_xlabel(xlabel, parse_math=False)
    return save_figure(figure, path, title)


class Confusion(NamedTuple):
    """A confusion matrix, with a row for each class and a column for each predicted class."""

    classes: tuple[str, ...]
    shares: list[list[float]]  # of the rows of the class
    rows: list[list[int]]  # numbers of rows


def make_confusion(metrics: Iterable[Mapping[str, Any]]) -> Confusion:
    """Return the confusion matrix of all rows from the result of cerebro.evaluate.

    >>> row = {"group_values": None, "metric": "confusion", "class": "a", "predicted": "b",
    ...     "value": 1.0, "rows": 3}
    >>> make_confusion([row])
    Confusion(classes=('a', 'b'), shares=[[0.0, 1.0], [0.0, 0.0]], rows=[[0, 3], [0, 0]])
    """
    entries = [
        row for row in metrics if row["metric"] == "confusion" and row["group_values"] is None
    ]
    names = [str(entry[role]) for role in ("class", "predicted") for entry in entries]
    classes = tuple(dict.fromkeys(names))
    cells = {(str(entry["class"]), str(entry["predicted"])): entry for entry in entries}

    def read_field(field: str) -> list[list[Any]]:
        return [
            [cells.get((actual, predicted), {}).get(field) for predicted in classes]
            for actual in classes
        ]

    shares = [[share or 0.0 for share in row] for row in read_field("value")]
    counts = [[count or 0 for count in row] for row in read_field("rows")]
    return Confusion(classes, shares, counts)


def draw_confusion(confusion: Confusion, path: Path, *, title: str = "") -> Path:
    """Draw a confusion matrix, in which large shares are light; return the path."""
    size = max(4.0, min(0.6 * len(confusion.classes), 16.0))
    figure = Figure(figsize=(size + 3, size + 2), layout="constrained")
    panel = figure.subplots()
    image = panel.imshow(confusion.shares, cmap=COLOUR_MAP, vmin=0, vmax=1)
    label_ticks(panel, "x", confusion.classes)
    label_ticks(panel, "y", confusion.classes)
    panel.tick_params(axis="x", rotation=90)
    panel.set(xlabel="predicted", ylabel="class")
    figure.colorbar(image, ax=panel, label="share of the rows of the class", shrink=0.8)
    if len(confusion.classes) <= MAX_NUMBERED_CLASSES:
        for y, counts in enumerate(confusion.rows):
            for x, count in enumerate(counts):
                panel.text(
                    x,
                    y,
                    str(count),
                    ha="center",
                    va="center",
                    color="black" if confusion.shares[y][x] > 0.5 else "white",
                )
    return save_figure(figure, path, title)
