"""Models with several inputs and outputs, from packing to predictions, against Keras on the same
batches.
"""

from __future__ import annotations

import json
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import psycopg2
import pytest
from models import TWO_BY_TWO, Json, dense, joined
from processes import eventually
from workbench import Workbench

FIT_WORKERS = 1
Arrays = list[npt.NDArray[Any]]
LOSSES = {"kind": "categorical_crossentropy", "size": "mean_squared_error"}
METRICS = {"size": ["mae"], "kind": ["accuracy", "AUC"]}
COMPILE = "optimizer='Adam(learning_rate=0.02)',loss={},loss_weights=[1.0, 0.5],metrics={}"
LABELS = ["high", "low", "middle"]
CONSTANT = 2.0
# float32 sums of a small model in another order than the trainer's.
TOLERANCE = 1e-5
WEIGHT_TOLERANCE = 1e-4
"""The same, carried on over the steps of a run."""


def built(architecture: Json) -> Any:
    """A Keras model in this process."""
    return keras.models.model_from_json(json.dumps(architecture))


def flat(weights: Arrays) -> bytes:
    return b"".join(array.astype("<f4").tobytes() for array in weights)


def unpacked(bench: Workbench, table: str, columns: list[str]) -> dict[tuple[int, int], Arrays]:
    """The arrays of each buffer of a packed table, by segment and number."""
    listed = ", ".join(f"{name}, {name}_shape" for name in columns)
    found = {}
    for key, number, *stored in bench.rows(
        f"SELECT __dist_key__, buffer_id, {listed} FROM {table} ORDER BY 1, 2"
    ):
        arrays = []
        for data, shape in zip(stored[::2], stored[1::2], strict=True):
            kind = "<f4" if len(data) == 4 * np.prod(shape) else "<i2"
            arrays.append(np.frombuffer(data, kind).reshape(shape).astype(np.float32))
        found[key, number] = arrays
    return found


@pytest.fixture(scope="module")
def initial() -> Arrays:
    """Weights to begin with, so that Keras can begin with the same."""
    keras.utils.set_random_seed(4)
    return list(built(TWO_BY_TWO).get_weights())


@pytest.fixture(scope="module")
def packed(bench: Workbench) -> str:
    """Points packed with two inputs, and two targets: classes and a float."""
    bench.rows(
        "SELECT training_preprocessor_dl('points', 'two_packed', 'label, amount', 'x, pair', 8, "
        "%s::real, n_segments => 2, seed => 3, dependent_type => 'class, float')",
        CONSTANT,
    )
    bench.rows("CREATE TABLE held_out AS SELECT * FROM points WHERE id % 3 = 0")
    bench.rows(
        "SELECT validation_preprocessor_dl('held_out', 'two_held_out', 'label, amount', 'x, "
        "pair', 'two_packed')"
    )
    return "two_packed"


@pytest.fixture(scope="module")
def model(bench: Workbench, packed: str, initial: Arrays) -> str:
    """A model trained on them, in the stored order."""
    bench.rows("SELECT load_keras_model('models', %s, %s)", json.dumps(TWO_BY_TWO), flat(initial))
    number = bench.value("SELECT max(model_id) FROM models")
    bench.configure(
        "two_configs", [COMPILE.format(LOSSES, METRICS)], ["batch_size=8,shuffle=False"], number
    )
    bench.fit(
        packed,
        "two",
        "two_configs",
        2,
        validation_table="two_held_out",
        seed=1,
        metrics_compute_frequency=1,
    )
    return "two"


@pytest.fixture(scope="module")
def trained(bench: Workbench, model: str, initial: Arrays) -> Any:
    """The model in Keras, with the weights that the run left."""
    text, data = bench.row(f"SELECT model_arch::text, model_weights FROM {model}")
    found, numbers, weights = built(json.loads(text)), np.frombuffer(data, "<f4"), []
    for array in initial:
        weights.append(numbers[: array.size].reshape(array.shape))
        numbers = numbers[array.size :]
    assert not len(numbers)
    found.set_weights(weights)
    return found


@pytest.mark.long
@pytest.mark.checklist(21)
def test_training_gives_what_keras_gives_on_the_same_batches(
    bench: Workbench, packed: str, model: str, trained: Any, initial: Arrays
) -> None:
    buffers = unpacked(bench, packed, ["x", "pair", "label", "amount"])
    visits = bench.rows(
        "SELECT segment_id FROM cerebro.visit WHERE run_id = %s ORDER BY visit_no",
        bench.newest_run(),
    )
    assert len(visits) == 4
    alone = built(TWO_BY_TWO)
    alone.set_weights(initial)
    losses = [LOSSES["kind"], LOSSES["size"]]
    alone.compile(keras.optimizers.Adam(0.02), loss=losses, loss_weights=[1.0, 0.5])
    for (segment,) in visits:
        for (key, _), arrays in buffers.items():
            if key == segment:
                alone.fit(arrays[:2], arrays[2:], batch_size=8, shuffle=False, verbose=0)
    for mine, expected in zip(trained.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=WEIGHT_TOLERANCE, atol=WEIGHT_TOLERANCE)


