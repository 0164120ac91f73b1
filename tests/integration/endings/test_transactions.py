"""Fit inside the caller's transaction: over tables that nobody else can see, and undone with it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg2
import pytest
from processes import trainers
from workbench import Workbench, compile_text, setting, several

OUTPUTS = ("", "_info", "_summary")


@pytest.fixture(scope="module")
def packed(bench: Workbench) -> str:
    """A packed table that everyone can see."""
    bench.configure("configs", several(2))
    return bench.pack("packed", 2)


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Iterator[Workbench]:
    """A session of the module, whose trainer waits between the tests."""
    opened = bench.another()
    yield opened
    opened.close()


@pytest.fixture
def caller(session: Workbench) -> Iterator[Workbench]:
    """That session in a transaction, which is rolled back after the test."""
    session.connection.autocommit = False
    session.messages()
    yield session
    session.connection.rollback()
    session.connection.autocommit = True


def made(bench: Workbench, output: str) -> bool:
    """Whether any table of an output exists for this session."""
    return bench.exists(*(f"{output}{suffix}" for suffix in OUTPUTS))


@pytest.mark.long
@pytest.mark.postgresql("no call works in the caller's own session there")
def test_a_table_packed_in_the_same_transaction(
    bench: Workbench, packed: str, caller: Workbench
) -> None:
    caller.pack("packed_now", 3)
    run_id = caller.fit("packed_now", "model_now", "configs", 2)
    assert any(
        "other sessions cannot use public.packed_now" in message for message in caller.messages()
    )
    assert not made(bench, "model_now")
    caller.connection.commit()
    assert bench.value("SELECT count(model_weights) FROM model_now") == 2
    assert bench.row(
        "SELECT count(*), count(DISTINCT segment_id), bool_and(status = 'completed'), "
        "count(DISTINCT worker_pid) FROM cerebro.visit WHERE run_id = %s",
        run_id,
    ) == (2 * 3 * 2, 3, True, 1)
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run_id) == "completed"


@pytest.mark.postgresql("no call works in the caller's own session there")
def test_temporary_tables(bench: Workbench, packed: str, caller: Workbench) -> None:
    caller.rows("CREATE TEMPORARY TABLE temporary_points AS SELECT * FROM points WHERE id <= 40")
    caller.pack("pg_temp.temporary_packed", 2, source="temporary_points")
    caller.rows(
        "SELECT load_model_selection_table('models', 'pg_temp.temporary_configs', ARRAY[1], %s, "
        "%s)",
        [compile_text()],
        ["batch_size=4"],
    )
    caller.connection.commit()
    run_id = caller.fit("temporary_packed", "pg_temp.temporary_model", "temporary_configs", 1)
    assert caller.value("SELECT count(model_weights) FROM pg_temp.temporary_model") == 1
    assert caller.value("SELECT sum(rows) FROM cerebro.visit WHERE run_id = %s", run_id) == 40


@pytest.mark.postgresql("no call works in the caller's own session there")
def test_a_config_that_fails_in_the_caller_s_session_fails_alone(
    bench: Workbench, packed: str, caller: Workbench
) -> None:
    """And a rollback to before the packing leaves nothing of it."""
    caller.pack("packed_again", 2)
    caller.configure("mixed_configs", [compile_text("SGD(learning_rate=1e38)"), compile_text()])
    run_id = caller.fit("packed_again", "model_again", "mixed_configs", 2)
    statuses = caller.rows(
        "SELECT status FROM cerebro.config WHERE run_id = %s ORDER BY mst_key", run_id
    )
    assert statuses == [("failed",), ("completed",)]
    visits = caller.rows(
        "SELECT mst_key, status, count(*) FROM cerebro.visit WHERE run_id = %s GROUP BY 1, 2 "
        "ORDER BY 1",
        run_id,
    )
    assert visits == [(1, "failed", 1), (2, "completed", 4)]
    caller.connection.rollback()
    assert not made(bench, "model_again") and not bench.exists("packed_again")


def test_a_rollback_leaves_no_output(bench: Workbench, packed: str, caller: Workbench) -> None:
    run_id = caller.fit(packed, "undone", "configs", 1, workers=1)
    assert made(caller, "undone")
    caller.connection.rollback()
    assert not made(bench, "undone")
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run_id) == "completed"
    bench.rows("SELECT cerebro.write_outputs(%s, 'redone')", run_id)
    assert bench.value("SELECT count(model_weights) FROM redone") == 2


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE packed SET buffer_id = buffer_id WHERE false",
        "LOCK TABLE packed IN ACCESS EXCLUSIVE MODE",
        "INSERT INTO configs SELECT * FROM configs WHERE false",
        "LOCK TABLE models IN SHARE MODE",
    ],
)
def test_workers_are_refused_where_they_could_not_work(
    packed: str, caller: Workbench, statement: str
) -> None:
    caller.rows(statement)
    with pytest.raises(psycopg2.Error, match="sessions cannot use") as caught:
        caller.fit(packed, "refused", "configs", 1, workers=2)
    assert caught.value.pgcode == "25001"
    assert str(caught.value.diag.message_hint).startswith("COMMIT first")


def test_a_table_that_was_only_read_can_be_used_by_workers(packed: str, caller: Workbench) -> None:
    caller.rows("SELECT count(*) FROM packed")
    caller.fit(packed, "after_reading", "configs", 1, workers=1)
    assert caller.value("SELECT count(*) FROM after_reading") == 2


@pytest.mark.postgresql("no call works in the caller's own session there")
def test_an_architecture_loaded_in_the_same_transaction(packed: str, caller: Workbench) -> None:
    model = caller.model(caller.value("SELECT model_arch::text FROM models WHERE model_id = 1"))
    caller.rows("UPDATE models SET name = 'seen' WHERE model_id = %s", model)
    caller.configure("newest_configs", [compile_text()], model=model)
    caller.fit(packed, "newest", "newest_configs", 1)
    assert caller.value("SELECT count(model_weights) FROM newest") == 1


@pytest.mark.parametrize(
    ("mode", "code", "word"),
    [
        ("ISOLATION LEVEL REPEATABLE READ", "25001", "repeatable read"),
        (
            "ISOLATION LEVEL SERIALIZABLE",
            "25001",
            "serializable|repeatable read",
        ),  # Greenplum has no more
        ("READ ONLY", "25006", "read only"),
    ],
)
def test_other_transactions_are_refused(
    packed: str, caller: Workbench, mode: str, code: str, word: str
) -> None:
    before = caller.last_run_id()
    caller.connection.rollback()
    caller.rows(f"SET TRANSACTION {mode}")
    with pytest.raises(psycopg2.Error, match=word) as caught:
        caller.fit(packed, "refused", "configs", 1, workers=1)
    assert caught.value.pgcode == code
    assert caught.value.diag.message_hint
    caller.connection.rollback()
    assert caller.last_run_id() == before


@pytest.mark.long
@pytest.mark.postgresql("no call works in the caller's own session there")
def test_without_waiting_the_caller_s_own_trainer_ends_with_the_call(
    packed: str, caller: Workbench
) -> None:
    caller.rows(f"LOCK TABLE {packed} IN SHARE MODE")
    with setting(caller, "trainer_idle_seconds", "0"):
        caller.fit(packed, "waited_not", "configs", 1)
        assert not trainers({caller.pid()})
