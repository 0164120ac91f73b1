"""What it takes to read a run's log: as much as it has, also where statistics are older than the
run.

Of a run that is newer than they are the planner expects a single row of each table. A plan by which
each configuration goes through all visits is as good then as any other, and takes minutes where the
run turns out to be large.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from workbench import Workbench, superuser

EPOCHS, SEGMENTS, FEW = 4, 2, 30
RUN = """
INSERT INTO cerebro.run_log (name, status, spec, epochs, segments, pid)
VALUES ('large', 'completed',
    '{"rank_metric": "accuracy", "rank_dataset": "validation", "rank_descending": true}',
        %s, ARRAY(SELECT generate_series(0, %s - 1)), pg_backend_pid()) RETURNING run_id"""
CONFIGS = """
INSERT INTO cerebro.config_log (run_id, mst_key, params, status, model_id, compile_params,
    fit_params, architecture)
SELECT %s, k, jsonb_build_object('lr', k), 'completed', 1, '', '', '{}' FROM generate_series(1,
    %s) k"""
VISITS = """
INSERT INTO cerebro.visit (run_id, epoch, mst_key, segment_id, visit_no, attempt, status,
    started_at, ended_at, rows)
SELECT %s, e, k, s, (e - 1) * %s + s + 1, 1, 'completed', now(), now(), 100
FROM generate_series(1, %s) k, generate_series(1, %s) e, generate_series(0, %s - 1) s"""
METRICS = """
INSERT INTO cerebro.metric (run_id, mst_key, epoch, dataset, name, value)
SELECT %s, k, e, d, m, k + e FROM generate_series(1, %s) k, generate_series(1, %s) e,
    unnest('{training,validation}'::text[]) d, unnest('{loss,accuracy}'::text[]) m"""
DECISIONS = """
INSERT INTO cerebro.decision_log (run_id, decision_no, mst_key, action, rule, epoch, visits,
    last_epoch, reason)
SELECT %s, k, k, 'start', 'asha', 0, 0, %s, 'for a test' FROM generate_series(1, %s) k"""
LOG = ("run_log", "config_log", "visit", "metric", "decision_log")
VIEWS = {
    "cerebro.config": "run_id",
    "cerebro.newest_value": "run_id",
    "cerebro.leaderboard": "run_id",
    "cerebro.progress": "run_id",
    "cerebro.timeline": "run_id",
    "cerebro.learning_curve": "run_id",
    "cerebro.cost": "run_id",
    "cerebro_optuna.trials": "study_id",
}


@pytest.fixture
def writer(bench: Workbench) -> Iterator[Workbench]:
    """A superuser's session in a transaction of which nothing stays."""
    with closing(superuser(bench)) as session:
        session.rows("BEGIN")
        yield session
        session.rows("ROLLBACK")


def logged(session: Workbench, configs: int) -> int:
    """A run of so many configurations that has trained them."""
    run = int(session.value(RUN, EPOCHS, SEGMENTS))
    session.rows(CONFIGS, run, configs)
    session.rows(VISITS, run, SEGMENTS, configs, EPOCHS, SEGMENTS)
    session.rows(METRICS, run, configs, EPOCHS)
    session.rows(DECISIONS, run, EPOCHS, configs)
    return run


def passed(node: dict[str, object]) -> float:
    """The rows that a plan went through, those that it passed over included, however often it
    did.
    """
    own = sum(float(str(node.get(name, 0))) for name in ("Actual Rows", "Rows Removed by Filter"))
    own += float(str(node.get("Rows Removed by Join Filter", 0)))
    plans = node.get("Plans", [])
    assert isinstance(plans, list)
    return own * float(str(node["Actual Loops"])) + sum(map(passed, plans))


@pytest.mark.postgresql("what a plan went through is in the form of PostgreSQL's EXPLAIN")
def test_what_is_read_of_a_run_grows_with_it_where_statistics_are_old(writer: Workbench) -> None:
    for _ in range(2):
        logged(writer, FEW)
    for table in LOG:
        writer.rows(f"ANALYZE cerebro.{table}")
    runs = [logged(writer, FEW * times) for times in (1, 2)]
    for view, key in VIEWS.items():
        told = [
            writer.value(
                f"EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM {view} WHERE {key} = %s", run
            )
            for run in runs
        ]
        few, many = (passed(each[0]["Plan"]) for each in told)
        assert many <= 2.5 * few, (
            f"{view} went through {few} rows of {FEW} configurations, {many} of {2 * FEW}"
        )


def test_it_tells_the_same_of_each_configuration(writer: Workbench) -> None:
    """Values, times, decisions and epochs of one are its own."""
    run = logged(writer, FEW)
    told = writer.rows(
        "SELECT mst_key, rank, epochs, value, validation, training FROM cerebro.leaderboard WHERE "
        "run_id = %s ORDER BY 1",
        run,
    )
    values = [
        (k, FEW + 1 - k, EPOCHS, k + EPOCHS, k + EPOCHS, k + EPOCHS) for k in range(1, FEW + 1)
    ]
    assert told == values
    done = "SELECT visits_done, visits_total FROM cerebro.progress WHERE run_id = %s"
    assert writer.rows(done, run) == [(FEW * EPOCHS * SEGMENTS,) * 2]
