"""Calibration of a new version, or of the model of a group, by the rows that were held back."""

from __future__ import annotations

from collections.abc import Sequence

from cerebro_plpy.preprocessing.learning.target import REGRESSION
from cerebro_plpy.preprocessing.scoring.calibration import NO_CALIBRATION, Calibration
from cerebro_plpy.preprocessing.scoring.error_quantiles import ErrorQuantiles
from cerebro_plpy.preprocessing.scoring.metrics import ScoredRow, absolute_errors


def fit_calibration(task: str, rows: Sequence[ScoredRow]) -> Calibration:
    """Return the calibration of a model.

    Args:
        rows: predictions for the rows that were held back; none if they were removed.
    """
    if not rows or task != REGRESSION:
        return NO_CALIBRATION
    return Calibration(errors=ErrorQuantiles.from_errors(absolute_errors(rows)))
