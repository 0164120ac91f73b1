"""Calibration of a new version, or of the model of a group, by the rows that were held back."""

from __future__ import annotations

from cerebro_plpy.preprocessing.learning.target import REGRESSION
from cerebro_plpy.preprocessing.scoring.calibration import Calibration
from cerebro_plpy.preprocessing.scoring.class_costs import NO_COSTS, Costs, find_threshold
from cerebro_plpy.preprocessing.scoring.error_quantiles import ErrorQuantiles
from cerebro_plpy.preprocessing.scoring.metrics import absolute_errors
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRows
from cerebro_plpy.preprocessing.scoring.temperature import fit_temperature
from cerebro_plpy.preprocessing.scoring.threshold import fit_threshold


def fit_calibration(
    task: str, metric: str, rows: ScoredRows, costs: Costs = NO_COSTS
) -> Calibration:
    """Return the calibration of a model.

    Args:
        metric: the metric by which versions are compared; without costs, a threshold is chosen for
            it.
        rows: predictions for the rows that were held back; none if they were removed.
        costs: of mistakes, if the call names them.
    """
    if not rows:
        return Calibration(costs=costs)
    if task == REGRESSION:
        return Calibration(errors=ErrorQuantiles.from_errors(absolute_errors(rows)))
    heated = Calibration(temperature=fit_temperature(rows), costs=costs)
    if costs:
        return heated._replace(threshold=find_threshold(costs, rows.classes))
    return heated._replace(threshold=fit_threshold(metric, heated.correct(rows)))
