"""Rules over configurations of templates: who is stopped by patience, and a population that goes on
from its best.
"""

from __future__ import annotations

import json
from typing import Any

import psycopg2
import pytest
from processes import eventually
from roles import refused
from states import metadata
from workbench import Workbench

from cerebro_plpy.scheduling.search.early_stopping_rule import EarlyStoppingRule

EPOCHS, CONFIGS = 4, 4
LETTERS = """
    CREATE TABLE letters AS
    SELECT n AS id, n * 7919 % 50 AS weight, (ARRAY['a', 'b', 'c', NULL])[n % 4 + 1] AS zone,
        n * 31 % 97 / 9.0 AS size,
           n % 4 = 0 OR n * 31 % 97 > 70 AS late
    FROM generate_series(1, 400) AS n"""
CALL = """
    SELECT * FROM cerebro.train('letters', 'late', %s, models => '{realmlp, linear}', configs => 4,
        epochs => %s,
        ensemble => 1,
        refit => 'none', seed => 5, workers => 1, search => %s, search_params => %s, space => %s)"""
SPACE = '{"width": 16, "depth": 1}'
LINES = """
    SELECT mst_key, c.source, c.template, c.params, c.warm_started_from, warm_started_visits,
        c.status, c.epochs
    FROM cerebro.config c JOIN cerebro.config_log l USING (run_id, mst_key) WHERE run_id = %s
        ORDER BY mst_key"""
DECISIONS = """
    SELECT decision_no, mst_key, action, epoch, visits, last_epoch, cause, reason
        FROM cerebro.decision
    WHERE run_id = %s ORDER BY 1"""
MOVES = {"realmlp": {"lr", "weight_decay", "dropout", "beta_2"}, "linear": {"lr"}}
"""What changes neither what a network predicts by its weights nor their number."""


@pytest.fixture(scope="module", autouse=True)
def letters(bench: Workbench) -> None:
    bench.rows(LETTERS)


def trained(bench: Workbench, model: str) -> int:
    """The run of a population that has made a model."""
    return int(bench.rows(CALL, model, EPOCHS, "pbt", None, SPACE)[0][0])


def version(bench: Workbench, model: str) -> tuple[int, str]:
    """The configuration that a model is, and a digest of its state."""
    run, key = bench.row(
        "SELECT run_id, mst_key FROM cerebro.model_version WHERE model = %s", model
    )
    return key, str(
        bench.value(
            f"SELECT md5(string_agg(chunk, '' ORDER BY part)) FROM cerebro_state.r{run}_m{key}"
        )
    )


def test_who_gets_no_better_stops_by_the_numbers_of_the_call(bench: Workbench) -> None:
    """By the metric that it names, and by no other rule."""
    asked = json.dumps({"patience": 1, "min_delta": 0.05, "metric": "loss"})
    run = bench.rows(
        CALL.replace("realmlp, linear", "linear"), "patient", 6, "patience", asked, None
    )[0][0]
    curve = (
        "SELECT mst_key, epoch, value FROM cerebro.learning_curve WHERE run_id = %s AND dataset = "
        "%s AND name = %s"
    )
    series: dict[int, list[tuple[int, float]]] = {}
    for key, epoch, value in bench.rows(f"{curve} ORDER BY 1, 2", run, "training", "loss"):
        series.setdefault(key, []).append((epoch, value))
    verdicts = {
        key: EarlyStoppingRule(1, 0.05, larger_is_better=False).judge(found)
        for key, found in series.items()
    }
    ended = bench.rows(
        "SELECT mst_key, epochs, best_epoch FROM cerebro.config WHERE run_id = %s", run
    )
    assert {
        key: (found.stopped_epoch or 6, found.best_epoch) for key, found in verdicts.items()
    } == {k: (e, b) for k, e, b in ended}
    assert min(epochs for _, epochs, _ in ended) < 6


def check_population(bench: Workbench, run: int) -> None:
    """Each line trains all epochs, and nothing of a clone is other than it may be."""
    found = {row[0]: row for row in bench.rows(LINES, run)}
    segments = bench.value(
        "SELECT cardinality(segments) FROM cerebro.run_log WHERE run_id = %s", run
    )
    assert [row[1] for row in found.values()] == ["call"] * CONFIGS + ["clone"] * (EPOCHS - 1)
    before = dict.fromkeys(found, 0)
    for key, source, template, params, parent, visits, _, _ in found.values():
        if source == "clone":
            before[key] = before[parent] + visits // segments
            assert template == found[parent][2]
            assert {name for name in params if params[name] != found[parent][3][name]} <= MOVES[
                template
            ]
    whole = {key for key, row in found.items() if before[key] + row[7] == EPOCHS}
    assert len(whole) == CONFIGS
    assert {key: row[6] for key, row in found.items()} == {
        key: "completed" if key in whole else "stopped" for key in found
    }


