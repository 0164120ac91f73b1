"""The Python client against a real server: calls, messages, cancels, and runs seen while they go
on.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import product
from types import ModuleType
from typing import Any, Protocol

import psycopg2
import pytest
import sqlalchemy as sa
from workbench import Workbench

import cerebro_db
from cerebro_db import errors, records
from cerebro_db.console.watching import watch
from cerebro_db.driver import CallSession, get_engine

PATIENCE = 60.0
LOCK = 4711
COMPILE_GRID = {"loss": ["categorical_crossentropy"], "metrics": [["accuracy"]]}


class Database(Protocol):
    @property
    def url(self) -> str: ...

    @property
    def superuser_url(self) -> str: ...


@pytest.fixture
def session(database: Database) -> Iterator[cerebro_db.Session]:
    with cerebro_db.connect(database.url) as opened:
        yield opened


@pytest.fixture(scope="module")
def digits() -> ModuleType:
    """Imported by who needs it: scikit-learn takes long."""
    return importlib.import_module("cerebro_db.demo.digits")


@pytest.fixture
def packed(session: cerebro_db.Session, digits: ModuleType) -> cerebro_db.Session:
    """A session with 60 packed images and two configurations of one small model."""
    with session.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE images (id integer, pixels real[], digit integer)")
        rows = [
            dict(zip(("id", "pixels", "digit"), row, strict=True))
            for row in digits.read_rows()[:60]
        ]
        connection.execute(sa.text("INSERT INTO images VALUES (:id, :pixels, :digit)"), rows)
    session.load_model(digits.make_architectures()["mlp"], "models", name="mlp")
    session.pack(
        "images", "images_packed", "digit", "pixels", normalizing_const=16, n_segments=2, seed=1
    )
    session.configs(
        "models",
        "configs",
        [1],
        {**COMPILE_GRID, "optimizer": ["Adam"], "lr": [0.01, 0.1]},
        {"batch_size": [8]},
    )
    return session


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("run", records.Run),
        ("progress", records.Progress),
        ("queue", records.QueueEntry),
        ("leaderboard", records.Standing),
        ("learning_curve", records.Point),
        ("timeline", records.Span),
        ("visit", records.Visit),
        ("parameter", records.Parameter),
        ("cost", records.Cost),
    ],
)
def test_records_have_the_columns_of_their_relations(
    shared_superuser: Workbench, name: str, record: type[Any]
) -> None:
    with shared_superuser.connection.cursor() as cursor:
        cursor.execute("SELECT * FROM cerebro." + name + " LIMIT 0")
        assert cursor.description is not None
        columns = {column.name for column in cursor.description}
    assert {field.name for field in fields(record)} <= columns


def test_the_functions_are_found_in_the_extension_s_schema(
    database: Database, digits: ModuleType
) -> None:
    with psycopg2.connect(database.superuser_url) as superuser, superuser.cursor() as cursor:
        cursor.execute('DROP EXTENSION cerebro_db; CREATE SCHEMA "Model Lab";')
        cursor.execute('CREATE EXTENSION cerebro_db SCHEMA "Model Lab"')
    superuser.close()
    with cerebro_db.connect(database.superuser_url) as session:
        assert session.schema == "Model Lab"
        session.load_model(digits.make_architectures()["mlp"], '"Model Lab".models')


def test_a_database_without_the_extension_is_told_so(database: Database) -> None:
    elsewhere = sa.make_url(database.superuser_url).set(database="template1")
    with cerebro_db.connect(elsewhere) as session, pytest.raises(errors.ObjectNotReady) as caught:
        session.load_model({}, "models")
    assert "CREATE EXTENSION" in str(caught.value.hint)


def test_a_refusal_has_its_class_message_and_hint(packed: cerebro_db.Session) -> None:
    with pytest.raises(errors.DuplicateTable) as caught:
        packed.pack("images", "images_packed", "digit", "pixels")
    assert caught.value.message.startswith("training_preprocessor_dl")
    assert "images_packed" in caught.value.message
    assert caught.value.hint
    with pytest.raises(errors.UndefinedTable):
        packed.fit("nowhere", "model", "configs", 1)
    assert packed.runs() == [], "a wrong call leaves no run"


def test_a_fit_and_its_run_agree(
    packed: cerebro_db.Session, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "cerebro_db")
    run_id = packed.fit(
        "images_packed",
        "model",
        "configs",
        2,
        validation_table="images_packed",
        metrics_compute_frequency=1,
        name="two epochs",
    )
    assert capsys.readouterr().out == "", "no progress where there is no terminal"
    assert any(f"run {run_id}" in record.getMessage() for record in caplog.records)
    assert packed.current_run() == run_id
    (run,) = packed.runs()
    assert (run.run_id, run.name, run.status, run.epochs) == (run_id, "two epochs", "completed", 2)

    progress = packed.progress(run_id)
    assert (progress.status, progress.epoch) == ("completed", 2)
    assert progress.visits_done == progress.visits_total == 8

    visits = Counter(
        (visit.mst_key, visit.epoch, visit.segment_id) for visit in packed.visits(run_id)
    )
    configs = [standing.mst_key for standing in packed.leaderboard(run_id)]
    assert visits == Counter(product(configs, (1, 2), run.segments))

    newest = {
        point.mst_key: point.value
        for point in packed.learning_curve(run_id)
        if (point.epoch, point.dataset, point.name) == (2, "validation", "accuracy")
    }
    assert {standing.mst_key: standing.value for standing in packed.leaderboard(run_id)} == newest
    assert Counter(span.kind for span in packed.timeline(run_id))["train"] == 8

    costs = packed.cost(run_id)
    assert [cost.mst_key for cost in costs] == [None, *sorted(configs)] and all(
        cost.trainer_seconds for cost in costs
    )
    assert [(cost.run_id, cost.mst_key) for cost in packed.cost()] == [
        (run_id, cost.mst_key) for cost in costs
    ]

    assert watch(packed.engine.url.render_as_string(hide_password=False), None) == "completed"
    told = capsys.readouterr().out
    assert f"run {run_id} completed" in told
    # A narrow table writes them in two lines.
    assert {"validation", "accuracy"} <= set(told.split())

    best = packed.leaderboard(run_id)[0].mst_key
    packed.madlib_evaluate("model", "images_packed", "evaluation", mst_key=best)
    packed.madlib_predict(
        "model", "images", "id", "pixels", "prediction", pred_type="response", mst_key=best
    )
    with packed.engine.connect() as connection:
        metric = connection.exec_driver_sql("SELECT metric FROM evaluation").scalar_one()
        right = connection.exec_driver_sql(
            "SELECT avg((class_value = digit::text)::int) FROM prediction JOIN images USING (id)"
        ).scalar_one()
    assert metric == pytest.approx(newest[best])
    assert float(right) == pytest.approx(newest[best], abs=1e-6)


def test_a_run_that_is_not_there_is_an_error(session: cerebro_db.Session) -> None:
    with pytest.raises(errors.UndefinedObject) as caught:
        session.progress(12345)
    assert "12345" in caught.value.message
    assert session.leaderboard(12345) == []
    with pytest.raises(errors.UndefinedObject):
        watch(session.engine.url.render_as_string(hide_password=False), None)


class Ears:
    """Receives messages: keeps them, then does what the test wants."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.act: Callable[[], object] = lambda: None

    def __call__(self, message: str) -> None:
        self.heard.append(message)
        self.act()


