"""People at a live run, from other sessions: what they ask holds from the next visit on, is logged, and is repeated."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

import psycopg2
import pytest
from models import NOISY
from processes import eventually, trainers
from roles import another_role, refused
from workbench import Workbench, compile_text

RATES = (0.01, 0.02, 0.03)
EPOCHS, SEGMENTS = 6, 2
ACT = "SELECT status, reason, visits FROM cerebro.act WHERE act_id = %s"
CONFIG = "SELECT status, reason, epochs FROM cerebro.config WHERE run_id = %s AND mst_key = %s"
VISITS = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND mst_key = %s AND status = 'completed'"


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", SEGMENTS)
    rates = [compile_text(f"SGD(learning_rate={rate})") for rate in RATES]
    bench.configure("slow", rates, ["batch_size=1,epochs=12"], bench.model(NOISY))


@pytest.fixture
def person(bench: Workbench) -> Iterator[Workbench]:
    """Another session of the owner."""
    session = bench.another()
    yield session
    session.close()


@contextmanager
def live(bench: Workbench, person: Workbench, output: str, **named: object) -> Iterator[tuple[int, Future[int]]]:
    """A run of three configurations that has begun to train."""
    before = person.newest_run()
    named = {"metrics_compute_frequency": 1, "workers": 1, **named}
    with bench.fitting("packed", output, "slow", EPOCHS, **named) as fitted:
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


def check_replay(bench: Workbench, run: int, output: str) -> None:
    """A replay comes to the same bits."""
    visits = "SELECT mst_key, visit_no, segment_id FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"
    again = bench.fit("packed", f"{output}_again", "slow", EPOCHS, schedule="replay", replay_run=run)
    assert bench.rows(f"{visits} ORDER BY 1, 2", again) == bench.rows(f"{visits} ORDER BY 1, 2", run)
    assert bench.weights(f"{output}_again") == bench.weights(output)


def test_who_is_stopped_rests_and_may_go_on(bench: Workbench, person: Workbench) -> None:
    with live(bench, person, "stopped") as (run, fitted):
        for key in (1, 2):
            act = done(person, "stop_config(%s, %s)", run, key)
            (_, _, visits) = person.row(ACT, act)
        assert person.row(CONFIG, run, 1)[0] == "paused" and "stopped by cerebro" in person.row(CONFIG, run, 1)[1]
        done(person, "continue_config(%s, %s)", run, 1)
        fitted.result()
    assert bench.row(CONFIG, run, 1) == ("completed", None, EPOCHS)
    assert bench.value(VISITS, run, 2) == visits < EPOCHS * SEGMENTS
    assert bench.row(CONFIG, run, 2)[0] == "stopped" and bench.row(CONFIG, run, 3)[0] == "completed"
    check_replay(bench, run, "stopped")


def test_all_stopped_by_hand_is_paused_and_frees_its_trainers(bench: Workbench, person: Workbench) -> None:
    with live(bench, person, "paused") as (run, fitted):
        for key in (1, 2, 3):
            done(person, "stop_config(%s, %s)", run, key)
        eventually(lambda: person.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "paused")
        visits = person.value("SELECT count(*) FROM cerebro.visit WHERE run_id = %s", run)
        done(person, "continue_config(%s, 3)", run)
        assert person.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "running"
        fitted.result()
    assert bench.value("SELECT count(*) FROM cerebro.visit WHERE run_id = %s", run) > visits
    states: dict[int, str] = dict(bench.rows("SELECT mst_key, status FROM cerebro.config WHERE run_id = %s", run))
    assert states == {1: "stopped", 2: "stopped", 3: "completed"}
    check_replay(bench, run, "paused")


def test_a_run_that_is_paused_begins_nothing(bench: Workbench, person: Workbench) -> None:
    workers = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'running'"
    with live(bench, person, "waited", max_runtime="1 hour") as (run, fitted):
        serving = person.serving(person.value("SELECT pid FROM cerebro.run WHERE run_id = %s", run))
        done(person, "pause_run(%s)", run)
        eventually(lambda: not person.value(workers, run))
        visits = person.value("SELECT count(*) FROM cerebro.visit WHERE run_id = %s", run)
        eventually(lambda: not trainers(serving))
        assert person.value("SELECT count(*) FROM cerebro.visit WHERE run_id = %s", run) == visits
        done(person, "continue_run(%s)", run)
        fitted.result()
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "completed"
    assert bench.value("SELECT bool_and(status = 'completed') FROM cerebro.config WHERE run_id = %s", run)


def test_epochs_can_be_fewer(bench: Workbench, person: Workbench) -> None:
    with live(bench, person, "fewer") as (run, fitted):
        done(person, "set_epochs(%s, 1, 3)", run)
        done(person, "set_epochs(%s, 3)", run)
        fitted.result()
    epochs: dict[int, int] = dict(bench.rows("SELECT mst_key, epochs FROM cerebro.config WHERE run_id = %s", run))
    assert set(epochs.values()) == {3}, "the last word holds"
    assert bench.value("SELECT count(model_weights) FROM fewer") == len(RATES)
    check_replay(bench, run, "fewer")


def test_who_is_to_go_first_does(bench: Workbench, person: Workbench) -> None:
    with live(bench, person, "first") as (run, fitted):
        act = done(person, "prioritise(%s, 3)", run)
        since = person.value("SELECT done_at FROM cerebro.act WHERE act_id = %s", act)
        fitted.result()
    last = "SELECT mst_key FROM cerebro.visit WHERE run_id = %s AND started_at > %s ORDER BY started_at"
    order = [key for (key,) in bench.rows(last, run, since)]
    assert 3 not in order[order.count(3) + 1 :]


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
    with live(bench, person, "cut") as (run, fitted):
        done(person, "stop_config(%s, 2)", run)
        assert person.value("SELECT cerebro.cancel(%s)", run)
        with pytest.raises(psycopg2.Error):
            fitted.result()
    visits = bench.value(VISITS, run, 2)
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert bench.value(VISITS, run, 2) == visits and bench.row(CONFIG, run, 2)[0] == "stopped"
    assert bench.row(CONFIG, run, 1) == ("completed", None, EPOCHS)
    check_replay(bench, run, "cut")


def test_only_members_act_and_nobody_in_another_name(
    bench: Workbench, shared_superuser: Workbench, person: Workbench
) -> None:
    with another_role(bench, shared_superuser, "gita") as gita, live(bench, person, "guarded") as (run, fitted):
        done(person, "pause_run(%s)", run)
        refused(gita, "SELECT cerebro.stop_config(%s, 1)", run, code="42704")
        insert = "INSERT INTO cerebro.act_log (run_id, action{}) VALUES (%s, 'pause_run'{})"
        refused(gita, insert.format("", ""), run)
        refused(person, insert.format(", actor", ", 'gita'"), run)
        refused(person, "SELECT cerebro.stop_config(%s, 9)", run, code="42704")
        refused(person, "SELECT cerebro.stop_config(%s, NULL)", run, code="22004")
        refused(person, "SELECT cerebro.set_epochs(%s, 0)", run, code="22023")
        act = person.value("SELECT cerebro.set_epochs(%s, 99)", run)
        eventually(lambda: person.row(ACT, act)[0] == "refused")
        assert "expected 1 to 6" in person.row(ACT, act)[1]
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
