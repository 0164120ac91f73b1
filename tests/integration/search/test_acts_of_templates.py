"""People at a live run of cerebro.train: configurations of its templates join it, and may become
its model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import chain

import pytest
from acts import cut, done, done_at_once
from followed_hints import Call, error_of, read_hint, read_ways
from processes import eventually
from roles import refused
from workbench import Row, Workbench

EPOCHS = 8  # none is stopped early in so few
VISITORS = """
    CREATE TABLE visitors AS
    SELECT n AS id, CASE WHEN n % 7 > 0 THEN 20 + n * 7919 % 50 END AS age, (ARRAY['a', 'b',
        NULL])[n % 3 + 1] AS deck,
           n * 31 % 97 / 10.0 AS fare, n % 3 = 0 OR n * 31 % 97 > 80 AS stayed
    FROM generate_series(1, 1200) AS n"""
CONFIGS = """
    SELECT mst_key, source, cloned_from, warm_started_from, template, params, status
        FROM cerebro.config
    WHERE run_id = %s AND mst_key > 2 ORDER BY 1"""

WRONG = {
    "clone_config(%s, 1, '{\"rate\": 1}')": "22023",
    "clone_config(%s, 1, '{\"lr\": -1}')": "22023",
    "clone_config(%s, 1, '{\"width\": 17}')": "42804",  # to a warm one
    "clone_config(%s, 7, '{}')": "42704",
    "add_configs(%s, '{\"lr\": [0.1, 0.2]}')": "22023",  # the other fields have ranges
    "add_configs(%s, '{\"rate\": [0.1]}', 2)": "22023",
    'add_configs(%s, \'{"models": ["cnn"]}\', 2)': "22023",  # for images
    "add_configs(%s, '{\"models\": [1]}', 2)": "22023",
    "add_configs(%s, '{}', 0)": "22023",
    "add_configs(%s, selection_table => 'visitors')": "22023",
    "drill_down(%s, 1, '{\"lr\": [1e-7]}')": "22023",  # there already
    "drill_down(%s, 7, '{\"lr\": [1e-7]}')": "42704",
}


@pytest.fixture(scope="module", autouse=True)
def visitors(bench: Workbench) -> None:
    bench.rows(VISITORS)


@contextmanager
def paused(
    bench: Workbench, person: Workbench, model: str
) -> Iterator[tuple[int, Future[list[Row]]]]:
    """A run of two configurations that learn nothing, paused after the first visits, of the first
    one.

    It is asked for in the midst of these, which load the framework: visits that follow take
    milliseconds.
    """
    before, slow = person.last_run_id(), '{"lr": 1e-7, "depth": 1, "width": 16}'
    options = (
        f"configs => 2, epochs => {EPOCHS}, ensemble => 1, "
        "refit => 'none', workers => 1, models => "
        f"'{{realmlp_simple, linear}}'"
    )
    call = (
        f"SELECT * FROM cerebro.train('visitors', 'stayed', '{model}', {options}, space => "
        f"'{slow}', seed => 1)"
    )
    with bench.calling(lambda: bench.rows(call)) as trained:
        eventually(lambda: person.newest_run() > before)
        run = person.newest_run()
        eventually(lambda: person.rows("SELECT FROM cerebro.visit WHERE run_id = %s", run))
        done(person, "pause_run(%s)", run)
        made = (
            "SELECT FROM cerebro.visit WHERE run_id = %s AND mst_key = 1 AND status = 'completed'"
        )
        eventually(lambda: person.rows(made, run))
        yield run, trained


def test_configurations_of_templates_join_and_the_best_is_the_model(
    bench: Workbench, person: Workbench
) -> None:
    """Each is trained as one of the call with these fields would be, and comes out once more;
    others are refused.
    """
    with paused(bench, person, "joined") as (run, trained):
        for call, code in WRONG.items():
            refused(person, f"SELECT cerebro.{call}", run, code=code)
        assert person.rows("SELECT action FROM cerebro.act WHERE run_id = %s", run) == [
            ("pause_run",)
        ]
        wider, added = (
            '{"learning_rate": 0.05, "width": 32}',
            {"models": ["linear"], "lr": [0.1, 0.2], "weight_decay": 0},
        )
        error = refused(person, "SELECT cerebro.clone_config(%s, 1, %s)", run, wider, code="42804")
        template = "Write warm => false: the clone then begins anew."
        (cold,) = read_ways(read_hint(error, template))
        near = '{"lr": [0.03, 0.04], "width": [16]}'
        acts: dict[str, tuple[object, ...]] = {
            f"clone_config(%s, 1, %s, warm => {cold.arguments['warm']})": (run, wider),
            "add_configs(%s, %s, 2)": (run, json.dumps(added)),
            "drill_down(%s, 1, %s)": (run, near),
            "set_epochs(%s, %s, 2)": (run, EPOCHS + 2),
        }
        done_at_once(person, [*acts], *chain.from_iterable(acts.values()))
        trained.result()
    next_key = (
        "SELECT v.mst_key FROM cerebro.visit v JOIN cerebro.act a USING (run_id) WHERE run_id = %s "
        "AND a.action = 'clone_config' AND v.started_at > a.done_at ORDER BY v.started_at LIMIT 1"
    )
    assert bench.value(next_key, run) == 3, "the clone comes next, in the midst of another one"
    by_table = Call("cerebro.add_configs", {"run_id": str(run), "selection_table": "'visitors'"})
    template = (
        "Leave selection_table out, and write space => '{\"lr\": [0.01, 0.02]}', configs => 2."
    )
    (way,) = read_ways(read_hint(error_of(bench, by_table), template))
    over = error_of(bench, way.change(by_table))
    assert over is not None and over.pgcode == "55000", "the arguments are those of a live run"
    assert (
        bench.value("SELECT epochs FROM cerebro.config WHERE run_id = %s AND mst_key = 2", run)
        > EPOCHS
    )
    found = bench.rows(CONFIGS, run)
    origins = [("clone", 1, None), *[("act", None, None)] * 2, *[("act", 1, None)] * 2]
    assert [row[1:4] for row in found] == origins and {row[6] for row in found} == {"completed"}
    assert [row[4] for row in found] == [
        "realmlp_simple",
        "linear",
        "linear",
        "realmlp_simple",
        "realmlp_simple",
    ]
    fields = [(row[5]["lr"], row[5].get("width")) for row in found]
    assert fields[0] == (0.05, 32) and fields[3:] == [(0.03, 16), (0.04, 16)]
    assert {rate for rate, _ in fields[1:3]} == {0.1, 0.2}
    key, template, params = bench.row(
        "SELECT mst_key, template, params FROM cerebro.model_version WHERE run_id = %s", run
    )
    assert key > 2 and (template, params) == next(
        (row[4], row[5]) for row in found if row[0] == key
    )
    board = bench.rows(
        "SELECT mst_key, epochs FROM cerebro.leaderboard WHERE run_id = %s AND rank = 1", run
    )
    assert board[0] == (key, EPOCHS)
    verified: dict[str, bool] = dict(bench.rows("SELECT what, ok FROM cerebro.verify('joined')"))
    assert verified["state"] and all(verified.values())
    call = (
        "cerebro.train('visitors', 'stayed', 'alone', configs => 1, epochs => {}, models => "
        "'{{{}}}', space => %s)"
    )
    same = f"SELECT run_id FROM {call.format(EPOCHS, template)}"
    (alone,) = {each for (each,) in bench.rows(same, json.dumps(params))}
    texts = (
        "SELECT compile_params, fit_params, architecture::text FROM cerebro.config WHERE run_id = "
        "%s AND mst_key = %s"
    )
    assert bench.row(texts, run, key) == bench.row(texts, alone, 1)


@pytest.mark.long
def test_a_warm_clone_goes_on_where_its_run_was_cut(bench: Workbench, person: Workbench) -> None:
    with paused(bench, person, "warm") as (run, trained):
        wide = refused(
            person, "SELECT cerebro.clone_config(%s, 1, '{\"width\": 17}')", run, code="42804"
        )
        assert "warm => false" in str(wide.diag.message_hint)
        done_at_once(person, ["clone_config(%s, 1, '{\"lr\": 0.05}')", "pause_run(%s)"], run, run)
        cut(person, run, trained)
    bench.rows("SELECT cerebro.resume(%s)", run)
    (found,) = bench.rows(CONFIGS, run)
    assert found[:5] == (3, "clone", 1, 1, "realmlp_simple") and (found[5]["lr"], found[6]) == (
        0.05,
        "completed",
    )
    assert bench.value("SELECT mst_key FROM cerebro.model_version WHERE run_id = %s", run) == 3
    ((state, why),) = bench.rows(
        "SELECT ok, detail FROM cerebro.verify('warm') WHERE what = 'state'"
    )
    assert not state and "began from a state of another one" in why
