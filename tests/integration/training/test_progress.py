"""What others can see of a run while it goes on, and what its caller is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg2
import pytest
from processes import eventually
from workbench import Row, Workbench, compile_text, several, superuser

EPOCHS = 3
VIEWS = ("run", "progress", "leaderboard", "timeline", "learning_curve")
ROLE = "somebody_else"


@dataclass
class Watched:
    """A run, and what another session read of it in between."""

    run_id: int = 0
    messages: list[str] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)
    progress: list[dict[str, Any]] = field(default_factory=list)
    boards: list[list[Row]] = field(default_factory=list)
    open_intervals: int = 0
    curves: list[int] = field(default_factory=list)


@pytest.fixture(scope="module")
def watched(bench: Workbench) -> Watched:
    """A run of three configs, two segments and three epochs, read all the time by another
    session.
    """
    bench.pack("watched_packed", 2)
    bench.configure("watched_configs", several(3), ["batch_size=1,epochs=4"])
    bench.messages()
    before, watcher = bench.last_run_id(), bench.another()
    seen = Watched()

    def look() -> bool:
        run = seen.run_id
        progress = watcher.rows("SELECT to_jsonb(p) FROM cerebro.progress p WHERE run_id = %s", run)
        seen.progress.extend(row for (row,) in progress)
        statuses = watcher.rows("SELECT status FROM cerebro.config WHERE run_id = %s", run)
        seen.statuses.extend(status for (status,) in statuses)
        seen.boards.append(board(watcher, run))
        unfinished = "SELECT count(*) FROM cerebro.timeline WHERE run_id = %s AND ended_at IS NULL"
        seen.open_intervals += watcher.value(unfinished, run)
        seen.curves.append(
            watcher.value("SELECT count(*) FROM cerebro.learning_curve WHERE run_id = %s", run)
        )
        return fitting.done()

    with bench.fitting(
        "watched_packed",
        "watched",
        "watched_configs",
        EPOCHS,
        workers=2,
        name="the name",
        metrics_compute_frequency=1,
    ) as fitting:
        seen.run_id = eventually(lambda: newer(watcher, before))
        eventually(look)
        fitting.result()
    watcher.close()
    seen.messages = bench.messages()
    return seen


def newer(watcher: Workbench, run_before: int) -> int:
    """The run that began after another one; 0 while there is none."""
    return int(
        watcher.value(
            "SELECT coalesce(max(run_id), 0) FROM cerebro.run WHERE run_id > %s", run_before
        )
    )


def board(session: Workbench, run_id: int) -> list[Row]:
    """The leaderboard of a run."""
    return session.rows(
        "SELECT * FROM cerebro.leaderboard WHERE run_id = %s ORDER BY rank, mst_key", run_id
    )


@pytest.mark.long
def test_visits_are_counted_while_they_are_made(watched: Watched) -> None:
    done = [row["visits_done"] for row in watched.progress]
    assert done == sorted(done)
    assert any(0 < count < 18 for count in done), "the run can be seen in the middle"
    assert {row["visits_total"] for row in watched.progress} == {18}
    epochs = [row["epoch"] for row in watched.progress]
    assert epochs == sorted(epochs) and set(epochs) <= {1, 2, 3}


@pytest.mark.long
def test_a_run_that_goes_on_says_how_long_it_will_take(watched: Watched) -> None:
    going = [
        row for row in watched.progress if row["status"] == "running" and row["visits_done"] > 0
    ]
    assert going and all(row["eta"] is not None for row in going)
    shares = [row["share"] for row in watched.progress]
    assert all(0 <= share <= 1 for share in shares) and shares[-1] == 1
    assert all(
        (row["owner"], row["name"], row["epochs"]) == ("cerebro", "the name", EPOCHS)
        for row in going
    )


def test_a_run_goes_from_phase_to_phase(watched: Watched) -> None:
    phases = [row["phase"] for row in watched.progress if row["status"] == "running"]
    order = [None, "starting trainers", "compiling", "training"]
    assert phases == sorted(phases, key=order.index) and "training" in phases


def test_configs_go_from_waiting_over_running_to_completed(watched: Watched) -> None:
    assert set(watched.statuses) <= {"waiting", "running", "completed"}
    assert "running" in watched.statuses
    assert any(row["configs_running"] > 0 for row in watched.progress)


def test_visits_under_way_are_in_the_timeline(watched: Watched) -> None:
    assert watched.open_intervals > 0


def test_the_learning_curve_grows(watched: Watched) -> None:
    assert watched.curves == sorted(watched.curves)
    assert any(0 < count < 3 * EPOCHS * 2 for count in watched.curves)


def test_the_best_config_is_known_before_the_end(bench: Workbench, watched: Watched) -> None:
    known = [
        row
        for row in watched.progress
        if row["best_mst_key"] is not None and row["status"] == "running"
    ]
    assert known
    last = bench.value(
        "SELECT to_jsonb(p) FROM cerebro.progress p WHERE run_id = %s", watched.run_id
    )
    best = max(
        bench.rows(
            "SELECT a.value, -l.value, -a.mst_key FROM cerebro.learning_curve a JOIN "
            "cerebro.learning_curve l USING (run_id, epoch, mst_key, dataset) WHERE a.run_id = %s "
            "AND a.epoch = %s AND a.name = 'accuracy' AND l.name = 'loss'",
            watched.run_id,
            EPOCHS,
        )
    )
    assert (last["best_value"], last["best_mst_key"]) == (best[0], -best[2])
    assert (last["status"], last["visits_done"], last["visits_total"], last["eta"]) == (
        "completed",
        18,
        18,
        None,
    )
    assert (last["configs_running"], last["configs_failed"], last["epoch"]) == (0, 0, EPOCHS)


def test_the_leaderboard_is_in_order(bench: Workbench, watched: Watched) -> None:
    assert any(len(rows) == 3 for rows in watched.boards)
    rows = bench.rows(
        "SELECT rank, value, metric, dataset, epochs, status, training_time > interval '0', "
        "params ->> 'fit_params' FROM cerebro.leaderboard WHERE run_id = %s ORDER BY rank, "
        "mst_key",
        watched.run_id,
    )
    values = [row[1] for row in rows]
    assert values == sorted(values, reverse=True)
    assert [row[0] for row in rows] == [*range(1, len(values) + 1)]
    assert {row[2:] for row in rows} == {
        ("accuracy", "training", EPOCHS, "completed", True, "batch_size=1,epochs=4")
    }


def test_the_caller_is_told_the_run_s_number_first(watched: Watched) -> None:
    assert re.match(
        rf"INFO:  run {watched.run_id}: 3 configurations, 2 segments, 3 iterations",
        watched.messages[0],
    )


@pytest.mark.checklist(46)
def test_each_epoch_is_told_with_its_numbers(bench: Workbench, watched: Watched) -> None:
    told = [message for message in watched.messages if "Time for training" in message]
    assert len(told) == EPOCHS
    for epoch, message in enumerate(told, 1):
        lines = message.removeprefix("INFO:  ").splitlines()
        assert re.fullmatch(rf"Time for training in iteration {epoch}: \d+\.\d+ sec", lines[0])
        assert f"Training set after iteration {epoch}:" in lines
        for mst_key, loss, metric in bench.rows(
            "SELECT mst_key, max(value) FILTER (WHERE name = 'loss'), max(value) FILTER (WHERE "
            "name = 'accuracy') FROM cerebro.learning_curve WHERE run_id = %s AND epoch = %s "
            "GROUP BY mst_key",
            watched.run_id,
            epoch,
        ):
            assert f"mst_key={mst_key}: metric={metric}, loss={loss}" in lines
        assert re.search(r"Best so far: mst_key=\d+, training accuracy=[\d.]+", lines[-1])


def test_an_epoch_without_metrics_is_told_with_its_training_losses(bench: Workbench) -> None:
    bench.pack("told_packed", 2)
    bench.configure("told_configs", several(2), ["batch_size=8", "batch_size=1,epochs=2"])
    bench.messages()
    run_id = bench.fit("told_packed", "told", "told_configs", 3, workers=2)
    told = [message for message in bench.messages() if "Time for training" in message]
    assert len(told) == 3
    for epoch, message in enumerate(told[:2], 1):
        for mst_key, loss in bench.rows(
            "SELECT mst_key, sum(rows * loss) / sum(rows) FROM cerebro.visit WHERE run_id = %s "
            "AND epoch = %s GROUP BY mst_key",
            run_id,
            epoch,
        ):
            (said,) = re.findall(rf"^mst_key={mst_key}: loss=(\S+)$", message, re.MULTILINE)
            assert float(said) == pytest.approx(loss), (
                "also of configs that are epochs ahead by then"
            )


def test_with_a_validation_set_that_is_what_ranks(bench: Workbench, watched: Watched) -> None:
    bench.rows(
        "SELECT validation_preprocessor_dl('points', 'ranked_held', 'label', 'x', 'watched_packed')"
    )
    bench.configure(
        "ranked_configs",
        [compile_text(metrics=[]), compile_text("SGD(learning_rate=0.001)", metrics=[])],
    )
    bench.messages()
    run_id = bench.fit(
        "watched_packed", "ranked", "ranked_configs", 2, workers=2, validation_table="ranked_held"
    )
    rows = bench.rows(
        "SELECT dataset, metric, value FROM cerebro.leaderboard WHERE run_id = %s ORDER BY rank",
        run_id,
    )
    assert {row[:2] for row in rows} == {("validation", "loss")}
    assert rows[0][2] < rows[1][2], "a smaller loss is better"
    (last,) = [
        message for message in bench.messages() if "Validation set after iteration 2:" in message
    ]
    assert "Training set after iteration 2:" in last
    assert f"validation loss={rows[0][2]}" in last


@pytest.fixture
def somebody(bench: Workbench) -> Iterator[Workbench]:
    """A session of another role, which may do nothing yet."""
    session = superuser(bench)
    session.rows(
        f"DROP OWNED BY {ROLE}"
        if session.rows("SELECT FROM pg_roles WHERE rolname = %s", ROLE)
        else f"CREATE ROLE {ROLE}"
    )
    yield session
    session.rows("RESET ROLE")
    session.rows(f"DROP OWNED BY {ROLE}")
    session.rows(f"DROP ROLE {ROLE}")
    session.close()


def test_a_role_that_was_granted_nothing_sees_nothing(
    somebody: Workbench, watched: Watched
) -> None:
    somebody.rows(f"SET ROLE {ROLE}")
    for view in VIEWS:
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            somebody.rows(f"SELECT FROM cerebro.{view}")


def test_a_user_sees_only_runs_of_roles_it_has(somebody: Workbench, watched: Watched) -> None:
    somebody.rows(f"SELECT cerebro.grant_usage('{ROLE}')")
    somebody.rows(f"SET ROLE {ROLE}")
    for view in (*VIEWS, "run_log", "config", "visit", "evaluation", "metric"):
        assert somebody.rows(f"SELECT FROM cerebro.{view}") == [], view
    somebody.rows("RESET ROLE")
    somebody.rows(f"GRANT cerebro TO {ROLE}")
    somebody.rows(f"SET ROLE {ROLE}")
    for view in VIEWS:
        assert somebody.rows(f"SELECT FROM cerebro.{view} WHERE run_id = %s", watched.run_id), view


def test_a_user_cannot_write_into_another_s_run(somebody: Workbench, watched: Watched) -> None:
    somebody.rows(f"SELECT cerebro.grant_usage('{ROLE}')")
    somebody.rows(f"SET ROLE {ROLE}")
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        somebody.rows(
            "INSERT INTO cerebro.metric VALUES (%s, 1, 99, 'training', 'accuracy', 1.0)",
            watched.run_id,
        )
    somebody.rows("UPDATE cerebro.config_log SET status = 'failed'")
    somebody.rows("RESET ROLE")
    assert somebody.rows(
        "SELECT DISTINCT status FROM cerebro.config WHERE run_id = %s", watched.run_id
    ) == [("completed",)]


def test_a_superuser_that_became_a_user_trains_as_that_user(
    bench: Workbench, watched: Watched
) -> None:
    session = superuser(bench)
    session.rows("SET ROLE cerebro")
    run_id = session.fit("watched_packed", "became", "ranked_configs", 1, workers=1)
    workers = session.rows(
        "SELECT DISTINCT usename FROM pg_stat_activity"
        " WHERE pid IN (SELECT worker_pid FROM cerebro.visit WHERE run_id = %s)",
        run_id,
    )
    session.close()
    assert workers == [("cerebro",)]
    assert bench.value("SELECT owner FROM cerebro.run WHERE run_id = %s", run_id) == "cerebro"
    assert (
        bench.value("SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'became'::regclass")
        == "cerebro"
    )


@pytest.mark.long
def test_two_sessions_train_on_the_same_table_at_once(bench: Workbench, watched: Watched) -> None:
    other = bench.another()
    alike = {"workers": 1, "seed": 1, "schedule": "rotation"}
    with other.fitting("watched_packed", "beside", "watched_configs", 1, **alike) as beside:
        bench.fit("watched_packed", "mine", "watched_configs", 1, **alike)
        beside.result()
    other.close()
    mine, theirs = (
        bench.value(f"SELECT run_id FROM {name}_summary") for name in ("mine", "beside")
    )
    assert mine != theirs
    assert bench.value(
        "SELECT bool_and(m.model_weights = b.model_weights) FROM mine m JOIN beside b USING "
        "(mst_key)"
    )
    assert (
        bench.value("SELECT count(*) FROM cerebro.visit WHERE run_id IN (%s, %s)", mine, theirs)
        == 2 * 3 * 2
    )
