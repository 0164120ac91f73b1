"""Locks that others hold: a run waits where that ends by itself, and never for its own caller."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import psycopg2
import pytest
from processes import eventually, trainers
from roles import another_role, own_schema, refused
from workbench import Workbench, compile_text, several

FIT_WORKERS = 1
KEY = "(1667590770::bigint << 32)"
TABLES = (
    "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'cerebro'::regnamespace AND "
    "relkind = 'r'"
)
WORKERS = (
    "SELECT FROM pg_stat_activity WHERE application_name = %s AND datname = current_database()"
)
ENDS = {
    "is renamed": "ALTER ROLE passing RENAME TO passed",
    "is dropped": "DROP OWNED BY passing CASCADE; DROP ROLE passing",
}
BACK = "DO $$BEGIN ALTER ROLE passed RENAME TO passing; EXCEPTION WHEN undefined_object THEN END$$"
WRITE = "SELECT cerebro.write_outputs(%s, %s)"
GATE = 20
"""An advisory lock that the role waits for after each definition of a table."""
GATED = f"""
    CREATE FUNCTION public.gate() RETURNS event_trigger LANGUAGE plpgsql AS $$BEGIN
        IF session_user = 'passing' THEN PERFORM pg_advisory_lock({GATE}),
            pg_advisory_unlock({GATE}); END IF; END$$;
    CREATE EVENT TRIGGER gate ON ddl_command_end EXECUTE FUNCTION public.gate()"""
AT_GATE = (
    f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = {GATE} AND NOT granted"
)
UNGATED = "DROP EVENT TRIGGER IF EXISTS gate; DROP FUNCTION IF EXISTS public.gate"


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.configure("three", several(3))
    bench.configure("slow", several(2), ["batch_size=1,epochs=5"])


@pytest.fixture(scope="module")
def transactions(bench: Workbench) -> Iterator[Workbench]:
    """A session of the same user, in which nothing commits by itself, and whose trainers wait
    between the tests.
    """
    session = bench.another()
    session.connection.autocommit = False
    yield session
    session.close()


@pytest.fixture
def other(transactions: Workbench) -> Iterator[Workbench]:
    """That session, whose transaction is rolled back after the test."""
    transactions.messages()
    yield transactions
    transactions.connection.rollback()


def waiting(bench: Workbench, query: str) -> bool:
    """Whether a session waits for a lock in a statement that begins like this."""
    found = bench.value(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
        "starts_with(query, %s)",
        query,
    )
    return bool(found)


def test_a_queued_alter_table_between_caller_and_workers_is_found(
    bench: Workbench, other: Workbench
) -> None:
    """The caller has read the table; the ALTER waits for the caller, the workers for the ALTER."""
    change = "ALTER TABLE packed ADD COLUMN note text"
    other.rows("SELECT count(*) FROM packed")
    session = bench.another()
    with session.calling(lambda: session.rows(change)) as altered:
        eventually(lambda: waiting(bench, change))
        with pytest.raises(psycopg2.errors.DeadlockDetected) as caught:
            other.rows("SELECT madlib_fit_multiple_model('packed', 'stuck', 'three', 1)")
        assert caught.value.diag.message_hint and change in str(caught.value.diag.message_detail)
        other.connection.rollback()
        altered.result()
    assert not bench.exists("stuck")


def lock_all(administrator: Workbench) -> None:
    """Lock each table of ours for a moment, against everybody: as VACUUM FULL does."""
    administrator.rows("SET lock_timeout = '30s'")
    for (name,) in administrator.rows(TABLES):
        administrator.rows(f"DO $$BEGIN LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE; END$$")


def under_way(bench: Workbench, run: int) -> bool:
    """Whether a run has completed a visit more than when this was asked."""
    done = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"
    before = bench.value(done, run)
    return bool(eventually(lambda: bench.value(done, run) > before))


@pytest.mark.long
def test_who_locks_the_log_for_a_moment_stops_no_call(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    """Nor does a call stop them: no fit, resume or wait holds a lock on a table of ours for as long
    as it takes.
    """
    before, waiter = bench.last_run_id(), bench.another()
    calls = (
        "SELECT madlib_fit_multiple_model('packed', 'held', 'slow', 10000)",
        "SELECT cerebro.resume({})",
    )
    for call in calls:
        caller, statement = bench.another(), call.format(bench.newest_run())
        with caller.calling(partial(caller.rows, statement)) as called:
            run = eventually(lambda: bench.newest_run() if bench.newest_run() > before else 0)
            assert under_way(bench, run)
            with waiter.calling(partial(waiter.value, "SELECT cerebro.wait(%s)", run)) as waited:
                lock_all(shared_superuser)
                assert under_way(bench, run) and not called.done() and not waited.done()
                assert bench.value("SELECT cerebro.cancel(%s)", run)
                with pytest.raises(psycopg2.errors.QueryCanceled):
                    called.result()
                assert waited.result() == "cancelled"
        caller.close()
    waiter.close()


@pytest.mark.long
def test_a_log_that_stays_locked_is_not_awaited_for_ever(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    before, caller, holder = bench.last_run_id(), bench.another(), shared_superuser.pid()
    for session in (bench, caller):
        session.rows("SET lock_timeout = '1s'")
    shared_superuser.connection.autocommit = False
    try:
        with caller.fitting("packed", "stuck", "slow", 10000) as fitted:
            run = eventually(lambda: bench.newest_run() if bench.newest_run() > before else 0)
            assert under_way(bench, run)
            shared_superuser.rows(
                "LOCK TABLE cerebro.visit, cerebro.run_log IN ACCESS EXCLUSIVE MODE"
            )
            for call in ("cancel", "resume", "drop_run"):
                error = refused(
                    bench, f"SELECT cerebro.{call}(%s)", run, code="55006", words="cerebro.run_log"
                )
                assert f"Process {holder}" in str(error.diag.message_detail)
            eventually(
                lambda: not bench.rows(WORKERS, f"cerebro_db run {run} worker")
            )  # its patience has ended
            shared_superuser.connection.rollback()
            with pytest.raises(psycopg2.errors.ObjectInUse) as caught:
                fitted.result()
            assert f"Process {holder}" in str(caught.value.diag.message_detail)
    finally:
        shared_superuser.connection.rollback()
        shared_superuser.connection.autocommit = True
        bench.rows("RESET lock_timeout")
        caller.close()
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "failed"


@pytest.mark.postgresql("no call works in the caller's own session there")
def test_a_table_that_the_caller_locked_is_trained_on_in_its_own_session(
    bench: Workbench, other: Workbench
) -> None:
    """The states of that are gone with a rollback."""
    lock, train = (
        "LOCK TABLE packed IN SHARE MODE",
        "SELECT madlib_fit_multiple_model('packed', 'alone', 'three', 1)",
    )
    other.rows(lock)
    other.rows(train)
    other.connection.rollback()
    refused(bench, WRITE, bench.newest_run(), "lost", code="55000")
    assert not bench.exists("alone", "lost")
    other.rows(lock)
    other.rows(train)
    assert any("this session alone" in message for message in other.messages())
    other.connection.commit()
    assert bench.value("SELECT count(*) FROM alone") == 3


@pytest.mark.long
def test_who_holds_the_lock_of_a_run_to_come_does_not_stop_it(
    bench: Workbench, other: Workbench
) -> None:
    newest = bench.value("SELECT coalesce(max(run_id), 0) FROM cerebro.run")
    other.rows(
        f"SELECT pg_advisory_xact_lock({KEY} # n) FROM generate_series({newest + 1}, "
        f"{newest + 20}) n"
    )
    bench.rows("SET lock_timeout = '60s'")
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
    before = bench.last_run_id()
    with bench.another().fitting("packed", "held", "three", 6) as fitted:
        run = eventually(lambda: bench.newest_run() if bench.newest_run() > before else 0)
        state = eventually(lambda: bench.rows(query, run))[0][0]
        other.rows(f"LOCK TABLE {state} IN ACCESS SHARE MODE")
        eventually(
            lambda: (
                fitted.done()
                or len(bench.rows("SELECT FROM cerebro.visit WHERE run_id = %s", run)) > 12
            )
        )
        assert fitted.result() == run
    assert bench.value(f"SELECT count(*) FROM {bench.states('held')} WHERE part = 1") == 3
    kept = {
        name
        for (name,) in bench.rows(
            "SELECT unnest(state_tables) FROM cerebro.config WHERE run_id = %s", run
        )
    }
    assert state in kept  # nobody takes it from its reader


@pytest.mark.long
def test_a_reader_of_the_states_does_not_stop_a_resume(bench: Workbench, other: Workbench) -> None:
    """Also of configurations that had made no visit, whose tables are there already."""
    before, tables = (
        bench.newest_run(),
        "SELECT unnest(state_tables) FROM cerebro.config WHERE run_id = %s",
    )
    bench.configure("long", several(3), ["batch_size=1,epochs=200"])
    with bench.another().fitting("packed", "read_too", "long", 1) as fitted:
        run = eventually(lambda: bench.newest_run() if bench.newest_run() > before else 0)
        eventually(lambda: bench.rows("SELECT FROM cerebro.visit WHERE run_id = %s", run))
        assert bench.value("SELECT cerebro.cancel(%s)", run)
        with pytest.raises(psycopg2.errors.QueryCanceled):
            fitted.result()
    visited = bench.value(
        "SELECT count(DISTINCT mst_key) FROM cerebro.visit WHERE run_id = %s", run
    )
    names = [name for (name,) in bench.rows(tables, run)]
    assert visited < 3 and all(
        bench.value("SELECT to_regclass(%s) IS NOT NULL", name) for name in names
    )
    other.rows(f"LOCK TABLE {', '.join(names)} IN ACCESS SHARE MODE")
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert bench.value("SELECT count(model_weights) FROM read_too") == 3


@pytest.mark.long
def test_a_reader_of_one_state_keeps_no_other(bench: Workbench, other: Workbench) -> None:
    run = bench.fit("packed", "read", "three", 1)
    held = (
        "SELECT array_agg(oid::regclass::text ORDER BY oid) FROM pg_class WHERE relname ^@ "
        f"'r{run}_c'"
    )
    states = bench.value(held)
    assert len(states) == 3
    other.rows(f"LOCK TABLE {states[0]} IN ACCESS SHARE MODE")
    bench.rows("SELECT cerebro.vacuum_runs('0 seconds')")
    assert bench.value(held) == [states[0]]
    other.connection.rollback()
    bench.rows("SELECT cerebro.vacuum_runs('0 seconds')")
    assert bench.value(held) is None


@pytest.mark.long
def test_a_reader_of_packed_rows_does_not_stop_who_tidies_up(
    bench: Workbench, other: Workbench
) -> None:
    """They are those of a run that a crash has taken out of the log."""
    name = f'cerebro_state."r{bench.newest_run() + 1000}_training"'
    bench.rows(f"CREATE TABLE {name} AS SELECT FROM packed")
    other.rows(f"LOCK TABLE {name} IN ACCESS SHARE MODE")
    bench.rows("SELECT cerebro.vacuum_runs('0 seconds')")
    assert bench.value("SELECT to_regclass(%s) IS NOT NULL", name)
    other.connection.rollback()
    bench.rows("SELECT cerebro.vacuum_runs('0 seconds')")
    assert bench.value("SELECT to_regclass(%s) IS NULL", name)


@pytest.mark.long
def test_outputs_can_be_made_again_after_a_rollback(bench: Workbench, other: Workbench) -> None:
    other.fit("packed", "undone", "three", 2, workers=1)
    ((trained,),) = other.rows("SELECT array_agg(model_weights ORDER BY mst_key) FROM undone")
    other.connection.rollback()
    assert not bench.exists("undone", "undone_info", "undone_summary")
    run = bench.newest_run()
    bench.rows("SELECT cerebro.write_outputs(%s, 'redone')", run)
    assert bench.value("SELECT array_agg(model_weights ORDER BY mst_key) FROM redone") == trained
    assert bench.value("SELECT run_id FROM redone_summary") == run


def test_outputs_of_what_is_not_a_completed_run_are_refused(bench: Workbench) -> None:
    completed = bench.fit("packed", "written", "three", 1)
    bench.configure("diverging", [compile_text("SGD(learning_rate=1e38)")])
    with pytest.raises(psycopg2.Error):
        bench.fit("packed", "none", "diverging", 1)
    refused(bench, WRITE, None, "x", code="22004")
    refused(bench, WRITE, completed + 1000, "x", code="42704")
    refused(bench, WRITE, completed, None, code="22004")
    refused(bench, WRITE, completed, "packed", code="42P07")
    failed = bench.value("SELECT max(run_id) FROM cerebro.run WHERE status = 'failed'")
    refused(bench, WRITE, failed, "x", code="55000")
    assert not bench.exists("x", "none")


def test_outputs_need_the_states(bench: Workbench) -> None:
    """They are gone when their owner drops them."""
    run = bench.fit("packed", "kept", "three", 1)
    ((table,), *_) = bench.rows(
        "SELECT unnest(state_tables) FROM cerebro.config WHERE run_id = %s", run
    )
    bench.rows(f"DROP TABLE {table}")
    refused(bench, WRITE, run, "lost", code="55000")
    assert not bench.exists("lost")


@pytest.mark.long
@pytest.mark.parametrize("kind", ENDS)
def test_a_role_that_is_no_more_leaves_nothing_running(
    bench: Workbench, shared_superuser: Workbench, kind: str
) -> None:
    """Its runs are interrupted; those of a role that was dropped are seen by superusers yet."""
    before = shared_superuser.last_run_id()
    with another_role(bench, shared_superuser, "passing") as session:
        own_schema(shared_superuser, "passing")
        bench.rows("GRANT SELECT ON packed, packed_summary, slow, slow_summary, models TO passing")
        with session.fitting("packed", "passing.model", "slow", 10000) as fitted:
            run = eventually(
                lambda: newest if (newest := shared_superuser.newest_run()) > before else 0
            )
            assert under_way(shared_superuser, run)
            shared_superuser.rows(ENDS[kind])
            try:
                error = fitted.exception()
            finally:
                shared_superuser.rows(BACK)
        assert (
            isinstance(error, psycopg2.Error)
            and error.pgcode == "55000"
            and "passing" in str(error)
        ), str(error)
        for view in ("run", "config", "timeline", "progress"):
            statuses = {
                s
                for (s,) in shared_superuser.rows(
                    f"SELECT status FROM cerebro.{view} WHERE run_id = %s", run
                )
            }
            assert statuses and "running" not in statuses, view
        assert (
            shared_superuser.value(
                "SELECT configs_running FROM cerebro.progress WHERE run_id = %s", run
            )
            == 0
        )
    shared_superuser.rows("DROP SCHEMA IF EXISTS passing")


@pytest.mark.long
@pytest.mark.postgresql("a session whose role has another name can ask no segment there")
def test_outputs_are_not_made_of_a_log_that_shows_nothing(
    bench: Workbench, shared_superuser: Workbench
) -> None:
    """Its role gets another name after it was found that there is the run."""
    with another_role(bench, shared_superuser, "passing") as session:
        own_schema(shared_superuser, "passing")
        bench.rows(
            "GRANT SELECT ON packed, packed_summary, three, three_summary, models TO passing"
        )
        run = session.fit("packed", "passing.model", "three", 1)
        shared_superuser.rows(f"{GATED}; SELECT pg_advisory_lock({GATE})")
        try:
            with session.calling(lambda: session.rows(WRITE, run, "passing.again")) as written:
                eventually(lambda: shared_superuser.value(AT_GATE))
                shared_superuser.rows(ENDS["is renamed"])
                # A statement of its own: the name is committed before the gate opens.
                shared_superuser.rows(f"SELECT pg_advisory_unlock({GATE})")
                error = written.exception()
        finally:
            shared_superuser.rows(f"SELECT pg_advisory_unlock_all(); {UNGATED}; {BACK}")
        assert isinstance(error, psycopg2.errors.UndefinedObject), error
        assert not session.exists("passing.again")
        session.rows(WRITE, run, "passing.again")
        assert session.value("SELECT count(model_weights) FROM passing.again") == 3
    shared_superuser.rows("DROP SCHEMA IF EXISTS passing")


def test_numbers_of_runs_are_not_used_up(bench: Workbench, shared_superuser: Workbench) -> None:
    """Whoever may train may take as many as they like; a run with a number of more than 32 bits is
    like any other.
    """
    sequence, first = "cerebro.run_log_run_id_seq", 10**17
    shared_superuser.rows(f"ALTER SEQUENCE {sequence} MAXVALUE {first} RESTART {first}")
    fresh, before = bench.another(), bench.workers()
    assert bench.value(f"SELECT nextval('{sequence}')") == first
    refused(fresh, "SELECT madlib_fit_multiple_model('packed', 'none', 'three', 1)", code="2200H")
    assert not trainers(bench.workers() - before), "before any was started"
    shared_superuser.rows(f"ALTER SEQUENCE {sequence} NO MAXVALUE")
    completed = fresh.fit("packed", "large", "three", 1, workers=1)
    assert completed > first and len(bench.weights("large")) == 3
    with fresh.fitting("packed", "endless", "slow", 10000, workers=1) as fitted:
        run = eventually(lambda: bench.newest_run() if bench.newest_run() > completed else 0)
        refused(bench, "SELECT cerebro.resume(%s)", run, code="55006")
        assert (
            bench.value("SELECT status FROM cerebro.progress WHERE run_id = %s", run) == "running"
        )
        assert bench.value("SELECT cerebro.wait(%s, '0')", run) == "running"
        assert bench.value("SELECT cerebro.cancel(%s)", run)
        with pytest.raises(psycopg2.errors.QueryCanceled):
            fitted.result()
    assert bench.value("SELECT cerebro.wait(%s)", run) == "cancelled"
    bench.rows("SELECT cerebro.drop_run(%s)", run)
    fresh.close()
