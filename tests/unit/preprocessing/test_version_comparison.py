"""A new version is better if its predictions are, by the metric and then by the loss."""

from __future__ import annotations

from cerebro_plpy.preprocessing.scoring.ensemble_selection import predicts_better
from cerebro_plpy.preprocessing.scoring.scored_rows import ScoredRow, ScoredRows

METRICS = ("accuracy", "log_loss")


def predict(*probabilities: float) -> ScoredRows:
    """Return predictions that give class a these probabilities; all rows have it."""
    return ScoredRows.collect(
        ScoredRow("a", {"a": share, "b": 1 - share}) for share in probabilities
    )


def test_the_metric_decides_before_the_loss() -> None:
    accurate = predict(0.6, 0.6, 0.6)
    confident = predict(0.99, 0.99, 0.4)
    assert predicts_better(METRICS, accurate, confident)
    assert not predicts_better(METRICS, confident, accurate)


def test_the_loss_decides_between_equal_values() -> None:
    surer = predict(0.9, 0.9)
    weaker = predict(0.6, 0.6)
    assert predicts_better(METRICS, surer, weaker)
    assert not predicts_better(METRICS, weaker, surer)


def test_equal_predictions_are_not_better() -> None:
    rows = predict(0.9, 0.3)
    assert not predicts_better(METRICS, rows, rows)
