"""Searches that draw configurations of a space while they go on: which, how many, and again after a
crash.
"""

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
            {
                "optimizer": ["SGD"],
                "lr": [0.0001, 0.5, "log"],
                "momentum": [0.5, 0.99, "log_near_one"],
            },
            {"optimizer": ["Adam"], "lr": [0.0001, 0.1, "log"]},
        ],
    },
    "fit_params": {"batch_size": [8], "epochs": [1, 2]},
}
CONFIGS = """SELECT mst_key, source, point IS NOT NULL, compile_params, fit_params, status
 FROM cerebro.config_log WHERE run_id = %s ORDER BY 1"""
DECISIONS = """SELECT decision_no, mst_key, action, epoch, visits, last_epoch, cause, reason
 FROM cerebro.decision WHERE run_id = %s ORDER BY 1"""
STATUS = "SELECT mst_key, status FROM cerebro.config WHERE run_id = %s"
CALL: Mapping[str, object] = {"validation_table": "held_back", "seed": 3, "schedule": "rotation"}
BRED = {"configs": 4, "space": SPACE}
POPULATION: Mapping[str, object] = {
    **CALL,
    "search": "pbt",
    "search_params": json.dumps(BRED),
    "workers": 1,
}


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", SEGMENTS)
    bench.rows("SELECT validation_preprocessor_dl('points', 'held_back', 'label', 'x', 'packed')")
    bench.configure(
        "two",
        [compile_text(f"SGD(learning_rate={rate})") for rate in (0.1, 0.01)],
        ["batch_size=8"],
    )
    bench.configure(
        "noisy",
        [compile_text("SGD(learning_rate=0.1)")],
        ["batch_size=1,epochs=4"],
        bench.model(NOISY),
    )


def params(configs: int, **more: object) -> str:
    return json.dumps({"configs": configs, "space": SPACE, **more})


@pytest.fixture(scope="module")
def learned(bench: Workbench, tables: None) -> int:
    """A run of two configurations and four that a sampler draws, which learns."""
    return bench.fit("packed", "learned", "two", 2, search="tpe", search_params=params(6), **CALL)


def test_what_learns_draws_one_after_the_other(bench: Workbench, learned: int) -> None:
    found = bench.rows(CONFIGS, learned)
    assert [(key, source, drawn) for key, source, drawn, *_ in found] == [
        (key, "call" if key <= 2 else "search", key > 2) for key in range(1, 7)
    ]
    assert len({(compiled, fitted) for _, _, _, compiled, fitted, _ in found}) == 6
    assert {status for *_, status in found} == {"completed"}
    told = (
        "SELECT array_agg(cause ORDER BY cause) FROM cerebro.decision WHERE run_id = %s AND cause "
        "IS NOT NULL"
    )
    assert bench.value(told, learned) == [*range(1, 7)], (
        "of each something was decided when it had ended"
    )
    began = "SELECT min(started_at) FROM cerebro.visit WHERE run_id = %s AND mst_key = %s"
    first_end = bench.value(
        "SELECT min(time) FROM cerebro.metric WHERE run_id = %s AND name = 'loss' AND dataset = "
        "'validation'",
        learned,
    )
    assert bench.value(began, learned, 6) > first_end, (
        "the last is drawn when others have told what they came to"
    )
    assert bench.value("SELECT count(model_weights) FROM learned") == 6


@pytest.mark.long
def test_two_runs_with_one_seed_draw_alike(bench: Workbench, learned: int) -> None:
    """And a replay repeats what was drawn, to the bit."""
    other = bench.fit("packed", "alike", "two", 2, search="tpe", search_params=params(6), **CALL)
    assert bench.rows(CONFIGS, other) == bench.rows(CONFIGS, learned)
    assert bench.rows(DECISIONS, other) == bench.rows(DECISIONS, learned)
    again = bench.fit("packed", "again", "two", 2, schedule="replay", replay_run=learned)
    assert [row[:2] for row in bench.rows(CONFIGS, again)] == [
        row[:2] for row in bench.rows(CONFIGS, learned)
    ]
    assert bench.weights("again") == bench.weights("alike") == bench.weights("learned")


