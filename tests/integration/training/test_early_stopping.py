"""EarlyStopping among the callbacks: who gets no better ends early, in a run, its replay and one
that goes on.
"""

from __future__ import annotations

import psycopg2
import pytest
from processes import eventually
from roles import refused
from workbench import Workbench, compile_text

FIT_WORKERS = 1
FIT = "batch_size={size},callbacks=[EarlyStopping({arguments})]"
LEARNING, RESTING = compile_text("SGD(learning_rate=0.5)"), compile_text("SGD(learning_rate=0.0)")
EPOCHS, PATIENCE, SEGMENTS = 6, 2, 2
EPOCHS_OF = "SELECT mst_key, status, epochs FROM cerebro.config WHERE run_id = %s ORDER BY mst_key"


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> None:
    bench.pack("packed", SEGMENTS)
    bench.rows("SELECT validation_preprocessor_dl('points', 'held_back', 'label', 'x', 'packed')")
    text = FIT.format(size=8, arguments=f"patience={PATIENCE}, min_delta=1e-9")
    bench.configure("two", [LEARNING, RESTING], [text])


@pytest.fixture(scope="module")
def run(bench: Workbench) -> int:
    """A run of one configuration that learns, and one that never changes."""
    bench.messages()
    return bench.fit(
        "packed",
        "model",
        "two",
        EPOCHS,
        validation_table="held_back",
        metrics_compute_frequency=1,
        seed=1,
    )


def test_who_gets_no_better_ends_early(bench: Workbench, run: int) -> None:
    assert bench.rows(EPOCHS_OF, run) == [(1, "completed", EPOCHS), (2, "stopped", 1 + PATIENCE)]
    reason = bench.value("SELECT reason FROM cerebro.config WHERE run_id = %s AND mst_key = 2", run)
    assert reason == "EarlyStopping: val_loss did not get better since iteration 1"
    assert bench.value("SELECT status FROM cerebro.run WHERE run_id = %s", run) == "completed"
    assert bench.value("SELECT count(model_weights) FROM model") == 2
    lengths = "SELECT mst_key, cardinality(validation_loss) FROM model_info ORDER BY 1"
    assert bench.rows(lengths) == [(1, EPOCHS), (2, 1 + PATIENCE)]


def test_it_is_done_when_all_that_is_left_is_done(bench: Workbench, run: int) -> None:
    visits = SEGMENTS * (EPOCHS + 1 + PATIENCE)
    progress = (
        "SELECT visits_done, visits_total, configs_running, configs_failed FROM cerebro.progress "
        "WHERE run_id = %s"
    )
    assert bench.row(progress, run) == (visits, visits, 0, 0)


def test_every_iteration_is_told_of(bench: Workbench, run: int) -> None:
    said = "\n".join(bench.messages())
    for epoch in range(1, EPOCHS + 1):
        of_epoch = said.partition(f"Validation set after iteration {epoch}:")[2].partition(
            "Time for training"
        )[0]
        assert "mst_key=1:" in of_epoch and ("mst_key=2:" in of_epoch) == (epoch <= 1 + PATIENCE)


def test_a_replay_stops_where_the_run_did(bench: Workbench, run: int) -> None:
    more = {"validation_table": "held_back", "metrics_compute_frequency": 1}
    again = bench.fit("packed", "again", "two", EPOCHS, schedule="replay", replay_run=run, **more)
    assert bench.rows(EPOCHS_OF, again) == bench.rows(EPOCHS_OF, run)
    assert bench.weights("again") == bench.weights("model")


@pytest.mark.long
def test_who_ended_early_does_not_go_on_with_its_run(bench: Workbench) -> None:
    slow = FIT.format(size=1, arguments="monitor='loss', patience=1").replace(
        "size=1,", "size=1,epochs=30,"
    )
    bench.configure("slow", [RESTING, compile_text("SGD(learning_rate=0.001)")], [slow])
    before, caller = bench.last_run_id(), bench.another()
    ended = "SELECT FROM cerebro.config WHERE run_id > %s AND status = 'stopped'"
    with caller.fitting("packed", "halted", "slow", 8, metrics_compute_frequency=1) as fitted:
        eventually(lambda: bench.rows(ended, before))
        run = bench.newest_run()
        assert bench.value("SELECT cerebro.cancel(%s)", run)
        with pytest.raises(psycopg2.errors.QueryCanceled):
            fitted.result()
    caller.close()
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert bench.rows(EPOCHS_OF, run)[0] == (1, "stopped", 2)
    assert bench.value("SELECT count(model_weights) FROM halted") == 2


