"""What ends a config, a visit, a run or a session; and that nothing outlives what it belongs to."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg2
import pytest
from followed_hints import read_statements
from processes import eventually, trainers
from roles import refused
from workbench import Workbench, compile_text, setting, several

FIT_WORKERS = 1
DIVERGING = "SGD(learning_rate=1e38)"
STEADY = ("SGD(learning_rate=0.05)", "Adam(learning_rate=0.02)")
OUTPUTS = ("", "_info", "_summary")
LONG = "batch_size=1,epochs=150"


@pytest.fixture
def watcher(bench: Workbench) -> Iterator[Workbench]:
    """A second session, for looking at what the first one does."""
    other = bench.another()
    yield other
    other.close()


@pytest.fixture(scope="module")
def diverged(bench: Workbench) -> int:
    """A run in which one of three configs gets a loss that is no number."""
    bench.pack("diverged_packed", 2)
    bench.configure(
        "diverged_configs", [compile_text(o) for o in (STEADY[0], DIVERGING, STEADY[1])]
    )
    return bench.fit(
        "diverged_packed", "diverged", "diverged_configs", 3, metrics_compute_frequency=1
    )


def test_a_config_without_a_loss_fails_and_says_why(bench: Workbench, diverged: int) -> None:
    status, reason, epochs = bench.row(
        "SELECT status, reason, epochs FROM cerebro.config WHERE run_id = %s AND mst_key = 2",
        diverged,
    )
    assert (status, epochs) == ("failed", 0)
    assert "loss" in reason and "nan" in reason
    visits = bench.rows(
        "SELECT status, error FROM cerebro.visit WHERE run_id = %s AND mst_key = 2", diverged
    )
    assert visits == [("failed", reason)], "what cannot succeed is not tried again"


@pytest.mark.checklist(26)
def test_the_other_configs_complete(bench: Workbench, diverged: int) -> None:
    assert bench.rows(
        "SELECT mst_key, status, epochs FROM cerebro.config WHERE run_id = %s AND mst_key <> 2 "
        "ORDER BY 1",
        diverged,
    ) == [(1, "completed", 3), (3, "completed", 3)]
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", diverged) == "completed"
    assert (
        bench.value(
            "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND mst_key <> 2 AND status = "
            "'completed'",
            diverged,
        )
        == 2 * 2 * 3
    )


def test_a_failed_config_ranks_last(bench: Workbench, diverged: int) -> None:
    board = bench.rows(
        "SELECT mst_key, status, value, reason IS NULL FROM cerebro.leaderboard WHERE run_id = %s "
        "ORDER BY rank",
        diverged,
    )
    assert board[-1] == (2, "failed", None, False)
    assert [row[1] for row in board] == ["completed", "completed", "failed"]
    best = bench.row(
        "SELECT configs_failed, best_mst_key, visits_done, visits_total FROM cerebro.progress "
        "WHERE run_id = %s",
        diverged,
    )
    assert best == (1, board[0][0], 12, 12)


@pytest.mark.checklist(26)
def test_a_failed_config_has_a_row_without_results(bench: Workbench, diverged: int) -> None:
    assert bench.value("SELECT array_agg(mst_key ORDER BY mst_key) FROM diverged") == [1, 2, 3]
    assert bench.row(
        "SELECT model_weights, model_arch IS NULL FROM diverged WHERE mst_key = 2"
    ) == (None, False)
    nulls = bench.row(
        "SELECT num_nulls(model_size, metrics_elapsed_time, training_metrics_final, "
        "training_loss_final, training_metrics, training_loss, validation_metrics_final, "
        "validation_loss_final, validation_metrics, validation_loss), num_nulls(model_id, "
        "compile_params, fit_params, model_type, metrics_type, loss_type) FROM diverged_info "
        "WHERE mst_key = 2"
    )
    assert nulls == (10, 0)
    assert bench.value("SELECT count(*) FROM diverged_info WHERE training_loss_final > 0") == 2
    states = bench.states("diverged")
    assert bench.value(f"SELECT array_agg(DISTINCT mst_key ORDER BY mst_key) FROM {states}") == [
        1,
        3,
    ]


@pytest.mark.long
def test_a_loss_that_only_the_evaluation_finds_is_a_failure_too(bench: Workbench) -> None:
    """The only batch is trained on with a finite loss; what it does to the weights shows
    afterwards.
    """
    bench.pack("late_packed", 1, buffer=1000)
    bench.configure(
        "late_configs", [compile_text(o) for o in (DIVERGING, STEADY[0])], ["batch_size=1000"]
    )
    bench.messages()
    run_id = bench.fit("late_packed", "late", "late_configs", 1)
    statuses = bench.rows(
        "SELECT status, reason FROM cerebro.config WHERE run_id = %s ORDER BY mst_key", run_id
    )
    assert statuses == [
        ("failed", "the loss over the training set was nan after epoch 1"),
        ("completed", None),
    ]
    assert bench.rows("SELECT training_loss_final > 0 FROM late_info ORDER BY mst_key") == [
        (None,),
        (True,),
    ]
    board = bench.rows(
        "SELECT mst_key FROM cerebro.leaderboard WHERE run_id = %s ORDER BY rank", run_id
    )
    assert board == [(2,), (1,)], "whatever its accuracy was"
    assert bench.value("SELECT best_mst_key FROM cerebro.progress WHERE run_id = %s", run_id) == 2
    assert "Best so far: mst_key=2" in bench.messages()[-1]


def test_a_run_without_a_config_left_fails(bench: Workbench) -> None:
    bench.pack("hopeless_packed", 2)
    optimizers = (DIVERGING, "SGD(learning_rate=2e38)")
    bench.configure("hopeless_configs", [compile_text(o) for o in optimizers])
    with pytest.raises(psycopg2.Error, match="all 2 configurations failed") as caught:
        bench.fit("hopeless_packed", "hopeless", "hopeless_configs", 2)
    assert caught.value.pgcode == "MS001"
    assert "mst_key=2: the training loss" in str(caught.value.diag.message_detail)
    assert not bench.exists(*(f"hopeless{suffix}" for suffix in OUTPUTS))
    run_id = bench.newest_run()
    status, error = bench.row("SELECT status, error FROM cerebro.run WHERE run_id = %s", run_id)
    assert status == "failed" and "all 2 configurations failed" in error
    assert bench.rows("SELECT DISTINCT status FROM cerebro.config WHERE run_id = %s", run_id) == [
        ("failed",)
    ]


@pytest.mark.long
def test_a_lost_worker_session_costs_one_visit(bench: Workbench, watcher: Workbench) -> None:
    bench.pack("lost_packed", 2)
    bench.configure("lost_configs", several(2), [LONG])
    with bench.fitting("lost_packed", "lost", "lost_configs", 1, workers=2) as fitting:
        (lost,) = eventually(
            lambda: watcher.rows(
                "SELECT worker_pid FROM cerebro.visit WHERE status = 'running' LIMIT 1"
            )
        )
        assert watcher.value("SELECT pg_terminate_backend(%s)", lost[0])
        run_id = fitting.result()
    statuses = bench.rows(
        "SELECT status, attempt, error IS NOT NULL, worker_pid = %s FROM cerebro.visit WHERE "
        "run_id = %s AND (attempt > 1 OR status <> 'completed') ORDER BY attempt",
        lost[0],
        run_id,
    )
    assert statuses == [("failed", 1, True, True), ("completed", 2, False, False)]
    eventually(lambda: not trainers({lost[0]}))


@pytest.fixture(scope="module")
def endless(bench: Workbench) -> str:
    """Configurations of runs that are to take longer than any test waits."""
    bench.pack("endless_packed", 2)
    bench.configure("endless_configs", several(2), ["batch_size=1,epochs=5"])
    return "endless_configs"


def begun(watcher: Workbench, run_before: int) -> set[int]:
    """Backends that work for a run younger than another, once it has completed visits; empty until
    then.
    """
    done = watcher.value(
        "SELECT count(*) FROM cerebro.visit WHERE run_id > %s AND status = 'completed'", run_before
    )
    return watcher.workers() if done else set()


def everything_gone(watcher: Workbench, backends: set[int]) -> None:
    """Wait until no worker session and no trainer of these backends is left."""
    eventually(lambda: not watcher.workers())
    eventually(lambda: not trainers(backends))


def test_a_cancel_ends_all_and_keeps_what_is_done(
    bench: Workbench, watcher: Workbench, endless: str
) -> None:
    before = bench.last_run_id()
    with bench.fitting("endless_packed", "cancelled", endless, 100_000, workers=2) as fitting:
        backends = eventually(lambda: begun(watcher, before))
        assert len(trainers(backends)) == 2
        watcher.rows("SELECT pg_cancel_backend(%s)", bench.pid())
        with pytest.raises(psycopg2.errors.QueryCanceled) as caught:
            fitting.result()
    assert caught.value.pgcode == "57014"
    assert not bench.exists(*(f"cancelled{suffix}" for suffix in OUTPUTS))
    everything_gone(watcher, backends)
    run_id = bench.newest_run()
    assert bench.row(
        "SELECT status, ended_at IS NULL FROM cerebro.run WHERE run_id = %s", run_id
    ) == (
        "cancelled",
        False,
    )
    assert bench.rows("SELECT DISTINCT status FROM cerebro.config WHERE run_id = %s", run_id) == [
        ("stopped",)
    ]
    nothing_looks_as_if_it_went_on(bench, run_id)
    assert states_of_completed_visits(bench, run_id)


def nothing_looks_as_if_it_went_on(bench: Workbench, run_id: int) -> None:
    """No visit or evaluation of a run that has ended is running."""
    statuses = bench.rows("SELECT DISTINCT status FROM cerebro.timeline WHERE run_id = %s", run_id)
    assert ("running",) not in statuses
    assert (
        bench.value(
            "SELECT count(*) FROM cerebro.timeline WHERE run_id = %s AND ended_at IS NULL", run_id
        )
        == 0
    )


def states_of_completed_visits(bench: Workbench, run_id: int) -> list[int]:
    """The size of the newest state of each config, which must be that of its last completed
    visit. States were stored in the order of their visits.
    """
    assert (
        bench.value(
            "SELECT count(*) FROM (SELECT stored_at < lag(stored_at) OVER (PARTITION BY mst_key"
            " ORDER BY visit_no) AS is_earlier FROM cerebro.visit WHERE run_id = %s"
            " AND status = 'completed') v WHERE is_earlier",
            run_id,
        )
        == 0
    )
    sizes = []
    for table, size in bench.rows(
        "SELECT DISTINCT ON (mst_key) state_table, state_bytes FROM cerebro.visit"
        " WHERE run_id = %s AND status = 'completed' ORDER BY mst_key, visit_no DESC",
        run_id,
    ):
        assert bench.value(f"SELECT sum(octet_length(chunk)) FROM {table}") == size
        sizes.append(size)
    return sizes


@pytest.mark.long
def test_a_session_works_on_after_a_cancel(bench: Workbench, diverged: int) -> None:
    bench.fit("diverged_packed", "afterwards", "diverged_configs", 1)
    assert bench.value("SELECT count(model_weights) FROM afterwards") == 2


@pytest.mark.long
def test_the_end_of_the_caller_s_session_ends_all(
    bench: Workbench, watcher: Workbench, endless: str
) -> None:
    before = bench.last_run_id()
    caller = bench.another()
    idle = watcher.workers()
    with caller.fitting("endless_packed", "interrupted", endless, 100_000, workers=2) as fitting:
        backends = eventually(lambda: begun(watcher, before)) - idle
        assert len(trainers(backends)) == 2
        assert (
            watcher.value("SELECT status FROM cerebro.run ORDER BY run_id DESC LIMIT 1")
            == "running"
        )
        watcher.rows("SELECT pg_terminate_backend(%s)", caller.pid())
        with pytest.raises(psycopg2.OperationalError):
            fitting.result()
    eventually(lambda: watcher.workers() <= idle)
    eventually(lambda: not trainers(backends))
    assert not bench.exists(*(f"interrupted{suffix}" for suffix in OUTPUTS))
    # On Greenplum Python learns of it in time to end in good order.
    status = "failed" if bench.greenplum else "interrupted"
    assert bench.value("SELECT status FROM cerebro.run ORDER BY run_id DESC LIMIT 1") == status
    caller.close()


@pytest.mark.long
def test_trainers_wait_for_the_next_call_and_end_with_the_session(
    bench: Workbench, watcher: Workbench, diverged: int
) -> None:
    caller = bench.another()
    idle = watcher.workers()
    caller.fit("diverged_packed", "first_call", "diverged_configs", 1, workers=2)
    waiting = watcher.workers() - idle
    found = trainers(waiting)
    assert len(found) == 2
    caller.fit("diverged_packed", "second_call", "diverged_configs", 1, workers=2)
    assert trainers(watcher.workers() - idle) == found
    homes = [
        home
        for pid in waiting
        for home in Path(tempfile.gettempdir()).glob(f"cerebro_trainer-{pid}-*")
    ]
    assert len(homes) == 2
    caller.close()
    eventually(lambda: watcher.workers() <= idle)
    eventually(lambda: not trainers(waiting))
    eventually(lambda: not any(home.exists() for home in homes))


@pytest.mark.long
def test_without_waiting_trainers_end_with_the_call(
    bench: Workbench, watcher: Workbench, diverged: int
) -> None:
    caller = bench.another()
    idle = watcher.workers()
    with setting(bench, "trainer_idle_seconds", "0"):
        caller.fit("diverged_packed", "not_waiting", "diverged_configs", 1, workers=1)
        eventually(lambda: watcher.workers() <= idle)
    caller.close()


@pytest.mark.long
def test_a_cancelled_evaluation_does_not_look_as_if_it_went_on(
    bench: Workbench, watcher: Workbench, endless: str
) -> None:
    bench.rows(
        "SELECT validation_preprocessor_dl('points', 'blocked_packed', 'label', 'x', "
        "'endless_packed')"
    )
    bench.configure("blocked_configs", several(1))
    before = bench.last_run_id()
    with (
        setting(bench, "cache_mb", "0"),
        bench.fitting(
            "endless_packed",
            "blocked",
            "blocked_configs",
            1000,
            workers=1,
            validation_table="blocked_packed",
            metrics_compute_frequency=1,
        ) as fitting,
    ):
        evaluations = "SELECT count(*) FROM cerebro.evaluation WHERE run_id > %s AND status = %s"
        eventually(lambda: watcher.value(evaluations, before, "completed"))
        holder = bench.another()
        holder.connection.autocommit = False
        holder.rows("LOCK TABLE blocked_packed")
        eventually(lambda: watcher.value(evaluations, before, "running"))
        watcher.rows("SELECT pg_cancel_backend(%s)", bench.pid())
        with pytest.raises(psycopg2.errors.QueryCanceled):
            fitting.result()
        holder.close()
    nothing_looks_as_if_it_went_on(bench, bench.newest_run())


def test_a_timeout_is_a_cancel(bench: Workbench, watcher: Workbench, endless: str) -> None:
    bench.rows("SET statement_timeout = '1s'")
    before = bench.last_run_id()
    try:
        with pytest.raises(psycopg2.errors.QueryCanceled, match="statement timeout") as cancelled:
            bench.fit("endless_packed", "timed_out", endless, 100_000)
    finally:
        bench.rows("RESET statement_timeout")
    eventually(lambda: not watcher.workers())
    rows = bench.rows("SELECT run_id, status FROM cerebro.run WHERE run_id > %s", before)
    assert "SET statement_timeout = 0;" in str(cancelled.value.diag.message_hint)
    if not rows:
        return
    ((run_id, status),) = rows
    assert status == "cancelled"
    template = (
        "statement_timeout is {}. SET statement_timeout = 0; SELECT cerebro.resume({}); trains the "
        "rest of the run."
    )
    (unlimited, resumed) = read_statements(cancelled.value, template)
    assert resumed == f"SELECT cerebro.resume({run_id});"
    bench.rows(unlimited)
    running = "SELECT status = 'running' FROM cerebro.run WHERE run_id = %s"
    with bench.calling(lambda: bench.rows(resumed)) as trained:
        eventually(lambda: watcher.value(running, run_id))
        assert watcher.value("SELECT cerebro.cancel(%s)", run_id)
        with pytest.raises(psycopg2.errors.QueryCanceled):
            trained.result()
    bench.rows("RESET statement_timeout")


@pytest.mark.long
def test_a_trainer_is_not_idle_while_a_run_uses_it(bench: Workbench, diverged: int) -> None:
    """One configuration on two workers: one of these waits, for longer than trainers wait for the
    next call.
    """
    bench.configure("patient_configs", several(1), ["batch_size=1,epochs=400"])
    with setting(bench, "trainer_idle_seconds", "1"):
        run_id = bench.fit("diverged_packed", "patient", "patient_configs", 2, workers=2)
    visits = bench.rows("SELECT status, error FROM cerebro.visit WHERE run_id = %s", run_id)
    assert visits == [("completed", None)] * 4
    longest = "SELECT max(ended_at - started_at) > '1 s' FROM cerebro.visit WHERE run_id = %s"
    assert bench.value(longest, run_id), "shorter visits show nothing"


def test_a_trainer_above_its_memory_limit_is_ended(
    bench: Workbench, watcher: Workbench, diverged: int
) -> None:
    waiting = watcher.workers()
    bench.messages()
    with (
        setting(bench, "trainer_memory_mb", "64"),
        pytest.raises(psycopg2.Error, match="its limit is 64 MB") as caught,
    ):
        bench.fit("diverged_packed", "too_large", "diverged_configs", 1, workers=1)
    assert caught.value.pgcode == "53400"
    assert "trainer_memory_mb" in str(caught.value.diag.message_hint)
    assert not bench.exists(*(f"too_large{suffix}" for suffix in OUTPUTS))
    eventually(lambda: watcher.workers() <= waiting)
    (told,) = re.findall(r"WHERE run_id = (\d+)", "\n".join(bench.messages()))
    status, error = bench.row("SELECT status, error FROM cerebro.run WHERE run_id = %s", told)
    assert status == "failed" and "its limit is 64 MB" in error, "the printed id is known"
    shown = "SELECT status, visits_done FROM cerebro.progress WHERE run_id = %s"
    assert bench.rows(shown, told) == [("failed", 0)]
    board = "SELECT mst_key, status, value FROM cerebro.leaderboard WHERE run_id = %s"
    assert sorted(bench.rows(board, told)) == [(key, "stopped", None) for key in (1, 2, 3)]
    states = "SELECT count(*) FROM pg_class WHERE relname LIKE %s"
    assert bench.value(states, f"r{told}\\_%") == 0
    bench.rows("SELECT cerebro.resume(%s)", int(told))
    assert bench.row("SELECT count(*), count(model_weights) FROM too_large") == (3, 2)


def test_a_call_of_train_that_failed_before_it_trained_goes_on(
    bench: Workbench, diverged: int
) -> None:
    bench.rows("CREATE TABLE few AS SELECT n AS x, n % 2 = 0 AS y FROM generate_series(1, 60) n")
    bench.messages()
    call = "models => '{linear}', configs => 1, epochs => 1, workers => 1"
    with (
        setting(bench, "trainer_memory_mb", "64"),
        pytest.raises(psycopg2.Error, match="its limit is 64 MB"),
    ):
        bench.rows(f"SELECT * FROM cerebro.train('few', 'y', {call})")
    (told,) = re.findall(r"WHERE run_id = (\d+)", "\n".join(bench.messages()))
    status, reason = bench.row("SELECT status, error FROM cerebro.run WHERE run_id = %s", told)
    assert status == "failed" and "its limit is 64 MB" in reason
    for view in ("progress", "leaderboard"):
        assert bench.value(f"SELECT status FROM cerebro.{view} WHERE run_id = %s", told)
    bench.rows("SELECT cerebro.resume(%s)", int(told))
    assert re.match(r"NOTICE:  \d+ s of 300 s: starting trainers\n", bench.messages()[0])
    assert bench.value("SELECT version FROM cerebro.model WHERE model = 'few_y'") == 1
    with setting(bench, "trainer_memory_mb", "64"), pytest.raises(psycopg2.Error):
        bench.rows(f"SELECT * FROM cerebro.train('few', 'y', {call})")
    later = bench.newest_run()
    bench.rows("SELECT cerebro.vacuum_runs('0')")
    error = refused(bench, f"SELECT cerebro.resume({later})", code="55000", words="packed rows")
    assert "Call cerebro.train again" in str(error.diag.message_hint)


@pytest.mark.long
def test_an_error_leaves_the_caller_s_settings_as_they_were(
    bench: Workbench, diverged: int
) -> None:
    settings = "SELECT name, setting FROM pg_settings WHERE source = 'session' ORDER BY name"
    before = bench.rows(settings), bench.value("SHOW search_path")
    with pytest.raises(psycopg2.Error):
        bench.fit("diverged_packed", "diverged", "diverged_configs", 1)
    bench.fit("diverged_packed", "settled", "diverged_configs", 1, workers=1)
    assert (bench.rows(settings), bench.value("SHOW search_path")) == before
    assert (
        bench.value("SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema()") == 0
    )