def test_a_rule_that_does_not_learn_draws_before(bench: Workbench) -> None:
    run = bench.fit(
        "packed", "by_hyperband", "two", 3, search="hyperband", search_params=params(6), **CALL
    )
    found = bench.rows(CONFIGS, run)
    assert [source for _, source, *_ in found] == ["call"] * 2 + ["search"] * 4
    assert len({(compiled, fitted) for _, _, _, compiled, fitted, _ in found}) == 6


def test_a_small_space_is_tried_whole(bench: Workbench) -> None:
    space = {
        **SPACE,
        "compile_params": {
            **SPACE["compile_params"],
            "optimizer_params_list": [{"optimizer": ["SGD"]}],
        },
    }
    asked = json.dumps({"configs": 9, "space": space})
    run = bench.fit("packed", "small", "two", 1, search="random", search_params=asked, **CALL)
    found = bench.rows(CONFIGS, run)
    assert [source for _, source, *_ in found] == ["call"] * 2 + ["search"] * 2
    assert len({(compiled, fitted) for _, _, _, compiled, fitted, _ in found}) == 4


@pytest.fixture(scope="module")
def bred(bench: Workbench, tables: None) -> int:
    """A population by rotation, of which all states are kept."""
    return bench.fit("packed", "bred_rotation", "two", 4, **POPULATION)


def test_a_population_goes_on_from_its_best(bench: Workbench, bred: int) -> None:
    found = bench.rows(CONFIGS, bred)
    assert [source for _, source, *_ in found] == ["call"] * 2 + ["search"] * 2 + ["clone"] * 3
    clones = (
        "SELECT c.warm_started_visits, c.warm_started_from, d.last_epoch FROM cerebro.config_log c"
    )
    clones += (
        " JOIN cerebro.decision d USING (run_id, mst_key) WHERE c.run_id = %s AND d.action = "
        "'clone' ORDER BY mst_key"
    )
    assert len(bench.rows(clones, bred)) == 3
    stopped = (
        "SELECT count(*) FROM cerebro.decision WHERE run_id = %s AND action = 'stop' AND rule = "
        "'pbt'"
    )
    assert bench.value(stopped, bred) == 3
    ends: dict[int, str] = dict(bench.rows(STATUS, bred))
    assert sorted(ends.values()) == ["completed"] * 4 + ["stopped"] * 3


def test_who_made_room_for_a_clone_leaves_no_state(bench: Workbench, bred: int) -> None:
    """But for so many as may keep theirs. Two runs of one seed by rotation, and a replay, come to
    the same bits.
    """
    few = bench.fit(
        "packed", "few_kept", "two", 4, **{**POPULATION, "search_params": params(4, live_states=1)}
    )
    released = "SELECT mst_key FROM cerebro.config_log WHERE run_id = %s AND released"
    gone = {key for (key,) in bench.rows(released, few)}
    ends: dict[int, str] = dict(bench.rows(STATUS, few))
    stopped = {key for key, status in ends.items() if status == "stopped"}
    assert not bench.rows(released, bred) and gone < stopped and len(stopped - gone) == 1
    again = bench.fit("packed", "few_again", "two", 4, schedule="replay", replay_run=few, workers=1)
    for other in (bred, again):
        assert [row[:2] for row in bench.rows(CONFIGS, other)] == [
            row[:2] for row in bench.rows(CONFIGS, few)
        ]
        assert dict(bench.rows(STATUS, other)) == ends
    assert [row[3:5] for row in bench.rows(CONFIGS, bred)] == [
        row[3:5] for row in bench.rows(CONFIGS, few)
    ]
    held = "SELECT mst_key, model_weights FROM {} WHERE model_weights IS NOT NULL"
    kept, left, repeated = (
        dict[int, bytes](bench.rows(held.format(name)))
        for name in ("bred_rotation", "few_kept", "few_again")
    )
    assert repeated == kept and left == {
        key: weights for key, weights in kept.items() if key not in gone
    }


