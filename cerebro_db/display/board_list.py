"""A leaderboard that a shell shows as a table, and a notebook as a table with bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from cerebro_db.display.boards import (
    describe_configs,
    format_number,
    format_seconds,
    is_finite,
    join_template,
    name_metric,
)
from cerebro_db.records import Standing
from cerebro_db.result_set import Records, escape_controls

TEMPLATE = "template"
PARAMS = "params"
OPTIONAL = ("seconds", "epochs", "status")
"""Columns that narrow tables lack, the first to be left out first."""


class Board(Records[Standing]):
    """The configs of one run, best first."""

    def __init__(self, standings: Records[Standing]) -> None:
        super().__init__(standings, standings.columns, optional=OPTIONAL)

    def describe_configs(self) -> dict[int, str]:
        """Return the template and the differing parameters of each config, by mst_key."""
        texts = describe_configs(self)
        return {
            standing.mst_key: escape_controls(join_template(standing, texts[standing.mst_key]))
            for standing in self
        }

    def format_cells(self, count: int) -> tuple[Sequence[str], list[list[str]]]:
        """Return the headings, and the cells of the first `count` configs.

        Parameters that all configs share are left out, and so is the template if none has one.
        """
        texts = describe_configs(self)
        rows = [_make_row(standing, texts[standing.mst_key]) for standing in self]
        headings = ["rank", "mst_key", TEMPLATE, PARAMS, name_metric(self), *OPTIONAL[::-1]]
        if not any(standing.template for standing in self):
            place = headings.index(TEMPLATE)
            for row in (headings, *rows):
                del row[place]
        return headings, rows[:count]

    def format_html_cells(
        self, headings: Sequence[str], rows: Sequence[Sequence[str]]
    ) -> list[list[str]]:
        """Return the cells as HTML; values have a bar, which is longer the better they are."""
        html_rows = super().format_html_cells(headings, rows)
        column = headings.index(PARAMS) + 1
        lengths = measure_bars(self)
        for standing, cells in zip(self, html_rows, strict=False):
            length = lengths.get(standing.mst_key)
            if length is not None:
                cells[column] = f'<meter value="{length:.4g}"></meter> {cells[column]}'
        return html_rows


def measure_bars(standings: Sequence[Standing]) -> Mapping[int, float]:
    """Return the length of the bar of each config with a value, from 0 to 1, by mst_key.

    A better value never has a shorter bar. Ranks decide if smaller values are better. The length is
    the quotient of the value and the best one, or of the best one and an error. If a value is
    negative, lengths are the positions between the worst value and the best.
    """
    values = {
        standing.mst_key: standing.value for standing in standings if is_finite(standing.value)
    }
    low = min(values.values(), default=0.0)
    high = max(values.values(), default=0.0)
    best = high
    worst = low
    if _is_error(standings):
        best = low
        worst = high

    def measure(value: float) -> float:
        if value == best:
            return 1.0
        if low < 0:
            # Halves do not overflow.
            return abs(value / 2 - worst / 2) / (high / 2 - low / 2)
        return min(value, best) / max(value, best)

    return {mst_key: measure(value) for mst_key, value in values.items()}


def _is_error(standings: Sequence[Standing]) -> bool:
    """Return whether smaller values have better ranks; ranks are those of a group of rows."""
    ordered = [standing for standing in standings if is_finite(standing.value)]
    ordered.sort(key=lambda standing: standing.rank)
    ordered.sort(key=lambda standing: (standing.group_value or "", standing.status == "failed"))
    return any(
        better.group_value == worse.group_value and better.value < worse.value  # type: ignore[operator]
        for better, worse in pairwise(ordered)
    )


def _make_row(standing: Standing, params: str) -> list[str]:
    return [
        str(standing.rank),
        str(standing.mst_key),
        standing.template or "",
        params,
        format_number(standing.value),
        str(standing.status),
        str(standing.epochs),
        format_seconds(standing),
    ]
