"""madlib_keras_fit: one model, whose replicas train on all segments at once and are averaged after
each iteration.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import numpy as np
import psycopg2
import pytest
from models import NOISY, TWO_BY_TWO
from processes import eventually, trainers
from timings import fastest, remember
from workbench import ROWS, Workbench, compile_text

from cerebro_plpy.trainer_client.process.host_resources import threads_per_trainer

FIT_WORKERS = 1
SEGMENTS = 3
SGD = compile_text("SGD(learning_rate=0.5)")
ADAM = compile_text("Adam(learning_rate=0.01)")
FROZEN = compile_text("SGD(learning_rate=0.0)")
SUMMARY = """
source_table text, model text, dependent_varname text[], independent_varname text[],
    model_arch_table text,
model_id integer, compile_params text, fit_params text, num_iterations integer,
    validation_table text,
object_table text, metrics_compute_frequency integer, name text, description text, model_type text,
    model_size
double precision, start_training_time timestamp without time zone,
    end_training_time timestamp without time
zone, metrics_elapsed_time double precision[], madlib_version text, num_classes integer[],
    dependent_vartype
text[], normalizing_const real, metrics_type text[], loss_type text,
    training_metrics_final double precision,
training_loss_final double precision, training_metrics double precision[],
    training_loss double precision[],
validation_metrics_final double precision, validation_loss_final double precision,
    validation_metrics double
precision[], validation_loss double precision[], metrics_iters integer[], label_class_values text[]
"""


@pytest.fixture(scope="module", autouse=True)
def tables(bench: Workbench) -> int:
    """A packed table of as many rows on each segment, and a model with noise, of which the id is
    given.
    """
    bench.pack("packed", SEGMENTS)
    return bench.model(NOISY)


@pytest.fixture
def other(bench: Workbench) -> Iterator[Workbench]:
    session = bench.another()
    yield session
    session.close()


def fit(
    bench: Workbench,
    model: str,
    compiled: str,
    fitted: str = "batch_size=8",
    iterations: int = 2,
    source: str = "packed",
    model_id: int = 1,
    **named: object,
) -> int:
    """Train; the id of the run."""
    if not bench.greenplum:
        named.setdefault("workers", FIT_WORKERS)
    text = "".join(f", {name} => %s" for name in named)
    bench.rows(
        f"SELECT madlib_keras_fit(%s, %s, 'models', %s, %s, %s, %s{text})",
        source,
        model,
        model_id,
        compiled,
        fitted,
        iterations,
        *named.values(),
    )
    return bench.newest_run()


@pytest.fixture(scope="module")
def taken(bench: Workbench) -> int:
    """A run whose output is `taken`."""
    return fit(bench, "taken", ADAM, seed=2)


def weights(bench: Workbench, model: str) -> bytes:
    return bytes(bench.value(f"SELECT model_weights FROM {model}"))


def test_the_tables_are_madlibs(bench: Workbench) -> None:
    bench.messages()
    run = fit(
        bench,
        "told",
        ADAM,
        iterations=3,
        validation_table="packed",
        metrics_compute_frequency=2,
        name="a name",
        description="words",
        seed=1,
    )
    assert any(f"the mean of {SEGMENTS}" in message for message in bench.messages())
    assert bench.columns("told") == "model_weights bytea, model_arch json"
    wanted = " ".join(SUMMARY.split()) + ", run_id bigint, dtype_policy text, backend text"
    assert bench.columns("told_summary") == wanted
    row = bench.row(
        "SELECT num_iterations, metrics_iters, name, description, num_classes, label_class_values,"
        " metrics_type, loss_type, model_type, run_id FROM told_summary"
    )
    assert row == (
        3,
        [2, 3],
        "a name",
        "words",
        [3],
        ["high", "low", "middle"],
        ["accuracy"],
        "categorical_crossentropy",
        "madlib_keras",
        run,
    )
    size, losses, finals, times = bench.row(
        "SELECT model_size * 1024, training_loss, ARRAY[training_loss_final, "
        "validation_loss_final], metrics_elapsed_time FROM told_summary"
    )
    assert size == len(weights(bench, "told"))
    assert len(losses) == 2 and finals == [losses[-1]] * 2
    assert times == sorted(times) and len(times) == 2


@pytest.mark.long
def test_one_step_on_all_rows_of_each_segment_is_one_step_on_all(bench: Workbench) -> None:
    """The mean of the segments' gradients by rows is the gradient over all, so a step of plain SGD
    is the same.
    """
    bench.pack("thirds", SEGMENTS, buffer=ROWS)
    fit(bench, "stepped", SGD, f"batch_size={ROWS}", 1, source="thirds", seed=5)
    bench.pack("whole", 1, buffer=ROWS)
    fit(bench, "at_once", SGD, f"batch_size={ROWS}", 1, source="whole", seed=5)
    fit(bench, "still", FROZEN, f"batch_size={ROWS}", 1, seed=5)
    averaged, whole, first = (
        np.frombuffer(weights(bench, m), "<f4") for m in ("stepped", "at_once", "still")
    )
    assert np.abs(whole - first).max() > 1e-3
    np.testing.assert_allclose(averaged, whole, atol=2e-6)


@pytest.fixture(scope="module")
def hopped(bench: Workbench, tables: int) -> str:
    """A model of a run of the other function, over one segment."""
    bench.pack("alone", 1)
    bench.configure("hopping", [ADAM], ["batch_size=8"], tables)
    bench.fit("alone", "hopped", "hopping", 3, seed=9)
    return "hopped"


def test_over_one_segment_it_does_what_model_hopping_does(
    bench: Workbench, tables: int, hopped: str
) -> None:
    """Also the optimizer's state and the generators of noise go on from iteration to iteration."""
    bench.messages()
    fit(bench, "averaged", ADAM, iterations=3, source="alone", model_id=tables, seed=9)
    assert not any("the mean of" in message for message in bench.messages())
    assert weights(bench, "averaged") == bench.weights(hopped)[1]


