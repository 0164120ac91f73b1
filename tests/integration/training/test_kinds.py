"""What can be trained: targets of every kind, losses and metrics, models with inner state,
pictures.
"""

from __future__ import annotations

from typing import Any

import psycopg2
import pytest
from models import CLASSES, NOISY, perceptron
from workbench import Workbench, compile_text

ADAM = "Adam(learning_rate=0.02)"


def trained(
    bench: Workbench,
    name: str,
    model: str,
    compiled: str,
    target: str,
    kind: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Train one config on a target of the points; its row of the info table and what the summary
    says.
    """
    bench.pack(f"{name}_packed", 2, target=target, kind=kind, **more)
    bench.configure(f"{name}_configs", [compiled], ["batch_size=8,epochs=3"], bench.model(model))
    bench.fit(
        f"{name}_packed",
        name,
        f"{name}_configs",
        4,
        workers=1,
        metrics_compute_frequency=1,
        seed=2,
        schedule="rotation",
    )
    info = bench.value(f"SELECT to_jsonb(i) FROM {name}_info i")
    return {**info, **bench.value(f"SELECT to_jsonb(s) FROM {name}_summary s")}


def learned(result: dict[str, Any]) -> bool:
    """Whether the loss fell by a tenth."""
    losses = result["training_loss"]
    return bool(losses[-1] < 0.9 * losses[0])


REGRESSION = compile_text(ADAM, "mean_squared_error", ["mean_absolute_error"])


def test_regression(bench: Workbench) -> None:
    """Its numbers are those of the predictions."""
    found = trained(bench, "of_amount", perceptron(1, "linear"), REGRESSION, "amount", "float")
    assert learned(found)
    assert found["metrics_type"] == ["mean_absolute_error"]
    assert found["num_classes"] is None and found["amount_class_values"] is None
    assert found["dependent_vartype"] == ["real"]
    bench.rows("SELECT madlib_predict('of_amount', 'points', 'id', 'x', 'guesses', mst_key => 1)")
    squares, differences = bench.row(
        "SELECT avg((prob - amount) ^ 2), avg(abs(prob - amount)) FROM guesses JOIN points USING "
        "(id)"
    )
    assert found["training_loss_final"] == pytest.approx(squares, rel=1e-4)
    assert found["training_metrics_final"] == pytest.approx(differences, rel=1e-4)


def test_two_classes_on_one_sigmoid_unit(bench: Workbench) -> None:
    compiled = compile_text(ADAM, "binary_crossentropy", ["accuracy"])
    found = trained(bench, "binary", perceptron(1, "sigmoid"), compiled, "positive")
    assert learned(found)
    assert (found["num_classes"], found["positive_class_values"]) == ([2], [False, True])
    bench.rows(
        "SELECT madlib_predict('binary', 'points', 'id', 'x', 'binary_guesses', 'response', "
        "mst_key => 1)"
    )
    right = bench.value(
        "SELECT avg((class_value::boolean = positive)::int)::float FROM binary_guesses JOIN "
        "points USING (id)"
    )
    assert found["training_metrics_final"] == pytest.approx(right, abs=1e-6)


@pytest.mark.long
def test_a_float_target_of_zeros_and_ones_on_one_sigmoid_unit(bench: Workbench) -> None:
    compiled = compile_text(ADAM, "binary_crossentropy", ["accuracy"])
    found = trained(bench, "flags", perceptron(1, "sigmoid"), compiled, "flag", "float")
    assert learned(found)
    bench.rows("SELECT madlib_predict('flags', 'points', 'id', 'x', 'flag_guesses', mst_key => 1)")
    right = bench.value(
        "SELECT avg(((prob > 0.5) = (flag = 1))::int)::float FROM flag_guesses JOIN points USING "
        "(id)"
    )
    assert found["training_metrics_final"] == pytest.approx(right, abs=1e-6)


@pytest.fixture(scope="module")
def classes(bench: Workbench) -> list[dict[str, Any]]:
    """The same, trained on one-hot targets and on indices of classes."""
    losses = {
        "one_hot": ("categorical_crossentropy", ["accuracy", "AUC", "mean_squared_error"]),
        "indices": ("sparse_categorical_crossentropy", ["sparse_categorical_accuracy"]),
    }
    return [
        trained(bench, name, CLASSES, compile_text(ADAM, loss, metrics), "label")
        for name, (loss, metrics) in losses.items()
    ]


@pytest.mark.parametrize(
    ("number", "loss", "metrics"),
    [
        (0, "categorical_crossentropy", ["accuracy", "AUC", "mean_squared_error"]),
        (1, "sparse_categorical_crossentropy", ["sparse_categorical_accuracy"]),
    ],
)
def test_many_classes(
    bench: Workbench, classes: list[dict[str, Any]], number: int, loss: str, metrics: list[str]
) -> None:
    found = classes[number]
    assert learned(found)
    assert found["loss_type"] == loss
    assert found["metrics_type"] == metrics
    logged: dict[str, list[float]] = dict(
        bench.rows(
            "SELECT name, array_agg(value ORDER BY epoch) FROM cerebro.learning_curve WHERE "
            "run_id = %s GROUP BY name",
            found["run_id"],
        )
    )
    assert len(logged) == 1 + len(metrics)
    assert found["training_metrics"] == logged[metrics[0]]


def test_losses_on_indices_and_on_one_hot_targets_agree(classes: list[dict[str, Any]]) -> None:
    losses = [found["training_loss"] for found in classes]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3), "the same training, with other rounding"


def test_dropout_and_batch_normalisation(bench: Workbench) -> None:
    found = trained(bench, "noisy", NOISY, compile_text(ADAM), "label")
    assert learned(found)
    bench.rows("SELECT madlib_evaluate('noisy', 'noisy_packed', 'noisy_again', mst_key => 1)")
    loss = bench.value("SELECT loss FROM noisy_again")
    assert loss == pytest.approx(found["training_loss_final"]), (
        "evaluation is without dropout, by moving averages"
    )


def test_a_validation_set_with_fewer_rows_than_segments_and_some_of_the_classes(
    bench: Workbench,
) -> None:
    bench.pack("wide_packed", 3)
    bench.rows("CREATE TABLE two AS SELECT * FROM points WHERE id <= 2")
    bench.rows(
        "SELECT validation_preprocessor_dl('two', 'two_packed', 'label', 'x', 'wide_packed')"
    )
    bench.configure("wide_configs", [compile_text(ADAM)])
    bench.fit(
        "wide_packed",
        "wide",
        "wide_configs",
        2,
        workers=1,
        validation_table="two_packed",
        metrics_compute_frequency=1,
    )
    losses, metrics = bench.row("SELECT validation_loss, validation_metrics FROM wide_info")
    bench.rows("SELECT madlib_evaluate('wide', 'two_packed', 'two_again', mst_key => 1)")
    assert bench.row("SELECT loss, metric FROM two_again") == (
        pytest.approx(losses[-1]),
        metrics[-1],
    )
    assert bench.value("SELECT count(DISTINCT label) FROM two") < 3, (
        "it has some of the classes alone"
    )
    bench.rows(
        "SELECT madlib_predict('wide', 'two', 'id', 'x', 'two_guesses', 'response', mst_key => 1)"
    )
    right = bench.value(
        "SELECT avg((class_value = label)::int)::float FROM two_guesses JOIN two USING (id)"
    )
    assert metrics[-1] == pytest.approx(right, abs=1e-6)


def test_a_batch_larger_than_a_buffer(bench: Workbench) -> None:
    bench.pack("small_packed", 2, buffer=5)
    bench.configure("small_configs", [compile_text(ADAM)], ["batch_size=1000"])
    bench.fit("small_packed", "small", "small_configs", 1, workers=1)
    assert bench.value("SELECT training_loss_final FROM small_info") > 0


def test_what_cannot_be_learned_is_told(bench: Workbench) -> None:
    """One unit under categorical_crossentropy gives nothing to learn by; numbers were packed as
    classes by mistake.
    """
    bench.messages()
    compiled = compile_text(ADAM, "categorical_crossentropy", [])
    trained(bench, "idle", perceptron(1, "linear"), compiled, "positive")
    assert any("nothing is learned" in message for message in bench.messages())
    bench.rows(
        "SELECT training_preprocessor_dl('points', 'amounts_packed', 'amount', 'x', n_segments => "
        "2)"
    )
    bench.configure("amounts_configs", [compile_text()], model=bench.model(perceptron(1, "linear")))
    with pytest.raises(psycopg2.Error, match="ends in 1 unit,") as caught:
        bench.fit("amounts_packed", "amounts", "amounts_configs", 1)
    assert "dependent_type => 'float'" in str(caught.value.diag.message_hint)


def test_a_model_that_does_not_fit_is_refused_before_the_run(bench: Workbench) -> None:
    bench.pack("misfit_packed", 2)
    bench.configure("misfit_configs", [compile_text()], model=bench.model(perceptron(4, "softmax")))
    before = bench.last_run_id()
    with pytest.raises(psycopg2.Error, match="ends in 4 units") as caught:
        bench.fit("misfit_packed", "misfit", "misfit_configs", 1)
    assert caught.value.pgcode == "42804"
    assert bench.last_run_id() == before
