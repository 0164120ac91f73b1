"""What a search that draws knows beforehand: earlier runs that it is named, and what acts have
added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from acts import cut, done, done_at_once, let_end
from models import NOISY
from processes import eventually
from roles import another_role, own_schema, refused
from timings import fastest, remember
from workbench import Workbench, compile_text

from cerebro_plpy.trainer_client.process.host_resources import threads_per_trainer

SEGMENTS, GRID = 2, 12
FIT_WORKERS = 1
SPACE: Mapping[str, Any] = {
    "compile_params": {
        "loss": ["categorical_crossentropy"],
        "metrics": ["accuracy"],
        "optimizer": ["SGD"],
        "lr": [0.0001, 0.5, "log"],
    },
    "fit_params": {"batch_size": [8], "epochs": [1, 2]},
}
CALL: Mapping[str, object] = {"validation_table": "held_back", "seed": 3, "schedule": "rotation"}
DRAWN = (
    "SELECT compile_params, fit_params FROM cerebro.config WHERE run_id = %s AND source = "
    "'search' ORDER BY mst_key"
)
BEST = """SELECT l.params ->> 'compile_params', l.params ->> 'fit_params' FROM cerebro.leaderboard l
 WHERE l.run_id = %s ORDER BY rank, mst_key LIMIT 3"""
TOLD = """SELECT (each -> 0)::bigint, (each -> 1)::integer, each -> 2 -> 'values',
        (each -> 3)::float8
 FROM cerebro.run, jsonb_array_elements(spec -> 'earlier_trials') AS each WHERE run_id = %s"""


PLACES = """SELECT mst_key, rank() OVER (ORDER BY value DESC NULLS LAST)
 FROM cerebro.leaderboard WHERE run_id = %s"""


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", SEGMENTS)
    bench.rows("SELECT validation_preprocessor_dl('points', 'held_back', 'label', 'x', 'packed')")
    rates = [0.3 / 1.5**n for n in range(GRID)]
    for name, found in (("grid", rates), ("few", rates[:3]), ("one", [0.02])):
        compiles = [compile_text(f"SGD(learning_rate={rate})") for rate in found]
        bench.configure(name, compiles, ["epochs=1,batch_size=8"])
    bench.configure(
        "outside",
        [compile_text(f"SGD(learning_rate={rate})") for rate in (0.9, 0.1)],
        ["batch_size=8"],
    )
    for name, passes, model in (("noisy", 4, bench.model(NOISY)), ("brief", 8, 2)):
        bench.configure(
            name, [compile_text("SGD(learning_rate=0.1)")], [f"batch_size=1,epochs={passes}"], model
        )


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


def check_first(bench: Workbench, earlier: int, run: int) -> None:
    """The best of a run are tried first."""
    best, drawn = bench.rows(BEST, earlier), bench.rows(DRAWN, run)
    assert [same(row) for row in drawn[:3]] == [same(row) for row in best]
    assert len(drawn) == 6 == len({*drawn}), "they count among all"


@pytest.mark.long
def test_who_does_not_learn_is_told_nothing(bench: Workbench, earlier: int) -> None:
    run = bench.fit(
        "packed", "not_learning", "one", 1, search="random", search_params=params(earlier), **CALL
    )
    check_first(bench, earlier, run)
    assert not bench.rows(TOLD, run)


def test_a_sampler_is_told_how_all_stood(bench: Workbench, earlier: int) -> None:
    """In their order, as shares of the run; what it draws depends on that."""
    bench.messages()
    asked = {"search": "tpe", **CALL}
    one = bench.fit("packed", "told", "one", 1, search_params=params(earlier), **asked)
    check_first(bench, earlier, one)
    assert "told how 12 configurations" in "".join(bench.messages())
    rows = bench.rows(TOLD, one)
    ranks: dict[int, int] = dict(bench.rows(PLACES, earlier))
    assert [(run, key) for run, key, *_ in rows] == [(earlier, key) for key in range(1, GRID + 1)]
    for _, key, values, stood in rows:
        assert (
            values["compile/lr"] == pytest.approx(0.3 / 1.5 ** (key - 1))
            and values["fit/epochs"] == 0
        )
        ties = sum(rank == ranks[key] for rank in ranks.values())
        assert stood == pytest.approx((ranks[key] - 1 + ties / 2) / GRID)
    without = bench.fit("packed", "not_told", "one", 1, search_params=params(), **asked)
    assert not {*bench.rows(DRAWN, one)} & {*bench.rows(DRAWN, without)}


@pytest.mark.long
def test_other_configurations_are_not_told(bench: Workbench, earlier: int) -> None:
    """Nor those of runs that compare by something else, nor warm ones: of these the best are tried
    all the same.
    """
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
    bench.rows(
        "CREATE TABLE kept AS TABLE models; UPDATE models SET model_arch = %s WHERE model_id = 1",
        NOISY,
    )
    try:
        run = bench.fit(
            "packed",
            "renewed",
            "one",
            1,
            search="tpe",
            search_params=params(earlier, configs=2),
            **CALL,
        )
    finally:
        bench.rows(
            "UPDATE models m SET model_arch = k.model_arch FROM kept k WHERE k.model_id = "
            "m.model_id"
        )
    assert bench.rows(TOLD, run) == [] and "lies in the space" in "".join(bench.messages())


def begun(person: Workbench, before: int, configs: int) -> int:
    """A run that has begun since, when it has so many configurations."""
    count = "SELECT count(*) FROM cerebro.config WHERE run_id = %s"
    eventually(
        lambda: person.newest_run() > before and person.value(count, person.newest_run()) >= configs
    )
    return person.newest_run()


@pytest.mark.long
def test_who_resumes_draws_what_would_have_been_drawn(bench: Workbench, person: Workbench) -> None:
    """Also where the run that it was told of is gone by then. The form of each visit is no matter
    of time here.
    """
    for size in (1, 2):
        remember(bench, compile_text(), size, threads_per_trainer(1), fastest("graph_loop"))
    space = {**SPACE, "fit_params": {"batch_size": [1, 2], "epochs": [4, 8]}, "models": [2]}
    rates = [compile_text(f"SGD(learning_rate={0.2 / 1.6**n})") for n in range(GRID)]
    bench.configure("spread", rates, ["batch_size=2,epochs=4"], 2)
    told = bench.fit("packed", "spread_out", "spread", 1, workers=1, **CALL)
    asked = json.dumps({"configs": 8, "space": space, "start_from": [f"run:{told}"]})
    call = {**CALL, "search": "tpe", "workers": 1, "search_params": asked}
    whole = bench.fit("packed", "whole", "noisy", 3, **call)
    before = person.last_run_id()
    with bench.fitting("packed", "cut", "noisy", 3, **call) as fitted:
        run = begun(person, before, 5)
        cut(person, run, fitted)
    bench.rows("SELECT cerebro.drop_run(%s)", told)
    assert bench.value("SELECT count(*) FROM cerebro.config WHERE run_id = %s", run) < 8
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert bench.rows(DRAWN, run) == bench.rows(DRAWN, whole)
    assert bench.weights("cut") == bench.weights("whole")


@pytest.mark.long
@pytest.mark.parametrize("resumed", [False, True])
def test_what_was_added_is_not_drawn_again(
    bench: Workbench, person: Workbench, resumed: bool
) -> None:
    """A space is tried whole, and nothing of it twice: what an act adds and what it clones, unless
    that began warm.
    """
    rates = [0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01]
    compiled = {**SPACE["compile_params"], "lr": rates}
    fits = {"batch_size": [1], "epochs": [8]}
    asked = json.dumps({"configs": 20, "space": {"compile_params": compiled, "fit_params": fits}})
    before = person.last_run_id()
    call = {**CALL, "search": "tpe", "workers": 1, "search_params": asked}
    visits = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = %s"
    with bench.fitting("packed", f"added_{resumed}", "brief", 1, **call) as fitted:
        run = begun(person, before, 1)
        # In the midst of the first visit, which is of the first configuration, and for which its
        # program is compiled.
        eventually(
            lambda: person.value("SELECT count(*) FROM cerebro.visit WHERE run_id = %s", run)
        )
        done(person, "pause_run(%s)", run)
        eventually(
            lambda: (
                not person.value(visits, run, "running") and person.value(visits, run, "completed")
            )
        )
        there = "SELECT compile_params FROM cerebro.config WHERE run_id = %s"
        texts = str(person.rows(there, run))
        left = [rate for rate in rates if f"={rate})" not in texts]
        assert len(left) > 2
        fixed = {"compile_params": {**compiled, "lr": [left[0]]}, "fit_params": fits}
        cold, warm = (json.dumps({"optimizer": f"SGD(learning_rate={rate})"}) for rate in left[1:3])
        clones = [f"clone_config(%s, 1, %s, {warm})" for warm in ("false", "true")]
        acts = ["add_configs(%s, %s)", *clones, "pause_run(%s)"]
        done_at_once(person, acts, run, json.dumps(fixed), run, cold, run, warm, run)
        let_end(bench, person, run, fitted, resumed=resumed)
    found = bench.rows(
        "SELECT source, compile_params, warm_started_from FROM cerebro.config WHERE run_id = %s",
        run,
    )
    begun_cold = [same((text, ""))[0] for _, text, parent in found if parent is None]
    assert len(begun_cold) == len(set(begun_cold)) == len(rates) and len(found) == len(rates) + 1
    assert sorted(source for source, *_ in found if source != "search") == [
        "act",
        "call",
        "clone",
        "clone",
    ]


WRONG: Mapping[str, tuple[str, dict[str, object], str, str]] = {
    "no list": ("tpe", {"start_from": "run:1"}, "22023", "expected a list of runs"),
    "a model": ("tpe", {"start_from": ["points"]}, "22023", "expected a list of runs"),
    "no such run": ("random", {"start_from": ["run:987654"]}, "42704", "no such run of yours"),
    "nothing is drawn": (
        "asha",
        {"start_from": ["run:1"], "space": None},
        "22023",
        "no space: nothing is drawn",
    ),
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
    call = (
        "SELECT madlib_fit_multiple_model('packed', 'wrong', 'one', 1, search => %s, "
        "search_params => %s)"
    )
    error = refused(bench, call, search, text, code=code, words=words)
    assert error.diag.message_hint and bench.newest_run() == runs


def test_runs_of_others_are_not_read(
    bench: Workbench, shared_superuser: Workbench, earlier: int
) -> None:
    call = (
        "SELECT madlib_fit_multiple_model('packed', 'curious.found', 'one', 1, search => 'tpe', "
        "search_params => %s)"
    )
    with another_role(bench, shared_superuser, "curious") as other:
        own_schema(shared_superuser, "curious")
        bench.rows("GRANT SELECT ON packed, packed_summary, one, one_summary, models TO curious")
        words = f"run {earlier}, but there is no such run of yours"
        refused(other, call, params(earlier), code="42704", words=words)
        assert other.newest_run() == 0
    shared_superuser.rows("DROP SCHEMA IF EXISTS curious")