@pytest.mark.long
def test_a_population_of_templates_goes_on_from_its_best(bench: Workbench) -> None:
    """The best comes out once more, unless it began from another one's state."""
    check_population(bench, trained(bench, "bred"))
    key, _ = version(bench, "bred")
    ((same, why),) = bench.rows(
        "SELECT ok, detail FROM cerebro.verify('bred') WHERE what = 'state'"
    )
    assert (same, "from a state of another one" in why) == (key <= CONFIGS, key > CONFIGS)


def steps(bench: Workbench, run: int, key: int, tables: str) -> list[int]:
    """How many steps an optimizer has made, by the states that these tables hold of a
    configuration.
    """
    found = []
    for place in tables:
        if bench.value(
            "SELECT to_regclass(%s) IS NOT NULL", table := f"cerebro_state.r{run}_c{key}_{place}"
        ):
            state = b"".join(
                bytes(chunk) for (chunk,) in bench.rows(f"SELECT chunk FROM {table} ORDER BY part")
            )
            found += [int(metadata(state)["step"])] if state else []
    return found


def check_steps(bench: Workbench, run: int) -> None:
    """A clone that was trained is as far on its way of learning rates as its whole line has
    gone.
    """
    made = (
        "SELECT count(*) FROM cerebro.visit WHERE (run_id, mst_key, status, kind) = (%s, %s, "
        "'completed', 'train')"
    )
    begun, pace = bench.rows(LINES, run), dict[int, set[float]]()
    for key, source, _, _, _, visits, *_ in begun:
        own = bench.value(made, run, key)
        if own and source == "call":
            pace.setdefault(0, set()).add(max(steps(bench, run, key, "ab")) / own)
        elif own:
            (start,) = steps(bench, run, key, "0")
            assert start > 0 and visits > 0
            pace.setdefault(key, set()).add((max(steps(bench, run, key, "ab")) - start) / own)
    assert len(pace) > 1 and len(set.union(*pace.values())) == 1


@pytest.mark.long
def test_a_population_that_was_cut_comes_to_the_same(bench: Workbench) -> None:
    """A clone is at the step of its parent; and who resumes the run decides and trains what would
    have been.
    """
    calm = trained(bench, "calm")
    watcher, before = bench.another(), bench.last_run_id()
    with bench.calling(lambda: trained(bench, "cut")) as fitted:
        cloned = (
            "SELECT count(*) FROM cerebro.config WHERE run_id > %s AND source = 'clone' AND "
            "epochs > 0"
        )
        eventually(lambda: watcher.value(cloned, before))
        assert watcher.value("SELECT cerebro.cancel(%s)", watcher.newest_run())
        with pytest.raises(psycopg2.Error):
            fitted.result()
    cut = watcher.newest_run()
    watcher.close()
    check_steps(bench, cut)
    decided = bench.rows(DECISIONS, cut)
    bench.rows("SELECT cerebro.resume(%s)", cut)
    assert bench.rows(DECISIONS, cut) == bench.rows(DECISIONS, calm)
    assert bench.rows(DECISIONS, cut)[: len(decided)] == decided and len(decided) < len(
        bench.rows(DECISIONS, calm)
    )
    check_population(bench, cut)
    assert version(bench, "cut") == version(bench, "calm")


WRONG: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "a metric that is not computed": ("patience", {"metric": "val_auc"}, SPACE, "val_accuracy"),
    "no patience": ("patience", {"patience": 0}, SPACE, "at least 1"),
    "nothing that could move": ("pbt", {}, '{"lr": 0.01}', "no field of template 'linear'"),
    "a sampler": ("pbt", {"sampler": "tpe"}, SPACE, "nothing to learn from yet"),
    "a space of parameters": ("pbt", {"space": {}}, SPACE, "does not know"),
    "a quantile": ("pbt", {"quantile": 0.7}, SPACE, "at most 0.5"),
    "too long a step": ("pbt", {"interval": 9}, SPACE, "there are 4 epochs"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_said_before_anything_begins(
    bench: Workbench, wrong: tuple[str, dict[str, Any], str, str]
) -> None:
    search, params, space, words = wrong
    error = refused(bench, CALL, "none", EPOCHS, search, json.dumps(params), space, code="22023")
    assert words in f"{error} {error.diag.message_detail}"
    assert not bench.rows("SELECT FROM cerebro.run_log WHERE spec ->> 'name' = 'none'")


def test_groups_have_no_population(bench: Workbench) -> None:
    call = "SELECT cerebro.train('letters', 'late', search => 'pbt', group_by => 'zone')"
    assert "group_by" in str(refused(bench, call, code="0A000"))
