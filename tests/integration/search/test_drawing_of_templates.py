"""Searches of cerebro.train that learn: what templates are good to begin with, then what a sampler
suggests.
"""

from __future__ import annotations

import json

import pytest
from acts import cut, done, done_at_once, let_end
from processes import eventually
from roles import refused
from workbench import Row, Workbench

CONFIGS, EPOCHS = 7, 3
VISITORS = """
    CREATE TABLE visitors AS
    SELECT n AS id, CASE WHEN n % 7 > 0 THEN 20 + n * 7919 % 50 END AS age, (ARRAY['a', 'b',
        NULL])[n % 3 + 1] AS deck,
           n * 31 % 97 / 10.0 AS fare, n % 3 = 0 OR n * 31 % 97 > 80 AS stayed
    FROM generate_series(1, 400) AS n"""
CALL = """
    SELECT * FROM cerebro.train('visitors', 'stayed', %s, models => '{realmlp_simple, linear}',
        seed => 3,
        configs => 7, epochs => 3, ensemble => 1,
        refit => 'none', workers => 1, search => %s, search_params => %s,
        space => '{"width": [16, 32], "lr": [0.02, 0.2, "log"]}')"""
POINTS = """
    SELECT c.source, c.template, (c.params ->> 'lr')::float8, (c.params ->> 'width')::integer,
        l.point
    FROM cerebro.config c JOIN cerebro.config_log l USING (run_id, mst_key) WHERE c.run_id = %s
        ORDER BY c.mst_key"""
TOLD = """
    SELECT (each -> 0)::bigint, (each -> 1)::integer, each -> 2, (each -> 3)::float8
    FROM cerebro.run, jsonb_array_elements(spec -> 'earlier_trials') AS each WHERE run_id = %s"""
PLACES = """SELECT mst_key, rank() OVER (ORDER BY value DESC NULLS LAST)
 FROM cerebro.leaderboard WHERE run_id = %s"""
DRAWN = (
    "SELECT template, params FROM cerebro.config WHERE run_id = %s AND source = 'search' ORDER BY "
    "mst_key"
)
RATES = "SELECT (params ->> 'lr')::float8 FROM cerebro.config WHERE run_id = %s"
LIKE = """
    SELECT run_id FROM cerebro.train('visitors', 'stayed', {}, models => '{{linear}}', epochs => 1,
        ensemble => 1, refit => 'none',
        workers => 1, {})"""


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
        assert (
            rate == pytest.approx(point["values"][f"{template}/lr"], rel=1e-3)
            and 0.02 <= rate <= 0.2
        )
        assert width == (
            None if template == "linear" else [16, 32][point["values"]["realmlp_simple/width"]]
        )


def test_a_search_draws_fields_of_templates(bench: Workbench) -> None:
    """By one sampler for a rule; `tpe` draws below."""
    rows = bench.rows(CALL, "drawn", "asha", '{"sampler": "cmaes"}')
    run = rows[0][0]
    check(bench, run)
    assert bench.value("SELECT spec ->> 'search' FROM cerebro.run WHERE run_id = %s", run) == "asha"
    assert (
        bench.value("SELECT mst_key FROM cerebro.model_version WHERE run_id = %s", run)
        == rows[0][2]
    )


def cut_call(bench: Workbench, call: str, model: str, drawn: int) -> int:
    """A run that was cancelled when it had more configurations than so many, but not all."""
    other = bench.another()
    before = other.last_run_id()
    with bench.calling(lambda: bench.rows(call, model, "tpe", None)) as trained:
        eventually(lambda: other.newest_run() > before)
        run = other.newest_run()
        eventually(
            lambda: (
                drawn
                < other.value("SELECT count(*) FROM cerebro.config WHERE run_id = %s", run)
                < CONFIGS
            )
        )
        cut(other, run, trained)
    other.close()
    return run


@pytest.mark.parametrize(
    ("search", "params"),
    [("tpe", '{"sampler": "tpe"}'), ("halving", '{"sampler": "tpe"}'), ("asha",
    '{"sampler": "luck"}'),
     ("asha", '{"space": {}}'), ("tpe", '{"configs": 9}'), ("tpe", '{"start_from": ["run:1"]}'),
     ("luck", None)],
)  # fmt: skip
def test_what_cannot_be_searched_so_is_refused(
    bench: Workbench, search: str, params: str | None
) -> None:
    refused(
        bench, CALL.replace("cerebro.train", "cerebro.plan"), "none", search, params, code="22023"
    )