@pytest.fixture
def ears() -> Ears:
    return Ears()


@pytest.fixture
def caller(session: cerebro_db.Session, ears: Ears) -> Iterator[CallSession]:
    """A caller in a database with a function that speaks and then waits for a lock, or for its
    cancel.
    """
    with session.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE FUNCTION wait_for_lock(number bigint) RETURNS text LANGUAGE plpgsql AS"
            " $$BEGIN RAISE INFO 'waiting' USING hint = 'unlock';"
            " PERFORM pg_advisory_xact_lock(number); RETURN 'locked'; END$$"
        )
    opened = CallSession(session.engine, ears)
    yield opened
    opened.close()


@pytest.fixture
def locked(connection: psycopg2.extensions.connection) -> psycopg2.extensions.connection:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", (LOCK,))
    return connection


def unlock(connection: psycopg2.extensions.connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s)", (LOCK,))


def when_waiting(
    url: str, pid: Callable[[], int | None], act: Callable[[], object]
) -> threading.Thread:
    """Acts, in a thread, as soon as that process of the server waits for a lock."""

    def follow() -> None:
        engine = get_engine(url)
        query = sa.text("SELECT FROM pg_locks WHERE pid = :pid AND NOT granted")
        until = time.monotonic() + PATIENCE
        with engine.connect() as connection:
            while (
                connection.execute(query, {"pid": pid()}).first() is None
                and time.monotonic() < until
            ):
                connection.rollback()
                time.sleep(0.01)
        engine.dispose()
        act()

    thread = threading.Thread(target=follow)
    thread.start()
    return thread


