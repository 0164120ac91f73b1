"""A leaderboard as an answer: a list of its records, shown as the table of `cerebro-db watch`."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_db.record_list import Records
from cerebro_db.records import Standing
from cerebro_db.show.boards import distinctions, number, seconds


class Board(Records[Standing]):
    """The configs of one run, best first."""

    def __init__(self, standings: Records[Standing]) -> None:
        super().__init__(standings, standings.columns)

    def cells(self, count: int) -> tuple[Sequence[str], list[list[str]]]:
        """The parameters of a config are those that not all of the run share."""
        metric = f"{self[0].dataset} {self[0].metric}" if self else "metric"
        headings = ("rank", "mst_key", "params", metric, "status", "epochs", "seconds")
        told = distinctions([standing.params for standing in self])
        return headings, [_row(standing, text) for standing, text in zip(self[:count], told, strict=False)]


def _row(standing: Standing, params: str) -> list[str]:
    value, time = number(standing.value), seconds(standing)
    return [
        str(fact) for fact in (standing.rank, standing.mst_key, params, value, standing.status, standing.epochs, time)
    ]
