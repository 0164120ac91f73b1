"""People at a live run, from other sessions: what they ask holds from the next visit on, is logged, and is repeated."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import psycopg2
import pytest
from models import NOISY
from processes import eventually, trainers
from roles import another_role, refused
from workbench import Workbench, compile_text

FIT_WORKERS = 1
RATES = (0.01, 0.02, 0.03)
EPOCHS, SEGMENTS = 18, 2
ACT = "SELECT status, reason, visits FROM cerebro.act WHERE act_id = %s"
CONFIG = "SELECT status, reason, epochs FROM cerebro.config WHERE run_id = %s AND mst_key = %s"
TOTAL = "SELECT visits_total FROM cerebro.progress WHERE run_id = %s"
ALL_DONE = "SELECT visits_done = visits_total FROM cerebro.progress WHERE run_id = %s"
VISITS = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND mst_key = %s AND status = 'completed'"


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", SEGMENTS)
    rates = [compile_text(f"SGD(learning_rate={rate})") for rate in RATES]
    model = bench.model(NOISY)
    bench.configure("slow", rates, ["batch_size=1,epochs=2"], model)
    bench.configure("slower", rates, ["batch_size=1,epochs=60"], model)


@contextmanager
def live(
    bench: Workbench, person: Workbench, output: str, configs: str = "slow", epochs: int = EPOCHS, **named: object
) -> Iterator[tuple[int, Future[int]]]:
    """A run of three configurations that has begun to train."""
    before = person.newest_run()
    named = {"metrics_compute_frequency": 1, "workers": 1, **named}
    with bench.fitting("packed", output, configs, epochs, **named) as fitted:
        eventually(lambda: person.newest_run() > before)
        run = person.newest_run()
        begun = "SELECT count(DISTINCT mst_key) = 3 FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"
        eventually(lambda: person.value(begun, run))
        yield run, fitted


def done(person: Workbench, call: str, *values: object) -> int:
    """An act that has been done; it is shown at once."""
    act = person.value(f"SELECT cerebro.{call}", *values)
    assert person.value("SELECT count(*) FROM cerebro.act WHERE act_id = %s", act) == 1
    eventually(lambda: person.row(ACT, act)[0] != "scheduled")
    assert person.row(ACT, act)[:2] == ("done", None)
    return int(act)


def check_replay(bench: Workbench, run: int, output: str, keys: int = len(RATES), epochs: int = EPOCHS) -> None:
    """A replay comes to the same bits, of warm clones too."""
    visits = "SELECT mst_key, visit_no, segment_id FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"
    visits += f" AND mst_key <= {keys}"
    again = bench.fit("packed", f"{output}_again", "slow", epochs, schedule="replay", replay_run=run)
    assert bench.rows(f"{visits} ORDER BY 1, 2", again) == bench.rows(f"{visits} ORDER BY 1, 2", run)
    found = bench.weights(output)
    assert bench.weights(f"{output}_again") == {key: found[key] for key in range(1, keys + 1)}


def test_who_is_stopped_rests_and_may_go_on(bench: Workbench, person: Workbench) -> None:
    """If all rest, the run is paused and has no trainers."""
    status = "SELECT status FROM cerebro.run WHERE run_id = %s"
    with live(bench, person, "stopped") as (run, fitted):
        serving = person.serving(person.value("SELECT pid FROM cerebro.run WHERE run_id = %s", run))
        acts = [done(person, "stop_config(%s, %s)", run, key) for key in (1, 2, 3)]
        visits = person.row(ACT, acts[1])[2]
        assert person.row(CONFIG, run, 1)[0] == "paused" and "stopped by cerebro" in person.row(CONFIG, run, 1)[1]
        eventually(lambda: person.value(status, run) == "paused")
        eventually(lambda: not trainers(serving))
        done(person, "continue_config(%s, 3)", run)
        assert person.value(status, run) == "running"
        done(person, "continue_config(%s, 1)", run)
        fitted.result()
    assert bench.row(CONFIG, run, 1) == ("completed", None, EPOCHS)
    assert bench.value(VISITS, run, 2) == visits < EPOCHS * SEGMENTS
    assert bench.row(CONFIG, run, 2)[0] == "stopped" and bench.row(CONFIG, run, 3)[0] == "completed"
    check_replay(bench, run, "stopped")


def test_a_run_that_is_paused_begins_nothing(bench: Workbench, person: Workbench) -> None:
    """Its epochs can be fewer when it goes on; of what is asked, the last word holds."""
    workers = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'running'"
    with live(bench, person, "fewer", max_runtime="1 hour") as (run, fitted):
        serving = person.serving(person.value("SELECT pid FROM cerebro.run WHERE run_id = %s", run))
        done(person, "pause_run(%s)", run)
        eventually(lambda: not person.value(workers, run))
        visits = person.value("SELECT count(*) FROM cerebro.visit WHERE run_id = %s", run)
        eventually(lambda: not trainers(serving))
        assert person.value("SELECT count(*) FROM cerebro.visit WHERE run_id = %s", run) == visits
        done(person, "set_epochs(%s, 8, 3)", run)
        done(person, "set_epochs(%s, 9)", run)
        done(person, "continue_run(%s)", run)
        fitted.result()
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "completed"
    found = bench.rows("SELECT status, epochs FROM cerebro.config WHERE run_id = %s", run)
    assert found == [("completed", 9)] * len(RATES)
    assert bench.value("SELECT count(model_weights) FROM fewer") == len(RATES)
    check_replay(bench, run, "fewer")


@pytest.mark.long_for(cut=False)
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_epochs_can_be_more(bench: Workbench, person: Workbench, cut: bool) -> None:
    """Of one configuration, or of all; the others keep theirs. A run that was cut knows it, and a replay, too."""
    output, few, more = f"more_{cut}", 8, 10
    with live(bench, person, output, epochs=few) as (run, fitted):
        done(person, "pause_run(%s)", run)
        done(person, "set_epochs(%s, %s, 2)", run, more)
        if cut:
            assert person.value("SELECT cerebro.cancel(%s)", run)
            with pytest.raises(psycopg2.Error):
                fitted.result()
            bench.rows("SELECT cerebro.resume(%s)", run)
        else:
            done(person, "continue_run(%s)", run)
            fitted.result()
    epochs = bench.rows("SELECT mst_key, epochs, status FROM cerebro.config WHERE run_id = %s ORDER BY 1", run)
    assert epochs == [(1, few, "completed"), (2, more, "completed"), (3, few, "completed")]
    progress = "SELECT status, epochs, visits_done = visits_total FROM cerebro.progress WHERE run_id = %s"
    assert bench.row(progress, run) == ("completed", more, True)
    assert bench.row(f"SELECT num_iterations, metrics_iters[{more}] FROM {output}_summary") == (more, more)
    measured = "SELECT mst_key, max(epoch) FROM cerebro.metric WHERE run_id = %s GROUP BY 1 ORDER BY 1"
    assert bench.rows(measured, run) == [(1, few), (2, more), (3, few)]
    again = bench.fit("packed", f"{output}_again", "slow", more, schedule="replay", replay_run=run)
    assert bench.weights(f"{output}_again") == bench.weights(output)
    assert bench.rows(measured, again) == bench.rows(measured, run)


def test_progress_expects_all_to_come_to_the_end_where_a_reason_stops_them(bench: Workbench, person: Workbench) -> None:
    epochs = 10
    with live(bench, person, "expected", epochs=epochs, search="median", schedule="rotation") as (run, fitted):
        done(person, "pause_run(%s)", run)
        assert person.value(TOTAL, run) >= len(RATES) * epochs * SEGMENTS
        done(person, "continue_run(%s)", run)
        fitted.result()
    assert bench.value(ALL_DONE, run)


def test_of_a_search_one_may_have_more_epochs(bench: Workbench, person: Workbench) -> None:
    """Progress expects the others to come as far as is decided."""
    few, more = 12, 14
    with live(bench, person, "sought", epochs=few, search="asha", schedule="rotation") as (run, fitted):
        done(person, "pause_run(%s)", run)
        assert len(RATES) * SEGMENTS <= person.value(TOTAL, run) < len(RATES) * few * SEGMENTS
        done(person, "set_epochs(%s, %s, 2)", run, more)
        done(person, "continue_run(%s)", run)
        fitted.result()
    assert bench.value(ALL_DONE, run)
    assert bench.row(CONFIG, run, 2) == ("completed", None, more)
    assert bench.value("SELECT max(epochs) FROM cerebro.config WHERE run_id = %s AND mst_key <> 2", run) <= few
    bench.fit("packed", "sought_again", "slow", more, schedule="replay", replay_run=run)
    assert bench.weights("sought_again") == bench.weights("sought")


def test_who_was_trained_to_the_end_may_go_on(bench: Workbench, person: Workbench) -> None:
    """In the background, where nobody writes its output before the end."""
    call = "cerebro.submit('packed', 'longer', 'slow', %s, workers => 1, metrics_compute_frequency => 1)"
    run = bench.value(f"SELECT {call}", EPOCHS)
    done(person, "prioritise(%s, 1)", run)
    eventually(lambda: person.row(CONFIG, run, 1)[0] == "completed")
    done(person, "set_epochs(%s, %s, 1)", run, EPOCHS + 1)
    assert person.row(CONFIG, run, 1)[0] in ("running", "completed")
    assert bench.value("SELECT cerebro.wait(%s)", run) == "completed"
    found = bench.rows("SELECT mst_key, status, epochs FROM cerebro.config WHERE run_id = %s ORDER BY 1", run)
    assert found == [(key, "completed", EPOCHS + (key == 1)) for key in (1, 2, 3)]


def test_who_is_to_go_first_does(bench: Workbench, person: Workbench) -> None:
    with live(bench, person, "first") as (run, fitted):
        act = done(person, "prioritise(%s, 3)", run)
        since = person.value("SELECT done_at FROM cerebro.act WHERE act_id = %s", act)
        fitted.result()
    last = "SELECT mst_key FROM cerebro.visit WHERE run_id = %s AND started_at > %s ORDER BY started_at"
    turns = [key for key, _ in groupby(key for (key,) in bench.rows(last, run, since))]
    # What the worker was making at that moment, and what it was to make next, had been decided before.
    assert 3 in turns[:3] and 3 not in turns[3:]


def test_a_search_is_steered_too(bench: Workbench, person: Workbench) -> None:
    with live(bench, person, "searched", search="halving", schedule="rotation") as (run, fitted):
        eventually(lambda: person.value("SELECT count(*) FROM cerebro.decision WHERE run_id = %s AND cause > 0", run))
        done(person, "pause_run(%s)", run)
        done(person, "stop_config(%s, 3)", run)
        eventually(
            lambda: person.value("SELECT status FROM cerebro.config WHERE run_id = %s AND mst_key = 3", run) == "paused"
        )
        done(person, "continue_config(%s, 3)", run)
        fitted.result()
    assert bench.row(CONFIG, run, 3) == ("completed", None, EPOCHS)
    by_hand = (
        "SELECT rule, action, last_epoch FROM cerebro.decision WHERE run_id = %s AND act_id > 0 ORDER BY decision_no"
    )
    assert [row[:2] for row in bench.rows(by_hand, run)] == [("stop_config", "hold"), ("continue_config", "continue")]
    check_replay(bench, run, "searched")


def test_what_was_asked_survives_the_end_of_the_session(bench: Workbench, person: Workbench) -> None:
    few, epochs = 8, 10
    with live(bench, person, "cut", epochs=epochs) as (run, fitted):
        done(person, "pause_run(%s)", run)
        done(person, "stop_config(%s, 2)", run)
        for key in (2, 3):
            done(person, "set_epochs(%s, %s, %s)", run, few, key)
        assert person.row(CONFIG, run, 2)[0] == "paused"
        assert person.value("SELECT cerebro.cancel(%s)", run)
        with pytest.raises(psycopg2.Error):
            fitted.result()
    visits = bench.value(VISITS, run, 2)
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert bench.value(VISITS, run, 2) == visits and bench.row(CONFIG, run, 2)[0] == "stopped"
    assert bench.row(CONFIG, run, 1) == ("completed", None, epochs)
    assert bench.row(CONFIG, run, 3) == ("completed", None, few)
    check_replay(bench, run, "cut", epochs=epochs)


def test_only_members_act_and_what_cannot_be_is_refused(
    bench: Workbench, shared_superuser: Workbench, person: Workbench
) -> None:
    """Nobody acts in another name either."""
    bench.configure("strange", [compile_text("SGD(learning_rate=0.04)")], ["batch_size=1"], bench.model(NOISY))
    with another_role(bench, shared_superuser, "gita") as gita, live(bench, person, "guarded") as (run, fitted):
        done(person, "pause_run(%s)", run)
        refused(gita, "SELECT cerebro.stop_config(%s, 1)", run, code="42704")
        insert = "INSERT INTO cerebro.act_log (run_id, action{}) VALUES (%s, 'pause_run'{})"
        refused(gita, insert.format("", ""), run)
        refused(person, insert.format(", actor", ", 'gita'"), run)
        refused(person, "SELECT cerebro.stop_config(%s, 9)", run, code="42704")
        refused(person, "SELECT cerebro.stop_config(%s, NULL)", run, code="22004")
        refused(person, "SELECT cerebro.set_epochs(%s, 0)", run, code="22023")
        refused(person, "SELECT cerebro.set_epochs(%s, 1000000)", run, code="22023")
        by_hand = "INSERT INTO cerebro.act_log (run_id, action, change) VALUES (%s, 'set_epochs', %s) RETURNING act_id"
        act = person.value(by_hand, run, '{"epochs": 1000000}')
        eventually(lambda: person.row(ACT, act)[0] == "refused")
        assert "expected 1 to 999999" in person.row(ACT, act)[1]
        for change in ('{"lr": 1}', "[1]", '{"batch_size": 0}'):
            refused(person, "SELECT cerebro.clone_config(%s, 1, %s)", run, change, code="22023")
        refused(person, "SELECT cerebro.clone_config(%s, 9, '{}')", run, code="42704")
        refused(person, "SELECT cerebro.add_configs(%s, selection_table => 'nowhere')", run, code="42P01")
        act = person.value("SELECT cerebro.add_configs(%s, selection_table => 'strange')", run)
        eventually(lambda: person.row(ACT, act)[0] == "refused")
        assert "are not among those" in person.row(ACT, act)[1]
        shared_superuser.rows(f"GRANT {person.value('SELECT current_user')} TO gita")
        for key in (1, 2, 3):
            done(gita, "set_epochs(%s, 1, %s)", run, key)
        done(gita, "continue_run(%s)", run)
        actors = (
            "SELECT DISTINCT actor FROM cerebro.act WHERE run_id = %s AND action = 'set_epochs' AND status = 'done'"
        )
        assert gita.rows(actors, run) == [("gita",)]
        fitted.result()
    refused(person, "SELECT cerebro.stop_config(%s, 1)", run, code="55000")


@pytest.mark.long_for(warm=False)
@pytest.mark.parametrize("warm", [True, False])
def test_a_clone_joins_with_other_parameters(bench: Workbench, person: Workbench, warm: bool) -> None:
    output, epochs = f"cloned_{warm}", 8
    change = '{"optimizer": "SGD(learning_rate=0.005)", "batch_size": 2}'
    with live(bench, person, output, epochs=epochs) as (run, fitted):
        done(person, "pause_run(%s)", run)
        act = done(person, "clone_config(%s, 2, %s, %s)", run, change, warm)
        done(person, "continue_run(%s)", run)
        fitted.result()
    origin = "SELECT source, cloned_from, warm_started_from, status, epochs FROM cerebro.config WHERE run_id = %s"
    assert bench.row(f"{origin} AND mst_key = 4", run) == ("clone", 2, 2 if warm else None, "completed", epochs)
    compiled, fitting = bench.row(f"SELECT compile_params, fit_params FROM {output}_info WHERE mst_key = 4")
    assert "SGD(learning_rate=0.005)" in compiled and "batch_size=2" in fitting and "epochs=2" in fitting
    decided = "SELECT mst_key, action FROM cerebro.decision WHERE run_id = %s AND act_id = %s"
    assert bench.rows(decided, run, act) == [(4, "start")]
    assert bench.value(f"SELECT count(model_weights) FROM {output}") == 4
    bench.rows(f"SELECT madlib_predict('{output}', 'points', 'id', 'x', '{output}_p', 'response', mst_key => 4)")
    check_replay(bench, run, output, keys=4, epochs=epochs)
    table = f"SELECT mst_key, model_id, compile_params, fit_params FROM {output}_info"
    bench.rows(f"CREATE TABLE all_{warm} AS {table}; CREATE TABLE all_{warm}_summary AS SELECT * FROM slow_summary")
    replayed = {"schedule": "replay", "replay_run": run}
    bench.fit("packed", f"whole_{warm}", f"all_{warm}", epochs, **replayed)
    assert bench.weights(f"whole_{warm}") == bench.weights(output)
    if warm:
        bench.rows("DELETE FROM all_True WHERE mst_key = 2")
        with pytest.raises(psycopg2.errors.FeatureNotSupported, match="began from states of others"):
            bench.fit("packed", "refused", "all_True", epochs, **replayed)


def test_configurations_of_a_table_join_a_search(bench: Workbench, person: Workbench) -> None:
    more = [compile_text("SGD(learning_rate=0.04)"), compile_text("SGD(learning_rate=0.05)")]
    bench.configure("more", more, ["batch_size=1,epochs=2"], bench.value("SELECT min(model_id) FROM slow"))
    with live(bench, person, "grown", search="asha", schedule="rotation") as (run, fitted):
        done(person, "pause_run(%s)", run)
        done(person, "add_configs(%s, selection_table => 'more')", run)
        fitted.result()
    joined = "SELECT mst_key, source, epochs > 0 FROM cerebro.config WHERE run_id = %s AND mst_key > 3 ORDER BY 1"
    assert bench.rows(joined, run) == [(4, "act", True), (5, "act", True)]
    rules = "SELECT DISTINCT rule FROM cerebro.decision WHERE run_id = %s AND mst_key > 3"
    assert bench.rows(rules, run) == [("asha",)]


def test_configurations_of_a_space_join(bench: Workbench, person: Workbench) -> None:
    """Drawn when they are asked for: a replay repeats them."""
    space = {
        "compile_params": {"loss": ["categorical_crossentropy"], "metrics": ["accuracy"], "lr": [0.001, 0.1, "log"]}
    }
    near = {"compile_params": {"lr": [0.021, 0.022]}, "fit_params": {"batch_size": [1, 2]}}
    epochs = 8
    with live(bench, person, "spaced", epochs=epochs) as (run, fitted):
        done(person, "pause_run(%s)", run)
        done(person, "add_configs(%s, %s, 2)", run, json.dumps({**space, "fit_params": {"batch_size": [2]}}))
        act = done(person, "drill_down(%s, 2, %s)", run, json.dumps(near))
        done(person, "continue_run(%s)", run)
        fitted.result()
    joined = "SELECT mst_key, source, cloned_from, compile_params, fit_params FROM cerebro.config WHERE run_id = %s"
    found = bench.rows(f"{joined} AND mst_key > 3 ORDER BY 1", run)
    assert [row[:3] for row in found] == [(key, "act", None if key < 6 else 2) for key in range(4, 10)]
    assert all("RMSprop(lr=" in compiled and fitting == "batch_size=2" for *_, compiled, fitting in found[:2])
    texts = {(compiled.split("'")[1], fitting) for *_, compiled, fitting in found[2:]}
    fits = [f"batch_size={size},epochs=2" for size in (1, 2)]
    assert texts == {(f"SGD(lr={rate})", fit) for rate in (0.021, 0.022) for fit in fits}
    assert bench.value("SELECT change -> 'configs' -> 0 ->> 'fit_params' FROM cerebro.act WHERE act_id = %s", act)
    check_replay(bench, run, "spaced", keys=9, epochs=epochs)


@pytest.mark.long
def test_clones_of_clones_are_repeated_wherever_their_runs_were_cut(bench: Workbench, person: Workbench) -> None:
    """A replay that is cut itself goes on rightly, too."""
    change = '{"optimizer": "SGD(learning_rate=0.001)"}'
    with live(bench, person, "cut_clone") as (run, fitted):
        done(person, "clone_config(%s, 2, %s)", run, change)
        eventually(lambda: person.value(VISITS, run, 4))
        done(person, "clone_config(%s, 4, %s)", run, change)
        assert person.value("SELECT cerebro.cancel(%s)", run)
        with pytest.raises(psycopg2.Error):
            fitted.result()
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert bench.row(CONFIG, run, 5) == ("completed", None, EPOCHS)
    begun = "SELECT mst_key, source, warm_started_from, warm_started_visits FROM cerebro.config_log"
    begun += " WHERE run_id = %s AND mst_key > 3 ORDER BY 1"
    origins = bench.rows(begun, run)
    assert [row[:3] for row in origins] == [(4, "clone", 2), (5, "clone", 4)] and min(row[3] for row in origins) > 0
    again = {"schedule": "replay", "replay_run": run, "workers": 1}
    with bench.fitting("packed", "cut_clone_again", "slow", EPOCHS, **again) as fitted:
        eventually(lambda: person.newest_run() > run)
        repeated = person.newest_run()
        eventually(lambda: person.value("SELECT count(*) > 3 FROM cerebro.visit WHERE run_id = %s", repeated))
        assert person.value("SELECT cerebro.cancel(%s)", repeated)
        with pytest.raises(psycopg2.Error):
            fitted.result()
    bench.rows("SELECT cerebro.resume(%s)", repeated)
    assert bench.rows(begun, repeated) == origins
    assert bench.weights("cut_clone_again") == bench.weights("cut_clone")


@pytest.mark.long
def test_who_is_stopped_early_holds_up_no_message(bench: Workbench, person: Workbench) -> None:
    """Its visits take long, so that not all are made in one tour, which without evaluations time alone ends."""
    with live(bench, person, "told", "slower", metrics_compute_frequency=None) as (run, fitted):
        notices: Any = deque()
        bench.connection.notices = notices  # of a list psycopg2 leaves the last fifty
        for key in (2, 3):
            done(person, "stop_config(%s, %s)", run, key)
        fitted.result()
    said = "\n".join(bench.messages())
    stopped = f"stopped by {bench.value('SELECT current_user')}"
    assert f"Training set after iteration {EPOCHS}:" in said and stopped in said
    assert bench.value("SELECT count(model_weights) FROM told") == len(RATES)