@pytest.mark.parametrize(
    ("monitor", "named"),
    [
        ("val_loss", {}),
        ("val_acc", {"validation_table": "held_back"}),
        ("loss", {"training_metrics": False}),
    ],
)
def test_what_is_not_computed_cannot_be_watched(
    bench: Workbench, monitor: str, named: dict[str, object]
) -> None:
    text = compile_text("SGD(learning_rate=0.1)").partition(",metrics")[0] + ",metrics=[]"
    bench.configure(
        f"wrong_{monitor}", [text], [FIT.format(size=8, arguments=f"monitor='{monitor}'")]
    )
    more = "".join(f", {name} => %s" for name in named)
    call = f"SELECT madlib_fit_multiple_model('packed', 'never', 'wrong_{monitor}', 2{more})"
    error = refused(bench, call, *named.values(), code="22023", words=monitor)
    assert "It computes" in str(error.diag.message_detail)


def test_metrics_that_come_too_late_are_told_of(bench: Workbench) -> None:
    bench.messages()
    bench.fit("packed", "late", "two", 2, validation_table="held_back")
    assert any("EarlyStopping stops nothing" in text for text in bench.messages())


def test_one_model_that_is_averaged_ends_early_too(bench: Workbench) -> None:
    fit = FIT.format(size=8, arguments="monitor='loss', patience=0")
    call = (
        "SELECT madlib_fit('packed', 'single', 'models', 1, %s, %s, 5, metrics_compute_frequency "
        "=> 1)"
    )
    bench.rows(call, RESTING, fit)
    assert bench.rows(EPOCHS_OF, bench.newest_run()) == [(1, "stopped", 2)]


@pytest.mark.long
def test_a_search_keeps_the_best_epoch(bench: Workbench) -> None:
    """Of those that end by themselves: its model is that of the epoch with the lowest loss."""
    stopping = "[EarlyStopping(monitor='loss', restore_best_weights=True)]"
    grid = repr({"batch_size": [8, 16], "callbacks": [stopping]})
    optimizers = "[{'optimizer': ['SGD'], 'lr': [0.1, 0.3, 1.0, 2.0, 3.0]}]"
    compiled = f"{{'loss': ['categorical_crossentropy'], 'optimizer_params_list': {optimizers}}}"
    call = (
        "SELECT madlib_automl('packed', 'best', 'models', 'selected', ARRAY[1], %s, %s, "
        "'hyperband', 'R=4, eta=2', random_state => 2, metrics_compute_frequency => 1)"
    )
    bench.rows(call, compiled, grid)
    told = "SELECT training_loss, training_loss_final FROM best_info JOIN selected USING (mst_key)"
    losses, final = bench.row(told)
    assert final == min(losses)
    bench.rows("SELECT madlib_evaluate('best', 'packed', 'best_again')")
    assert bench.value("SELECT loss FROM best_again") == pytest.approx(final, abs=1e-6)


WORSE = "monitor='loss', mode='max', patience=2, restore_best_weights=True"
"""The first epoch is the best, for the loss gets smaller."""
STATES = """
    SELECT count(*) FROM cerebro.config c, unnest(c.state_tables) name
    WHERE c.run_id = %s AND to_regclass(name) IS NOT NULL"""


@pytest.fixture(scope="module")
def restored(bench: Workbench) -> int:
    """A run whose models are those of its first epoch, and one that has no other."""
    learning = [compile_text("SGD(learning_rate=0.05)"), compile_text("Adam(learning_rate=0.01)")]
    bench.configure("plain", learning)
    bench.configure("worse", learning, [FIT.format(size=8, arguments=WORSE)])
    named = {"schedule": "rotation", "seed": 3, "metrics_compute_frequency": 1}
    bench.fit("packed", "first", "plain", 1, **named)
    return bench.fit("packed", "restored", "worse", EPOCHS, **named)


