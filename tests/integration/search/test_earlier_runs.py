"""What a search that draws knows beforehand: earlier runs that it is named, and what acts have added."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from acts import cut, done, let_end
from models import NOISY
from processes import eventually
from roles import another_role, own_schema, refused
from timings import fastest, remember
from workbench import Workbench, compile_text

from cerebro_plpy.trainer.machine import width

SEGMENTS, GRID = 2, 12
FIT_WORKERS = 1
SPACE: Mapping[str, Any] = {
    "compile_params": {
        "loss": ["categorical_crossentropy"],
        "metrics": ["accuracy"],
        "optimizer": ["SGD"],
        "lr": [0.0001, 0.5, "log"],
    },
    "fit_params": {"batch_size": [8, 16]},
}
CALL: Mapping[str, object] = {"validation_table": "held_back", "seed": 3, "schedule": "rotation"}
DRAWN = "SELECT compile_params, fit_params FROM cerebro.config WHERE run_id = %s AND source = 'search' ORDER BY mst_key"
BEST = """SELECT l.params ->> 'compile_params', l.params ->> 'fit_params' FROM cerebro.leaderboard l
 WHERE l.run_id = %s ORDER BY rank, mst_key LIMIT 3"""
TOLD = """SELECT (each -> 0)::bigint, (each -> 1)::integer, each -> 2 -> 'values', (each -> 3)::float8
 FROM cerebro.run, jsonb_array_elements(spec -> 'earlier_trials') AS each WHERE run_id = %s"""


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", SEGMENTS)
    bench.rows("SELECT validation_preprocessor_dl('points', 'held_back', 'label', 'x', 'packed')")
    rates = [0.3 / 1.5**n for n in range(GRID)]
    bench.configure("grid", [compile_text(f"SGD(learning_rate={rate})") for rate in rates], ["batch_size=8"])
    bench.configure("few", [compile_text(f"SGD(learning_rate={rate})") for rate in rates[:3]], ["batch_size=8"])
    bench.configure("outside", [compile_text(f"SGD(learning_rate={rate})") for rate in (0.9, 0.1)], ["batch_size=2"])
    bench.configure("one", [compile_text("SGD(learning_rate=0.02)")], ["batch_size=8"])
    bench.configure("noisy", [compile_text("SGD(learning_rate=0.1)")], ["batch_size=1,epochs=4"], bench.model(NOISY))


@pytest.fixture(scope="module")
def earlier(bench: Workbench, tables: None) -> int:
    """A run of which all configurations lie in the space."""
    return bench.fit("packed", "earlier", "grid", 1, **CALL)


def params(*runs: int, configs: int = 7, **more: object) -> str:
    start = {"start_from": [f"run:{run}" for run in runs]} if runs else {}
    return json.dumps({"configs": configs, "space": SPACE, **start, **more})


def same(row: tuple[str, str]) -> tuple[str, str]:
    """In one spelling, whichever of its names the rate has."""
    return row[0].replace("learning_rate", "lr"), row[1]


@pytest.mark.parametrize("search", ["tpe", "random"])
def test_the_best_of_a_run_are_tried_first(bench: Workbench, earlier: int, search: str) -> None:
    run = bench.fit("packed", f"again_{search}", "one", 1, search=search, search_params=params(earlier), **CALL)
    best, drawn = bench.rows(BEST, earlier), bench.rows(DRAWN, run)
    assert [same(row) for row in drawn[:3]] == [same(row) for row in best]
    assert len(drawn) == 6 == len({*drawn}), "they count among all"
    assert bool(bench.rows(TOLD, run)) == (search == "tpe"), "who does not learn is told nothing"


def test_a_sampler_is_told_how_all_stood(bench: Workbench, earlier: int) -> None:
    """In their order, as shares of the run; what it draws depends on that."""
    asked = {"search": "tpe", "workers": 1, **CALL}
    one = bench.fit("packed", "told", "one", 1, search_params=params(earlier), **asked)
    assert "told how 12 configurations" in "".join(bench.messages())
    rows = bench.rows(TOLD, one)
    ranks: dict[int, int] = dict(bench.rows("SELECT mst_key, rank FROM cerebro.leaderboard WHERE run_id = %s", earlier))
    assert [(run, key) for run, key, *_ in rows] == [(earlier, key) for key in range(1, GRID + 1)]
    for _, key, values, stood in rows:
        assert values["compile/lr"] == pytest.approx(0.3 / 1.5 ** (key - 1)) and values["fit/batch_size"] == 0
        ties = sum(rank == ranks[key] for rank in ranks.values())
        assert stood == pytest.approx((ranks[key] - 1 + ties / 2) / GRID)
    without = bench.fit("packed", "not_told", "one", 1, search_params=params(), **asked)
    assert not {*bench.rows(DRAWN, one)} & {*bench.rows(DRAWN, without)}


def test_other_configurations_are_not_told(bench: Workbench, earlier: int) -> None:
    """Nor those of runs that compare by something else, nor warm ones: of these the best are tried all the same."""
    outside = bench.fit("packed", "beyond", "outside", 1, **CALL)
    trained = bench.fit("packed", "unheld", "few", 1, **{**CALL, "validation_table": None})
    bench.messages()
    asked = {"search": "tpe", "search_params": params(outside, trained, earlier), **CALL}
    run = bench.fit("packed", "others", "one", 1, **asked)
    said = "".join(bench.messages())
    assert f"no configuration of run {outside} lies in the space" in said
    assert f"is not told of run {trained}" in said and "over training rows" in said
    assert {row[0] for row in bench.rows(TOLD, run)} == {earlier}
    assert same(bench.rows(DRAWN, run)[0]) == same(bench.rows(BEST, trained)[0])
    # Model 1 of another table is another network.
    bench.rows("CREATE TABLE kept AS TABLE models; UPDATE models SET model_arch = %s WHERE model_id = 1", NOISY)
    try:
        run = bench.fit("packed", "renewed", "one", 1, search="tpe", search_params=params(earlier, configs=3), **CALL)
    finally:
        bench.rows("UPDATE models m SET model_arch = k.model_arch FROM kept k WHERE k.model_id = m.model_id")
    assert bench.rows(TOLD, run) == [] and "lies in the space" in "".join(bench.messages())


def begun(person: Workbench, before: int, configs: int) -> int:
    """A run that has begun since, when it has so many configurations."""
    count = "SELECT count(*) FROM cerebro.config WHERE run_id = %s"
    eventually(lambda: person.newest_run() > before and person.value(count, person.newest_run()) >= configs)
    return person.newest_run()


@pytest.mark.long
def test_who_resumes_draws_what_would_have_been_drawn(bench: Workbench, person: Workbench) -> None:
    """Also where the run that it was told of is gone by then. The form of each visit is no matter of time here."""
    for size in (1, 2):
        remember(bench, compile_text(), size, width(1), fastest("graph_loop"))
    space = {**SPACE, "fit_params": {"batch_size": [1, 2], "epochs": [4, 8]}, "models": [2]}
    rates = [compile_text(f"SGD(learning_rate={0.2 / 1.6**n})") for n in range(GRID)]
    bench.configure("spread", rates, ["batch_size=2,epochs=4"], 2)
    told = bench.fit("packed", "spread_out", "spread", 1, workers=1, **CALL)
    asked = json.dumps({"configs": 8, "space": space, "start_from": [f"run:{told}"]})
    call = {**CALL, "search": "tpe", "workers": 1, "search_params": asked}
    whole = bench.fit("packed", "whole", "noisy", 3, **call)
    before = person.newest_run()
    with bench.fitting("packed", "cut", "noisy", 3, **call) as fitted:
        run = begun(person, before, 5)
        cut(person, run, fitted)
    bench.rows("SELECT cerebro.drop_run(%s)", told)
    assert bench.value("SELECT count(*) FROM cerebro.config WHERE run_id = %s", run) < 8
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert bench.rows(DRAWN, run) == bench.rows(DRAWN, whole)
    assert bench.weights("cut") == bench.weights("whole")


@pytest.mark.parametrize("resumed", [False, True])
def test_what_was_added_is_not_drawn_again(bench: Workbench, person: Workbench, resumed: bool) -> None:
    """A space is tried whole, and nothing of it twice: what an act adds and what it clones, unless that began warm."""
    rates = [0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01]
    compiled = {**SPACE["compile_params"], "lr": rates}
    asked = json.dumps(
        {"configs": 20, "space": {"compile_params": compiled, "fit_params": {"batch_size": [1], "epochs": [4]}}}
    )
    before = person.newest_run()
    call = {**CALL, "search": "tpe", "workers": 1, "search_params": asked}
    with bench.fitting("packed", f"added_{resumed}", "noisy", 3, **call) as fitted:
        run = begun(person, before, 3)
        eventually(
            lambda: person.value(
                "SELECT count(*) > 0 FROM cerebro.visit WHERE run_id = %s AND status = 'completed' AND mst_key = 1", run
            )
        )
        done(person, "pause_run(%s)", run)
        eventually(
            lambda: not person.value("SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'running'", run)
        )
        there = "SELECT compile_params FROM cerebro.config WHERE run_id = %s"
        texts = str(person.rows(there, run))
        left = [rate for rate in rates if f"={rate})" not in texts]
        assert len(left) > 2
        fixed = {"compile_params": {**compiled, "lr": [left[0]]}, "fit_params": {"batch_size": [1], "epochs": [4]}}
        done(person, "add_configs(%s, %s)", run, json.dumps(fixed))
        for rate, warm in ((left[1], False), (left[2], True)):
            changed = json.dumps({"optimizer": f"SGD(learning_rate={rate})"})
            done(person, "clone_config(%s, 1, %s, %s)", run, changed, warm)
        let_end(bench, person, run, fitted, resumed=resumed)
    found = bench.rows("SELECT source, compile_params, warm_started_from FROM cerebro.config WHERE run_id = %s", run)
    cold = [same((text, ""))[0] for _, text, warm in found if warm is None]
    assert len(cold) == len(set(cold)) == len(rates) and len(found) == len(rates) + 1
    assert sorted(source for source, *_ in found if source != "search") == ["act", "call", "clone", "clone"]


WRONG: Mapping[str, tuple[str, dict[str, object], str, str]] = {
    "no list": ("tpe", {"start_from": "run:1"}, "22023", "expected a list of runs"),
    "a model": ("tpe", {"start_from": ["points"]}, "22023", "expected a list of runs"),
    "no such run": ("random", {"start_from": ["run:987654"]}, "42704", "no such run of yours"),
    "nothing is drawn": ("asha", {"start_from": ["run:1"], "space": None}, "22023", "no space: nothing is drawn"),
    "a grid": ("grid", {"start_from": ["run:1"]}, "22023", "'grid' draws nothing"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_before_anything_begins(
    bench: Workbench, wrong: tuple[str, dict[str, object], str, str]
) -> None:
    search, more, code, words = wrong
    asked = {"configs": 4, "space": SPACE, **more}
    text = json.dumps({key: value for key, value in asked.items() if value is not None})
    runs = bench.newest_run()
    call = "SELECT madlib_fit_multiple_model('packed', 'wrong', 'one', 1, search => %s, search_params => %s)"
    error = refused(bench, call, search, text, code=code, words=words)
    assert error.diag.message_hint and bench.newest_run() == runs


def test_runs_of_others_are_not_read(bench: Workbench, shared_superuser: Workbench, earlier: int) -> None:
    call = "SELECT madlib_fit_multiple_model('packed', 'curious.found', 'one', 1, search => 'tpe', search_params => %s)"
    with another_role(bench, shared_superuser, "curious") as other:
        own_schema(shared_superuser, "curious")
        bench.rows("GRANT SELECT ON packed, packed_summary, one, one_summary, models TO curious")
        words = f"run {earlier}, but there is no such run of yours"
        refused(other, call, params(earlier), code="42704", words=words)
        assert other.newest_run() == 0
    shared_superuser.rows("DROP SCHEMA IF EXISTS curious")
