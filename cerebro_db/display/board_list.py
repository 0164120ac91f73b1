"""A leaderboard that a shell shows as a table, and a notebook as a table with bars."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_db.display.boards import (
    describe_configs,
    format_number,
    format_seconds,
    is_finite,
    name_metric,
)
from cerebro_db.records import Standing
from cerebro_db.result_set import Records

VALUE_COLUMN = 3


class Board(Records[Standing]):
    """The configs of one run, best first."""

    def __init__(self, standings: Records[Standing]) -> None:
        super().__init__(standings, standings.columns)

    def format_cells(self, count: int) -> tuple[Sequence[str], list[list[str]]]:
        """Return the headings, and the cells of the first `count` configs.

        Parameters that all configs share are left out.
        """
        headings = ("rank", "mst_key", "params", name_metric(self), "status", "epochs", "seconds")
        texts = describe_configs(self)
        return headings, [_make_row(standing, texts[standing.mst_key]) for standing in self[:count]]

    def format_html_cells(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """Return the cells as HTML; values have a bar in proportion to the largest one."""
        html_rows = super().format_html_cells(rows)
        largest = max(map(_measure, self), default=0.0)
        for cells, standing in zip(html_rows, self, strict=False):
            size = _measure(standing)
            if size:
                meter = f'<meter max="{largest!r}" value="{size!r}"></meter>'
                cells[VALUE_COLUMN] = f"{meter} {cells[VALUE_COLUMN]}"
        return html_rows


def _measure(standing: Standing) -> float:
    """Return the absolute value of the metric; 0 if it is missing or infinite."""
    if is_finite(standing.value):
        return abs(standing.value)
    return 0.0


def _make_row(standing: Standing, params: str) -> list[str]:
    return [
        str(standing.rank),
        str(standing.mst_key),
        params,
        format_number(standing.value),
        str(standing.status),
        str(standing.epochs),
        format_seconds(standing),
    ]
