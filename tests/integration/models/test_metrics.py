"""The metric of `cerebro.train` chooses the version, and is the one that `cerebro.evaluate` has."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg2
import pytest
from workbench import Workbench

from cerebro_plpy.operations.train_arguments import FINAL_METRICS, METRICS
from cerebro_plpy.preprocessing.learning.target import CLASSIFICATION, REGRESSION

PARCELS = """
    CREATE TABLE parcels AS
    SELECT n AS id, weight, n % 4 = 0 AS later, weight > 9.4 AND n % 3 > 0 AS broken,
           (ARRAY['near', 'far', 'abroad'])[1 + (weight / 4)::integer] AS zone,
           (ARRAY['north', 'south'])[1 + n / 4 % 2] AS depot,
           1 + weight * 2 + n % 5 / 4.0 AS price
    FROM generate_series(1, 400) n, LATERAL (SELECT n * 7919 % 101 / 10.0 AS weight) w;
    CREATE VIEW kept AS SELECT * FROM parcels WHERE later"""
SMALL = "columns => 'weight', split => 'column later', models => '{linear}', seed => 1"
QUICK = f"{SMALL}, configs => 1, epochs => 3, ensemble => 1, refit => 'none'"
UNEVEN = f"""{SMALL.replace("seed => 1", "seed => 3")}, configs => 4, epochs => 12,
    ensemble => 1, metric => 'balanced_accuracy', refit => 'none',
    space => '{{"class_weight": ["none", "auto"], "lr": [0.02, 0.05]}}'"""
TARGETS = {CLASSIFICATION: "zone", REGRESSION: "price"}
ASKED = [(task, metric) for task, metrics in METRICS.items() for metric in metrics]
USUAL = ((CLASSIFICATION, "average_precision"), (REGRESSION, "mape"), (REGRESSION, "mae"))


@pytest.fixture(scope="module")
def parcels(bench: Workbench) -> Workbench:
    bench.rows(PARCELS)
    return bench


@pytest.fixture
def session(parcels: Workbench) -> Iterator[Workbench]:
    parcels.messages()
    yield parcels
    parcels.rows("ROLLBACK")


def evaluate(session: Workbench, model: str, metric: str, source: str = "kept") -> float:
    """Return a metric of the rows that a model holds back."""
    query = "SELECT value FROM cerebro.evaluate(%s, %s) WHERE metric = %s AND class IS NULL"
    value: float = session.value(query, model, source, metric)
    return value


@pytest.mark.long_for(asked=tuple(asked for asked in ASKED if asked not in USUAL))
@pytest.mark.parametrize("asked", ASKED, ids=[metric for _, metric in ASKED])
def test_the_leaderboard_has_what_evaluate_says_of_the_rows_held_back(
    session: Workbench, asked: tuple[str, str]
) -> None:
    task, metric = asked
    call = f"cerebro.train('parcels', '{TARGETS[task]}', '{metric}', metric => '{metric}', {QUICK})"
    run_id, name, validation = session.row(f"SELECT run_id, metric, validation FROM {call}")
    value = session.value("SELECT value FROM cerebro.model WHERE model = %s", metric)
    wanted = pytest.approx(evaluate(session, metric, metric), rel=1e-5)
    assert value == wanted
    corrected = session.value(
        "SELECT temperature <> 1 OR threshold IS NOT NULL FROM cerebro.model_version "
        "WHERE model = %s",
        metric,
    )
    if not corrected:
        assert validation == wanted
    assert name == (metric if metric in FINAL_METRICS else METRICS[task][metric])
    best = session.value("SELECT best_value FROM cerebro.progress WHERE run_id = %s", run_id)
    assert best == validation
    searches = [text for text in session.messages() if "; the search goes by" in text]
    assert len(searches) == (metric in FINAL_METRICS)
    if metric == "mape":
        check_refresh_of_zeros(session)


def check_refresh_of_zeros(session: Workbench) -> None:
    """Check that rows for which the metric is not defined are refused by a refresh."""
    session.rows("INSERT INTO parcels (id, weight, later, price) VALUES (1001, 2, true, 0)")
    for since in ("", ", since => 'id'"):
        with pytest.raises(psycopg2.Error, match="not defined for a target of 0, as 1 of") as error:
            session.rows(f"SELECT * FROM cerebro.refresh('mape'{since})")
        assert error.value.pgcode == "22023"
    session.rows("DELETE FROM parcels WHERE id > 1000")


@pytest.fixture(scope="module")
def uneven(parcels: Workbench) -> tuple[list[tuple[int, str, float, float]], list[str]]:
    """Train a few configurations for a rare class; return the leaderboard and the messages."""
    parcels.messages()
    parcels.rows(f"SELECT * FROM cerebro.train('parcels', 'broken', 'uneven', {UNEVEN})")
    query = """
        SELECT b.mst_key, b.metric, b.validation, m.value
        FROM cerebro.leaderboard b JOIN cerebro.config c USING (run_id, mst_key)
             JOIN cerebro.metric m USING (run_id, mst_key)
        WHERE b.run_id = (SELECT v.run_id FROM cerebro.model_version v WHERE v.model = 'uneven')
          AND m.name = 'loss' AND m.dataset = 'validation' AND m.epoch = c.best_epoch
        ORDER BY b.rank, b.mst_key"""
    return parcels.rows(query), parcels.messages()


def test_the_version_is_the_best_by_the_metric_that_was_asked_for(
    session: Workbench, uneven: tuple[list[tuple[int, str, float, float]], list[str]]
) -> None:
    """The search went by another one, which would have chosen another configuration.

    The leaderboard compares the more probable classes; the version predicts from a threshold on.
    """
    board, _ = uneven
    query = (
        "SELECT mst_key, metric, value, threshold FROM cerebro.model_version WHERE model = 'uneven'"
    )
    values = [value for _, _, value, _ in board]
    assert len(board) == 4 and values == sorted(values, reverse=True)
    mst_key, metric, value, threshold = session.row(query)
    assert (mst_key, metric) == board[0][:2]
    assert threshold is not None and value > values[0]
    losses = [loss for _, _, _, loss in board]
    assert losses[0] > min(losses)
    assert evaluate(session, "uneven", "balanced_accuracy") == pytest.approx(value)
    logged = session.value("SELECT loss FROM cerebro.version_log WHERE model = 'uneven'")
    assert evaluate(session, "uneven", "log_loss") == pytest.approx(logged)


def test_a_later_version_is_compared_by_the_same_metric(
    session: Workbench, uneven: tuple[list[tuple[int, str, float, float]], list[str]]
) -> None:
    session.rows(
        "INSERT INTO parcels SELECT id + 400, weight, later, broken, zone, depot, price "
        "FROM parcels WHERE id <= 40"
    )
    run_id, deployed, metric, value = session.row(
        "SELECT run_id, deployed, metric, value FROM cerebro.refresh('uneven')"
    )
    values = session.rows(
        "SELECT value FROM cerebro.model_version WHERE model = 'uneven' ORDER BY version"
    )
    assert metric == "balanced_accuracy" and (value,) == values[1]
    board = "SELECT metric, validation FROM cerebro.leaderboard WHERE run_id = %s"
    board_metric, board_value = session.row(board, run_id)
    assert board_metric == metric and value >= board_value  # the version has a threshold, too
    best = max((value, version) for version, (value,) in enumerate(values, 1))
    assert session.value("SELECT cerebro.deploy('uneven', 'best')") == best[1]
    # The first version saw fewer rows; over those of now, the newest is better or it is not.
    session.rows("SELECT cerebro.deploy('uneven', '1')")
    old = evaluate(session, "uneven", metric)
    assert deployed == (value > old) or value == old  # then the loss decides


@pytest.mark.long
@pytest.mark.postgresql("on Greenplum group_by is refused")
def test_models_of_groups_are_compared_by_the_same_metric(session: Workbench) -> None:
    session.rows(
        f"""SELECT * FROM cerebro.train('parcels', 'zone', 'depots', {SMALL}, configs => 3,
            epochs => 6, metric => 'f1', group_by => 'depot', min_group_rows => 50)"""
    )
    groups = session.rows(
        "SELECT group_value, run_id, mst_key, value FROM cerebro.model_group WHERE model = 'depots'"
    )
    assert {group for group, *_ in groups} == {"north", "south"}
    for group, run_id, mst_key, value in groups:
        board = session.rows(
            """SELECT mst_key, metric, validation FROM cerebro.leaderboard
               WHERE run_id = %s AND group_value = %s ORDER BY rank, mst_key""",
            run_id,
            group,
        )
        assert len(board) == 3 and board[0] == (mst_key, "f1", value)
        evaluated = session.value(
            """SELECT value FROM cerebro.evaluate('depots', 'kept', 'depot')
               WHERE metric = 'f1' AND class IS NULL AND group_values ->> 'depot' = %s""",
            group,
        )
        assert evaluated == pytest.approx(value, rel=1e-5)


def test_a_rare_class_is_told_of_with_arguments_that_work(
    session: Workbench, uneven: tuple[list[tuple[int, str, float, float]], list[str]]
) -> None:
    """Nothing is advised that the call has."""
    _, messages = uneven
    assert not any("rarest class" in text or "for none of" in text for text in messages)
    call = "cerebro.train('parcels', 'broken', 'plain', {})"
    session.rows(f"SELECT * FROM {call.format(QUICK)}")
    advice = (
        "compare models by metric => 'balanced_accuracy', and weigh classes by "
        """space => '{"class_weight": "auto"}'"""
    )
    rare, unpredicted = (
        text for text in session.messages() if text.startswith("NOTICE:  ") and advice in text
    )
    assert re.search(r"the rarest class, 'true', has [234]\.\d % of the rows: 1\d of 4\d\d", rare)
    assert re.search(
        r"version 1 of model 'plain' predicts 'true' for none of the 1\d\d", unpredicted
    )
    arguments = re.findall(r"\w+ => '[^']*'", rare)
    assert len(arguments) == 2
    plan = f"cerebro.plan('parcels', 'broken', {', '.join((QUICK, *arguments))})"
    rows = session.rows(f"SELECT name, what, why FROM {plan} WHERE section IN ('target', 'metric')")
    assert rows[1][0] == "rarest class" and rows[1][2] is None
    assert rows[2][:2] == (
        "balanced_accuracy",
        "decides which model is the best at the end; the search goes by log_loss",
    )


def test_the_advice_keeps_the_space_of_the_call(session: Workbench) -> None:
    space = """space => '{"lr": 0.1}'"""
    plan = f"cerebro.plan('parcels', 'broken', metric => 'f1', {space}, {QUICK})"
    why = session.value(f"SELECT why FROM {plan} WHERE name = 'rarest class'")
    assert why == """weigh classes by space => '{"lr": 0.1, "class_weight": "auto"}'"""


UNDEFINED = {
    "auc": ("auc", "id > 0 AND NOT later AND id % 2 = 0", "one class: all of the", "log_loss"),
    "average precision": ("average_precision", "id % 2 = 0", "have 'true'", "log_loss"),
    "r2": ("r2", "CASE WHEN later THEN 5.0 ELSE price END", "one number: all of the", "rmse"),
    "mape": ("mape", "price - 3 * (id % 8)", "a target of 0, as", "mae"),
}


@pytest.mark.parametrize(("metric", "target", "words", "other"), UNDEFINED.values(), ids=UNDEFINED)
def test_a_metric_that_the_rows_held_back_leave_undefined_is_refused_before_training(
    session: Workbench, metric: str, target: str, words: str, other: str
) -> None:
    view = f"CREATE VIEW partly AS SELECT id, weight, later, {target} AS y FROM parcels"
    session.rows(f"DROP VIEW IF EXISTS partly; {view}")
    runs = session.value("SELECT count(*) FROM cerebro.run")
    for call in ("plan", "train"):
        statement = f"SELECT * FROM cerebro.{call}('partly', 'y', metric => '{metric}', {QUICK})"
        with pytest.raises(psycopg2.Error) as error:
            session.rows(statement)
        assert error.value.pgcode == "22023"
        assert f"metric is '{metric}', which is not defined for" in str(error.value)
        assert words in str(error.value) and error.value.diag.message_hint
        assert f"metric => '{other}'" in error.value.diag.message_hint
    assert session.value("SELECT count(*) FROM cerebro.run") == runs
    session.rows(f"SELECT * FROM cerebro.plan('partly', 'y', metric => '{other}', {QUICK})")


def test_a_search_has_no_target_of_a_metric_that_it_does_not_compute(session: Workbench) -> None:
    search = """search => 'asha', search_params => '{"target": 0.9}'"""
    plan = f"SELECT * FROM cerebro.plan('parcels', 'zone', metric => '%s', {search}, {SMALL})"
    with pytest.raises(psycopg2.Error, match="computed at the end only") as error:
        session.rows(plan % "f1")
    assert error.value.pgcode == "22023"
    assert "metric => 'log_loss'" in (error.value.diag.message_hint or "")
    session.rows(plan % "log_loss")


def test_classes_with_few_rows_are_named(session: Workbench) -> None:
    session.rows(
        """CREATE VIEW few AS SELECT id, weight, later,
           CASE id WHEN 1 THEN 'single' WHEN 4 THEN 'new' WHEN 8 THEN 'new' ELSE zone END AS zone
           FROM parcels"""
    )
    plan = f"cerebro.plan('few', 'zone', {QUICK})"
    rows = session.rows(f"SELECT name, what, why FROM {plan} WHERE section IN ('target', 'rows')")
    told = {name: f"{what}; {why}" for name, what, why in rows}
    assert told["single rows"].startswith("classes with a single row: 'single'")
    assert "2 rows" in told["left out, too"] and told["left out, too"].endswith("on: 'new'")
