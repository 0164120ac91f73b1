"""The final comparison of a run's configurations, by a metric that trainers do not compute.

It is computed from the predictions for the hold-out rows, as `cerebro.evaluate` computes it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

from cerebro_plpy.configs.train_spec import TrainSpec
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sessions.spi import Row
from cerebro_plpy.operations.train.holdout_predictions import HoldoutRows, predict_holdout
from cerebro_plpy.operations.train.run_results import RunResults
from cerebro_plpy.operations.train.train_ensemble import Candidate
from cerebro_plpy.operations.train_budget import compute_max_candidates
from cerebro_plpy.preprocessing.scoring.ensemble_selection import find_best
from cerebro_plpy.preprocessing.scoring.fit_calibration import fit_calibration
from cerebro_plpy.preprocessing.scoring.metrics import LARGER_IS_BETTER, SCORES
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRows
from cerebro_plpy.tables.models.model_registry import RunResult


def rank_candidates(
    results: RunResults, rows: HoldoutRows, candidates: Sequence[Candidate], count: int
) -> list[Candidate]:
    """Return the best candidates with their predictions, the best first; log the values of all.

    Args:
        candidates: in the order of the search, which decides between equal values.
        count: number of candidates to return.
    """
    metric = results.train_spec.metric
    best: list[Candidate] = []
    values: list[RunResult] = []
    for candidate in candidates:
        scored_rows = predict_holdout(results.context, rows, candidate.network)
        result = candidate.result._replace(value=SCORES[metric](scored_rows))
        values.append(result)
        best.append(candidate._replace(result=result, scored_rows=scored_rows))
        best.sort(key=lambda scored: _make_loss(metric, scored.result.value))
        del best[count:]  # predictions need memory
    log_values(results, values)
    return best


def choose_group_result(
    results: RunResults,
    rows: HoldoutRows | None,
    candidates: Sequence[tuple[RunResult, Row]],
    deadline: float,
) -> RunResult:
    """Return the best configuration of a group, with its value as far as there is time.

    Args:
        candidates: configurations of the group with their log entries, in the order of the search.
        deadline: no value is computed after it, by time.monotonic().
    """
    metric = results.train_spec.metric
    scored: list[RunResult] = []
    for result, config in candidates:
        if rows is None or time.monotonic() >= deadline:
            break
        network = results.make_network(result, config)
        predictions = predict_holdout(results.context, rows, network, config["group_value"])
        scored.append(result._replace(value=SCORES[metric](predictions)))
    log_values(results, scored)
    values = [math.nan if result.value is None else result.value for result in scored]
    place = find_best(values, metric in LARGER_IS_BETTER)
    if place is None:
        first, _ = candidates[0]
        return first._replace(value=None)
    return scored[place]


def count_group_candidates(results: RunResults) -> int:
    """Return how many configurations of each group are compared once more at the end."""
    train_spec = results.train_spec
    count = compute_max_candidates(train_spec.budget, train_spec.split.validation_rows)
    return max(1, count // max(1, len(train_spec.grouping.layouts)))


def log_values(results: RunResults, scored: Sequence[RunResult]) -> None:
    """Log the values of configurations, by which the leaderboard ranks the completed run."""
    keys = [result.mst_key for result in scored]
    values = [result.value for result in scored]
    statement = sql("version.add_final_values")
    results.context.control.run(
        statement, (results.train_spec.metric, keys, values, results.run.run_id)
    )


def _make_loss(metric: str, value: float | None) -> float:
    """Return the value so that smaller ones are better; NaN is the worst."""
    if value is None or math.isnan(value):
        return math.inf
    return -value if metric in LARGER_IS_BETTER else value


def calibrate_result(
    train_spec: TrainSpec, result: RunResult, rows: ScoredRows
) -> tuple[RunResult, ScoredRows]:
    """Return a result with its calibration and its value, and the rows as it predicts them.

    Args:
        rows: predictions of the network for the rows that were held back, if there are any.
    """
    calibration = fit_calibration(train_spec.task, train_spec.metric, rows, train_spec.costs)
    result = result._replace(margin=calibration.margin, calibration=calibration)
    if not rows:
        return result, rows
    rows = calibration.correct(rows)
    if result.value is None or calibration.corrects_classes:
        result = result._replace(value=SCORES[train_spec.metric](rows))
    return result, rows
