"""A run that ended early goes on where it stood, to the bits it would have had anyway.

What may end it is in `tests/chaos`, where all of that meets runs at any moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg2
import pytest
from models import NOISY
from processes import eventually
from roles import refused
from workbench import Workbench, compile_text

OPTIMIZERS = ("Adam(learning_rate=0.01)", "Adam(learning_rate=0.02)", "Adam(learning_rate=0.005)")
SEGMENTS, EPOCHS = 2, 3
RESUME = "SELECT cerebro.resume(%s)"
VISITS = len(OPTIMIZERS) * SEGMENTS * EPOCHS


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    prepare(bench)


@pytest.fixture
def other(bench: Workbench) -> Iterator[Workbench]:
    session = bench.another()
    yield session
    session.close()


def prepare(session: Workbench) -> None:
    """A packed table, and configurations whose visits are long enough to be interrupted."""
    session.pack("packed", SEGMENTS)
    session.configure(
        "noisy",
        [compile_text(o) for o in OPTIMIZERS],
        ["batch_size=1,epochs=8"],
        session.model(NOISY),
    )


def interrupted(
    session: Workbench, output: str, visits: int, end: Callable[[], object], **named: object
) -> int:
    """A run that is ended, by whatever `end` does, once it has completed so many visits."""
    watcher, before = session.another(), session.last_run_id()
    done = "SELECT count(*) FROM cerebro.visit WHERE run_id > %s AND status = 'completed'"
    with session.fitting(
        "packed", output, "noisy", EPOCHS, metrics_compute_frequency=1, **named
    ) as fitted:
        eventually(lambda: watcher.newest_run() > before and watcher.value(done, before) >= visits)
        run = watcher.newest_run()
        watcher.close()
        end()
        with pytest.raises(psycopg2.Error):
            fitted.result()
    return run


def cancel(bench: Workbench, pid: int) -> None:
    bench.rows("SELECT pg_cancel_backend(%s)", pid)


def resume(session: Workbench, run: int) -> None:
    session.rows(RESUME, run)


def check_models_so_far(session: Workbench, run: int, name: str) -> None:
    """Output tables of a run that is not completed: models that predict, numbers that the log
    has.
    """
    trained = (
        "SELECT DISTINCT mst_key FROM cerebro.visit WHERE run_id = %s AND status = 'completed'"
    )
    keys = [
        key
        for (key,) in session.rows(
            f"SELECT mst_key FROM {name} WHERE model_weights IS NOT NULL ORDER BY 1"
        )
    ]
    assert keys and {(key,) for key in keys} <= set(session.rows(trained, run))
    session.rows(
        f"SELECT madlib_predict('{name}', 'points', 'id', 'x', '{name}_p', 'response', mst_key => "
        f"{keys[0]})"
    )
    assert session.value(f"SELECT count(*) FROM {name}_p") == 96
    metric = (
        "SELECT value FROM cerebro.metric WHERE run_id = %s AND name = 'loss' AND mst_key = %s "
        "AND epoch = %s"
    )
    for key, epochs, losses in session.rows(
        f"SELECT mst_key, metrics_iters, training_loss FROM {name}_info CROSS JOIN {name}_summary"
        " WHERE training_loss IS NOT NULL"
    ):
        for epoch, loss in zip(epochs, losses, strict=False):
            assert session.value(metric, run, key, epoch) == loss


@pytest.mark.long
def test_models_of_a_run_that_goes_on_or_was_cancelled(bench: Workbench, other: Workbench) -> None:
    """They are written out while it goes on, which changes nothing of it."""
    write = "SELECT cerebro.write_outputs(%s, %s)"

    def end() -> None:
        bench.rows(write, bench.newest_run(), "meanwhile")
        cancel(bench, other.pid())

    run = interrupted(other, "half_done", 4, end)
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "cancelled"
    bench.rows(write, run, "afterwards")
    for name in ("meanwhile", "afterwards"):
        check_models_so_far(bench, run, name)
    finished = bench.value(
        "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = 'completed'", run
    )
    bench.rows("DROP TABLE meanwhile, meanwhile_info, meanwhile_summary")
    resume(bench, run)
    check_resumed(bench, run, "half_done", finished)


def check_resumed(session: Workbench, run: int, output: str, completed: int) -> None:
    """Its log looks like that of a run that was not disturbed, and so do its weights and
    metrics.
    """
    assert session.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "completed"
    logged = "SELECT count(*) FROM cerebro.visit WHERE run_id = %s AND status = %s"
    assert session.value(logged, run, "completed") == VISITS
    assert session.value(logged, run, "failed") <= 2, "visits that were under way"
    assert completed < VISITS
    metrics = "SELECT training_loss, training_metrics FROM {}_info ORDER BY mst_key"
    again = f"{output}_again"
    session.fit(
        "packed",
        again,
        "noisy",
        EPOCHS,
        schedule="replay",
        replay_run=run,
        metrics_compute_frequency=1,
    )
    assert session.weights(output) == session.weights(again)
    assert session.rows(metrics.format(output)) == session.rows(metrics.format(again))


@pytest.mark.long
def test_a_run_goes_on_that_was_killed_before_it_had_tables_for_its_states(
    bench: Workbench, other: Workbench
) -> None:
    run = interrupted(other, "tableless", 0, lambda: cancel(bench, other.pid()))
    untrained = """SELECT unnest(state_tables) FROM cerebro.config c WHERE run_id = %s
        AND NOT EXISTS (
                   SELECT FROM cerebro.visit v WHERE v.run_id = c.run_id
                       AND v.mst_key = c.mst_key)"""
    tables = [name for (name,) in bench.rows(untrained, run)]
    assert tables
    bench.rows(f"DROP TABLE IF EXISTS {', '.join(tables)}")
    resume(bench, run)
    assert bench.value("SELECT count(*) FROM tableless") == len(OPTIMIZERS)


def resume_and_cancel(bench: Workbench, run: int) -> None:
    """Let a run go on until a visit is under way, and no further."""
    session = bench.another()
    with session.calling(lambda: resume(session, run)) as resumed:
        running = "SELECT FROM cerebro.visit WHERE run_id = %s AND status = 'running'"
        eventually(lambda: bench.rows(running, run) or resumed.done())
        cancel(bench, session.pid())
        with pytest.raises(psycopg2.errors.QueryCanceled):
            resumed.result()
    session.close()


@pytest.mark.long
def test_it_may_be_interrupted_again_and_again(bench: Workbench) -> None:
    """More often than a visit may fail."""
    first = bench.another()
    run = interrupted(first, "often", 1, lambda: cancel(bench, first.pid()))
    first.close()
    for _ in range(4):
        resume_and_cancel(bench, run)
    resume(bench, run)
    assert (
        bench.value(
            "SELECT count(*) FROM cerebro.config WHERE run_id = %s AND status = 'completed'", run
        )
        == 3
    )


def test_what_cannot_go_on_is_refused(bench: Workbench) -> None:
    bench.configure("quick", [compile_text()])
    completed = bench.fit("packed", "complete", "quick", 1)
    for run, code in ((None, "22004"), (completed + 1000, "42704"), (completed, "55000")):
        assert refused(bench, RESUME, run, code=code).diag.message_hint


@pytest.mark.long
def test_a_run_that_is_dropped_leaves_its_outputs_only(
    bench: Workbench, other: Workbench, shared_superuser: Workbench
) -> None:
    before = bench.last_run_id()
    with other.fitting("packed", "dropped", "noisy", 1) as fitted:
        run = eventually(lambda: bench.newest_run() if bench.newest_run() > before else 0)
        with pytest.raises(psycopg2.errors.ObjectInUse):
            bench.rows("SELECT cerebro.drop_run(%s)", run)
        fitted.result()
    states = "SELECT name FROM cerebro.config, unnest(state_tables) name WHERE run_id = %s"
    tables = [name for (name,) in bench.rows(states, run)]
    assert tables
    bench.rows("SELECT cerebro.drop_run(%s)", run)
    assert not bench.exists(*tables)
    for log in ("run_log", "config_log", "visit", "evaluation", "metric"):
        assert not shared_superuser.rows(f"SELECT FROM cerebro.{log} WHERE run_id = %s", run)
    assert bench.value("SELECT count(*) FROM dropped") == len(OPTIMIZERS)
    with pytest.raises(psycopg2.errors.UndefinedObject):
        bench.rows("SELECT cerebro.drop_run(%s)", run)


@pytest.mark.long
def test_it_goes_on_over_the_table_that_it_began_with_only(
    bench: Workbench, other: Workbench
) -> None:
    run = interrupted(other, "moved", 1, lambda: cancel(bench, other.pid()))
    bench.rows("ALTER TABLE packed RENAME TO kept")
    bench.rows("ALTER TABLE packed_summary RENAME TO kept_summary")
    assert refused(bench, RESUME, run, code="42P01").diag.message_hint
    bench.rows("CREATE TABLE fewer AS SELECT * FROM points WHERE id > 8")
    bench.pack("packed", SEGMENTS, source="fewer")
    assert refused(bench, RESUME, run, code="55000", words="rows").diag.message_hint
    bench.rows("DROP TABLE packed, packed_summary")
    bench.rows("ALTER TABLE kept RENAME TO packed")
    bench.rows("ALTER TABLE kept_summary RENAME TO packed_summary")
    bench.rows("DROP TABLE noisy, noisy_summary")  # what it says is in the log
    with other.calling(lambda: resume(other, run)) as resumed:
        eventually(
            lambda: (
                bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "running"
            )
        )
        assert refused(bench, RESUME, run, code="55006").diag.message_hint  # one of two
        resumed.result()
    assert bench.value("SELECT count(model_weights) FROM moved") == len(OPTIMIZERS)
    names = bench.row(
        "SELECT source_table, model, model_selection_table, model_arch_table FROM moved_summary"
    )
    assert names == ("packed", "moved", "noisy", "models")
    bench.configure("noisy", [compile_text(o) for o in OPTIMIZERS], ["batch_size=1,epochs=8"], 2)
