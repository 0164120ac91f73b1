"""Learning curves as an answer: a list of its records, which a notebook shows as a picture."""

from __future__ import annotations

import tempfile
from pathlib import Path

from cerebro_db.records import Point
from cerebro_db.result_set import Records


class Curves(Records[Point]):
    """Every metric of every config after every epoch."""

    def __init__(self, points: Records[Point]) -> None:
        super().__init__(points, points.columns)

    def _repr_html_(self) -> str:
        """A panel per metric and data set, as SVG; a table where matplotlib is not installed."""
        try:
            from cerebro_db.display.charts import draw_learning_curves
        except ImportError:
            return super()._repr_html_()
        with tempfile.TemporaryDirectory() as folder:
            picture = draw_learning_curves(self, Path(folder) / "curves.svg").read_text()
        return picture[picture.index("<svg") :]