def test_the_log_tells_of_replicas_and_means(bench: Workbench, taken: int) -> None:
    run = taken
    logged = bench.rows(
        "SELECT visit_no, epoch, kind, rows FROM cerebro.visit WHERE run_id = %s AND status = "
        "'completed' ORDER BY 1",
        run,
    )
    assert [row[:3] for row in logged] == [
        (1, 1, "train"),
        (2, 1, "train"),
        (3, 1, "train"),
        (4, 1, "average"),
        (5, 2, "train"),
        (6, 2, "train"),
        (7, 2, "train"),
        (8, 2, "average"),
    ]
    assert [rows for *_, kind, rows in logged if kind == "average"] == [ROWS, ROWS]
    begun = bench.rows(
        "SELECT kind, min(started_at), max(ended_at) FROM cerebro.timeline WHERE run_id = %s AND"
        " epoch = 1 AND kind <> 'evaluate' GROUP BY kind ORDER BY kind",
        run,
    )
    assert begun[0][1] >= begun[1][2], "the mean is made of what all have left"
    assert bench.row(
        "SELECT visits_done, visits_total, epoch FROM cerebro.progress WHERE run_id = %s", run
    ) == (
        6,
        6,
        2,
    )
    assert bench.value("SELECT epochs FROM cerebro.config WHERE run_id = %s", run) == 2
    states = (
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'cerebro_state'::regnamespace AND "
        "relname LIKE %s"
    )
    assert bench.value(states, f"r{run}\\_%") == 1, "only the newest mean is kept"


@pytest.mark.checklist(31)
def test_evaluate_and_predict_take_its_table(bench: Workbench, taken: int) -> None:
    bench.rows("SELECT madlib_keras_evaluate('taken', 'packed', 'taken_loss')")
    found = bench.row("SELECT loss, metric, metrics_type, loss_type FROM taken_loss")
    assert found == bench.row(
        "SELECT training_loss_final, training_metrics_final, metrics_type, loss_type FROM "
        "taken_summary"
    )
    bench.rows(
        "SELECT madlib_keras_predict('taken', 'points', 'id', 'x', 'taken_best', 'response')"
    )
    right = "SELECT avg((class_value = label)::integer) FROM taken_best JOIN points USING (id)"
    assert float(bench.value(right)) == pytest.approx(found[1])


def test_a_table_of_several_models_is_not_gone_on_from(bench: Workbench, hopped: str) -> None:
    with pytest.raises(psycopg2.errors.WrongObjectType, match="is not the output of this function"):
        fit(bench, hopped, ADAM, source="alone", warm_start=True)


def test_epochs_are_counted_on(bench: Workbench, taken: int) -> None:
    fit(bench, "one_and_one", ADAM, iterations=1, seed=2)
    fit(bench, "one_and_one", ADAM, iterations=1, seed=2, warm_start=True)
    assert weights(bench, "one_and_one") == weights(bench, "taken")


def test_warm_start_goes_on_with_the_same_table(bench: Workbench, taken: int) -> None:
    bench.rows("SELECT cerebro.write_outputs(%s, 'warm')", taken)
    before, loss = (
        weights(bench, "warm"),
        bench.value("SELECT training_loss_final FROM warm_summary"),
    )
    fit(bench, "warm", FROZEN, iterations=1, warm_start=True)
    assert weights(bench, "warm") == before
    assert bench.row("SELECT training_loss_final, count(*) OVER () FROM warm_summary") == (
        pytest.approx(loss),
        1,
    )


def test_outputs_can_be_written_again(bench: Workbench, taken: int) -> None:
    bench.rows("SELECT cerebro.write_outputs(%s, 'again')", taken)
    assert weights(bench, "again") == weights(bench, "taken")
    assert bench.value("SELECT model FROM again_summary") == "again"


@pytest.fixture
def one_form(bench: Workbench) -> None:
    """All runs train in the same form, whatever is measured meanwhile: no order of visits repeats
    them.
    """
    remember(bench, ADAM, 1, threads_per_trainer(2), fastest("graph_loop"))