@pytest.fixture(scope="module")
def earlier(bench: Workbench, visitors: None) -> int:
    """A run of twelve configurations, of which eleven are drawn in the space of others."""
    options = (
        "configs => 12, seed => 5, search => 'random', space => '{\"lr\": [0.02, 0.2, \"log\"]}'"
    )
    run = bench.rows(LIKE.format("'earlier'", options))[0][0]
    return int(run)


def told(bench: Workbench, model: str, options: str) -> tuple[int, list[Row]]:
    bench.messages()
    run = bench.rows(LIKE.format(f"'{model}'", options))[0][0]
    return run, bench.rows(TOLD, run)


def test_a_sampler_is_told_of_runs_of_like_tables_and_of_those_that_are_named(
    bench: Workbench, earlier: int
) -> None:
    """Of all their configurations that lie in the space, where they are compared by the same; a
    seed names none.
    """
    learning = "configs => 3, search => 'tpe', space => '{\"lr\": [0.02, 0.2, \"log\"]}'"
    ranks: dict[int, int] = dict(bench.rows(PLACES, earlier))
    for options in (learning, f"{learning}, seed => 4, start_from => '{{earlier}}'"):
        _, rows = told(bench, "learning", options)
        assert f"told how {len(rows)} configurations" in "".join(bench.messages())
        found = {key: stood for run, key, _, stood in rows if run == earlier}
        assert {*range(2, 13)} <= found.keys() <= ranks.keys(), (
            "the usual one may not lie in the space"
        )
        assert all(
            (ranks[one] < ranks[other]) <= (found[one] < found[other])
            for one in found
            for other in found
        )
        bench.rows("SELECT cerebro.drop_model('learning')")
    narrow = learning.replace("0.02, 0.2", "0.05, 0.2")
    _, rows = told(bench, "narrow", f"{narrow}, seed => 4, start_from => '{{run:{earlier}}}'")
    assert 0 < len(rows) < 12 and all(
        point["values"]["linear/lr"] >= 0.05 for _, _, point, _ in rows
    )
    assert told(bench, "untold", f"{learning}, seed => 4")[1] == []


@pytest.mark.long
def test_what_was_told_is_kept_with_the_run(bench: Workbench, earlier: int) -> None:
    """So one that was cut draws what the whole one has drawn, though what it was told of is dropped
    meanwhile.
    """
    spare = bench.rows(LIKE.format("'spare'", "configs => 12, seed => 6, search => 'random'"))[0][0]
    call = CALL.replace("seed => 3", f"seed => 3, start_from => '{{run:{spare}}}'")
    whole = bench.rows(call, "whole", "tpe", None)[0][0]
    run = cut_call(bench, call, "cut_too", 3)
    bench.rows("SELECT cerebro.drop_model('spare'); SELECT cerebro.drop_run(%s)", spare)
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert bench.rows(TOLD, run) == bench.rows(TOLD, whole) != []
    assert bench.rows(DRAWN, run) == bench.rows(DRAWN, whole)
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "completed"


@pytest.mark.long
def test_what_was_added_is_not_drawn_again(bench: Workbench) -> None:
    """A space is tried whole, and nothing of it twice, by whoever resumes the run either."""
    person, rates = bench.another(), [0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.2]
    space = json.dumps({"lr": rates, "weight_decay": 0})
    call = """SELECT run_id FROM cerebro.train('visitors', 'stayed', 'added', models => '{linear}',
        seed => 3, configs => 20, epochs => 4, ensemble => 1,
        refit => 'none', workers => 1, search => 'tpe',
            space => %s)"""
    before = person.last_run_id()
    with bench.calling(lambda: bench.rows(call, space)) as trained:
        eventually(lambda: person.newest_run() > before)
        run = person.newest_run()
        done(person, "pause_run(%s)", run)
        there = [rate for (rate,) in person.rows(RATES, run)]
        added = next(rate for rate in rates if rate not in there)
        space = json.dumps(
            {"models": ["linear"], "lr": [added], "weight_decay": 0, "batch_size": 64}
        )
        done_at_once(person, ["add_configs(%s, %s, 1)", "pause_run(%s)"], run, space, run)
        let_end(bench, person, run, trained, resumed=True)
    person.close()
    found = [rate for (rate,) in bench.rows(RATES, run)]
    assert len(found) == len(set(found)) and {*found} >= {*rates}
