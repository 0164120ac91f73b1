"""What MADlib's users expect of training, evaluation and prediction: rows 19 to 34 of the checklist."""

from __future__ import annotations

from array import array
from typing import Any

import keras
import madlib_job
import numpy as np
import psycopg2
import pytest
from madlib_job import COMPILE, KEYS, SEGMENTS, TOLERANCE, configure, network, stored
from models import CLASSES
from packed import buffers
from workbench import Workbench

RATE = 0.05
ORDERED = "batch_size=8,shuffle=False"
LABELS = ["high", "low", "middle"]
# One configuration after eight steps of SGD, whose sums two programs take in other orders.
WEIGHTS_TOLERANCE = 1e-6


@pytest.fixture(scope="module", autouse=True)
def job(bench: Workbench) -> None:
    madlib_job.build(bench)
    configure(bench, "steady", COMPILE.format("SGD", RATE), fit=ORDERED)


def order(bench: Workbench, run: int) -> list[tuple[Any, ...]]:
    """The visits of a run, config by config."""
    query = "SELECT mst_key, epoch, visit_no, segment_id FROM cerebro.visit WHERE run_id = %s ORDER BY 1, 3"
    return bench.rows(query, run)


@pytest.mark.parametrize("models", [SEGMENTS - 1, SEGMENTS, SEGMENTS + 2])
def test_19_every_model_sees_every_partition_once_per_iteration(bench: Workbench, models: int) -> None:
    configure(bench, f"mst_{models}", *(COMPILE.format("SGD", 0.01 * n) for n in range(1, models + 1)))
    run = bench.fit("packed", f"by_{models}", f"mst_{models}", 2)
    segments = [key for (key,) in bench.rows("SELECT DISTINCT __dist_key__ FROM packed ORDER BY 1")]
    assert len(segments) == SEGMENTS
    seen = sorted((key, epoch, segment) for key, epoch, _, segment in order(bench, run))
    assert seen == [(key, epoch, s) for key in range(1, models + 1) for epoch in (1, 2) for s in segments]


def test_20_iterations_times_epochs_are_passes(bench: Workbench) -> None:
    """Over one segment, in a fixed order of rows, it does not matter which of the two says how often."""
    bench.pack("single_packed", 1)
    found = set()
    for iterations, epochs in ((4, 1), (2, 2), (1, 4)):
        configure(bench, f"passes_{epochs}", COMPILE.format("SGD", RATE), fit=f"{ORDERED},epochs={epochs}")
        bench.fit("single_packed", f"of_{epochs}_passes", f"passes_{epochs}", iterations, seed=2)
        found.add(bench.weights(f"of_{epochs}_passes")[1])
    assert len(found) == 1


def test_21_training_is_sequential_sgd_with_and_without_caching(bench: Workbench) -> None:
    """Keras by itself, over the same buffers in the order of the visits, comes to the same weights."""
    start = keras.models.model_from_json(CLASSES)
    start.compile(keras.optimizers.SGD(RATE), "categorical_crossentropy")
    flat = b"".join(w.astype("<f4").tobytes() for w in start.get_weights())
    bench.rows("SELECT load_keras_model('models', %s::json, %s)", CLASSES, psycopg2.Binary(flat))
    loaded = int(bench.value("SELECT max(model_id) FROM models"))
    configure(bench, "from_start", COMPILE.format("SGD", RATE), fit=ORDERED, model=loaded)
    runs = [
        bench.fit("packed", f"cached_{said}", "from_start", 2, use_caching=said, schedule="rotation", seed=1)
        for said in (True, False)
    ]
    for _, _, _, segment in order(bench, runs[0]):
        for buffer in buffers(bench, "packed", x="<f4", label="<i2"):
            if buffer.segment == segment:
                start.fit(buffer.arrays[0], buffer.arrays[1].astype(np.float32), 8, shuffle=False, verbose=0)
    ours = stored(bench, "cached_true", 1).get_weights()
    for mine, theirs in zip(ours, start.get_weights(), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=WEIGHTS_TOLERANCE)
    assert bench.weights("cached_true") == bench.weights("cached_false")