@pytest.mark.long
def test_a_population_that_was_cut_goes_on(bench: Workbench) -> None:
    mild = {
        **SPACE["compile_params"],
        "optimizer_params_list": [{"optimizer": ["SGD"], "lr": [0.001, 0.02, "log"]}],
    }
    slow = {"compile_params": mild, "fit_params": {"batch_size": [1, 2], "epochs": [4, 8]}}
    watcher, before = bench.another(), bench.last_run_id()
    asked = json.dumps({"configs": 3, "space": slow})
    call = {**CALL, "schedule": "longest", "search": "pbt", "search_params": asked}
    with bench.fitting("packed", "cut_pbt", "noisy", 3, **call) as fitted:
        clones = "SELECT count(*) > 0 FROM cerebro.config WHERE run_id > %s AND source = 'clone'"
        eventually(lambda: watcher.value(clones, before))
        assert watcher.value("SELECT cerebro.cancel(%s)", watcher.newest_run())
        with pytest.raises(psycopg2.Error):
            fitted.result()
    cut = watcher.newest_run()
    watcher.close()
    bench.rows("SELECT cerebro.resume(%s)", cut)
    assert (
        bench.value(
            "SELECT count(*) FROM cerebro.config WHERE run_id = %s AND source = 'clone'", cut
        )
        == 2
    )
    bench.fit("packed", "cut_pbt_again", "noisy", 3, schedule="replay", replay_run=cut, workers=1)
    assert bench.weights("cut_pbt_again") == bench.weights("cut_pbt")


WRONG = {
    "no space to explore": ("pbt", {}, "has no space in which parameters could change"),
    "a quantile": (
        "pbt",
        {"space": SPACE, "configs": 4, "quantile": 0.9},
        "quantile in search_params is 0.9",
    ),
    "no space": ("tpe", {"configs": 4}, "space is None; expected a JSON object"),
    "no number": ("tpe", {"space": SPACE}, "configs in search_params is None; expected how many"),
    "a sampler that is none": (
        "asha",
        {"space": SPACE, "configs": 4, "sampler": "x"},
        "sampler in search_params is 'x'",
    ),
    "two samplers": (
        "tpe",
        {"space": SPACE, "configs": 4, "sampler": "tpe"},
        "has a sampler, but search is one",
    ),
    "nothing to learn from": (
        "halving",
        {"space": SPACE, "configs": 4, "sampler": "tpe"},
        "nothing to learn from yet",
    ),
    "a grid": ("grid", {"space": SPACE, "configs": 4}, "'grid' draws nothing"),
    "a key": (
        "tpe",
        {"space": {"optimizer": ["SGD"]}, "configs": 4},
        "space has 'optimizer'; expected compile_params",
    ),
    "a loss": (
        "tpe",
        {"space": {"compile_params": {"loss": ["mse", "nll"], "optimizer": ["SGD"]}}, "configs": 4},
        "nll",
    ),
    "a model": (
        "tpe",
        {"space": {**SPACE, "models": [77]}, "configs": 4},
        "no model arch found in table models",
    ),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_before_anything_begins(
    bench: Workbench, wrong: tuple[str, object, str]
) -> None:
    search, asked, message = wrong
    runs = bench.value("SELECT count(*) FROM cerebro.run")
    with pytest.raises(psycopg2.Error, match=message):
        bench.fit(
            "packed", "wrong", "two", 2, search=search, search_params=json.dumps(asked), **CALL
        )
    assert bench.value("SELECT count(*) FROM cerebro.run") == runs
