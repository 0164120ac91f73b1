"""Metrics are computed beside training, and those of the training set only where they are
wanted.
"""

from __future__ import annotations

import pytest
from workbench import Workbench, several

TRAINING = "training_loss_final, training_metrics_final, training_loss, training_metrics"
VALIDATION = "validation_loss, validation_metrics, validation_loss_final, validation_metrics_final"


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.rows("SELECT validation_preprocessor_dl('points', 'held_out', 'label', 'x', 'packed')")
    bench.configure("three", several(3))


@pytest.mark.long
def test_the_training_set_is_left_out(bench: Workbench) -> None:
    runs = {}
    for name, wanted in (("with_training", True), ("without_training", False)):
        runs[name] = bench.fit(
            "packed",
            name,
            "three",
            2,
            validation_table="held_out",
            training_metrics=wanted,
            metrics_compute_frequency=1,
            seed=1,
            schedule="rotation",
        )
    (with_, without) = (
        bench.rows(
            f"SELECT i.mst_key, model_weights, {VALIDATION} FROM {name} JOIN {name}_info i USING "
            "(mst_key) ORDER BY mst_key"
        )
        for name in runs
    )
    assert [row[1:] for row in map(plain, with_)] == [row[1:] for row in map(plain, without)]
    assert bench.rows(f"SELECT DISTINCT {TRAINING} FROM without_training_info") == [(None,) * 4]
    assert bench.value("SELECT bool_and(training_loss_final > 0) FROM with_training_info")
    datasets = "SELECT DISTINCT dataset FROM cerebro.metric WHERE run_id = %s ORDER BY 1"
    assert bench.rows(datasets, runs["without_training"]) == [("validation",)]
    assert bench.rows(datasets, runs["with_training"]) == [("training",), ("validation",)]


def plain(row: tuple[object, ...]) -> list[object]:
    """A row whose bytes can be compared."""
    return [bytes(value) if isinstance(value, memoryview) else value for value in row]


def test_without_any_data_set_there_are_no_metrics(bench: Workbench) -> None:
    bench.messages()
    run = bench.fit("packed", "unmeasured", "three", 2, training_metrics=False)
    assert any("no metrics will be computed" in message for message in bench.messages())
    assert bench.rows(f"SELECT DISTINCT {TRAINING}, {VALIDATION} FROM unmeasured_info") == [
        (None,) * 8
    ]
    assert bench.value("SELECT metrics_iters IS NULL FROM unmeasured_summary")
    for log in ("metric", "evaluation"):
        assert not bench.rows(f"SELECT FROM cerebro.{log} WHERE run_id = %s", run), log
    ranked = bench.rows("SELECT status, value FROM cerebro.leaderboard WHERE run_id = %s", run)
    assert ranked == [("completed", None)] * 3
    assert bench.value("SELECT bool_and(loss > 0) FROM cerebro.visit WHERE run_id = %s", run)


def test_configs_are_evaluated_while_others_train(bench: Workbench) -> None:
    run = bench.fit("packed", "beside", "three", 6, metrics_compute_frequency=1, workers=2)
    overlapping = bench.value(
        "SELECT count(*) FROM cerebro.timeline e JOIN cerebro.timeline t USING (run_id)"
        " WHERE run_id = %s AND e.kind = 'evaluate' AND t.kind = 'train' AND e.mst_key <> t.mst_key"
        " AND e.started_at < t.ended_at AND t.started_at < e.ended_at",
        run,
    )
    assert overlapping > 0