def test_22_warm_start_goes_by_mst_key(bench: Workbench) -> None:
    """Known keys go on, of which one learns nothing and keeps its loss; new ones begin, others disappear."""
    configure(bench, "continued", *(COMPILE.format("SGD", rate) for rate in (0.01, 0.02, 1e-30)), fit=ORDERED)
    with pytest.raises(psycopg2.errors.UndefinedTable):
        bench.fit("packed", "grown", "continued", 1, warm_start=True)
    losses = "SELECT mst_key, training_loss_final FROM grown_info ORDER BY 1"
    bench.rows("UPDATE continued SET mst_key = 10 WHERE mst_key = 2")
    bench.fit("packed", "grown", "continued", 2, seed=1, schedule="rotation")
    before = bench.weights("grown")
    first: dict[int, float] = dict(bench.rows(losses))
    bench.rows("UPDATE continued SET mst_key = 20 WHERE mst_key = 10")
    bench.fit("packed", "grown", "continued", 1, seed=1, schedule="rotation", warm_start=True)
    after = bench.weights("grown")
    second: dict[int, float] = dict(bench.rows(losses))
    assert before.keys() == {1, 3, 10} and after.keys() == {1, 3, 20}
    assert second[3] == first[3]
    bench.fit("packed", "at_once", "continued", 3, seed=1, schedule="rotation")
    assert after[1] == bench.weights("at_once")[1] != before[1]
    bench.fit("packed", "fresh", "continued", 1, seed=1, schedule="rotation")
    assert after[20] == bench.weights("fresh")[20]


def test_23_weights_of_the_architecture_table_are_the_start(bench: Workbench) -> None:
    given = array("f", [n / 100 for n in range(1, 5 * 8 + 9 * 3 + 1)]).tobytes()
    bench.rows("SELECT load_keras_model('models', %s::json, %s)", CLASSES, psycopg2.Binary(given))
    loaded = int(bench.value("SELECT max(model_id) FROM models"))
    configure(bench, "transferred_mst", COMPILE.format("SGD", 1e-30), model=loaded)
    bench.fit("packed", "transferred", "transferred_mst", 1, warm_start=False)
    assert bench.weights("transferred") == {1: given}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(("packed", "kind"), [("packed", "training"), ("packed_val", "validation")])
def test_24_evaluating_gives_the_final_numbers(bench: Workbench, key: int, packed: str, kind: str) -> None:
    output = f"again_{kind}_{key}"
    bench.rows(f"SELECT madlib_keras_evaluate('model', '{packed}', '{output}', FALSE, {key})")
    final = bench.row(f"SELECT {kind}_loss_final, {kind}_metrics_final FROM model_info WHERE mst_key = %s", key)
    assert bench.row(f"SELECT loss, metric FROM {output}") == pytest.approx(final, abs=TOLERANCE)


def test_25_a_fixed_visit_order(bench: Workbench) -> None:
    """MADlib has one fixed order; here it is the schedule `rotation`, and with a seed the weights are fixed, too."""
    orders, weights = set(), set()
    for number in (1, 2):
        run = bench.fit("packed", f"ordered_{number}", "mst", 2, schedule="rotation", seed=9)
        orders.add(tuple(order(bench, run)))
        weights.add(tuple(sorted(bench.weights(f"ordered_{number}").items())))
    assert (len(orders), len(weights)) == (1, 1)


def test_26_a_loss_that_is_no_number_does_not_stop_the_others(bench: Workbench) -> None:
    configure(bench, "diverging", COMPILE.format("SGD", 1e38), COMPILE.format("SGD", RATE))
    run = bench.fit("packed", "diverged", "diverging", 1)
    assert [key for (key,) in bench.rows("SELECT mst_key FROM diverged_info ORDER BY 1")] == [1, 2]
    assert bench.rows("SELECT mst_key FROM diverged_info WHERE training_loss_final > 0") == [(2,)]
    reason = bench.value("SELECT reason FROM cerebro.config WHERE run_id = %s AND status = 'failed'", run)
    assert "nan" in reason or "inf" in reason


