"""What a run does with less than it asked for: fewer sessions, less time, less memory, no states to
keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg2
import pytest
from models import NOISY, dense, sequential
from processes import eventually
from roles import refused
from workbench import Workbench, compile_text, setting, several

HUGE = sequential([4], dense(20_000_000, "huge"), dense(3, "out", "softmax"))
OUTPUTS = ("", "_info", "_summary")


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.configure("two", several(2))
    bench.configure("long", several(2), ["batch_size=1,epochs=20"], bench.model(NOISY))


@pytest.fixture
def caller(bench: Workbench) -> Iterator[Workbench]:
    """A session that has no workers waiting."""
    session = bench.another()
    yield session
    session.close()


@contextmanager
def connections(administrator: Workbench, limit: int) -> Iterator[None]:
    """At most so many sessions of ordinary roles in this database; -1 is no limit."""
    name = administrator.value("SELECT quote_ident(current_database())")
    administrator.rows(f"ALTER DATABASE {name} CONNECTION LIMIT {limit}")
    try:
        yield
    finally:
        administrator.rows(f"ALTER DATABASE {name} CONNECTION LIMIT -1")


def ordinary(administrator: Workbench) -> int:
    """Sessions that count against the limit."""
    own = "datname = current_database() AND backend_type = 'client backend'"
    return int(administrator.value(f"SELECT count(*) FROM pg_stat_activity WHERE {own}"))


@pytest.mark.postgresql("there each segment needs a worker of its own")
def test_it_works_with_the_workers_that_can_be_opened(
    bench: Workbench, caller: Workbench, shared_superuser: Workbench
) -> None:
    caller.messages()
    with connections(shared_superuser, ordinary(shared_superuser) + 2):
        run = caller.fit("packed", "fewer", "two", 2, workers=2)
    assert any(
        "going on with 1 of 2 workers: a worker session could not be" in text
        for text in caller.messages()
    )
    pids = (
        "SELECT count(DISTINCT worker_pid), count(*) FROM cerebro.visit WHERE run_id = %s AND "
        "status = 'completed'"
    )
    assert bench.row(pids, run) == (1, 2 * 2 * 2)


@pytest.mark.long
def test_there_is_a_limit_for_all_callers_together(
    bench: Workbench, caller: Workbench, stopped: int
) -> None:
    """What waits for a next call of another session counts; test_endings has what becomes of the
    caller's own.
    """
    bench.rows("SELECT madlib_evaluate('stopped', 'packed', 'counted', mst_key => 1)")
    with setting(bench, "max_workers_total", "2"):
        error = refused(
            caller,
            "SELECT madlib_evaluate('stopped', 'packed', 'never', mst_key => 1)",
            code="53300",
        )
    assert "max_workers_total" in str(error.diag.message_hint)


def test_a_full_server_is_the_reason_that_is_told(
    bench: Workbench, caller: Workbench, shared_superuser: Workbench
) -> None:
    """And not rules of admission that would be no help."""
    with connections(shared_superuser, 1):
        error = refused(
            caller, "SELECT madlib_fit_multiple_model('packed', 'none', 'two', 1)", code="53300"
        )
    assert "pg_hba" not in f"{error.diag.message_hint} {error.diag.message_detail}"
    assert not bench.exists("none")


@pytest.mark.long
@pytest.mark.postgresql("there each segment needs a worker of its own")
def test_a_lost_worker_that_cannot_be_opened_again_is_done_without(
    bench: Workbench, caller: Workbench, shared_superuser: Workbench
) -> None:
    before = bench.last_run_id()
    working = (
        "SELECT worker_pid FROM cerebro.visit WHERE run_id > %s AND status = 'running' LIMIT 1"
    )
    with caller.fitting("packed", "lost", "long", 2, workers=2) as fitted:
        eventually(lambda: bench.rows(working, before))
        with connections(shared_superuser, 1):
            ((pid,),) = eventually(lambda: bench.rows(working, before))
            bench.rows("SELECT pg_terminate_backend(%s)", pid)
            run = fitted.result()
    assert any("going on with 1 worker: " in text for text in caller.messages())
    assert bench.row(
        "SELECT status, count(*) FROM cerebro.config WHERE run_id = %s GROUP BY 1", run
    ) == (
        "completed",
        2,
    )


@pytest.mark.long
def test_a_model_that_needs_too_much_memory_fails_alone(
    bench: Workbench, caller: Workbench
) -> None:
    """After as many attempts as it may have; with JAX, which has no shards."""
    bench.configure("unequal", [compile_text()], model=bench.model(HUGE))
    bench.rows(
        "INSERT INTO unequal SELECT 7, model_id, compile_params, fit_params FROM two WHERE "
        "mst_key = 1"
    )
    with setting(bench, "trainer_memory_mb", "900"):
        run = caller.fit(
            "packed", "fitting", "unequal", 1, workers=1, max_attempts=2, backend="jax"
        )
    configs = bench.rows(
        "SELECT mst_key, status FROM cerebro.config WHERE run_id = %s ORDER BY 1", run
    )
    assert configs == [(1, "failed"), (7, "completed")]
    assert "limit is 900 MB" in bench.value(
        "SELECT reason FROM cerebro.config WHERE run_id = %s AND mst_key = 1", run
    )
    assert (
        bench.value("SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND mst_key = 1", run)
        == 2
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("optimizer", "said"),
    [
        ("Adam()", "the part from layer huge on alone"),
        ("Adam(global_clipnorm=1.0)", "Adam needs all of it at once"),
    ],
)
def test_a_model_that_no_shards_can_train_is_refused(
    bench: Workbench, caller: Workbench, optimizer: str, said: str
) -> None:
    bench.rows("DROP TABLE IF EXISTS undivided, undivided_summary")
    bench.configure("undivided", [compile_text(optimizer)], model=bench.model(HUGE))
    with setting(bench, "trainer_memory_mb", "900"), pytest.raises(psycopg2.Error) as caught:
        caller.fit("packed", "never", "undivided", 1, workers=1)
    assert said in str(caught.value.diag.message_detail)
    query = "SELECT count(*), max(error) FROM cerebro.visit WHERE run_id = %s"
    attempts, error = bench.row(query, bench.newest_run())
    assert attempts == 1
    assert "does not fit" in error


@pytest.fixture(scope="module")
def stopped(bench: Workbench) -> int:
    """A run whose time was over long before it was done."""
    bench.messages()
    return bench.fit(
        "packed", "stopped", "two", 100_000, max_runtime="1 s", metrics_compute_frequency=3
    )


@pytest.mark.long
def test_a_run_whose_time_is_over_ends_with_the_best_so_far(bench: Workbench, stopped: int) -> None:
    said = [text for text in bench.messages() if "max_runtime was over" in text]
    assert said and "Best so far: mst_key=" in said[0]
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", stopped) == "completed"
    configs = bench.rows(
        "SELECT DISTINCT status, reason FROM cerebro.config WHERE run_id = %s", stopped
    )
    assert configs == [("stopped", "max_runtime was over")]
    assert bench.rows(
        "SELECT count(*) FROM cerebro.timeline WHERE run_id = %s AND status <> 'completed'", stopped
    ) == [(0,)]


def test_it_has_models_with_metrics_of_their_newest_weights(bench: Workbench, stopped: int) -> None:
    board = bench.rows(
        "SELECT mst_key, value FROM cerebro.leaderboard WHERE run_id = %s ORDER BY rank", stopped
    )
    assert len(board) == 2 and all(value is not None for _, value in board)
    for key, value in board:
        bench.rows(f"SELECT madlib_evaluate('stopped', 'packed', 'checked_{key}', FALSE, {key})")
        assert bench.value(f"SELECT metric FROM checked_{key}") == pytest.approx(value, abs=1e-6)
    with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState, match="is completed"):
        bench.rows("SELECT cerebro.resume(%s)", stopped)


def states(session: Workbench, run: int) -> list[str]:
    query = (
        "SELECT t FROM cerebro.config, unnest(state_tables) t WHERE run_id = %s AND "
        "to_regclass(t) IS NOT NULL"
    )
    return [name for (name,) in session.rows(query, run)]


@pytest.mark.long
def test_states_go_with_the_outputs_where_they_are_not_to_be_kept(
    bench: Workbench, caller: Workbench
) -> None:
    caller.connection.autocommit = False
    caller.rows(
        "SELECT madlib_fit_multiple_model('packed', 'kept', 'two', 1, keep_states => FALSE)"
    )
    caller.connection.rollback()
    run = bench.newest_run()
    assert len(states(bench, run)) == 2, "the outputs were rolled back; the work is not lost"
    bench.rows("SELECT cerebro.write_outputs(%s, 'kept')", run)
    run = caller.fit("packed", "not_kept", "two", 1, keep_states=False)
    caller.connection.commit()
    assert states(bench, run) == []
    assert bench.value("SELECT count(model_weights) FROM not_kept") == 2


@pytest.mark.long
def test_vacuum_removes_states_of_runs_that_ended(bench: Workbench, caller: Workbench) -> None:
    run = bench.fit("packed", "vacuumed", "two", 1)
    assert bench.row("SELECT cerebro.vacuum_runs(), cerebro.vacuum_runs(NULL)") == (0, 0)
    assert states(bench, run), "it ended a moment ago"
    sizes = (
        "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c"
        " WHERE relnamespace = 'cerebro_state'::regnamespace AND c.relname LIKE 'r%'"
    )
    with caller.fitting("packed", "working", "long", 2) as fitted:
        eventually(lambda: bench.newest_run() > run and states(bench, bench.newest_run()))
        assert bench.value("SELECT cerebro.vacuum_runs('0')") > 0
        assert states(bench, run) == []
        fitted.result()
    assert len(states(bench, bench.newest_run())) == 2, "one that was under way keeps its states"
    assert bench.value("SELECT count(model_weights) FROM vacuumed") == 2
    bench.rows("CREATE TABLE cerebro_state.r999999_c1_a ()")
    assert bench.value("SELECT cerebro.vacuum_runs('0 s')") > 0
    assert bench.value(sizes) is None
    with pytest.raises(psycopg2.errors.ObjectNotInPrerequisiteState, match="is gone"):
        bench.rows("SELECT cerebro.write_outputs(%s, 'again')", run)
