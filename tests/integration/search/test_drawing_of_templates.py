"""Searches of cerebro.train that learn: what templates are good to begin with, then what a sampler suggests."""

from __future__ import annotations

import psycopg2
import pytest
from processes import eventually
from roles import refused
from workbench import Workbench

CONFIGS, EPOCHS = 7, 3
VISITORS = """
    CREATE TABLE visitors AS
    SELECT n AS id, CASE WHEN n % 7 > 0 THEN 20 + n * 7919 % 50 END AS age, (ARRAY['a', 'b', NULL])[n % 3 + 1] AS deck,
           n * 31 % 97 / 10.0 AS fare, n % 3 = 0 OR n * 31 % 97 > 80 AS stayed
    FROM generate_series(1, 400) AS n"""
CALL = """
    SELECT * FROM cerebro.train('visitors', 'stayed', %s, models => '{realmlp_simple, linear}', seed => 3,
        configs => 7, epochs => 3, ensemble => 1, search => %s, search_params => %s,
        space => '{"width": [16, 32], "lr": [0.02, 0.2, "log"]}')"""
POINTS = """
    SELECT c.source, c.template, (c.params ->> 'lr')::float8, (c.params ->> 'width')::integer, l.point
    FROM cerebro.config c JOIN cerebro.config_log l USING (run_id, mst_key) WHERE c.run_id = %s ORDER BY c.mst_key"""


@pytest.fixture(scope="module", autouse=True)
def visitors(bench: Workbench) -> None:
    bench.rows(VISITORS)


def check(bench: Workbench, run: int) -> None:
    """It begins with usual values; all others are points of the space, as the log has them."""
    found = bench.rows(POINTS, run)
    assert [row[:2] for row in found[:2]] == [("call", "realmlp_simple"), ("call", "linear")]
    assert len(found) == CONFIGS and {row[0] for row in found[2:]} == {"search"}
    for _, template, rate, width, point in found[2:]:
        assert point["alternative"] == ["realmlp_simple", "linear"].index(template)
        assert rate == pytest.approx(point["values"][f"{template}/lr"], rel=1e-3) and 0.02 <= rate <= 0.2
        assert width == (None if template == "linear" else [16, 32][point["values"]["realmlp_simple/width"]])


@pytest.mark.parametrize(
    ("search", "params"), [("tpe", None), ("asha", '{"sampler": "cmaes"}')], ids=["tpe", "asha over cmaes"]
)
def test_a_search_draws_fields_of_templates(bench: Workbench, search: str, params: str | None) -> None:
    rows = bench.rows(CALL, search, search, params)
    run = rows[0][0]
    check(bench, run)
    assert bench.value("SELECT spec ->> 'search' FROM cerebro.run WHERE run_id = %s", run) == search
    assert bench.value("SELECT mst_key FROM cerebro.model_version WHERE run_id = %s", run) == rows[0][2]
    assert bench.value("SELECT ok FROM cerebro.verify(%s) WHERE what = 'state'", search)


def test_a_run_that_was_cut_goes_on_drawing(bench: Workbench) -> None:
    other = bench.another()
    before = other.newest_run()
    with bench.calling(lambda: bench.rows(CALL, "cut", "tpe", None)) as trained:
        eventually(lambda: other.newest_run() > before)
        run = other.newest_run()
        eventually(lambda: 2 < other.value("SELECT count(*) FROM cerebro.config WHERE run_id = %s", run) < CONFIGS)
        assert other.value("SELECT cerebro.cancel(%s)", run)
        with pytest.raises(psycopg2.Error):
            trained.result()
    other.close()
    bench.rows("SELECT cerebro.resume(%s)", run)
    check(bench, run)
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "completed"


@pytest.mark.parametrize(
    ("search", "params"),
    [("tpe", '{"sampler": "tpe"}'), ("halving", '{"sampler": "tpe"}'), ("asha", '{"sampler": "luck"}'),
     ("asha", '{"space": {}}'), ("tpe", '{"configs": 9}'), ("luck", None)],
)  # fmt: skip
def test_what_cannot_be_searched_so_is_refused(bench: Workbench, search: str, params: str | None) -> None:
    refused(bench, CALL.replace("cerebro.train", "cerebro.plan"), "none", search, params, code="22023")