def test_27_nothing_stays_but_the_logged_tables(bench: Workbench) -> None:
    # Greenplum shows how many statements the session has run as if that were a setting.
    session = "SELECT name, setting FROM pg_settings WHERE name NOT IN ('application_name', 'gp_command_count')"
    relations = (
        "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'v', 'S')"
        " AND relnamespace::regnamespace::text !~ '^(cerebro|pg_catalog|pg_toast$|information_schema)'"
    )
    settings, before = set(bench.rows(session)), set(bench.rows(relations))
    bench.fit("packed", "left", "mst", 1)
    made = {name for (name,) in set(bench.rows(relations)) - before}
    assert made == {"left", "left_info", "left_summary", "left_state"}
    assert set(bench.rows(session)) == settings
    assert bench.rows("SELECT DISTINCT relpersistence::text FROM pg_class WHERE relname = ANY (%s)", sorted(made)) == [
        ("p",)
    ]


def test_28_evaluation_is_one_row(bench: Workbench) -> None:
    bench.rows("SELECT madlib_keras_evaluate('model', 'packed_val', 'score', FALSE, %s)", KEYS[0])
    assert bench.columns("score") == (
        "loss double precision, metric double precision, metrics_type text[], loss_type text"
    )
    loss, metric, metrics_type, loss_type = bench.row("SELECT * FROM score")
    assert loss > 0 and 0 <= metric <= 1
    assert (metrics_type, loss_type) == (["acc"], "categorical_crossentropy")


def predict(bench: Workbench, output: str, pred_type: str = "'prob'", table: str = "points") -> str:
    bench.rows(f"SELECT madlib_keras_predict('model', '{table}', 'id', 'x', '{output}', {pred_type}, FALSE, {KEYS[0]})")
    return output


def test_29_how_many_classes_are_predicted(bench: Workbench) -> None:
    every = bench.rows(f"SELECT * FROM {predict(bench, 'every')} ORDER BY id, rank")
    assert len(every) == 3 * 96
    for at in range(0, len(every), 3):
        probabilities = [prob for *_, prob, _ in every[at : at + 3]]
        assert [rank for *_, rank in every[at : at + 3]] == [1, 2, 3]
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) == pytest.approx(1, abs=TOLERANCE)
        assert {label for _, _, label, _, _ in every[at : at + 3]} == set(LABELS)
    found = {
        name: bench.rows(f"SELECT * FROM {predict(bench, name, text)} ORDER BY id, prob DESC")
        for name, text in (("best", "'response'"), ("two", "2"), ("likely", "0.3"))
    }
    assert found["best"] == [row[:4] for row in every if row[4] == 1]
    assert found["two"] == [row for row in every if row[4] <= 2]
    assert found["likely"] == [row for row in every if row[3] > 0.3]


def test_30_names_and_types_of_predictions(bench: Workbench) -> None:
    bench.rows(
        "CREATE TABLE dated AS SELECT date '2020-01-01' + id AS id, x, nullif(label, 'low') AS label FROM points"
    )
    bench.rows("SELECT training_preprocessor_dl('dated', 'dated_packed', 'label', 'x', n_segments => 2)")
    bench.fit("dated_packed", "dated_model", "steady", 1)
    bench.rows("SELECT madlib_keras_predict('dated_model', 'dated', 'id', 'x', 'dated_guess', 'prob', FALSE, 1)")
    assert bench.columns("dated_guess") == (
        "id date, class_name text, class_value text, prob double precision, rank integer"
    )
    assert set(bench.rows("SELECT class_name, class_value FROM dated_guess")) == {
        ("label", None),
        ("label", "high"),
        ("label", "middle"),
    }


@pytest.mark.parametrize("call", ["evaluate('model', 'packed', 'o')", "predict('model', 'points', 'id', 'x', 'o')"])
def test_31_a_table_of_several_models_needs_mst_key(bench: Workbench, call: str) -> None:
    with pytest.raises(psycopg2.errors.NullValueNotAllowed, match="Multi-model needs to pass mst_key"):
        bench.rows(f"SELECT madlib_keras_{call}")


