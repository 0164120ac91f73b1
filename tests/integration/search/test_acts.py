"""People at a live run, from other sessions: what they ask holds from the next visit on, is logged,
and is repeated.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from itertools import chain, groupby
from typing import Any

import psycopg2
import pytest
from acts import cut, done_at_once
from models import NOISY
from processes import eventually, trainers
from roles import another_role, refused
from workbench import Workbench, compile_text

FIT_WORKERS = 1
RATES = (0.01, 0.02, 0.03)
ENDLESS, SEGMENTS = 500, 2
"""More epochs than there will be: a run ends when somebody has said that they are fewer, however
late that is.
"""
KEYS = 8
SPACE = {
    "compile_params": {
        "loss": ["categorical_crossentropy"],
        "metrics": ["accuracy"],
        "lr": [0.001, 0.1, "log"],
    },
    "fit_params": {"batch_size": [2]},
}
ACT = "SELECT status, reason, visits FROM cerebro.act WHERE act_id = %s"
CONFIG = "SELECT status, reason, epochs FROM cerebro.config WHERE run_id = %s AND mst_key = %s"
TOTAL = "SELECT visits_total FROM cerebro.progress WHERE run_id = %s"
ALL_DONE = "SELECT visits_done = visits_total FROM cerebro.progress WHERE run_id = %s"
BEGUN = (
    "SELECT count(DISTINCT mst_key) = 3 FROM cerebro.visit WHERE run_id = %s AND status = "
    "'completed'"
)
STATUS = "SELECT status FROM cerebro.run WHERE run_id = %s"
MEASURED = "SELECT mst_key, max(epoch) FROM cerebro.metric WHERE run_id = %s GROUP BY 1 ORDER BY 1"
VISITS = (
    "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND mst_key = %s AND status = 'completed'"
)


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", SEGMENTS)
    rates = [compile_text(f"SGD(learning_rate={rate})") for rate in RATES]
    model = bench.model(NOISY)
    bench.configure("slow", rates, ["batch_size=1,epochs=2"], model)
    bench.configure("slower", rates, ["batch_size=1,epochs=20"], model)


@contextmanager
def live(
    bench: Workbench,
    person: Workbench,
    output: str,
    configs: str = "slow",
    epochs: int = ENDLESS,
    **named: object,
) -> Iterator[tuple[int, Future[int]]]:
    """A run of three configurations that has begun to train."""
    before = person.last_run_id()
    named = {"metrics_compute_frequency": 1, "schedule": "rotation", **named}
    with bench.fitting("packed", output, configs, epochs, **named) as fitted:
        eventually(lambda: person.newest_run() > before)
        run = person.newest_run()
        eventually(lambda: person.value(BEGUN, run))
        yield run, fitted


def done(person: Workbench, call: str, *values: object) -> int:
    """An act that has been done; it is shown at once."""
    act = person.value(f"SELECT cerebro.{call}", *values)
    assert person.value("SELECT count(*) FROM cerebro.act WHERE act_id = %s", act) == 1
    eventually(lambda: person.row(ACT, act)[0] != "scheduled")
    assert person.row(ACT, act)[:2] == ("done", None)
    return int(act)


def stop_all_and_continue(person: Workbench, run: int) -> None:
    """If all rest, the run is paused."""
    done_at_once(person, [f"stop_config(%s, {key})" for key in (1, 2, 3)], run, run, run)
    eventually(lambda: person.value(STATUS, run) == "paused")
    assert (
        person.row(CONFIG, run, 1)[0] == "paused"
        and "stopped by cerebro" in person.row(CONFIG, run, 1)[1]
    )
    done(person, "continue_config(%s, 3)", run)
    assert person.value(STATUS, run) == "running"
    done(person, "continue_config(%s, 1)", run)


def let_go_first(person: Workbench, run: int) -> None:
    act = done(person, "prioritize(%s, 3)", run)
    since = person.value("SELECT done_at FROM cerebro.act WHERE act_id = %s", act)
    made = (
        "SELECT mst_key FROM cerebro.visit WHERE run_id = %s AND started_at > %s ORDER BY "
        "started_at"
    )
    eventually(lambda: [key for (key,) in person.rows(made, run, since)].count(3) > 2 * SEGMENTS)
    turns = [key for key, _ in groupby(key for (key,) in person.rows(made, run, since))]
    # What the worker was making at that moment, and what it was to make next, had been decided
    # before.
    assert turns[-1] == 3 and len(turns) <= 3


def let_go_on_from_the_end(person: Workbench, run: int) -> None:
    """Who was trained to the end may have more epochs: in the background nobody writes its output
    before all are.
    """
    done_at_once(person, ["prioritize(%s, 1)", "set_epochs(%s, 1, 1)"], run, run)
    eventually(lambda: person.row(CONFIG, run, 1)[0] == "completed")
    epochs = person.row(CONFIG, run, 1)[2]
    done(person, "set_epochs(%s, %s, 1)", run, epochs + 1)
    eventually(lambda: person.row(CONFIG, run, 1) == ("completed", None, epochs + 1))


def pause(person: Workbench, run: int) -> None:
    """Nothing begins any more, and there are no trainers, until it goes on."""
    count = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s"
    workers = person.rows("SELECT DISTINCT worker_pid FROM cerebro.visit WHERE run_id = %s", run)
    serving = {pid for (worker,) in workers for pid in person.serving(worker)}
    assert trainers(serving)
    done(person, "pause_run(%s)", run)
    eventually(lambda: not person.value(f"{count} AND status = 'running'", run))
    visits = person.value(count, run)
    eventually(lambda: not trainers(serving))
    assert person.value(count, run) == visits and person.value(STATUS, run) == "paused"


def try_what_cannot_be(person: Workbench, gita: Workbench, run: int) -> None:
    """Nobody acts in another name either."""
    refused(gita, "SELECT cerebro.stop_config(%s, 1)", run, code="42704")
    insert = "INSERT INTO cerebro.act_log (run_id, action{}) VALUES (%s, 'pause_run'{})"
    refused(gita, insert.format("", ""), run)
    refused(person, insert.format(", actor", ", 'gita'"), run)
    refused(person, "SELECT cerebro.stop_config(%s, 9)", run, code="42704")
    refused(person, "SELECT cerebro.stop_config(%s, NULL)", run, code="22004")
    refused(person, "SELECT cerebro.set_epochs(%s, 0)", run, code="22023")
    refused(person, "SELECT cerebro.set_epochs(%s, 1000000)", run, code="22023")
    for change in ('{"momentum": 1}', '{"lr": -1}', "[1]", '{"batch_size": 0}'):
        refused(person, "SELECT cerebro.clone_config(%s, 1, %s)", run, change, code="22023")
    refused(person, "SELECT cerebro.clone_config(%s, 9, '{}')", run, code="42704")
    refused(
        person, "SELECT cerebro.add_configs(%s, selection_table => 'nowhere')", run, code="42P01"
    )
    by_hand = (
        "INSERT INTO cerebro.act_log (run_id, action, change) VALUES (%s, 'set_epochs', %s) "
        "RETURNING act_id"
    )
    acts = {
        "expected 1 to 999999": person.value(by_hand, run, '{"epochs": 1000000}'),
        "are not among those": person.value(
            "SELECT cerebro.add_configs(%s, selection_table => 'strange')", run
        ),
    }
    for words, act in acts.items():
        eventually(lambda act=act: person.row(ACT, act)[0] == "refused")  # type: ignore[misc]
        assert words in person.row(ACT, act)[1]
    assert person.value(STATUS, run) == "paused"


def let_join(person: Workbench, run: int) -> None:
    """A warm clone of a configuration that rests, a cold one, one that is drawn, and two of a space
    around another.
    """
    changed = json.dumps({"optimizer": "SGD(learning_rate=0.005)", "batch_size": 2})
    near = {"compile_params": {"lr": [0.021, 0.022]}, "fit_params": {"batch_size": [2]}}
    acts: dict[str, tuple[object, ...]] = {
        "continue_run(%s)": (run,),
        "clone_config(%s, 2, %s, true)": (run, changed),
        "clone_config(%s, 2, %s, false)": (run, '{"lr": 0.006}'),
        "add_configs(%s, %s, 1)": (run, json.dumps(SPACE)),
        "drill_down(%s, 2, %s)": (run, json.dumps(near)),
    }
    done_at_once(person, [*acts], *chain.from_iterable(acts.values()))
    drawn = (
        "SELECT change -> 'configs' -> 0 ->> 'fit_params' FROM cerebro.act WHERE run_id = %s AND "
        "action = %s"
    )
    cloned = (
        "SELECT mst_key, action FROM cerebro.decision WHERE run_id = %s AND rule = 'clone_config' "
        "ORDER BY 1"
    )
    assert person.rows(cloned, run) == [(4, "start"), (5, "start")]
    assert person.value(drawn, run, "drill_down")


def set_epochs(person: Workbench, gita: Workbench, run: int) -> None:
    """Each has few more than it has begun; of what is asked of the third, the last word holds."""
    done(person, "pause_run(%s)", run)
    begun = "SELECT max(epoch) FROM cerebro.visit WHERE run_id = %s AND mst_key <= 3"
    for epochs in (9, 1):
        done(person, "set_epochs(%s, %s)", run, person.value(begun, run) + epochs)
    joined = range(4, KEYS + 1)
    done_at_once(gita, [f"set_epochs(%s, 2, {key})" for key in joined], *[run] * len(joined))
    actors = (
        "SELECT DISTINCT actor FROM cerebro.act WHERE run_id = %s AND mst_key > 3 AND action = "
        "'set_epochs'"
    )
    assert gita.rows(actors, run) == [("gita",)]


@pytest.fixture(scope="module")
def steered(bench: Workbench, tables: None, shared_superuser: Workbench) -> int:
    """A run on which people have acted in every way; it was cut after that, and resumed to its
    end.
    """
    bench.configure(
        "strange", [compile_text("SGD(learning_rate=0.04)")], ["batch_size=1"], bench.model(NOISY)
    )
    named = "workers => 1, metrics_compute_frequency => 1, schedule => 'rotation'"
    run = int(
        bench.value(f"SELECT cerebro.submit('packed', 'steered', 'slow', {ENDLESS}, {named})")
    )
    with another_role(bench, shared_superuser, "gita") as gita, closing(bench.another()) as person:
        eventually(lambda: person.value(BEGUN, run))
        stop_all_and_continue(person, run)
        let_go_first(person, run)
        let_go_on_from_the_end(person, run)
        pause(person, run)
        try_what_cannot_be(person, gita, run)
        let_join(person, run)
        shared_superuser.rows(f"GRANT {person.value('SELECT current_user')} TO gita")
        set_epochs(person, gita, run)
        assert person.value("SELECT cerebro.cancel(%s)", run)
        assert bench.value("SELECT cerebro.wait(%s)", run) == "cancelled"
    bench.rows("SELECT cerebro.resume(%s)", run)
    return run


def test_what_was_asked_holds_to_the_end_whoever_resumes_the_run(
    bench: Workbench, steered: int
) -> None:
    ends = "SELECT mst_key, status, epochs FROM cerebro.config WHERE run_id = %s"
    found: dict[int, tuple[str, int]] = {
        key: (status, epochs) for key, status, epochs in bench.rows(ends, steered)
    }
    assert {key: status for key, (status, _) in found.items()} == {
        key: "stopped" if key == 2 else "completed" for key in range(1, KEYS + 1)
    }
    visits = (
        "SELECT visits FROM cerebro.act WHERE run_id = %s AND mst_key = 2 AND action = "
        "'stop_config'"
    )
    assert bench.value(VISITS, steered, 2) == bench.value(visits, steered)
    last = found[3][1]
    assert found[1][1] == last < ENDLESS and max(found[key][1] for key in range(4, KEYS + 1)) < last
    assert bench.value(VISITS, steered, 3) == last * SEGMENTS
    progress = "SELECT status, visits_done = visits_total FROM cerebro.progress WHERE run_id = %s"
    assert bench.row(progress, steered) == ("completed", True)
    measured: dict[int, int] = dict(bench.rows(MEASURED, steered))
    assert all(measured[key] == epochs for key, (_, epochs) in found.items() if key != 2)
    refused(bench, "SELECT cerebro.stop_config(%s, 1)", steered, code="55000")


def test_who_has_joined_is_trained_as_was_asked(bench: Workbench, steered: int) -> None:
    joined = (
        "SELECT mst_key, source, cloned_from, warm_started_from, compile_params, fit_params FROM "
        "cerebro.config"
    )
    found = bench.rows(f"{joined} WHERE run_id = %s AND mst_key > 3 ORDER BY 1", steered)
    origins = [("clone", 2, 2), ("clone", 2, None), ("act", None, None), *[("act", 2, None)] * 2]
    assert [row[:4] for row in found] == [(key, *origin) for key, origin in enumerate(origins, 4)]
    assert "SGD(learning_rate=0.005)" in found[0][4] and found[0][5] == "batch_size=2,epochs=2"
    assert "SGD(learning_rate=0.006)" in found[1][4] and found[1][5] == "batch_size=1,epochs=2"
    assert "RMSprop(lr=" in found[2][4] and found[2][5] == "batch_size=2"
    texts = {(compiled.split("'")[1], fitting) for *_, compiled, fitting in found[3:]}
    assert texts == {(f"SGD(lr={rate})", "batch_size=2,epochs=2") for rate in (0.021, 0.022)}
    written = bench.rows(
        "SELECT compile_params, fit_params FROM steered_info WHERE mst_key > 3 ORDER BY mst_key"
    )
    assert written == [row[4:] for row in found]
    bench.rows(
        "SELECT madlib_predict('steered', 'points', 'id', 'x', 'steered_p', 'response', mst_key "
        "=> 4)"
    )


def test_a_replay_of_it_comes_to_the_same(bench: Workbench, steered: int) -> None:
    """By a table that has those that have joined; but not without whom a clone began from."""
    table = "SELECT mst_key, model_id, compile_params, fit_params FROM steered_info"
    bench.rows(
        f"CREATE TABLE all_keys AS {table}; CREATE TABLE all_keys_summary AS SELECT * FROM "
        "slow_summary"
    )
    again = bench.fit(
        "packed", "steered_again", "all_keys", ENDLESS, schedule="replay", replay_run=steered
    )
    visits = (
        "SELECT mst_key, visit_no, segment_id FROM cerebro.visit WHERE run_id = %s AND status = "
        "'completed'"
    )
    assert bench.rows(f"{visits} ORDER BY 1, 2", again) == bench.rows(
        f"{visits} ORDER BY 1, 2", steered
    )
    found = bench.weights("steered")
    assert bench.weights("steered_again") == found and found.keys() == {*range(1, KEYS + 1)}
    bench.rows("DELETE FROM all_keys WHERE mst_key = 2")
    with pytest.raises(psycopg2.errors.FeatureNotSupported, match="began from states of others"):
        bench.fit("packed", "refused", "all_keys", ENDLESS, schedule="replay", replay_run=steered)


@pytest.mark.long
def test_a_search_is_steered_too(bench: Workbench, person: Workbench) -> None:
    """Progress expects the others to come as far as is decided; one may have more epochs than the
    search.
    """
    few, more = 9, 10
    compiles = [compile_text(f"SGD(learning_rate={rate})") for rate in (0.04, 0.05)]
    bench.configure(
        "more", compiles, ["batch_size=1,epochs=2"], bench.value("SELECT min(model_id) FROM slow")
    )
    with live(bench, person, "sought", epochs=few, search="asha", max_runtime="1 hour") as (
        run,
        fitted,
    ):
        done(person, "pause_run(%s)", run)
        assert len(RATES) * SEGMENTS <= person.value(TOTAL, run) < len(RATES) * few * SEGMENTS
        done(person, "set_epochs(%s, %s, 2)", run, more)
        done(person, "stop_config(%s, 3)", run)
        eventually(lambda: person.row(CONFIG, run, 3)[0] == "paused")
        both = ["continue_config(%s, 3)", "add_configs(%s, selection_table => 'more')"]
        done_at_once(person, both, run, run)
        fitted.result()
    assert bench.value(ALL_DONE, run)
    assert bench.row(CONFIG, run, 2) == ("completed", None, more)
    assert bench.row(CONFIG, run, 3) == ("completed", None, few)
    assert (
        bench.value(
            "SELECT max(epochs) FROM cerebro.config WHERE run_id = %s AND mst_key <> 2", run
        )
        <= few
    )
    by_hand = (
        "SELECT rule, action FROM cerebro.decision WHERE run_id = %s AND act_id > 0 AND mst_key = "
        "3 ORDER BY "
    )
    made = [("stop_config", "hold"), ("continue_config", "continue")]
    assert [row for row in bench.rows(f"{by_hand} decision_no", run) if row in made] == made
    joined = (
        "SELECT mst_key, source, epochs > 0 FROM cerebro.config WHERE run_id = %s AND mst_key > 3 "
        "ORDER BY 1"
    )
    assert bench.rows(joined, run) == [(4, "act", True), (5, "act", True)]
    rules = "SELECT DISTINCT rule FROM cerebro.decision WHERE run_id = %s AND mst_key > 3"
    assert bench.rows(rules, run) == [("asha",)]


def test_progress_expects_all_to_come_to_the_end_where_a_reason_stops_them(
    bench: Workbench, person: Workbench
) -> None:
    with live(bench, person, "expected", search="median") as (run, fitted):
        done(person, "pause_run(%s)", run)
        assert person.value(TOTAL, run) >= len(RATES) * ENDLESS * SEGMENTS
        done_at_once(person, [f"set_epochs(%s, 1, {key})" for key in (1, 2, 3)], run, run, run)
        done(person, "continue_run(%s)", run)
        fitted.result()
    assert bench.value(ALL_DONE, run)


@pytest.mark.long
def test_clones_of_clones_are_repeated_wherever_their_runs_were_cut(
    bench: Workbench, person: Workbench
) -> None:
    """A replay that is cut itself goes on rightly, too."""
    change = '{"optimizer": "SGD(learning_rate=0.001)"}'
    with live(bench, person, "cut_clone") as (run, fitted):
        done(person, "clone_config(%s, 2, %s)", run, change)
        eventually(lambda: person.value(VISITS, run, 4))
        done(person, "clone_config(%s, 4, %s)", run, change)
        done(person, "pause_run(%s)", run)
        done(person, "set_epochs(%s, 5)", run)
        cut(person, run, fitted)
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert bench.row(CONFIG, run, 5)[0] == "completed"
    begun = "SELECT mst_key, source, warm_started_from, warm_started_visits FROM cerebro.config_log"
    begun += " WHERE run_id = %s AND mst_key > 3 ORDER BY 1"
    origins = bench.rows(begun, run)
    assert [row[:3] for row in origins] == [(4, "clone", 2), (5, "clone", 4)] and min(
        row[3] for row in origins
    ) > 0
    again = {"schedule": "replay", "replay_run": run, "workers": 1}
    with bench.fitting("packed", "cut_clone_again", "slow", ENDLESS, **again) as fitted:
        eventually(lambda: person.newest_run() > run)
        repeated = person.newest_run()
        eventually(
            lambda: person.value(
                "SELECT count(*) > 3 FROM cerebro.visit WHERE run_id = %s", repeated
            )
        )
        cut(person, repeated, fitted)
    bench.rows("SELECT cerebro.resume(%s)", repeated)
    assert bench.rows(begun, repeated) == origins
    assert bench.weights("cut_clone_again") == bench.weights("cut_clone")


@pytest.mark.long
def test_who_is_stopped_early_holds_up_no_message(bench: Workbench, person: Workbench) -> None:
    """Its visits take long, so that not all are made in one tour, which without evaluations time
    alone ends.
    """
    with live(
        bench, person, "told", "slower", metrics_compute_frequency=None, schedule="longest"
    ) as (run, fitted):
        notices: Any = deque()
        bench.connection.notices = notices  # of a list psycopg2 leaves the last fifty
        done_at_once(person, ["stop_config(%s, 2)", "stop_config(%s, 3)"], run, run)
        done(person, "set_epochs(%s, 1, 1)", run)
        fitted.result()
    status, _, epochs = bench.row(CONFIG, run, 1)
    said = "\n".join(bench.messages())
    stopped = f"stopped by {bench.value('SELECT current_user')}"
    assert (
        status == "completed"
        and f"Training set after iteration {epochs}:" in said
        and stopped in said
    )
    assert bench.value("SELECT count(model_weights) FROM told") == len(RATES)
