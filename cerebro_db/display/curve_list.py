"""Learning curves that a shell shows as a table, and a notebook as a chart."""

from __future__ import annotations

import tempfile
from pathlib import Path

from cerebro_db.records import Point
from cerebro_db.result_set import Records


class Curves(Records[Point]):
    """The metrics of all configs of a run, by epoch."""

    def __init__(self, points: Records[Point]) -> None:
        super().__init__(points, points.columns)

    def _repr_html_(self) -> str:
        """Return a panel for each metric and data set as SVG; without matplotlib, a table."""
        try:
            from cerebro_db.display.charts import draw_learning_curves
        except ImportError:
            return super()._repr_html_()
        with tempfile.TemporaryDirectory() as folder:
            svg = draw_learning_curves(self, Path(folder) / "curves.svg").read_text()
        return svg[svg.index("<svg") :]