def predicted(bench: Workbench, trained: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """What Keras predicts for all points, in the order of their ids."""
    rows = bench.rows("SELECT x, pair FROM points ORDER BY id")
    inputs = [
        np.asarray([row[n] for row in rows], np.float32) / np.float32(CONSTANT) for n in range(2)
    ]
    kinds, sizes = trained(inputs)
    return np.asarray(kinds, np.float64), np.asarray(sizes, np.float64)


@pytest.mark.long
def test_the_numbers_of_a_run_are_those_of_its_predictions(
    bench: Workbench, model: str, trained: Any
) -> None:
    kinds, sizes = predicted(bench, trained)
    truth = bench.rows("SELECT label, amount FROM points ORDER BY id")
    places = [LABELS.index(label) for label, _ in truth]
    errors = sizes[:, 0] - [amount for _, amount in truth]
    logged: dict[str, float] = dict(
        bench.rows(
            "SELECT name, value FROM cerebro.metric WHERE run_id = %s AND dataset = 'training' "
            "AND epoch = 2",
            bench.newest_run(),
        )
    )
    entropy = -np.log(kinds[np.arange(len(places)), places]).mean()
    assert logged.keys() == {"loss", "label_accuracy", "label_auc", "amount_mean_absolute_error"}
    assert logged["loss"] == pytest.approx(entropy + 0.5 * (errors**2).mean(), abs=TOLERANCE)
    assert logged["label_accuracy"] == pytest.approx(
        (kinds.argmax(axis=1) == places).mean(), abs=TOLERANCE
    )
    assert logged["amount_mean_absolute_error"] == pytest.approx(
        np.abs(errors).mean(), abs=TOLERANCE
    )


def test_the_output_tables(bench: Workbench, model: str) -> None:
    query = (
        "SELECT name, value FROM cerebro.metric WHERE run_id = %s AND dataset = 'training' AND "
        "epoch = 2"
    )
    logged: dict[str, float] = dict(bench.rows(query, bench.newest_run()))
    found = bench.value(f"SELECT to_json(i) FROM {model}_info i")
    assert found["metrics_type"] == ["accuracy", "AUC", "mae"], "in the order of the outputs"
    assert json.loads(found["loss_type"].replace("'", '"')) == LOSSES
    assert (found["training_loss_final"], found["training_metrics_final"]) == (
        logged["loss"],
        logged["label_accuracy"],
    )
    assert len(found["training_metrics"]) == len(found["validation_loss"]) == 2
    summary = bench.value(f"SELECT to_json(s) FROM {model}_summary s")
    assert summary["dependent_varname"] == ["label", "amount"]
    assert summary["independent_varname"] == ["x", "pair"]
    assert summary["dependent_vartype"] == ["text", "real"]
    assert summary["num_classes"] == [3, None]
    assert (summary["label_class_values"], summary["amount_class_values"]) == (LABELS, None)
    assert bench.value(
        "SELECT metric FROM cerebro.leaderboard WHERE run_id = %s", bench.newest_run()
    ) == ("label_accuracy")


@pytest.mark.parametrize(
    ("table", "dataset"), [("two_packed", "training"), ("two_held_out", "validation")]
)
def test_evaluating_gives_the_final_numbers_of_the_run(
    bench: Workbench, model: str, table: str, dataset: str
) -> None:
    bench.rows(f"SELECT madlib_evaluate('{model}', '{table}', 'scored_{dataset}', mst_key => 1)")
    columns = f"{dataset}_loss_final, {dataset}_metrics_final, metrics_type, loss_type"
    assert bench.row(f"SELECT * FROM scored_{dataset}") == bench.row(
        f"SELECT {columns} FROM {model}_info"
    )


@pytest.mark.parametrize(
    ("pred_type", "kept"), [("'prob'", 3), ("2", 2), ("'response'", 1), ("0.4", None)]
)
def test_predictions_are_those_of_keras(
    bench: Workbench, model: str, trained: Any, pred_type: str, kept: int | None
) -> None:
    bench.rows("DROP TABLE IF EXISTS told")
    bench.rows(
        f"SELECT madlib_predict('{model}', 'points', 'id', 'x, pair', 'told', {pred_type}, FALSE, "
        "1)"
    )
    kinds, sizes = predicted(bench, trained)
    found = bench.rows(
        "SELECT id, class_value, prob FROM told WHERE class_name = 'label' ORDER BY id, prob DESC"
    )
    wanted = []
    for number, row in enumerate(kinds, 1):
        order = np.argsort(-row, kind="stable")
        chosen = [c for c in order if row[c] > 0.4] if kept is None else order[:kept]
        wanted += [(number, LABELS[c], row[c]) for c in chosen]
    assert [row[:2] for row in found] == [row[:2] for row in wanted]
    assert [row[2] for row in found] == pytest.approx([row[2] for row in wanted], abs=TOLERANCE)
    amounts = bench.rows(
        "SELECT id, class_value, prob FROM told WHERE class_name = 'amount' ORDER BY id"
    )
    assert [row[:2] for row in amounts] == [(number, None) for number in range(1, 97)]
    assert [row[2] for row in amounts] == pytest.approx(sizes[:, 0], abs=TOLERANCE)


# How else losses and metrics can be written, tests/unit/configs/test_output_losses.py has.
FORMS = {
    "by place": ("['kld', 'mae']", "[[], ['mae', 'mse']]",
                 {"amount_mean_absolute_error", "amount_mean_squared_error"}),
    "a target without a loss": ("['categorical_crossentropy', None]", "[['accuracy'], None]",
    {"label_accuracy"}),
}  # fmt: skip


@pytest.fixture(scope="module")
def formed(bench: Workbench, packed: str, model: str) -> int:
    """A run of a configuration of each form, one by one; its output is `formed`."""
    compiled = [
        f"optimizer='SGD()',loss={loss},metrics={metrics}" for loss, metrics, _ in FORMS.values()
    ]
    bench.configure("formed_configs", compiled, model=bench.model(json.dumps(TWO_BY_TWO)))
    return bench.fit(packed, "formed", "formed_configs", 1, seed=1, workers=1)


@pytest.mark.parametrize("form", FORMS)
def test_losses_and_metrics_in_all_forms(
    bench: Workbench, packed: str, formed: int, form: str
) -> None:
    loss, metrics, logged = FORMS[form]
    text = f"optimizer='SGD()',loss={loss},metrics={metrics}"
    key = bench.value("SELECT mst_key FROM formed_configs WHERE compile_params = %s", text)
    query = "SELECT DISTINCT name FROM cerebro.metric WHERE run_id = %s AND mst_key = %s"
    assert {metric for (metric,) in bench.rows(query, formed, key)} == {"loss", *logged}
    bench.rows(f"SELECT madlib_evaluate('formed', '{packed}', 'scored_{key}', mst_key => {key})")
    query = (
        "SELECT training_loss_final, training_metrics_final, metrics_type, loss_type FROM "
        "formed_info"
    )
    assert bench.row(f"SELECT * FROM scored_{key}") == bench.row(f"{query} WHERE mst_key = %s", key)


def test_five_inputs_and_five_outputs(bench: Workbench) -> None:
    bench.rows(
        "CREATE TABLE five AS SELECT id, x AS a, pair AS b, amount AS c, ARRAY[flag, amount] AS "
        "d, x[1] AS e, label AS u, positive AS v, amount AS w, pair AS y, ARRAY[id % 2, 1 - id % "
        "2] AS z FROM points"
    )
    wide = joined(
        {"a": [4], "b": [2], "c": [1], "d": [2], "e": [1]},
        [
            dense(3, "u", "softmax"),
            dense(1, "v", "sigmoid"),
            dense(1, "w", "linear"),
            dense(2, "y", "linear"),
            dense(2, "z", "softmax"),
        ],
    )
    types = "class, class, float, float, class"
    bench.pack(
        "five_packed", 2, source="five", target="u, v, w, y, z", inputs="a, b, c, d, e", kind=types
    )
    loss = (
        "['categorical_crossentropy', 'binary_crossentropy', 'mse', 'mse', "
        "'categorical_crossentropy']"
    )
    compiled = f"optimizer='Adam(lr=0.02)',loss={loss},metrics=['accuracy']"
    bench.configure(
        "five_configs", [compiled], ["batch_size=8,epochs=3"], bench.model(json.dumps(wide))
    )
    bench.fit("five_packed", "five_model", "five_configs", 3, metrics_compute_frequency=1)
    losses, numbers = bench.row(
        "SELECT training_loss, num_classes FROM five_model_info, five_model_summary"
    )
    assert losses[-1] < 0.9 * losses[0]
    assert numbers == [3, 2, None, None, 2]
    bench.rows(
        "SELECT madlib_predict('five_model', 'five', 'id', 'a, b, c, d, e', 'five_told', mst_key "
        "=> 1)"
    )
    assert bench.rows(
        "SELECT class_name, array_agg(DISTINCT class_value ORDER BY class_value), count(*)::int"
        " FROM five_told GROUP BY 1 ORDER BY 1"
    ) == [
        ("u", ["high", "low", "middle"], 288),
        ("v", ["false", "true"], 192),
        ("w", [None], 96),
        ("y", ["0", "1"], 192),
        ("z", ["0", "1"], 192),
    ]
    assert bench.rows("SELECT DISTINCT class_name FROM five_told WHERE rank > 1 ORDER BY 1") == [
        ("u",),
        ("v",),
        ("y",),
        ("z",),
    ]


def test_a_run_can_be_written_out_again(bench: Workbench, model: str) -> None:
    run = bench.value(f"SELECT run_id FROM {model}_summary")
    bench.rows("SELECT cerebro.write_outputs(%s, 'two_again')", run)
    for suffix in ("", "_info"):
        assert bench.rows(f"SELECT * FROM two_again{suffix}") == bench.rows(
            f"SELECT * FROM {model}{suffix}"
        )


def test_a_warm_start_goes_on(bench: Workbench, packed: str, model: str) -> None:
    run = bench.value(f"SELECT run_id FROM {model}_summary")
    bench.rows("SELECT cerebro.write_outputs(%s, 'warm')", run)
    before = bench.value("SELECT training_loss_final FROM warm_info")
    bench.fit(packed, "warm", "two_configs", 3, warm_start=True)
    assert bench.value("SELECT training_loss_final FROM warm_info") < before


@pytest.mark.long
def test_a_cancelled_run_goes_on_and_can_be_replayed(
    bench: Workbench, packed: str, model: str
) -> None:
    """With the metrics that it logged before, by name, and those after."""
    session, number = bench.another(), bench.model(json.dumps(TWO_BY_TWO))
    bench.configure(
        "slow_configs", [COMPILE.format(LOSSES, METRICS)], ["batch_size=1,epochs=10"], number
    )
    measured = (
        "SELECT count(*) FROM cerebro.metric WHERE run_id > %s AND name = "
        "'amount_mean_absolute_error'"
    )
    before = bench.last_run_id()
    with session.fitting(
        packed, "slow", "slow_configs", 3, metrics_compute_frequency=1, seed=5
    ) as fitted:
        eventually(lambda: bench.value(measured, before))
        bench.rows("SELECT pg_cancel_backend(%s)", session.pid())
        with pytest.raises(psycopg2.errors.QueryCanceled):
            fitted.result()
    session.close()
    run = bench.newest_run()
    bench.rows("SELECT cerebro.resume(%s)", run)
    bench.fit(
        packed,
        "slow_again",
        "slow_configs",
        3,
        schedule="replay",
        replay_run=run,
        metrics_compute_frequency=1,
    )
    columns = "training_loss, training_metrics, metrics_type, loss_type"
    first, second = (
        bench.row(f"SELECT {columns} FROM {name}_info") for name in ("slow", "slow_again")
    )
    assert first == second
    assert len(first[1]) == 3
    assert bench.weights("slow") == bench.weights("slow_again")


@pytest.mark.long
def test_a_search_over_several_columns(bench: Workbench, packed: str, initial: Arrays) -> None:
    """The best of it predicts and is evaluated like any other model of several outputs."""
    bench.rows("SELECT load_keras_model('models', %s, %s)", json.dumps(TWO_BY_TWO), flat(initial))
    number = bench.value("SELECT max(model_id) FROM models")
    grid = {"loss": [LOSSES], "metrics": [METRICS], "optimizer": ["SGD"], "lr": [0.1, 0.001]}
    bench.rows(
        "SELECT madlib_keras_automl(%s, 'two_best', 'models', 'two_found', ARRAY[%s::integer], %s,"
        " $${'batch_size': [8]}$$, automl_params => 'R=2, eta=2, skip_last=1', random_state => 1,"
        " validation_table => 'two_held_out')",
        packed,
        number,
        repr(grid),
    )
    best = bench.value("SELECT mst_key FROM two_found")
    bench.rows(
        "SELECT madlib_keras_evaluate('two_best', 'two_held_out', 'two_best_loss', mst_key => %s)",
        best,
    )
    told = (
        "SELECT validation_loss_final, validation_metrics_final, metrics_type FROM two_best_info "
        "WHERE mst_key = %s"
    )
    loss, metric, kinds = bench.row(told, best)
    assert bench.row("SELECT loss, metric FROM two_best_loss") == (
        pytest.approx(loss),
        pytest.approx(metric),
    )
    assert kinds == ["accuracy", "AUC", "mae"]
    assert loss == bench.value("SELECT min(validation_loss_final) FROM two_best_info")
    bench.rows(
        "SELECT madlib_keras_predict('two_best', 'points', 'id', 'x, pair', 'two_best_told', "
        "'response', FALSE, %s)",
        best,
    )
    assert bench.rows("SELECT DISTINCT class_name FROM two_best_told ORDER BY 1") == [
        ("amount",),
        ("label",),
    ]