def test_the_model_is_that_of_the_best_epoch(bench: Workbench, restored: int) -> None:
    assert bench.rows(EPOCHS_OF, restored) == [(1, "stopped", 3), (2, "stopped", 3)]
    assert bench.weights("restored") == bench.weights("first")
    best = "SELECT best_epoch FROM cerebro.config WHERE run_id = %s"
    assert bench.rows(best, restored) == [(1,), (1,)]
    finals = "SELECT mst_key, training_loss_final, training_metrics_final FROM {} ORDER BY 1"
    assert bench.rows(finals.format("restored_info")) == bench.rows(finals.format("first_info"))
    lengths = (
        "SELECT DISTINCT cardinality(training_loss), training_loss_final = training_loss[1] FROM "
        "restored_info"
    )
    assert bench.rows(lengths) == [(3, True)]
    board = "SELECT rank, mst_key, value FROM cerebro.leaderboard WHERE run_id = %s ORDER BY 1"
    assert bench.rows(board, restored) == bench.rows(board, restored - 1)


def test_a_run_that_was_to_make_its_tables_only_goes_on(bench: Workbench, restored: int) -> None:
    """Its best states are kept by then, and the newest ones there still: it has not said that it is
    completed.
    """
    other, call = bench.another(), "SELECT cerebro.submit('packed', 'awaited', 'worse', %s, {})"
    named = {"schedule": "rotation", "seed": 3, "metrics_compute_frequency": 1, "workers": 1}
    other.rows(
        "BEGIN; CREATE TABLE awaited_info (taken integer)"
    )  # who makes another one waits for its end
    run = bench.value(
        call.format(", ".join(f"{name} => %s" for name in named)), EPOCHS, *named.values()
    )
    waits = (
        "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name "
        "LIKE '%background'"
    )
    eventually(lambda: bench.rows(waits))
    assert bench.rows(f"SELECT pg_terminate_backend(pid) FROM ({waits}) background") == [(True,)]
    other.rows("ROLLBACK")
    assert bench.value("SELECT cerebro.wait(%s)", run) == "interrupted"
    bench.rows("SELECT cerebro.resume(%s, background => true)", run)
    assert bench.value("SELECT cerebro.wait(%s)", run) == "completed"
    assert bench.weights("awaited") == bench.weights("first")
    assert bench.value(STATES, run) == 2, "those that are not needed any more are gone"
    other.close()


def test_its_state_is_the_only_one_that_stays(bench: Workbench, restored: int) -> None:
    assert bench.value(STATES, restored) == 2
    bench.rows("SELECT cerebro.write_outputs(%s, 'rewritten')", restored)
    assert bench.weights("rewritten") == bench.weights("first")
    bench.fit("packed", "first", "plain", 1, warm_start=True, seed=4, schedule="rotation")
    bench.fit("packed", "restored", "plain", 1, warm_start=True, seed=4, schedule="rotation")
    assert bench.weights("restored") == bench.weights("first"), "optimizers went on from there, too"
    bench.rows("SELECT cerebro.drop_run(%s)", restored)
    assert bench.value(STATES, restored) == 0


@pytest.mark.long
def test_the_best_state_is_there_whatever_comes_after_it(bench: Workbench) -> None:
    text = FIT.format(size=1, arguments=WORSE.replace("patience=2", "patience=30"))
    bench.configure(
        "lasting",
        [compile_text("SGD(learning_rate=0.001)")],
        [text.replace("size=1,", "size=1,epochs=30,")],
    )
    before, caller = bench.last_run_id(), bench.another()
    done = "SELECT FROM cerebro.metric WHERE run_id > %s AND epoch = 3"
    with caller.fitting(
        "packed", "lasted", "lasting", 6, metrics_compute_frequency=1, seed=5
    ) as fitted:
        eventually(lambda: bench.rows(done, before))
        run = bench.newest_run()
        bench.rows("SELECT cerebro.write_outputs(%s, 'meanwhile')", run)
        assert bench.value("SELECT cerebro.cancel(%s)", run)
        with pytest.raises(psycopg2.errors.QueryCanceled):
            fitted.result()
    caller.close()
    bench.rows("SELECT cerebro.resume(%s)", run)
    assert bench.row("SELECT status, best_epoch FROM cerebro.config WHERE run_id = %s", run) == (
        "completed",
        1,
    )
    assert bench.weights("lasted") == bench.weights("meanwhile")
    final = (
        "SELECT training_loss_final = training_loss[1], cardinality(training_loss) FROM lasted_info"
    )
    assert bench.row(final) == (True, 6)
    bench.rows("SELECT madlib_evaluate('lasted', 'packed', 'measured', mst_key => 1)")
    assert bench.value("SELECT loss FROM measured") == bench.value(
        "SELECT training_loss_final FROM lasted_info"
    )