@pytest.mark.long
@pytest.mark.usefixtures("one_form")
def test_a_cancelled_run_goes_on_to_the_same_bits(
    bench: Workbench, other: Workbench, tables: int
) -> None:
    slow = {
        "fitted": "batch_size=1,epochs=8",
        "iterations": 3,
        "model_id": tables,
        "seed": 3,
        "workers": 2,
    }
    fit(bench, "undisturbed", ADAM, **slow)  # type: ignore[arg-type]
    before = bench.last_run_id()
    done = "SELECT count(*) FROM cerebro.visit WHERE run_id > %s AND status = 'completed'"
    with other.calling(lambda: fit(other, "disturbed", ADAM, **slow)) as fitted:  # type: ignore[arg-type]
        eventually(
            lambda: bench.value(done, before) >= SEGMENTS + 2
        )  # in the midst of the second iteration
        bench.rows("SELECT pg_cancel_backend(%s)", other.pid())
        with pytest.raises(psycopg2.errors.QueryCanceled):
            fitted.result()
    assert not bench.exists("disturbed")
    bench.rows("SELECT cerebro.resume(%s)", bench.newest_run())
    assert weights(bench, "disturbed") == weights(bench, "undisturbed")


@pytest.mark.long
@pytest.mark.usefixtures("one_form")
def test_a_killed_trainer_changes_no_bit(bench: Workbench, other: Workbench, tables: int) -> None:
    slow = {
        "fitted": "batch_size=1,epochs=8",
        "iterations": 2,
        "model_id": tables,
        "seed": 6,
        "workers": 2,
    }
    fit(bench, "untouched", ADAM, **slow)  # type: ignore[arg-type]
    before = bench.last_run_id()
    running = (
        "SELECT worker_pid FROM cerebro.visit WHERE run_id > %s AND status = 'running' LIMIT 1"
    )
    with other.calling(lambda: fit(other, "touched", ADAM, **slow)) as fitted:  # type: ignore[arg-type]
        ((pid,),) = eventually(lambda: bench.rows(running, before))
        for trainer in trainers(bench.serving(pid)):
            os.kill(trainer, signal.SIGKILL)
        fitted.result()
    failed = "SELECT count(*) > 0 FROM cerebro.visit WHERE run_id > %s AND status = 'failed'"
    assert bench.value(failed, before)
    assert weights(bench, "touched") == weights(bench, "untouched")


def test_parameters_that_are_refused_are_told_with_their_text(bench: Workbench) -> None:
    with pytest.raises(psycopg2.Error) as refused:
        fit(bench, "o", "loss='mse'")
    assert refused.value.diag.message_detail == "Compile param check failed for: loss='mse'"


def test_no_order_of_visits_repeats_it(bench: Workbench, taken: int) -> None:
    bench.configure("to_replay", [ADAM])
    with pytest.raises(
        psycopg2.errors.InvalidParameterValue, match="which averages; no order of visits repeats it"
    ):
        bench.fit("packed", "o", "to_replay", 1, schedule="replay", replay_run=taken)


def test_several_inputs_and_outputs(bench: Workbench) -> None:
    """Numbers agree with those of evaluate, and predictions tell of each output."""
    bench.rows(
        "SELECT training_preprocessor_dl('points', 'two_packed', 'label, amount', 'x, pair', 8, "
        "n_segments => %s, seed => 3, dependent_type => 'class, float')",
        SEGMENTS,
    )
    losses = {"kind": "categorical_crossentropy", "size": "mean_squared_error"}
    compiled = f"optimizer='Adam()',loss={losses},metrics={{'kind': ['accuracy'], 'size': ['mae']}}"
    fit(
        bench,
        "two",
        compiled,
        source="two_packed",
        model_id=bench.model(json.dumps(TWO_BY_TWO)),
        seed=1,
    )
    bench.rows("SELECT madlib_keras_evaluate('two', 'two_packed', 'two_loss')")
    wanted = "SELECT training_loss_final, training_metrics_final, num_classes FROM two_summary"
    assert (*bench.row("SELECT loss, metric FROM two_loss"), [3, None]) == bench.row(wanted)
    bench.rows(
        "SELECT madlib_keras_predict('two', 'points', 'id', 'x, pair', 'two_told', 'response')"
    )
    assert bench.rows("SELECT class_name, count(*) FROM two_told GROUP BY 1 ORDER BY 1") == [
        ("amount", ROWS),
        ("label", ROWS),
    ]


def test_custom_functions(bench: Workbench, shared_superuser: Workbench, taken: int) -> None:
    """The same function under a name of its own gives the same bits."""
    source = (
        "import keras\ndef own_loss(y_true, y_pred): return "
        "keras.losses.categorical_crossentropy(y_true, y_pred)"
    )
    shared_superuser.rows(
        "SELECT madlib.load_custom_function('one_functions', %s::text, 'own_loss')", source
    )
    try:
        own = compile_text("Adam(learning_rate=0.01)", "own_loss")
        fit(bench, "owned", own, seed=2, object_table="one_functions")
        assert weights(bench, "owned") == weights(bench, "taken")
        with pytest.raises(
            psycopg2.Error,
            match="custom function 'own_loss' used in compile params but input object",
        ):
            fit(bench, "o", own)
    finally:
        shared_superuser.rows(
            "SELECT madlib.delete_custom_function('one_functions', 'own_loss'::text)"
        )
