"""Searches that draw configurations of a space while they go on: which, how many, and again after a crash."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import psycopg2
import pytest
from models import NOISY
from processes import eventually
from workbench import Workbench, compile_text

FIT_WORKERS = 1
SEGMENTS = 2
SPACE: dict[str, Any] = {
    "compile_params": {
        "loss": ["categorical_crossentropy"],
        "metrics": ["accuracy"],
        "optimizer_params_list": [
            {"optimizer": ["SGD"], "lr": [0.0001, 0.5, "log"], "momentum": [0.5, 0.99, "log_near_one"]},
            {"optimizer": ["Adam"], "lr": [0.0001, 0.1, "log"]},
        ],
    },
    "fit_params": {"batch_size": [8, 16]},
}
CONFIGS = """SELECT mst_key, source, point IS NOT NULL, compile_params, fit_params, status
 FROM cerebro.config_log WHERE run_id = %s ORDER BY 1"""
DECISIONS = """SELECT decision_no, mst_key, action, epoch, visits, last_epoch, cause, reason
 FROM cerebro.decision WHERE run_id = %s ORDER BY 1"""
STATUS = "SELECT mst_key, status FROM cerebro.config WHERE run_id = %s"
CALL: Mapping[str, object] = {"validation_table": "held_back", "seed": 3, "schedule": "rotation"}
BRED = {"configs": 4, "space": SPACE}
POPULATION: Mapping[str, object] = {**CALL, "search": "pbt", "search_params": json.dumps(BRED), "workers": 1}


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", SEGMENTS)
    bench.rows("SELECT validation_preprocessor_dl('points', 'held_back', 'label', 'x', 'packed')")
    bench.configure("two", [compile_text(f"SGD(learning_rate={rate})") for rate in (0.1, 0.01)], ["batch_size=8"])
    bench.configure("noisy", [compile_text("SGD(learning_rate=0.1)")], ["batch_size=1,epochs=4"], bench.model(NOISY))


def params(configs: int, **more: object) -> str:
    return json.dumps({"configs": configs, "space": SPACE, **more})


@pytest.mark.parametrize("sampler", ["tpe", "cmaes"])
def test_what_learns_draws_one_after_the_other(bench: Workbench, sampler: str) -> None:
    run = bench.fit("packed", sampler, "two", 2, search=sampler, search_params=params(6), **CALL)
    found = bench.rows(CONFIGS, run)
    assert [(key, source, drawn) for key, source, drawn, *_ in found] == [
        (key, "call" if key <= 2 else "search", key > 2) for key in range(1, 7)
    ]
    assert len({(compiled, fitted) for _, _, _, compiled, fitted, _ in found}) == 6
    assert {status for *_, status in found} == {"completed"}
    began = "SELECT min(started_at) FROM cerebro.visit WHERE run_id = %s AND mst_key = %s"
    first_end = bench.value(
        "SELECT min(time) FROM cerebro.metric WHERE run_id = %s AND name = 'loss' AND dataset = 'validation'", run
    )
    assert bench.value(began, run, 6) > first_end, "the last is drawn when others have told what they came to"
    assert bench.value(f"SELECT count(model_weights) FROM {sampler}") == 6


def test_two_runs_with_one_seed_draw_alike(bench: Workbench) -> None:
    call = {**CALL, "search": "asha", "search_params": params(6, sampler="tpe"), "workers": 1}
    one, other = (bench.fit("packed", name, "two", 3, **call) for name in ("one", "other"))
    assert bench.rows(CONFIGS, one) == bench.rows(CONFIGS, other)
    assert bench.rows(DECISIONS, one) == bench.rows(DECISIONS, other)
    assert bench.weights("one") == bench.weights("other")


@pytest.mark.parametrize("search", ["random", "hyperband"])
def test_what_does_not_learn_is_drawn_before(bench: Workbench, search: str) -> None:
    run = bench.fit("packed", f"by_{search}", "two", 3, search=search, search_params=params(6), **CALL)
    found = bench.rows(CONFIGS, run)
    assert [source for _, source, *_ in found] == ["call"] * 2 + ["search"] * 4
    assert len({(compiled, fitted) for _, _, _, compiled, fitted, _ in found}) == 6


def test_a_small_space_is_tried_whole(bench: Workbench) -> None:
    space = {"compile_params": {**SPACE["compile_params"], "optimizer_params_list": [{"optimizer": ["SGD"]}]}}
    for search in ("random", "tpe"):
        asked = json.dumps({"configs": 9, "space": {**space, "fit_params": {"batch_size": [8, 16]}}})
        run = bench.fit("packed", f"small_{search}", "two", 1, search=search, search_params=asked, **CALL)
        assert bench.value("SELECT count(*) FROM cerebro.config WHERE run_id = %s", run) == 2 + 2


@pytest.mark.long
def test_who_resumes_draws_on(bench: Workbench) -> None:
    """And a replay repeats what was drawn, to the bit."""
    slow = {**SPACE, "fit_params": {"batch_size": [1, 2], "epochs": [4, 8]}}
    watcher, before = bench.another(), bench.newest_run()
    call = {**CALL, "search": "tpe", "search_params": json.dumps({"configs": 7, "space": slow}), "workers": 1}
    with bench.fitting("packed", "cut", "noisy", 3, **call) as fitted:
        eventually(lambda: watcher.value("SELECT count(*) > 4 FROM cerebro.config WHERE run_id > %s", before))
        assert watcher.value("SELECT cerebro.cancel(%s)", watcher.newest_run())
        with pytest.raises(psycopg2.Error):
            fitted.result()
    cut = watcher.newest_run()
    watcher.close()
    drawn = bench.rows(CONFIGS, cut)
    bench.rows("SELECT cerebro.resume(%s)", cut)
    found = bench.rows(CONFIGS, cut)
    assert [row[:5] for row in found[: len(drawn)]] == [row[:5] for row in drawn]
    assert len(drawn) < len(found) == len({(compiled, fitting) for *_, compiled, fitting, _ in found}) == 7
    again = bench.fit("packed", "cut_again", "noisy", 3, schedule="replay", replay_run=cut)
    assert [(key, source) for key, source, *_ in bench.rows(CONFIGS, again)] == [row[:2] for row in found]
    assert bench.weights("cut_again") == bench.weights("cut")


@pytest.fixture(scope="module")
def bred(bench: Workbench, tables: None) -> int:
    """A population by rotation, of which all states are kept."""
    return bench.fit("packed", "bred_rotation", "two", 4, **POPULATION)


@pytest.mark.parametrize("schedule", ["rotation", "longest"])
def test_a_population_goes_on_from_its_best(bench: Workbench, bred: int, schedule: str) -> None:
    """Two runs of one seed by rotation, and any run and its replay, come to the same bits."""
    if schedule == "rotation":
        run = bred
    else:
        run = bench.fit("packed", f"bred_{schedule}", "two", 4, **{**POPULATION, "schedule": schedule})
    found = bench.rows(CONFIGS, run)
    assert [source for _, source, *_ in found] == ["call"] * 2 + ["search"] * 2 + ["clone"] * 3
    clones = "SELECT c.warm_started_visits, c.warm_started_from, d.last_epoch FROM cerebro.config_log c"
    clones += (
        " JOIN cerebro.decision d USING (run_id, mst_key) WHERE c.run_id = %s AND d.action = 'clone' ORDER BY mst_key"
    )
    assert len(bench.rows(clones, run)) == 3
    stopped = "SELECT count(*) FROM cerebro.decision WHERE run_id = %s AND action = 'stop' AND rule = 'pbt'"
    assert bench.value(stopped, run) == 3
    if schedule == "rotation":
        other = bench.fit("packed", "bred_alike", "two", 4, **POPULATION)
        assert bench.rows(CONFIGS, other) == found and bench.rows(DECISIONS, other) == bench.rows(DECISIONS, run)
        assert bench.weights("bred_alike") == bench.weights(f"bred_{schedule}")
    again = bench.fit("packed", f"bred_{schedule}_again", "two", 4, schedule="replay", replay_run=run, workers=1)
    assert [row[:2] for row in bench.rows(CONFIGS, again)] == [row[:2] for row in found]
    assert bench.weights(f"bred_{schedule}_again") == bench.weights(f"bred_{schedule}")
    ends: list[dict[int, str]] = [dict(bench.rows(STATUS, each)) for each in (run, again)]
    assert ends[0] == ends[1] and sorted(ends[0].values()) == ["completed"] * 4 + ["stopped"] * 3


def test_who_made_room_for_a_clone_leaves_no_state(bench: Workbench, bred: int) -> None:
    """But for so many as may keep theirs; what is left, and its replay, is as if all had kept theirs."""
    few = bench.fit("packed", "few_kept", "two", 4, **{**POPULATION, "search_params": params(4, live_states=1)})
    released = "SELECT mst_key FROM cerebro.config_log WHERE run_id = %s AND released"
    gone = {key for (key,) in bench.rows(released, few)}
    stopped = {key for key, status in bench.rows(STATUS, few) if status == "stopped"}
    assert not bench.rows(released, bred) and gone < stopped and len(stopped - gone) == 1
    bench.fit("packed", "few_again", "two", 4, schedule="replay", replay_run=few, workers=1)
    held = "SELECT mst_key, model_weights FROM {} WHERE model_weights IS NOT NULL"
    kept, left, again = (
        dict[int, bytes](bench.rows(held.format(name))) for name in ("bred_rotation", "few_kept", "few_again")
    )
    assert again == kept and left == {key: weights for key, weights in kept.items() if key not in gone}


@pytest.mark.long
def test_a_population_that_was_cut_goes_on(bench: Workbench) -> None:
    mild = {**SPACE["compile_params"], "optimizer_params_list": [{"optimizer": ["SGD"], "lr": [0.001, 0.02, "log"]}]}
    slow = {"compile_params": mild, "fit_params": {"batch_size": [1, 2], "epochs": [4, 8]}}
    watcher, before = bench.another(), bench.newest_run()
    asked = json.dumps({"configs": 3, "space": slow})
    with bench.fitting("packed", "cut_pbt", "noisy", 3, **{**CALL, "search": "pbt", "search_params": asked}) as fitted:
        clones = "SELECT count(*) > 0 FROM cerebro.config WHERE run_id > %s AND source = 'clone'"
        eventually(lambda: watcher.value(clones, before))
        assert watcher.value("SELECT cerebro.cancel(%s)", watcher.newest_run())
        with pytest.raises(psycopg2.Error):
            fitted.result()
    cut = watcher.newest_run()
    watcher.close()
    bench.rows("SELECT cerebro.resume(%s)", cut)
    assert bench.value("SELECT count(*) FROM cerebro.config WHERE run_id = %s AND source = 'clone'", cut) == 2
    bench.fit("packed", "cut_pbt_again", "noisy", 3, schedule="replay", replay_run=cut, workers=1)
    assert bench.weights("cut_pbt_again") == bench.weights("cut_pbt")


WRONG = {
    "no space to explore": ("pbt", {}, "has no space in which parameters could change"),
    "a quantile": ("pbt", {"space": SPACE, "configs": 4, "quantile": 0.9}, "quantile in search_params is 0.9"),
    "no space": ("tpe", {"configs": 4}, "space is None; expected a JSON object"),
    "no number": ("tpe", {"space": SPACE}, "configs in search_params is None; expected how many"),
    "a sampler that is none": (
        "asha",
        {"space": SPACE, "configs": 4, "sampler": "x"},
        "sampler in search_params is 'x'",
    ),
    "two samplers": ("tpe", {"space": SPACE, "configs": 4, "sampler": "tpe"}, "has a sampler, but search is one"),
    "nothing to learn from": ("halving", {"space": SPACE, "configs": 4, "sampler": "tpe"}, "nothing to learn from yet"),
    "a grid": ("grid", {"space": SPACE, "configs": 4}, "'grid' draws nothing"),
    "a key": ("tpe", {"space": {"optimizer": ["SGD"]}, "configs": 4}, "space has 'optimizer'; expected compile_params"),
    "a loss": (
        "tpe",
        {"space": {"compile_params": {"loss": ["mse", "nll"], "optimizer": ["SGD"]}}, "configs": 4},
        "nll",
    ),
    "a model": ("tpe", {"space": {**SPACE, "models": [77]}, "configs": 4}, "no model arch found in table models"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_before_anything_begins(bench: Workbench, wrong: tuple[str, object, str]) -> None:
    search, asked, message = wrong
    runs = bench.value("SELECT count(*) FROM cerebro.run")
    with pytest.raises(psycopg2.Error, match=message):
        bench.fit("packed", "wrong", "two", 2, search=search, search_params=json.dumps(asked), **CALL)
    assert bench.value("SELECT count(*) FROM cerebro.run") == runs
