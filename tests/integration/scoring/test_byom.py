"""Predictions with a model that was loaded with its weights, against Keras with the same
weights.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import pytest
from models import CLASSES, TWO_BY_TWO, dense, model, perceptron, sequential
from workbench import Workbench

Floats = npt.NDArray[np.float64]
numbers = itertools.count(1)
# float32 sums of a small model in another order than the trainer's.
TOLERANCE = 1e-5


def loaded(bench: Workbench, architecture: str) -> tuple[int, Any]:
    """A model loaded with weights of its own: its model_id, and the model in Keras."""
    keras.utils.set_random_seed(next(numbers))
    built = keras.models.model_from_json(architecture)
    weights = b"".join(array.astype("<f4").tobytes() for array in built.get_weights())
    bench.rows("SELECT load_keras_model('own', %s, %s)", architecture, weights)
    return int(bench.value("SELECT max(model_id) FROM own")), built


def predict(
    bench: Workbench, model_id: int, more: str = "", *, inputs: str = "x", function: str = ""
) -> str:
    """Predict for the points into a new table; its name."""
    output = f"told_{next(numbers)}"
    name = function or "madlib_predict_byom"
    bench.rows(f"SELECT {name}('own', {model_id}, 'points', 'id', '{inputs}', '{output}'{more})")
    return output


def points(bench: Workbench, column: str, constant: float = 1.0) -> npt.NDArray[np.float32]:
    rows = bench.rows(f"SELECT {column} FROM points ORDER BY id")
    return np.asarray(
        np.asarray([value for (value,) in rows], np.float32) / np.float32(constant), np.float32
    )


def as_array(found: object) -> Floats:
    return np.asarray(found, np.float64)


def told(bench: Workbench, table: str, name: str = "dependent_var") -> list[tuple[Any, ...]]:
    query = (
        f"SELECT id, class_value, prob FROM {table} WHERE class_name = %s ORDER BY id, class_value"
    )
    return bench.rows(query, name)


def expected(values: Floats, labels: list[Any]) -> list[tuple[Any, ...]]:
    return [
        (n, label, row[place])
        for n, row in enumerate(values, 1)
        for place, label in enumerate(labels)
    ]


def agree(found: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]]) -> bool:
    same = [row[:2] for row in found] == [row[:2] for row in wanted]
    return same and [row[2] for row in found] == pytest.approx(
        [row[2] for row in wanted], abs=TOLERANCE
    )


def test_classes_are_numbered_where_they_have_no_values(bench: Workbench) -> None:
    number, built = loaded(bench, CLASSES)
    table = predict(bench, number)
    assert agree(told(bench, table), expected(as_array(built(points(bench, "x"))), ["0", "1", "2"]))
    names = bench.rows(
        "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
        table,
    )
    assert names == [
        ("id", "integer"),
        ("class_name", "text"),
        ("class_value", "text"),
        ("prob", "double precision"),
        ("rank", "integer"),
    ]


def test_values_and_a_constant(bench: Workbench) -> None:
    number, built = loaded(bench, CLASSES)
    more = ", class_values => ARRAY['high', 'low', 'middle'], normalizing_const => 4"
    values = as_array(built(points(bench, "x", 4.0)))
    assert agree(
        told(bench, predict(bench, number, more)), expected(values, ["high", "low", "middle"])
    )


@pytest.fixture(scope="module")
def classes(bench: Workbench) -> tuple[int, Any]:
    """A model of classes."""
    return loaded(bench, CLASSES)


NAMES = 3 * ("madlib_keras_predict_byom", "madlib_predict_byom")
FORMS = list(zip(("'response'", "1", "2", "3", "0.3", "0.0"), NAMES, strict=True))


@pytest.mark.parametrize(("pred_type", "function"), FORMS)
def test_every_form_of_pred_type(
    bench: Workbench, classes: tuple[int, Any], pred_type: str, function: str
) -> None:
    number, built = classes
    table = predict(bench, number, f", {pred_type}", function=function)
    found = bench.rows(f"SELECT id, class_value FROM {table} ORDER BY 1, prob DESC")
    wanted = []
    for place, row in enumerate(as_array(built(points(bench, "x"))), 1):
        order = np.argsort(-row, kind="stable")
        kept = (
            [c for c in order if row[c] > float(pred_type)]
            if "." in pred_type
            else order[: _number(pred_type)]
        )
        wanted += [(place, str(c)) for c in kept]
    assert found == wanted


def _number(pred_type: str) -> int:
    return 1 if pred_type == "'response'" else int(pred_type)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ("ARRAY['no', 'yes']", ["no", "yes"]),
        ("NULL", ["0"]),
        ("ARRAY[NULL, 'yes']", ["yes", None]),
    ],
)
def test_a_single_unit(bench: Workbench, values: str, labels: list[Any]) -> None:
    number, built = loaded(bench, perceptron(1, "sigmoid"))
    second = as_array(built(points(bench, "x")))
    wanted = {"no": 1 - second, "yes": second, "0": second, None: 1 - second}
    columns = np.hstack([wanted[label] for label in labels])
    found = told(bench, predict(bench, number, f", class_values => {values}"))
    assert agree(found, expected(columns, labels))


def test_values_as_a_summary_has_them(bench: Workbench) -> None:
    """NULLs at the end stand for classes that only pad: nobody is told of them."""
    number, built = loaded(bench, perceptron(5, "softmax"))
    found = told(
        bench, predict(bench, number, ", class_values => ARRAY['a', 'b', 'c', NULL, NULL]")
    )
    assert agree(found, expected(as_array(built(points(bench, "x"))), ["a", "b", "c"]))


def test_several_inputs_and_outputs(bench: Workbench) -> None:
    number, built = loaded(bench, json.dumps(TWO_BY_TWO))
    kinds, sizes = map(as_array, built([points(bench, "x"), points(bench, "pair")]))
    plain = predict(bench, number, ", dependent_count => 2", inputs="x, pair")
    assert agree(told(bench, plain, "dependent_var_0"), expected(kinds, ["0", "1", "2"]))
    assert agree(told(bench, plain, "dependent_var_1"), expected(sizes, ["0"]))
    values = "ARRAY[['a', 'b', 'c'], [NULL, NULL, NULL]]"
    named = predict(
        bench, number, f", dependent_count => NULL, class_values => {values}", inputs="x, pair"
    )
    assert agree(told(bench, named, "dependent_var_0"), expected(kinds, ["a", "b", "c"]))
    assert agree(told(bench, named, "dependent_var_1"), expected(sizes, ["0"]))


def test_an_output_whose_width_only_the_trainer_knows(bench: Workbench) -> None:
    """A Flatten at the end: the architecture does not say how many numbers it gives."""
    flat = json.loads(sequential([4], dense(6, "hidden"), dense(2, "out", "softmax")))
    reshape = {
        "module": "keras.layers",
        "class_name": "Reshape",
        "registered_name": None,
        "config": {"name": "shape", "target_shape": [2, 1]},
    }
    flatten = {
        "module": "keras.layers",
        "class_name": "Flatten",
        "registered_name": None,
        "config": {"name": "flat"},
    }
    flat["config"]["layers"] += [reshape, flatten]
    number, built = loaded(bench, json.dumps(flat))
    assert agree(
        told(bench, predict(bench, number)),
        expected(as_array(built(points(bench, "x"))), ["0", "1"]),
    )


def test_a_model_with_nothing_to_train(bench: Workbench) -> None:
    frozen = model([4], dense(3, "output", "softmax", trainable=False))
    number, built = loaded(bench, json.dumps(frozen))
    assert agree(
        told(bench, predict(bench, number)),
        expected(as_array(built(points(bench, "x"))), ["0", "1", "2"]),
    )


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_either_framework(bench: Workbench, backend: str) -> None:
    number, built = loaded(bench, CLASSES)
    found = told(bench, predict(bench, number, f", backend => '{backend}'"))
    assert agree(found, expected(as_array(built(points(bench, "x"))), ["0", "1", "2"]))


@pytest.mark.checklist(34)
def test_it_agrees_with_the_prediction_of_the_same_model(bench: Workbench) -> None:
    bench.pack("packed", 2)
    bench.configure("configs", ["optimizer='SGD()',loss='categorical_crossentropy'"])
    bench.fit("packed", "trained", "configs", 1)
    bench.rows("SELECT madlib_predict('trained', 'points', 'id', 'x', 'known', mst_key => 1)")
    weights = bench.value("SELECT model_weights FROM trained")
    bench.rows("SELECT load_keras_model('own', %s, %s)", CLASSES, bytes(weights))
    values = ", class_values => (SELECT label_class_values FROM trained_summary)"
    table = predict(bench, int(bench.value("SELECT max(model_id) FROM own")), values)
    columns = "id, class_value, prob, rank"
    assert bench.rows(f"SELECT {columns} FROM {table} ORDER BY 1, 4") == bench.rows(
        f"SELECT {columns} FROM known ORDER BY 1, 4"
    )