def test_messages_come_while_the_call_goes_on(
    caller: CallSession, ears: Ears, locked: psycopg2.extensions.connection
) -> None:
    """The call can end only because its message is answered."""
    ears.act = lambda: unlock(locked)
    assert caller.query_function(("public", "wait_for_lock"), {"number": LOCK}) == [("locked",)]
    assert ears.heard == ["INFO:  waiting\nHINT:  unlock"]


def test_no_message_is_lost(session: cerebro_db.Session, caller: CallSession, ears: Ears) -> None:
    with session.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE FUNCTION talk(number integer) RETURNS void LANGUAGE plpgsql AS"
            " $$BEGIN FOR i IN 1..number LOOP RAISE INFO '%%', i; END LOOP; RAISE 'enough'; END$$"
        )
    with pytest.raises(errors.CerebroError, match="enough"):
        caller.query_function(("public", "talk"), {"number": 1000})
    assert ears.heard == [f"INFO:  {number}" for number in range(1, 1001)]


@pytest.mark.parametrize(
    "error", [ZeroDivisionError(), KeyboardInterrupt(), psycopg2.OperationalError("mine")]
)
def test_an_error_of_the_receiver_cancels_the_call(
    caller: CallSession, ears: Ears, locked: psycopg2.extensions.connection, error: BaseException
) -> None:
    def fail() -> None:
        raise error

    ears.act = fail
    with pytest.raises((type(error), errors.ConnectionFailure)):
        caller.query_function(("public", "wait_for_lock"), {"number": LOCK})
    unlock(locked)
    ears.act = lambda: None
    assert caller.query_function(("public", "wait_for_lock"), {"number": LOCK}) == [("locked",)], (
        "the session goes on"
    )


@pytest.mark.parametrize("value", ["zero\0byte", "\ud800", object()])
def test_what_the_driver_cannot_send_is_an_invalid_parameter(
    caller: CallSession, value: object
) -> None:
    with pytest.raises(errors.InvalidParameter):
        caller.query_function(("public", "wait_for_lock"), {"number": value})
    assert caller.query_function(("public", "wait_for_lock"), {"number": LOCK}) == [("locked",)], (
        "the session goes on"
    )


def test_another_thread_can_cancel(
    database: Database, caller: CallSession, locked: psycopg2.extensions.connection
) -> None:
    refused: list[errors.CerebroError] = []

    def call_and_cancel() -> None:
        try:
            caller.query_function(("public", "wait_for_lock"), {"number": LOCK})
        except errors.ObjectNotReady as error:
            refused.append(error)
        caller.cancel()

    thread = when_waiting(database.url, lambda: caller.pid, call_and_cancel)
    with pytest.raises(errors.CerebroError) as caught:
        caller.query_function(("public", "wait_for_lock"), {"number": LOCK})
    thread.join()
    assert refused, "one call at a time"
    assert caught.value.sqlstate == "57014"
    unlock(locked)
    assert caller.query_function(("public", "wait_for_lock"), {"number": LOCK}) == [("locked",)], (
        "the session goes on"
    )


def test_ctrl_c_cancels_the_statement(
    database: Database, caller: CallSession, locked: psycopg2.extensions.connection
) -> None:
    thread = when_waiting(
        database.url, lambda: caller.pid, lambda: os.kill(os.getpid(), signal.SIGINT)
    )
    with pytest.raises(KeyboardInterrupt):
        caller.query_function(("public", "wait_for_lock"), {"number": LOCK})
    thread.join()
    unlock(locked)
    assert caller.query_function(("public", "wait_for_lock"), {"number": LOCK}) == [("locked",)], (
        "the session goes on"
    )