@pytest.mark.parametrize(
    "call", ["evaluate('{}', 'packed', 'of_one_{}'", "predict('{}', 'points', 'id', 'x', 'of_one_{}'"]
)
def test_31_a_table_of_one_model_has_no_mst_key(bench: Workbench, call: str) -> None:
    if not bench.exists("one"):
        bench.rows(
            "SELECT madlib_keras_fit('packed', 'one', 'models', 1, %s, %s, 1)", COMPILE.format("SGD", RATE), ORDERED
        )
    function, _, _ = call.partition("(")
    call = call.format("one", function)
    with pytest.raises(psycopg2.errors.InvalidParameterValue, match="Single model should not pass mst_key"):
        bench.rows(f"SELECT madlib_keras_{call}, mst_key => 1)")
    assert not bench.exists(f"of_one_{function}")
    bench.rows(f"SELECT madlib_keras_{call})")
    assert bench.value(f"SELECT count(*) FROM of_one_{function}") == {"evaluate": 1, "predict": 3 * 96}[function]


def test_32_predicting_needs_the_model_tables_only(bench: Workbench) -> None:
    bench.rows("SELECT load_keras_model('own_models', %s::json)", CLASSES)
    bench.pack("own_packed", 2)
    bench.rows(
        "SELECT load_model_selection_table('own_models', 'own_mst', ARRAY[1], ARRAY[%s], ARRAY['batch_size=8'])",
        COMPILE.format("SGD", RATE),
    )
    bench.fit("own_packed", "own", "own_mst", 1)
    bench.rows("DROP TABLE own_models, own_packed, own_packed_summary, own_mst, own_mst_summary")
    bench.rows("SELECT madlib_keras_predict('own', 'points', 'id', 'x', 'own_guess', 'response', FALSE, 1)")
    assert bench.value("SELECT count(*) FROM own_guess") == 96


def test_33_predictions_are_normalised_as_training_was(bench: Workbench) -> None:
    text, flat = bench.row("SELECT model_arch::text, model_weights FROM model WHERE mst_key = %s", KEYS[0])
    rows = bench.rows("SELECT id, x FROM points ORDER BY id")
    inputs = np.array([x for _, x in rows], np.float32) / np.float32(madlib_job.CONSTANT)
    wanted = np.asarray(network(text, bytes(flat))(inputs))
    table = predict(bench, "normalised")
    found = [p for (p,) in bench.rows(f"SELECT prob FROM {table} ORDER BY id, class_value")]
    assert found == pytest.approx(wanted.reshape(-1), abs=TOLERANCE)


@pytest.mark.parametrize(("pred_type", "where"), [("'prob'", "TRUE"), ("'response'", "rank = 1"), ("2", "rank <= 2"),
                                                  ("0.3::double precision", "prob > 0.3")])  # fmt: skip
def test_34_a_model_of_one_s_own_predicts(bench: Workbench, pred_type: str, where: str) -> None:
    """The weights of a trained model, loaded beside its architecture, tell what the model itself does."""
    of = f"FROM model WHERE mst_key = {KEYS[0]}"  # asked for before: on Greenplum the function stands alone
    bench.rows(f"SELECT load_keras_model('brought', (SELECT model_arch {of}), (SELECT model_weights {of}))")
    output = f"brought_{pred_type[:3].strip(chr(39)).replace('.', '')}"
    bench.rows(
        f"SELECT madlib_keras_predict_byom('brought', 1, 'points', 'id', 'x', '{output}', {pred_type}, FALSE,"
        f" %s, {madlib_job.CONSTANT})",
        LABELS,
    )
    if not bench.exists("known"):
        predict(bench, "known")
    found = bench.rows(f"SELECT id, class_value, prob FROM {output} ORDER BY 1, 3 DESC")
    wanted = bench.rows(f"SELECT id, class_value, prob FROM known WHERE {where} ORDER BY 1, 3 DESC")
    assert [row[:2] for row in found] == [row[:2] for row in wanted] and len(found) >= 96
    assert [row[2] for row in found] == pytest.approx([row[2] for row in wanted], abs=TOLERANCE)
    assert bench.rows(f"SELECT DISTINCT class_name FROM {output}") == [("dependent_var",)]
