"""A leaderboard as an answer: a list, shown as the table of `cerebro-db watch`, and with bars in a
notebook.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from cerebro_db.display.boards import distinctions, number, seconds
from cerebro_db.records import Standing
from cerebro_db.result_set import Records

VALUE = 3
"""The column of the values that rank."""


class Board(Records[Standing]):
    """The configs of one run, best first."""

    def __init__(self, standings: Records[Standing]) -> None:
        super().__init__(standings, standings.columns)

    def format_cells(self, count: int) -> tuple[Sequence[str], list[list[str]]]:
        """The parameters of a config are those that not all of the run share."""
        metric = f"{self[0].dataset} {self[0].metric}" if self else "metric"
        headings = ("rank", "mst_key", "params", metric, "status", "epochs", "seconds")
        told = distinctions([standing.params for standing in self])
        return headings, [
            _row(standing, text) for standing, text in zip(self[:count], told, strict=False)
        ]

    def format_html_cells(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """Values have a bar, as long as they are large beside the largest one."""
        found, largest = super().format_html_cells(rows), max(map(_size, self), default=0.0)
        for cells, standing in zip(found, self, strict=False):
            if _size(standing):
                cells[VALUE] = (
                    f'<meter max="{largest!r}" value="{_size(standing)!r}"></meter> {cells[VALUE]}'
                )
        return found


def _size(standing: Standing) -> float:
    return (
        0.0 if standing.value is None or not math.isfinite(standing.value) else abs(standing.value)
    )


def _row(standing: Standing, params: str) -> list[str]:
    value, time = number(standing.value), seconds(standing)
    return [
        str(fact)
        for fact in (
            standing.rank,
            standing.mst_key,
            params,
            value,
            standing.status,
            standing.epochs,
            time,
        )
    ]
