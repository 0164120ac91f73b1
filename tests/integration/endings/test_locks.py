"""Locks that others hold: a run waits where that ends by itself, and never for its own caller."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest
from processes import eventually
from roles import refused
from workbench import Workbench, compile_text, several

WRITE = "SELECT cerebro.write_outputs(%s, %s)"


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.configure("three", several(3))


@pytest.fixture
def other(bench: Workbench) -> Iterator[Workbench]:
    """A session of the same user, in which nothing commits by itself."""
    session = bench.another()
    session.connection.autocommit = False
    yield session
    session.close()


def waiting(bench: Workbench, query: str) -> bool:
    """Whether a session waits for a lock in a statement that begins like this."""
    found = bench.value(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND starts_with(query, %s)", query
    )
    return bool(found)


def test_a_queued_alter_table_between_caller_and_workers_is_found(bench: Workbench, other: Workbench) -> None:
    """The caller has read the table; the ALTER waits for the caller, the workers for the ALTER."""
    change = "ALTER TABLE packed ADD COLUMN note text"
    other.rows("SELECT count(*) FROM packed")
    with ThreadPoolExecutor(1) as pool:
        altered = pool.submit(bench.another().rows, change)
        eventually(lambda: waiting(bench, change))
        with pytest.raises(psycopg2.errors.DeadlockDetected) as caught:
            other.rows("SELECT madlib_fit_multiple_model('packed', 'stuck', 'three', 1)")
        assert caught.value.diag.message_hint and change in str(caught.value.diag.message_detail)
        other.connection.rollback()
        altered.result()
    assert not bench.exists("stuck")


@pytest.mark.postgresql("no call works in the caller's own session there")
def test_a_table_that_the_caller_locked_is_trained_on_in_its_own_session(bench: Workbench, other: Workbench) -> None:
    other.rows("LOCK TABLE packed IN SHARE MODE")
    other.rows("SELECT madlib_fit_multiple_model('packed', 'alone', 'three', 1)")
    assert any("this session alone" in message for message in other.messages())
    other.connection.commit()
    assert bench.value("SELECT count(*) FROM alone") == 3


def test_who_holds_the_lock_of_a_run_to_come_does_not_stop_it(bench: Workbench, other: Workbench) -> None:
    newest = bench.value("SELECT coalesce(max(run_id), 0) FROM cerebro.run")
    other.rows(f"SELECT pg_advisory_xact_lock(1667590770, n) FROM generate_series({newest + 1}, {newest + 20}) n")
    bench.rows("SET lock_timeout = '2s'")
    try:
        bench.rows("SELECT madlib_fit_multiple_model('packed', 'unlocked', 'three', 1)")
    finally:
        bench.rows("RESET lock_timeout")
        other.connection.rollback()
    assert bench.value("SELECT count(*) FROM unlocked") == 3


def test_two_calls_for_one_output_do_not_both_begin(bench: Workbench, other: Workbench) -> None:
    other.rows("SELECT training_preprocessor_dl('points', 'claimed', 'label', 'x')")
    for call in (
        "SELECT training_preprocessor_dl('points', 'claimed', 'label', 'x')",
        "SELECT madlib_fit_multiple_model('packed', 'claimed', 'three', 1)",
    ):
        with pytest.raises(psycopg2.errors.DuplicateTable, match="another transaction"):
            bench.rows(call)
    other.connection.rollback()
    bench.rows("SELECT training_preprocessor_dl('points', 'claimed', 'label', 'x')")


@pytest.mark.long
def test_a_reader_of_the_states_does_not_stop_a_run(bench: Workbench, other: Workbench) -> None:
    """As a backup does, that holds every table from its start to its end."""
    query = """SELECT name FROM cerebro.config, unnest(state_tables) name
               WHERE run_id = %s AND to_regclass(name) IS NOT NULL ORDER BY mst_key, name LIMIT 1"""
    before = bench.newest_run()
    with bench.another().fitting("packed", "held", "three", 6) as fitted:
        run = eventually(lambda: bench.newest_run() if bench.newest_run() > before else 0)
        state = eventually(lambda: bench.rows(query, run))[0][0]
        other.rows(f"LOCK TABLE {state} IN ACCESS SHARE MODE")
        eventually(lambda: fitted.done() or len(bench.rows("SELECT FROM cerebro.visit WHERE run_id = %s", run)) > 12)
        assert fitted.result() == run
    assert bench.value("SELECT count(*) FROM held_state WHERE part = 1") == 3
    kept = {name for (name,) in bench.rows("SELECT unnest(state_tables) FROM cerebro.config WHERE run_id = %s", run)}
    assert state in kept  # nobody takes it from its reader


def test_outputs_can_be_made_again_after_a_rollback(bench: Workbench, other: Workbench) -> None:
    other.rows("SELECT madlib_fit_multiple_model('packed', 'undone', 'three', 2)")
    ((trained,),) = other.rows("SELECT array_agg(model_weights ORDER BY mst_key) FROM undone")
    other.connection.rollback()
    assert not bench.exists("undone", "undone_info", "undone_summary", "undone_state")
    run = bench.newest_run()
    bench.rows("SELECT cerebro.write_outputs(%s, 'redone')", run)
    assert bench.value("SELECT array_agg(model_weights ORDER BY mst_key) FROM redone") == trained
    assert bench.value("SELECT run_id FROM redone_summary") == run


def test_outputs_of_what_is_not_a_completed_run_are_refused(bench: Workbench) -> None:
    completed = bench.value("SELECT max(run_id) FROM cerebro.run WHERE status = 'completed'")
    bench.configure("diverging", [compile_text("SGD(learning_rate=1e38)")])
    with pytest.raises(psycopg2.Error):
        bench.fit("packed", "none", "diverging", 1)
    refused(bench, WRITE, None, "x", code="22004")
    refused(bench, WRITE, completed + 1000, "x", code="42704")
    refused(bench, WRITE, completed, None, code="22004")
    refused(bench, WRITE, completed, "packed", code="42P07")
    refused(bench, WRITE, bench.newest_run(), "x", code="55000")
    assert not bench.exists("x", "none")


@pytest.mark.postgresql("no call works in the caller's own session there")
def test_states_of_the_caller_s_own_session_are_gone_with_a_rollback(bench: Workbench, other: Workbench) -> None:
    other.rows("LOCK TABLE packed IN SHARE MODE")
    other.rows("SELECT madlib_fit_multiple_model('packed', 'lost', 'three', 1)")
    other.connection.rollback()
    refused(bench, WRITE, bench.newest_run(), "lost", code="55000")
    assert not bench.exists("lost")


def test_outputs_need_the_states(bench: Workbench) -> None:
    """They are gone when their owner drops them."""
    run = bench.fit("packed", "kept", "three", 1)
    ((table,), *_) = bench.rows("SELECT unnest(state_tables) FROM cerebro.config WHERE run_id = %s", run)
    bench.rows(f"DROP TABLE {table}")
    refused(bench, WRITE, run, "lost", code="55000")
    assert not bench.exists("lost")
