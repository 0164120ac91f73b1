"""Learning curves that a shell shows as a table, and a notebook as a chart."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from cerebro_db.display.board_list import Board
from cerebro_db.records import Point
from cerebro_db.result_set import Records


class Curves(Records[Point]):
    """The metrics of all configs of a run, by epoch."""

    def __init__(self, points: Records[Point], read_board: Callable[[], Board]) -> None:
        """Create the list.

        Args:
            read_board: returns the leaderboard of the run, for the legend of the chart.
        """
        super().__init__(points, points.columns)
        self._read_board = read_board

    def _repr_html_(self) -> str | None:  # type: ignore[override]
        """Return a table; None if matplotlib is installed, so that a notebook shows the chart."""
        if find_spec("matplotlib"):
            return None
        return super()._repr_html_()

    def _repr_png_(self) -> bytes | None:
        """Return a chart with a panel for each metric and data set; None without matplotlib.

        Pages that show stored notebooks, such as those of a repository, draw no SVG.
        """
        try:
            from cerebro_db.display.charts import draw_learning_curves
        except ImportError:
            return None
        board = self._read_board()
        best = board[0].mst_key if board else None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "curves.png"
            draw_learning_curves(self, path, best=best, params=board.describe_configs())
            return path.read_bytes()
