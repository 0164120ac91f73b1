"""Runs that may use so much and no more: they end at borders of visits, say so, and are repeated as
they were.
"""

from __future__ import annotations

import json
import re
from contextlib import closing

import psycopg2
import pytest
from followed_hints import read_hint
from models import NOISY
from processes import eventually
from workbench import Workbench, setting, several

from cerebro_plpy.scheduling.quota.cost_limits import GB_MONTH, HOUR

FIT_WORKERS = 1
EPOCHS, SEGMENTS = 8, 2
GRID = {"search": "grid", "seed": 1, "schedule": "rotation", "metrics_compute_frequency": 4}
LATE = """
SELECT v.mst_key, v.visit_no, sum(b.trainer_seconds + b.backend_seconds)
FROM cerebro.visit v
LEFT JOIN cerebro.visit f ON f.run_id = v.run_id AND f.mst_key = v.mst_key
    AND f.visit_no = v.visit_no - 1
JOIN (SELECT run_id, trainer_seconds, backend_seconds, coalesce(stored_at, ended_at) AS logged_at
    FROM cerebro.visit
      UNION ALL
      SELECT run_id, trainer_seconds, backend_seconds, ended_at FROM cerebro.evaluation) b
    ON b.run_id = v.run_id AND b.logged_at <= v.started_at
WHERE v.run_id = %s AND (f.visit_no IS NULL OR f.state_table IS NOT NULL)
GROUP BY v.mst_key, v.visit_no HAVING sum(b.trainer_seconds + b.backend_seconds) >= %s"""
"""Visits that began when the log had so much; those that follow one in the same job begin with
that.
"""
SPENT = (
    "SELECT sum(trainer_seconds) + sum(backend_seconds), sum(money) FROM cerebro.cost WHERE "
    "run_id = %s"
)
STATES = "SELECT mst_key, status, epochs, ended_by FROM cerebro.config WHERE run_id = %s ORDER BY 1"
VISITS = (
    "SELECT mst_key, epoch, segment_id, visit_no FROM cerebro.visit WHERE run_id = %s ORDER BY "
    "mst_key, visit_no"
)
DECISIONS = (
    "SELECT mst_key, action, visits, reason FROM cerebro.decision WHERE run_id = %s AND rule = %s "
    "ORDER BY 1"
)


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", SEGMENTS)
    bench.configure("three", several(3), ["batch_size=1,epochs=20"], bench.model(NOISY))


def weights(bench: Workbench, model: str) -> dict[int, bytes]:
    """Those of configurations that have begun."""
    return dict(
        bench.rows(f"SELECT mst_key, model_weights FROM {model} WHERE model_weights IS NOT NULL")
    )


def check_end(bench: Workbench, run: int, limit: str, seconds: float) -> None:
    """It used so much, no visit began when the log had that, and it says why each configuration has
    ended.
    """
    assert bench.rows(LATE, run, seconds) == []
    assert bench.value(f"SELECT s.cpu FROM ({SPENT}) s (cpu, money)", run) >= seconds
    stopped = [
        key
        for key, status, _, rule in bench.rows(STATES, run)
        if (status, rule) == ("stopped", limit)
    ]
    made = bench.rows(DECISIONS, run, limit)
    assert stopped and [key for key, *_ in made] == stopped
    count = (
        "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND mst_key = %s AND status = "
        "'completed'"
    )
    for key, action, visits, reason in made:
        assert action == "stop" and visits <= bench.value(count, run, key) < EPOCHS * SEGMENTS
        assert " of " in reason and re.search(" (are|is) (used|spent)$", reason)


def test_a_run_that_has_used_its_processor_time_ends_and_is_repeated(bench: Workbench) -> None:
    limit = 1.0
    bench.messages()
    params = json.dumps({"max_cpu": "1 second"})
    run = bench.fit("packed", "limited", "three", EPOCHS, **GRID, search_params=params)
    said = "\n".join(bench.messages())
    assert "of 1 processor second is used" in said and "the budget was over" in said
    logged = "SELECT spec ->> 'search_params' FROM cerebro.run WHERE run_id = %s"
    assert json.loads(bench.value(logged, run)) == {"max_cpu": limit}
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "completed"
    check_end(bench, run, "max_cpu", limit)
    again = bench.fit("packed", "repeated", "three", EPOCHS, schedule="replay", replay_run=run)
    assert bench.rows(VISITS, again) == bench.rows(VISITS, run)
    assert weights(bench, "repeated") == weights(bench, "limited") != {}
    assert bench.rows(DECISIONS, again, "max_cpu") == [], "no clock decides that again"


def test_a_run_ends_when_it_has_cost_enough(bench: Workbench) -> None:
    asked = {**GRID, "search_params": json.dumps({"max_cost": 0.25})}
    with pytest.raises(psycopg2.Error, match=r"max_cost is .*, but nothing has a price") as error:
        bench.fit("packed", "dear", "three", EPOCHS, **asked)
    assert error.value.pgcode == "55000" and "price_per_core_hour" in str(
        error.value.diag.message_hint
    )
    assert not bench.exists("dear")
    with setting(bench, "price_per_core_hour", "900"):  # a quarter of one a second
        run = bench.fit("packed", "dear", "three", EPOCHS, **asked)
        check_end(bench, run, "max_cost", 0.25 / 900.0 * HOUR)
        assert bench.row(SPENT, run)[1] >= 0.25


