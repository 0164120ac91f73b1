"""Runs that live without the session that asked for them, and hold nothing that others wait for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg2
import pytest
from processes import eventually, trainers
from roles import refused
from workbench import Workbench, compile_text, several

TALK = """
    CREATE OR REPLACE FUNCTION public.talk() RETURNS event_trigger LANGUAGE plpgsql
        AS $$BEGIN RAISE INFO 'something'; END$$;
    CREATE EVENT TRIGGER talk ON ddl_command_end EXECUTE FUNCTION public.talk()"""

SLOW = """
    CREATE OR REPLACE FUNCTION public.slow() RETURNS event_trigger LANGUAGE plpgsql
        AS $$BEGIN IF current_setting('application_name') LIKE '%background' THEN PERFORM
            pg_sleep(0.3); END IF; END$$;
    CREATE EVENT TRIGGER slow ON ddl_command_end EXECUTE FUNCTION public.slow()"""


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.configure("two", several(2), ["batch_size=1,epochs=5"])


@pytest.fixture
def endless(bench: Workbench) -> Iterator[int]:
    """A run in the background that is cancelled after the test, if it still goes on."""
    run = submit(bench, "endless", 100_000)
    yield run
    bench.rows("SELECT cerebro.cancel(%s)", run)
    wait(bench, run)


def submit(
    session: Workbench, output: str, epochs: int, configs: str = "two", **named: object
) -> int:
    text = "".join(f", {name} => %s" for name in named)
    query = f"SELECT cerebro.submit('packed', %s, %s, %s{text})"
    return int(session.value(query, output, configs, epochs, *named.values()))


def wait(session: Workbench, run: int, timeout: str | None = None) -> str:
    return str(session.value("SELECT cerebro.wait(%s, %s)", run, timeout))


def completed(bench: Workbench, run: int, visits: int) -> bool:
    done = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"
    return int(bench.value(done, run)) >= visits


def test_it_is_one_run_for_whoever_reads_the_log_while_it_ends(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    """It goes on until it is completed, and then has its tables; on Greenplum every segment has its
    row once.
    """
    watcher, query = bench.another(), "SELECT status FROM cerebro.run WHERE run_id = %s"
    rows_of_segments = (
        "SELECT gp_execution_segment() FROM gp_dist_random('cerebro.run_log') WHERE run_id = %s"
    )
    for number in range(3 if bench.greenplum else 1):
        run, seen = submit(bench, f"watched_{number}", 1), set()
        eventually(partial(completed, bench, run, 1))  # who looks all the time delays it
        while not {("completed",)} & set(rows := watcher.rows(query, run)):
            assert len(rows) == 1
            seen.update(rows)
        assert seen <= {("queued",), ("running",)}
        assert rows == watcher.rows(query, run) == [("completed",)]
        assert watcher.value(f"SELECT run_id FROM watched_{number}_summary") == run
        assert wait(bench, run) == "completed"
        if bench.greenplum:
            segments = shared_superuser.rows(rows_of_segments, run)
            assert len(segments) == len(set(segments)) > 1


def test_it_shows_what_it_does_and_gives_way_to_others(bench: Workbench, endless: int) -> None:
    """To each by itself, and by the groups that the kernel makes of them; the session of a user is
    as it was.
    """
    eventually(lambda: completed(bench, endless, 1))
    names = (
        "SELECT array_agg(application_name ORDER BY application_name) FROM pg_stat_activity WHERE "
        "{}"
    )
    shown = f"application_name LIKE 'cerebro_db run {endless} %%' AND datname = current_database()"
    roles = ["background", "control", *(["watch"] if bench.greenplum else []), "worker", "worker"]
    eventually(
        lambda: (
            bench.value(names.format(shown))
            == [f"cerebro_db run {endless} {what}" for what in roles]
        )
    )
    pid = bench.value("SELECT pid FROM cerebro.run WHERE run_id = %s", endless)
    assert bench.value("SELECT query FROM pg_stat_activity WHERE pid = %s", pid).startswith(
        "CALL cerebro_internal.work("
    )
    assert (
        bench.value("SELECT status FROM cerebro.progress WHERE run_id = %s", endless) == "running"
    )
    sessions = bench.value(f"SELECT array_agg(pid) FROM pg_stat_activity WHERE {shown}")
    usual = os.getpriority(os.PRIO_PROCESS, bench.pid())
    assert len(sessions) >= 4
    assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in sessions} == {max(5, usual)}
    files = [group for pid in sessions if (group := Path(f"/proc/{pid}/autogroup")).exists()]
    groups = [
        group for group in files if group.read_text()
    ]  # none where the kernel was told to make none
    eventually(lambda: all(int(group.read_text().split()[-1]) >= 5 for group in groups))
    bench.rows("SET lock_timeout = '60s'")
    bench.rows(
        "BEGIN; LOCK TABLE packed IN ROW EXCLUSIVE MODE; UPDATE packed SET buffer_id = buffer_id; "
        "ROLLBACK"
    )
    bench.rows("RESET lock_timeout")
    assert wait(bench, endless, "0") == wait(bench, endless, "100 ms") == "running", (
        "waiting has an end"
    )


@pytest.mark.long
def test_all_that_worked_for_it_ends_with_it(bench: Workbench) -> None:
    """And not with the session that asked for it."""
    caller = bench.another()
    before = bench.workers()
    run = submit(caller, "gone", 1)
    assert bench.row("SELECT run_id, status FROM cerebro.run WHERE run_id = %s", run) == (
        run,
        "running",
    )
    eventually(lambda: len(trainers(bench.workers() - before)) == 2)
    backends = bench.workers() - before
    caller.close()
    assert wait(bench, run) == "completed"
    assert bench.row("SELECT run_id, count(model_weights) FROM gone, gone_summary GROUP BY 1") == (
        run,
        2,
    )
    eventually(lambda: not bench.workers() & backends)
    eventually(lambda: not trainers(backends))


@pytest.mark.long
def test_it_holds_no_snapshot_but_a_fit_does(bench: Workbench, endless: int) -> None:
    """What was deleted since a run began can be removed, except where a SELECT goes on as long as
    the run.
    """
    eventually(lambda: completed(bench, endless, 1))
    delete_rows(bench)
    eventually(lambda: removed_by_vacuum(bench))  # when the transactions that were there have ended
    watcher, before = bench.another(), bench.last_run_id()
    with bench.fitting("packed", "pinning", "two", 100_000) as fitted:
        run = eventually(lambda: watcher.newest_run() if watcher.newest_run() > before else 0)
        eventually(lambda: completed(watcher, run, 1))
        delete_rows(watcher)
        assert not removed_by_vacuum(watcher)
        assert watcher.value("SELECT cerebro.cancel(%s)", run)
        with pytest.raises(psycopg2.errors.QueryCanceled):
            fitted.result()
    watcher.close()


def delete_rows(session: Workbench) -> None:
    """A table all of whose rows have been deleted."""
    session.rows("DROP TABLE IF EXISTS deleted")
    session.rows("CREATE TABLE deleted AS SELECT generate_series(1, 1000) AS n")
    session.rows("DELETE FROM deleted")


def removed_by_vacuum(session: Workbench) -> bool:
    """Whether the deleted rows can be removed."""
    session.rows("VACUUM deleted")
    return int(session.value("SELECT pg_relation_size('deleted')")) == 0


@pytest.mark.long
def test_it_can_be_cancelled_and_go_on_in_the_background(bench: Workbench) -> None:
    """To which bits is shown in `tests/chaos`."""
    run = submit(bench, "halted", 100_000)
    eventually(lambda: completed(bench, run, 2))
    assert bench.value("SELECT cerebro.cancel(%s)", run)
    assert wait(bench, run) == "cancelled"
    assert not bench.value("SELECT cerebro.cancel(%s)", run), "nobody works for it"
    assert not bench.exists("halted")
    bench.rows("SELECT cerebro.resume(%s, background => true)", run)
    bench.rows("SELECT cerebro.set_epochs(%s, 1)", run)
    assert wait(bench, run) == "completed"
    assert bench.value("SELECT count(model_weights) FROM halted") == 2


@pytest.mark.long
def test_a_run_is_awaited_until_its_outputs_can_be_seen(bench: Workbench) -> None:
    caller = bench.another()
    caller.connection.autocommit = False
    run = caller.fit("packed", "committed_late", "two", 1)
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "completed"
    assert wait(bench, run, "100 ms") == "running"
    caller.connection.commit()
    assert wait(bench, run) == "completed"
    assert bench.exists("committed_late")
    caller.close()


@pytest.mark.long
def test_it_is_completed_when_its_tables_are_there(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    """However long it takes to make them: here some tenths of a second each."""
    shared_superuser.rows(SLOW)
    try:
        run, seen = submit(bench, "slowly_made", 1), set()
        look = (
            "SELECT status, to_regclass('slowly_made_summary') IS NOT NULL FROM cerebro.run WHERE "
            "run_id = %s"
        )
        while ("completed", True) not in seen:
            seen.add(bench.row(look, run))
            assert ("completed", False) not in seen
    finally:
        shared_superuser.rows("DROP EVENT TRIGGER slow; DROP FUNCTION public.slow")
    assert ("running", False) in seen
    started, ended = bench.row(
        "SELECT started_at, ended_at FROM cerebro.run WHERE run_id = %s", run
    )
    assert ended > started


@pytest.mark.parametrize("function", ["wait", "cancel"])
def test_there_must_be_a_run(bench: Workbench, function: str) -> None:
    refused(bench, f"SELECT cerebro.{function}(NULL)", code="22004", words="run_id")
    refused(bench, f"SELECT cerebro.{function}(999999)", code="42704", words="999999")


WRONG = {
    "a table that is not there": ("'nowhere', 'o', 'two', 1", "42P01", "nowhere"),
    "a table that is not packed": ("'points', 'o', 'two', 1", "42809", "points"),
    "no iteration": ("'packed', 'o', 'two', 0", "22023", "iterations"),
    "no attempt": ("'packed', 'o', 'two', 1, max_attempts => 0", "22023", "max_attempts"),
    "less than no time": ("'packed', 'o', 'two', 1, max_runtime => '-1 s'", "22023", "max_runtime"),
    "an output that is there": ("'packed', 'points', 'two', 1", "42P07", "points"),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_told_at_once(bench: Workbench, case: tuple[str, str, str]) -> None:
    arguments, code, words = case
    before = bench.last_run_id()
    refused(bench, f"SELECT cerebro.submit({arguments})", code=code, words=words)
    assert bench.last_run_id() == before
    sessions = "SELECT FROM pg_stat_activity WHERE application_name = 'cerebro_db background'"
    eventually(lambda: not bench.rows(sessions))


@pytest.mark.long
def test_notices_reach_who_asked(bench: Workbench) -> None:
    bench.messages()
    run = submit(bench, "silent", 1, training_metrics=False)
    assert any("no metrics will be computed" in text for text in bench.messages())
    assert wait(bench, run) == "completed"


def test_what_only_the_caller_sees_is_refused(bench: Workbench) -> None:
    caller = bench.another()
    caller.connection.autocommit = False
    caller.rows(
        "SELECT training_preprocessor_dl('points', 'unseen', 'label', 'x', n_segments => 2)"
    )
    refused(caller, "SELECT cerebro.submit('unseen', 'o', 'two', 1)", code="25001", words="unseen")
    caller.close()


@pytest.mark.long
def test_outputs_that_cannot_be_made_are_told_in_the_log(bench: Workbench) -> None:
    run = submit(bench, "taken", 1)
    bench.rows("CREATE TABLE taken ()")
    assert wait(bench, run) == "completed"
    assert "output tables were not made" in bench.value(
        "SELECT error FROM cerebro.run WHERE run_id = %s", run
    )
    assert not bench.exists("taken_info")
    bench.rows("SELECT cerebro.write_outputs(%s, 'free')", run)
    assert bench.value("SELECT count(model_weights) FROM free") == 2


@pytest.mark.long
def test_a_name_is_taken_while_a_run_is_to_make_it(bench: Workbench, endless: int) -> None:
    refused(
        bench,
        "SELECT madlib_fit_multiple_model('packed', 'endless', 'two', 1)",
        code="42P07",
        words="endless",
    )


def test_the_procedure_works_for_who_asked_only(bench: Workbench) -> None:
    refused(bench, "CALL cerebro_internal.work('{}')", code="55000", words="cerebro.submit")


@pytest.mark.long
def test_what_is_said_when_nobody_listens_does_no_harm(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    """Every session gets an INFO, whatever client_min_messages says; one that is sent to nobody
    ends a session.
    """
    shared_superuser.rows(TALK)
    try:
        run = submit(bench, "talked_of", 1)
        assert wait(bench, run) == "completed"
    finally:
        shared_superuser.rows("DROP EVENT TRIGGER talk")
    assert bench.exists("talked_of")


GRIDS = {
    "compile_params_grid": "{'loss': ['categorical_crossentropy'], 'optimizer': ['SGD'], 'lr': "
    "[0.01, 0.02]}",
    "fit_params_grid": "{'batch_size': [8]}",
}
CALLS: dict[str, dict[str, object]] = {
    "madlib_fit": {
        "model_id": 1, "model": "one", "compile_params": compile_text(),
        "fit_params": "batch_size=8",
        "num_iterations": 2, "max_runtime": "1 hour", "model_arch_table": "models",
        "source_table": "packed",
    },
    "madlib_keras_automl": {
        **GRIDS, "source_table": "packed", "model_output_table": "best",
        "model_arch_table": "models",
        "model_selection_table": "tried", "model_id_list": [1], "automl_method": "hyperopt",
        "automl_params": "num_configs=2, num_iterations=2, algorithm=rand", "name": None,
    },
    "cerebro.train": {
        "source": "points", "target": "label", "columns": "amount, positive", "configs": 1,
        "epochs": 2,
        "models": ["linear"], "space": {"lr": 0.1}, "budget": "10 minutes",
    },
}  # fmt: skip
MADE = {
    "madlib_fit": "one_summary",
    "madlib_keras_automl": "tried_summary",
    "cerebro.train": "cerebro.model",
}


@pytest.mark.long_for(call="madlib_keras_automl")
@pytest.mark.parametrize("call", CALLS)
def test_whatever_trains_does_so_in_the_background(bench: Workbench, call: str) -> None:
    """By the arguments of its SQL function, with their types and defaults."""
    run = bench.value("SELECT cerebro.submit(%s, %s)", call, json.dumps(CALLS[call]))
    assert wait(bench, run) == "completed"
    spec, error = bench.row("SELECT spec, error FROM cerebro.run WHERE run_id = %s", run)
    assert error is None and len(bench.rows(f"SELECT FROM {MADE[call]}")) == 1
    given = {
        "madlib_fit": ("max_runtime", "01:00:00"),
        "madlib_keras_automl": ("automl_method", "hyperopt"),
    }
    name, value = given.get(call, ("name", "points_label"))
    assert spec[name] == value and spec["backend"] in ("tensorflow", None)


@pytest.mark.parametrize(
    ("call", "change", "code", "words"),
    [
        ("madlib_evaluate", {}, "22023", "expected one of madlib_fit_multiple_model"),
        ("madlib_fit", {"modell": "one"}, "22023", "does not know"),
        ("madlib_fit", {"model_id": "first"}, "22P02", "first"),
        ("madlib_fit", {"source_table": "nowhere"}, "42P01", "nowhere"),
        ("cerebro.train", {"target": None}, "22004", "target"),
        ("train", {"space": {"rate": 1}}, "22023", "rate"),
        ("madlib_keras_automl", {"automl_method": "luck"}, "22023", "luck"),
    ],
)
def test_what_cannot_be_called_is_refused(
    bench: Workbench, call: str, change: dict[str, object], code: str, words: str
) -> None:
    before = bench.last_run_id()
    arguments = {**CALLS.get("cerebro.train" if call == "train" else call, {}), **change}
    refused(
        bench, "SELECT cerebro.submit(%s, %s)", call, json.dumps(arguments), code=code, words=words
    )
    refused(
        bench,
        "SELECT cerebro.submit('madlib_fit', '{\"model_id\": 1}')",
        code="22023",
        words="lacks source_table",
    )
    refused(bench, "SELECT cerebro.submit('madlib_fit', '[]')", code="22023")
    assert bench.last_run_id() == before
