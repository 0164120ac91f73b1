"""One run after another through the client: replay, warm start, outputs again, every form of
prediction.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta

import pytest
import sqlalchemy as sa
from models import CLASSES
from servers import Database
from workbench import POINTS, ROWS, compile_text

import cerebro_db
from cerebro_db import errors

UNSEEN = "cannot be shown any more: the engine had no connection to spare"
FITS: list[dict[str, object] | str] = [{"batch_size": 8}, "batch_size=8, shuffle=False"]


@pytest.fixture(scope="module")
def session(shared_database: Database) -> Iterator[cerebro_db.Session]:
    with cerebro_db.connect(shared_database.url) as opened:
        with opened.engine.begin() as connection:
            connection.exec_driver_sql(POINTS)
            connection.exec_driver_sql('CREATE TABLE "odd %% :name" AS SELECT 1 AS "a %% b"')
        opened.load_model(CLASSES, "models")
        opened.pack("points", "packed", "label", "x", n_segments=2, seed=7, buffer_size=8)
        compiles = [compile_text("SGD(learning_rate=0.05,momentum=0.9)")]
        opened.combine_configs("models", "configs", [1], compiles, FITS)
        opened.combine_configs("models", "single", [1], compiles, FITS[:1])
        yield opened


@pytest.fixture(scope="module")
def original(session: cerebro_db.Session) -> int:
    return session.fit("packed", "original", "configs", 2, name="original", workers=1)


def weights(session: cerebro_db.Session, table: str) -> dict[int, bytes]:
    return {row["mst_key"]: bytes(row["model_weights"]) for row in session.rows(table)}


@pytest.mark.long
def test_a_replay_gives_the_same_bits(
    session: cerebro_db.Session, original: int, capsys: pytest.CaptureFixture[str]
) -> None:
    run = session.fit(
        "packed", "again", "configs", 2, schedule="replay", replay_run=original, progress=True
    )
    assert run > original
    assert weights(session, "again") == weights(session, "original")
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"run {run} completed, epoch 2 of 2, visit 8 of 8"), (
        "it shows the new run, not the old"
    )


@pytest.mark.long
def test_a_run_in_the_background(session: cerebro_db.Session, original: int) -> None:
    run = session.submit("packed", "later", "configs", 1)
    assert session.wait(run) == "completed"
    assert not session.cancel_run(run)
    assert weights(session, "later").keys() == weights(session, "original").keys()
    assert session.vacuum_runs(timedelta(days=1)) == 0
    with pytest.raises(errors.ObjectNotReady, match="is completed"):
        session.resume(run, background=True)
    endless = session.submit(
        "packed", "endless", "configs", 100_000, max_attempts=1, max_runtime=timedelta(hours=9)
    )
    assert session.wait(endless, timedelta(milliseconds=50)) == "running"
    assert session.cancel_run(endless)
    assert session.wait(endless) == "cancelled"
    session.drop_run(endless)


@pytest.mark.long
def test_outputs_can_be_written_again(session: cerebro_db.Session, original: int) -> None:
    session.write_outputs(original, "copied")
    assert weights(session, "copied") == weights(session, "original")
    with pytest.raises(errors.DuplicateTable):
        session.write_outputs(original, "copied")
    with pytest.raises(errors.UndefinedObject) as caught:
        session.write_outputs(original + 1000, "nothing")
    assert caught.value.sqlstate == "42704" and caught.value.hint


@pytest.mark.long
def test_a_warm_start_goes_on(session: cerebro_db.Session, original: int) -> None:
    session.write_outputs(original, "warm")
    first = session.fit("packed", "warm", "configs", 1, warm_start=True)
    assert session.rows("warm_summary")[0]["run_id"] == first
    assert weights(session, "warm").keys() == weights(session, "original").keys()
    assert weights(session, "warm") != weights(session, "original")


def test_every_form_of_prediction(session: cerebro_db.Session, original: int) -> None:
    best = session.leaderboard(original).frame().mst_key[0]  # a number of numpy's
    assert session.learning_curve(session.runs().frame().run_id.max())
    forms: tuple[str | int | float, ...] = ("prob", "response", 2, 0.5)
    for number, form in enumerate(forms):
        session.madlib_predict(
            "original", "points", "id", "x", f"form_{number}", mst_key=best, pred_type=form
        )
    everything = session.rows("form_0").frame()
    assert len(everything) == 3 * ROWS and everything.groupby("id").prob.sum().round(5).eq(1).all()
    assert "rank" not in session.rows("form_1").columns and len(session.rows("form_1")) == ROWS
    two = session.rows("form_2").frame()
    assert len(two) == 2 * ROWS and set(two["rank"]) == {1, 2}
    sure = session.rows("form_3").frame()
    assert len(sure) == int((everything.prob > 0.5).sum())


def test_an_evaluation_is_that_of_the_leaderboard(
    session: cerebro_db.Session, original: int
) -> None:
    standing = session.leaderboard(original)[0]
    session.madlib_evaluate("original", "packed", "evaluated", mst_key=standing.mst_key)
    (row,) = session.rows("evaluated")
    assert (row["metric"], row["metrics_type"]) == (standing.value, [standing.metric])


def test_tables_are_named_as_in_sql(session: cerebro_db.Session) -> None:
    assert session.rows('"odd % :name"') == session.rows('public."odd % :name"') == [{"a % b": 1}]
    with pytest.raises(errors.UndefinedTable) as caught:
        session.rows("Nowhere")
    assert caught.value.hint
    with pytest.raises(errors.InvalidName):
        session.rows("points; DROP TABLE points")


def test_a_model_can_be_deleted(session: cerebro_db.Session) -> None:
    session.load_model(CLASSES, "doomed")
    session.delete_model("doomed", 1)
    with pytest.raises(errors.UndefinedTable):
        session.rows("doomed")


def test_reports(session: cerebro_db.Session, shared_database: Database) -> None:
    assert session.versions()["extension"] == session.versions()["package"]
    for framework in ("none", "jax"):
        assert session.trainer_report(framework)["framework"] == framework
    assert session.worker_report()["user"] == sa.make_url(shared_database.url).username
    with pytest.raises(errors.InsufficientPrivilege):
        session.grant_usage("postgres")
    with cerebro_db.connect(shared_database.superuser_url) as administrator:
        administrator.grant_usage("pg_monitor")
        query = (
            "SELECT has_function_privilege('pg_monitor', 'cerebro.write_outputs(bigint, text)', "
            "'execute')"
        )
        with administrator.engine.connect() as connection:
            assert connection.exec_driver_sql(query).scalar_one()


@pytest.mark.long
def test_a_bar_that_cannot_look_does_not_end_the_fit(
    shared_database: Database, original: int, capsys: pytest.CaptureFixture[str]
) -> None:
    address = sa.make_url(shared_database.url).set(drivername="postgresql+psycopg2")
    engine = sa.create_engine(address, pool_size=1, max_overflow=0, pool_timeout=0.1)
    taken: list[sa.Connection] = []

    printed: list[str] = []

    def occupy(message: str) -> None:
        """From the first message, that a run begins, until the bar has said that it cannot look,
        no connection is left.
        """
        if not taken:
            taken.append(engine.connect())
        printed.append(capsys.readouterr().out)
        if UNSEEN in "".join(printed):
            taken[0].close()

    with cerebro_db.connect(engine, on_notice=occupy) as session:
        run = session.fit("packed", "alone", "configs", 100, progress=True)
        assert session.progress(run).status == "completed"
    engine.dispose()
    assert UNSEEN in "".join(printed)


PROGRAM = """
import sys
import cerebro_db

with cerebro_db.connect(sys.argv[1]) as session:
    try:
        session.fit("packed", "endless", "single", 100000)
    except KeyboardInterrupt:
        print("interrupted:", session.runs()[0].status)
"""


def test_a_terminal_shows_a_bar_and_ctrl_c_cancels(
    shared_database: Database, original: int
) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-c", PROGRAM, shared_database.url]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as fitting:
        os.close(theirs)
        shown = until(ours, "visit 1")
        fitting.send_signal(signal.SIGINT)
        shown += until(ours, "interrupted: cancelled")
        assert fitting.wait() == 0
    os.close(ours)
    assert "━" in shown


def until(terminal: int, text: str) -> str:
    """What a terminal shows until it shows this text; an OSError where it ends before."""
    shown = b""
    while text.encode() not in shown:
        shown += os.read(terminal, 65536)
    return shown.decode(errors="replace")
