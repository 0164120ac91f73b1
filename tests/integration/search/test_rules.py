"""Searches within one run: who goes on is decided while visits go on, and taken up by whoever
resumes or repeats it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import psycopg2
import pytest
from models import NOISY
from processes import eventually
from workbench import Workbench, compile_text

from cerebro_plpy.scheduling.search.early_stopping_rule import EarlyStoppingRule

FIT_WORKERS = 1
RATES = (0.0, 0.5, 0.2, 1e-5, 1e-4, 0.1, 1e-6, 0.3, 1e-3)
EPOCHS, SEGMENTS, ETA = 9, 2, 3
SEARCH: Mapping[str, object] = {
    "search": "asha",
    "validation_table": "held_back",
    "seed": 1,
    "schedule": "rotation",
}
DECISIONS = "SELECT decision_no, mst_key, action, epoch, visits, last_epoch, cause, rule, reason"
OF_RUN = f"{DECISIONS} FROM cerebro.decision WHERE run_id = %s ORDER BY 1"


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", SEGMENTS)
    bench.rows("SELECT validation_preprocessor_dl('points', 'held_back', 'label', 'x', 'packed')")
    rates = [compile_text(f"SGD(learning_rate={rate})") for rate in RATES]
    bench.configure("nine", rates, ["batch_size=8"])
    bench.configure("four", rates[:4], ["batch_size=8"])
    bench.configure("slow", rates, ["batch_size=1,epochs=8"], bench.model(NOISY))


@pytest.fixture(scope="module")
def run(bench: Workbench) -> int:
    return bench.fit("packed", "model", "nine", EPOCHS, **SEARCH)


def epochs(bench: Workbench, run_id: int) -> dict[int, int]:
    """How many epochs each configuration was trained."""
    return dict(bench.rows("SELECT mst_key, epochs FROM cerebro.config WHERE run_id = %s", run_id))


def check_asha(bench: Workbench, run_id: int) -> None:
    """By the log: who was promoted was then among the best of those that had come to the end of the
    rung.
    """
    values = {
        (key, epoch): value
        for key, epoch, value in bench.rows(
            "SELECT c.mst_key, c.epoch, c.value FROM cerebro.learning_curve c JOIN cerebro.run r "
            "USING (run_id) WHERE c.run_id = %s AND c.dataset = r.spec ->> 'rank_dataset' AND "
            "c.name = r.spec ->> 'rank_metric'",
            run_id,
        )
    }
    descending = bench.value(
        "SELECT (spec ->> 'rank_descending')::boolean FROM cerebro.run WHERE run_id = %s", run_id
    )
    limits, come = dict.fromkeys(range(1, len(RATES) + 1), 0), dict[int, list[tuple[float, int]]]()
    rows = bench.rows(OF_RUN, run_id)
    assert [row[0] for row in rows] == list(range(1, len(rows) + 1))
    for _, key, action, epoch, visits, last, cause, _, _ in rows:
        if cause == key:
            value = values[key, limits[key]]
            come.setdefault(limits[key], []).append((-value if descending else value, key))
            assert (epoch, visits) == (limits[key], limits[key] * SEGMENTS)
        if action == "promote":
            ranked = [who for _, who in sorted(come[limits[key]])]
            alone = all(limit in come and (limit, key) for limit in limits.values() if limit)
            assert key in ranked[: len(ranked) // ETA] or (alone and key == ranked[0])
        limits[key] = last
    assert limits == epochs(bench, run_id)


def test_asha_promotes_the_best_and_trains_one_to_the_end(bench: Workbench, run: int) -> None:
    check_asha(bench, run)
    trained = epochs(bench, run)
    assert set(trained.values()) <= {1, 3, EPOCHS} and max(trained.values()) == EPOCHS
    assert sum(trained.values()) < len(RATES) * EPOCHS / 2
    states: dict[int, str] = dict(
        bench.rows("SELECT mst_key, status FROM cerebro.config WHERE run_id = %s", run)
    )
    assert states == {
        key: "completed" if epoch == EPOCHS else "stopped" for key, epoch in trained.items()
    }
    assert bench.value("SELECT count(model_weights) FROM model") == len(RATES)
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "completed"


def test_a_replay_repeats_what_was_decided(bench: Workbench, run: int) -> None:
    again = bench.fit("packed", "repeated", "nine", EPOCHS, schedule="replay", replay_run=run)
    assert epochs(bench, again) == epochs(bench, run)
    assert bench.weights("repeated") == bench.weights("model")
    found = (
        "SELECT DISTINCT rule, action FROM cerebro.decision WHERE run_id = %s AND action <> 'rest'"
    )
    assert bench.rows(found, again) == [("replay", "start")]


@pytest.mark.long
def test_pasha_trains_nobody_beyond_its_ceiling(bench: Workbench) -> None:
    """Though each epoch has its metrics, which a replay does not decide by."""
    call = {**SEARCH, "search": "pasha", "search_params": '{"eta": 2}'}
    run = bench.fit("packed", "by_pasha", "nine", EPOCHS, **call)
    trained = epochs(bench, run)
    highest = max(trained.values())
    assert set(trained.values()) <= {1, 2, 4, EPOCHS} and highest >= 2
    measured = (
        "SELECT mst_key, count(DISTINCT epoch) FROM cerebro.learning_curve WHERE run_id = %s "
        "GROUP BY 1"
    )
    assert dict(bench.rows(measured, run)) == trained
    told = (
        "SELECT DISTINCT last_epoch FROM cerebro.decision WHERE run_id = %s AND reason LIKE "
        "'%%nobody goes on%%'"
    )
    assert highest == EPOCHS or (highest,) in bench.rows(told, run)
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "completed"
    assert bench.value("SELECT count(model_weights) FROM by_pasha") == len(RATES)
    bench.fit("packed", "pasha_repeated", "nine", EPOCHS, schedule="replay", replay_run=run)
    assert bench.weights("pasha_repeated") == bench.weights("by_pasha")


@pytest.mark.parametrize(
    ("search", "last"), [("halving", 3), ("hyperband", 3), ("median", 3), ("grid", 2)]
)
def test_other_rules_end_too(bench: Workbench, search: str, last: int) -> None:
    run = bench.fit(
        "packed",
        f"by_{search}",
        "nine",
        last,
        **{**SEARCH, "search": search, "schedule": "longest"},
    )
    trained = epochs(bench, run)
    assert max(trained.values()) == last and min(trained.values()) >= 1
    assert (sum(trained.values()) < len(RATES) * last) == (search != "grid")
    assert bench.rows("SELECT DISTINCT rule FROM cerebro.decision WHERE run_id = %s", run) == [
        (search,)
    ]


@pytest.mark.long
def test_who_is_left_far_behind_leaves_no_state(bench: Workbench) -> None:
    """Its metrics stay; and the run can be cancelled, goes on from its decisions, and is
    repeated.
    """
    call: dict[str, object] = {**SEARCH, "search_params": '{"live_states": 1}', "workers": 1}
    released = "SELECT mst_key FROM cerebro.config_log WHERE run_id = %s AND released ORDER BY 1"
    watcher, before = bench.another(), bench.last_run_id()
    with bench.fitting("packed", "cut_asha", "slow", EPOCHS, **call) as fitted:
        eventually(
            lambda: watcher.newest_run() > before and watcher.rows(released, watcher.newest_run())
        )
        cut = watcher.newest_run()
        tables = (
            "SELECT count(*) FROM pg_class WHERE relname LIKE 'r' || %s || '\\_c' || %s || '\\_%%'"
        )
        eventually(lambda: not watcher.value(tables, cut, watcher.rows(released, cut)[0][0]))
        assert watcher.value("SELECT cerebro.cancel(%s)", cut)
        with pytest.raises(psycopg2.Error):
            fitted.result()
    watcher.close()
    decided = bench.rows(OF_RUN, cut)
    bench.rows("SELECT cerebro.resume(%s)", cut)
    assert bench.rows(OF_RUN, cut)[: len(decided)] == decided
    check_asha(bench, cut)
    gone = [key for (key,) in bench.rows(released, cut)]
    left = [key for key, epoch in epochs(bench, cut).items() if epoch < EPOCHS and key not in gone]
    assert gone and len(left) >= 1
    weights = "SELECT mst_key FROM cut_asha WHERE model_weights IS NULL ORDER BY 1"
    assert [key for (key,) in bench.rows(weights)] == gone
    assert bench.value("SELECT count(training_loss_final) FROM cut_asha_info") == len(RATES)
    with pytest.raises(psycopg2.Error, match="has no weights"):
        bench.rows(
            f"SELECT madlib_predict('cut_asha', 'points', 'id', 'x', 'o', mst_key => {gone[0]})"
        )
    repeated = bench.fit("packed", "again_asha", "slow", EPOCHS, schedule="replay", replay_run=cut)
    assert epochs(bench, repeated) == epochs(bench, cut)
    held = "SELECT mst_key, model_weights FROM {}_asha WHERE model_weights IS NOT NULL ORDER BY 1"
    found, again = (dict[int, bytes](bench.rows(held.format(name))) for name in ("cut", "again"))
    assert found == {key: again[key] for key in found}, (
        "a replay trains those as well whose states were dropped"
    )


def test_no_more_visits_are_made_than_may_be(bench: Workbench) -> None:
    few = bench.fit(
        "packed", "few", "nine", EPOCHS, **{**SEARCH, "search_params": '{"max_visits": 9}'}
    )
    made = bench.value(
        "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed'", few
    )
    assert made == 8, "four epochs over two segments"
    states = (
        "SELECT status, epochs > 0, count(*) FROM cerebro.config WHERE run_id = %s GROUP BY 1, 2 "
        "ORDER BY 2"
    )
    assert bench.rows(states, few) == [("stopped", False, 5), ("stopped", True, 4)], (
        "some have not begun"
    )
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", few) == "completed"
    assert bench.value("SELECT count(model_weights) FROM few") == 4
    with pytest.raises(psycopg2.Error, match="expected at least 2"):
        bench.fit(
            "packed", "none", "nine", EPOCHS, **{**SEARCH, "search_params": '{"max_visits": 1}'}
        )


def test_a_target_ends_the_search(bench: Workbench) -> None:
    params = '{"target": 0.5}'
    run = bench.fit(
        "packed", "reached", "nine", EPOCHS, **{**SEARCH, "search": "grid", "search_params": params}
    )
    best = bench.value("SELECT max(value) FROM cerebro.leaderboard WHERE run_id = %s", run)
    assert best >= 0.5 and sum(epochs(bench, run).values()) < len(RATES) * EPOCHS
    assert bench.rows(
        "SELECT FROM cerebro.decision WHERE run_id = %s AND reason LIKE '%%target was reached%%'",
        run,
    )


def test_what_cannot_be_searched_is_refused(bench: Workbench) -> None:
    refusals: list[tuple[str, dict[str, object]]] = [
        ("expected one of", {"search": "ashe"}),
        ("there is no search", {"search_params": '{"eta": 3}'}),
        ("does not know", {"search": "hyperband", "search_params": '{"first_epochs": 3}'}),
        ("expected a number", {"search": "asha", "search_params": '{"target": "high"}'}),
        ("at least 2", {"search": "asha", "search_params": '{"eta": 1}'}),
        ("JSON object", {"search": "asha", "search_params": "[1]"}),
        ("live_states", {"search": "asha", "search_params": '{"live_states": 0}'}),
        ("but there are 9 epochs", {"search": "asha", "search_params": '{"first_epochs": 10}'}),
        ("no metrics to decide by", {"search": "asha", "training_metrics": False}),
        ("a replay repeats", {"search": "asha", "schedule": "replay", "replay_run": 1}),
    ]
    for words, named in refusals:
        with pytest.raises(psycopg2.Error) as caught:
            bench.fit("packed", "refused", "nine", EPOCHS, **named)
        assert caught.value.pgcode == "22023" and words in str(caught.value)
    assert not bench.exists("refused")


def test_who_gets_no_better_stops_and_has_its_best_state(bench: Workbench) -> None:
    """By the metric that ranks; and a replay comes to the same state, whichever it was."""
    last, params = 6, {"patience": 1, "min_delta": 0.01}
    call = {**SEARCH, "search": "patience", "search_params": json.dumps(params)}
    run = bench.fit("packed", "patient", "four", last, **call)
    trained = epochs(bench, run)
    assert min(trained.values()) < last
    curve = (
        "SELECT mst_key, epoch, value FROM cerebro.learning_curve WHERE run_id = %s AND dataset = "
        "%s AND name = %s"
    )
    ranked = (
        "SELECT spec ->> 'rank_dataset', spec ->> 'rank_metric', (spec ->> "
        "'rank_descending')::boolean"
    )
    watched = bench.row(f"{ranked} FROM cerebro.run WHERE run_id = %s", run)
    series: dict[int, list[tuple[int, float]]] = {}
    for key, epoch, value in bench.rows(f"{curve} ORDER BY 1, 2", run, *watched[:2]):
        series.setdefault(key, []).append((epoch, value))
    rule = EarlyStoppingRule(1, 0.01, larger_is_better=watched[2])
    best = {key: rule.judge(values).best_epoch for key, values in series.items()}
    assert {
        key: rule.judge(values).stopped_epoch or last for key, values in series.items()
    } == trained
    assert (
        dict(bench.rows("SELECT mst_key, best_epoch FROM cerebro.config WHERE run_id = %s", run))
        == best
    )
    stopped = (
        "SELECT DISTINCT mst_key FROM cerebro.decision WHERE run_id = %s AND action = 'stop' AND "
        "rule = 'patience'"
    )
    assert {key for (key,) in bench.rows(stopped, run)} == {
        key for key, epoch in trained.items() if epoch < last
    }
    again = {"schedule": "replay", "replay_run": run, "validation_table": "held_back"}
    bench.fit("packed", "patient_again", "four", last, **again)
    assert bench.weights("patient_again") == bench.weights("patient")