def test_states_are_paid_for_as_well(bench: Workbench) -> None:
    asked = {**GRID, "search_params": json.dumps({"max_cost": 1.0})}
    with setting(bench, "price_per_gb_month", f"{GB_MONTH / 100:.0f}"):  # of 100 bytes, 1 a second
        run = bench.fit("packed", "lying", "three", EPOCHS, **asked)
    assert {rule for *_, rule in bench.rows(STATES, run)} == {"max_cost"}


@pytest.mark.long
def test_what_was_used_before_it_was_resumed_counts(bench: Workbench) -> None:
    limit = 8.0  # more than what starting and the first visit take
    asked = {**GRID, "search_params": json.dumps({"max_cpu": limit})}
    with (
        closing(bench.another()) as other,
        other.fitting("packed", "cut", "three", 600, **asked) as fitted,
    ):
        newest = "run_id = (SELECT max(run_id) FROM cerebro.run WHERE status = 'running')"
        made = f"SELECT run_id FROM cerebro.visit WHERE status = 'completed' AND {newest}"
        run = eventually(lambda: bench.rows(made))[0][0]
        assert bench.value("SELECT cerebro.cancel(%s)", run)
        with pytest.raises(psycopg2.Error):
            fitted.result()
    before = bench.row(SPENT, run)[0]
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert bench.rows(LATE, run, limit) == [] and before < limit <= bench.row(SPENT, run)[0]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"max_cpu": 0}, "max_cpu in search_params is 0; expected an interval or a number"),
        ({"max_cpu": "0 seconds"}, "max_cpu in search_params is 0.0; expected an interval"),
        ({"max_cpu": "-1 hour"}, "max_cpu in search_params is '-1 hour'; expected an interval"),
        ({"max_cost": -1}, "max_cost in search_params is -1; expected a number above 0"),
        ({"max_cost": True}, "expected a number above 0"),
    ],
)
def test_what_no_run_may_cost_is_refused(
    bench: Workbench, params: dict[str, object], words: str
) -> None:
    with pytest.raises(psycopg2.Error) as error:
        bench.fit("packed", "never", "three", EPOCHS, **GRID, search_params=json.dumps(params))
    assert error.value.pgcode == "22023" and words in str(error.value)


def test_a_limit_that_is_no_interval_is_refused(bench: Workbench) -> None:
    params = json.dumps({"max_cpu": "soon"})
    with pytest.raises(psycopg2.Error, match="is 'soon'; expected an interval or a") as caught:
        bench.fit("packed", "never", "three", EPOCHS, **GRID, search_params=params)
    assert caught.value.pgcode == "22023"
    hint = read_hint(caught.value, "For example search_params => '{}'.")
    params = hint.partition("=> '")[2].rpartition("'")[0]
    plan = "SELECT count(*) FROM cerebro.plan_fit('packed', 'three', 1, search => 'grid', "
    assert bench.value(f"{plan} search_params => %s)", params)


TRAIN = """
SELECT run_id FROM cerebro.train('points', 'label', columns => 'a, b', models => '{linear}',
    configs => 2, seed => 1,
                                 model => 'frugal', epochs => 2000, budget => '10 minutes',
                                     max_cpu => '2 seconds',
                                 workers => 1)"""


@pytest.mark.long
def test_a_model_by_name_is_made_of_what_its_run_could_use(bench: Workbench) -> None:
    bench.rows("ALTER TABLE points ADD COLUMN a real, ADD COLUMN b real")
    bench.rows("UPDATE points SET a = x[1], b = x[2]")
    run = bench.rows(TRAIN)[0][0]
    assert bench.rows(LATE, run, 2.0) == [] and bench.row(SPENT, run)[0] >= 2.0
    assert {rule for *_, rule in bench.rows(STATES, run)} == {"max_cpu"}
    assert bench.value("SELECT count(*) FROM cerebro.model_version WHERE model = 'frugal'") == 1
    assert bench.value("SELECT ok FROM cerebro.verify('frugal') WHERE what = 'state'"), (
        "a replay comes to the same bits"
    )


def test_less_is_planned_where_less_may_be_used(bench: Workbench) -> None:
    plan = (
        "SELECT (data ->> 'configs')::integer * (data ->> 'epochs')::integer "
        "FROM cerebro.plan('points', 'label', seed => 1{}) WHERE name = 'configurations'"
    )
    most, less = (bench.value(plan.format(more)) for more in ("", ", max_cpu => '2 seconds'"))
    with setting(bench, "price_per_core_hour", "3600"):
        assert bench.value(plan.format(", max_cost => 2")) == less
    assert less < most


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ("max_cpu => '0 seconds'", "22023", "max_cpu is 0; expected more than 0"),
        ("max_cpu => '-1 seconds'", "22023", "expected an interval that is not negative"),
        ("max_cost => 'NaN'", "22023", "max_cost is nan"),
        ("max_cost => 5", "55000", "max_cost is 5, but nothing has a price"),
        (
            "search => 'asha', search_params => '{\"max_cpu\": 3}'",
            "22023",
            "max_cpu => '3 seconds', search_params => '{}'",
        ),
        (
            "search => 'asha', search_params => '{\"max_cpu\": \"5 minutes\"}'",
            "22023",
            "max_cpu => '5 minutes', search_params => '{}'",
        ),
    ],
)
@pytest.mark.parametrize("function", ["train", "plan"])
def test_wrong_calls(
    bench: Workbench, function: str, arguments: str, code: str, words: str
) -> None:
    with pytest.raises(psycopg2.Error) as error:
        bench.rows(
            f"SELECT * FROM cerebro.{function}('points', 'label', model => 'wrong', {arguments})"
        )
    assert error.value.pgcode == code and words in str(error.value)
