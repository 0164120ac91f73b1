"""Evaluate and predict against what Keras says in this process of the weights in the model
tables.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import psycopg2
import pytest
from models import CLASSES, dense, perceptron, sequential
from workbench import Workbench, compile_text

FIT_WORKERS = 1
Floats = npt.NDArray[np.float64]
numbers = itertools.count(1)
# float32 sums of a small model in another order than the trainer's.
TOLERANCE = 1e-5
CONSTANT = 4.0
LABELS = ["high", "low", "middle"]
PREDICT = "SELECT madlib_predict(%s, %s, %s, %s, %s, {pred_type}, FALSE, %s)"


def fresh(stem: str = "t") -> str:
    """A table name that no other test uses."""
    return f"{stem}_{next(numbers)}"


def predict(
    bench: Workbench,
    model: str = "model",
    table: str = "points",
    pred_type: str = "'prob'",
    *,
    id_column: str = "id",
    inputs: str = "x",
    key: int = 1,
) -> str:
    """Predict into a new table; its name."""
    output = fresh("predicted")
    bench.rows(PREDICT.format(pred_type=pred_type), model, table, id_column, inputs, output, key)
    return output


def evaluate(bench: Workbench, model: str, packed: str, key: int = 1) -> tuple[Any, ...]:
    """The row that evaluate writes."""
    output = fresh("evaluated")
    bench.rows("SELECT madlib_evaluate(%s, %s, %s, FALSE, %s)", model, packed, output, key)
    return bench.row(f"SELECT * FROM {output}")


def outputs(
    bench: Workbench, model: str, rows: Sequence[Sequence[float]], constant: float, key: int = 1
) -> Floats:
    """What Keras computes from the model table, shape (rows, units)."""
    text, flat = bench.row(
        f"SELECT model_arch::text, model_weights FROM {model} WHERE mst_key = %s", key
    )
    built = keras.models.model_from_json(text)
    numbers_left = np.frombuffer(flat, "<f4")
    weights = []
    for shape in (w.shape for w in built.get_weights()):
        count = int(np.prod(shape))
        weights.append(numbers_left[:count].reshape(shape))
        numbers_left = numbers_left[count:]
    assert not len(numbers_left), "model_weights are all weights, and nothing else"
    built.set_weights(weights)
    found = built(np.asarray(rows, np.float32) / np.float32(constant))
    return np.asarray(found, np.float64)


@pytest.fixture(scope="module")
def model(bench: Workbench) -> str:
    """Two configurations trained on normalised points, with a validation table."""
    bench.rows(
        "SELECT training_preprocessor_dl('points', 'packed', 'label', 'x', 8, %s::real, "
        "n_segments => 3, seed => 1)",
        CONSTANT,
    )
    bench.rows("CREATE TABLE held_out AS SELECT * FROM points WHERE id % 3 = 0")
    bench.rows(
        "SELECT validation_preprocessor_dl('held_out', 'packed_val', 'label', 'x', 'packed')"
    )
    bench.configure("configs", [compile_text("Adam(lr=0.05)"), compile_text("SGD(lr=0.5)")])
    bench.fit("packed", "model", "configs", 3, validation_table="packed_val", seed=1)
    return "model"


@pytest.fixture(scope="module")
def expected(bench: Workbench, model: str) -> dict[int, Floats]:
    """Probabilities of the classes by id, of the first configuration."""
    rows = bench.rows("SELECT id, x FROM points ORDER BY id")
    found = outputs(bench, model, [x for _, x in rows], CONSTANT)
    return {number: probabilities for (number, _), probabilities in zip(rows, found, strict=True)}


@pytest.mark.parametrize(("packed", "kind"), [("packed", "training"), ("packed_val", "validation")])
def test_evaluating_gives_the_final_numbers_of_the_run(
    bench: Workbench, model: str, packed: str, kind: str
) -> None:
    columns = f"{kind}_loss_final, {kind}_metrics_final, metrics_type, loss_type"
    query = f"SELECT {columns} FROM model_info WHERE mst_key = %s"
    for key in (1, 2):
        assert evaluate(bench, model, packed, key) == bench.row(query, key)


def test_evaluating_gives_what_the_probabilities_give(
    bench: Workbench, model: str, expected: dict[int, Floats]
) -> None:
    labels: dict[int, str] = dict(bench.rows("SELECT id, label FROM points"))
    right = [LABELS[int(p.argmax())] == labels[number] for number, p in expected.items()]
    losses = [-np.log(p[LABELS.index(labels[number])]) for number, p in expected.items()]
    loss, metric, *names = evaluate(bench, model, "packed")
    assert loss == pytest.approx(np.mean(losses), abs=TOLERANCE)
    assert metric == pytest.approx(np.mean(right), abs=TOLERANCE)
    assert names == [["accuracy"], "categorical_crossentropy"]


@pytest.mark.checklist(28)
def test_the_output_tables_have_the_columns_of_the_contract(bench: Workbench, model: str) -> None:
    output = fresh("evaluated")
    bench.rows(f"SELECT madlib_keras_evaluate('model', 'packed', '{output}', mst_key => 1)")
    query = (
        "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert bench.rows(query, output) == [
        ("loss", "double precision"),
        ("metric", "double precision"),
        ("metrics_type", "text[]"),
        ("loss_type", "text"),
    ]
    columns = [
        ("id", "integer"),
        ("class_name", "text"),
        ("class_value", "text"),
        ("prob", "double precision"),
    ]
    assert bench.rows(query, predict(bench, pred_type="'prob'")) == [*columns, ("rank", "integer")]
    assert bench.rows(query, predict(bench, pred_type="2")) == [*columns, ("rank", "integer")]
    assert bench.rows(query, predict(bench, pred_type="'response'")) == columns


def ranked(p: Floats) -> list[tuple[str, float, int]]:
    """Class, probability and rank, best first; ties in the order of the classes."""
    order = sorted(range(len(p)), key=lambda i: (-p[i], i))
    return [(LABELS[i], p[i], rank) for rank, i in enumerate(order, 1)]


WANTED = {
    "prob": ("'prob'", lambda p: ranked(p)),
    "nothing given": ("NULL", lambda p: ranked(p)),
    "the best": ("1", lambda p: ranked(p)[:1]),
    "the two best": ("2", lambda p: ranked(p)[:2]),
    "more than there are": ("9", lambda p: ranked(p)),
    "above a third": ("0.3333", lambda p: [r for r in ranked(p) if r[1] > 0.3333]),
    "above zero": ("0.0", lambda p: ranked(p)),
    "above a half": ("0.5::float8", lambda p: [r for r in ranked(p) if r[1] > 0.5]),
}


@pytest.mark.checklist(29, 33)
@pytest.mark.parametrize(("pred_type", "kept"), WANTED.values(), ids=WANTED)
def test_probabilities_are_those_of_keras(
    bench: Workbench, model: str, expected: dict[int, Floats], pred_type: str, kept: Any
) -> None:
    table = predict(bench, pred_type=pred_type)
    found = bench.rows(
        f"SELECT id, class_name, class_value, prob, rank FROM {table} ORDER BY id, rank"
    )
    wanted = [(number, *row) for number in sorted(expected) for row in kept(expected[number])]
    assert [(number, label, rank) for number, _, label, _, rank in found] == [
        (n, c, r) for n, c, _, r in wanted
    ]
    assert {name for _, name, _, _, _ in found} == {"label"}
    assert [row[3] for row in found] == pytest.approx([p for _, _, p, _ in wanted], abs=TOLERANCE)


def test_a_response_is_the_best_class(
    bench: Workbench, model: str, expected: dict[int, Floats]
) -> None:
    table = predict(bench, pred_type="'response'")
    found = bench.rows(f"SELECT id, class_value, prob FROM {table} ORDER BY id")
    best = [(number, int(p.argmax()), p.max()) for number, p in sorted(expected.items())]
    assert [(number, label) for number, label, _ in found] == [
        (number, LABELS[i]) for number, i, _ in best
    ]
    assert [p for _, _, p in found] == pytest.approx([p for _, _, p in best], abs=TOLERANCE)


def test_predict_and_evaluate_agree(bench: Workbench, model: str) -> None:
    table = predict(bench, table="held_out", pred_type="'response'", key=2)
    right = bench.value(
        f"SELECT avg((class_value = label)::int)::float8 FROM {table} JOIN held_out USING (id)"
    )
    assert right == pytest.approx(evaluate(bench, model, "packed_val", 2)[1], abs=1e-6)


IDS = {
    "text": ("'row %s ' || id || '\"''\\'", "text"),
    "uuid": ("md5(id::text)::uuid", "uuid"),
    "bigint": ("id + 5000000000", "bigint"),
    "numeric": ("id / 7.0", "numeric"),
    "varchar(n)": ("left(md5(id::text), 12)::varchar(12)", "character varying(12)"),
    "char(n)": ("id::char(9)", "character(9)"),
    "date": ("date '2024-02-01' + id", "date"),
    "timestamptz": (
        "timestamptz '2024-02-01 12:34:56.789+02' + id * interval '1 h'",
        "timestamp with time zone",
    ),
    "interval": ("id * interval '-1 mon 3 days 04:05:06.7'", "interval"),
    "double precision": ("id / 3::float8", "double precision"),
    "an array": ("ARRAY[id, -id]", "integer[]"),
    "bytea": ("decode(md5(id::text), 'hex')", "bytea"),
    "repeated": ("id / 10", "integer"),
    "NULL among them": ("nullif(id, 5)", "integer"),
}


@pytest.mark.checklist(30)
@pytest.mark.parametrize(("expression", "kind"), IDS.values(), ids=IDS)
def test_the_id_column_keeps_its_name_type_and_values(
    bench: Workbench, model: str, expression: str, kind: str
) -> None:
    source = fresh()
    bench.rows(f'CREATE TABLE {source} AS SELECT {expression} AS "The Id", x FROM points')
    bench.rows(
        "SET datestyle = 'SQL, DMY'; SET intervalstyle = 'iso_8601'; SET extra_float_digits = 0"
    )
    try:
        table = predict(bench, table=source, pred_type="'response'", id_column='"The Id"')
    finally:
        bench.rows("RESET datestyle; RESET intervalstyle; RESET extra_float_digits")
    query = (
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = %s::regclass "
        "AND attnum = 1"
    )
    assert bench.value(query, table) == kind
    missing = (
        f'SELECT count(*) FROM (SELECT "The Id" FROM {source} EXCEPT ALL SELECT "The Id" '
        f"FROM {table}) d"
    )
    assert bench.value(missing) == 0
    assert bench.value(f"SELECT count(*) FROM {table}") == 96


@pytest.mark.long
def test_every_row_keeps_its_own_prediction_over_many_blocks(bench: Workbench) -> None:
    wide = sequential([1000], dense(2, "o", "softmax"))
    source = fresh()
    bench.rows(
        f"CREATE TABLE {source} AS SELECT id, array_fill(sin(id)::real, ARRAY[1000]) AS x, (id % "
        "2)::text AS y FROM generate_series(1, 2200) id"
    )
    name = fit(bench, source, wide, "y", inputs="x")
    table = predict(bench, name, source, "1")
    rows = bench.rows(f"SELECT id, class_value, prob FROM {table} ORDER BY id")
    found = outputs(bench, name, [[np.sin(number)] * 1000 for number in range(1, 2201)], 1.0)
    assert [number for number, _, _ in rows] == list(range(1, 2201))
    assert [p for _, _, p in rows] == pytest.approx(found.max(axis=1), abs=TOLERANCE)


def fit(
    bench: Workbench,
    source: str,
    architecture: str,
    target: str,
    *,
    inputs: str = "x",
    loss: str = "categorical_crossentropy",
    metrics: Sequence[str] = (),
    kind: str | None = None,
    classes: list[int] | None = None,
) -> str:
    """Train one epoch of one configuration on a table; the name of the model table."""
    name = fresh("model")
    bench.rows(
        f"SELECT training_preprocessor_dl(%s, '{name}_packed', %s, %s, n_segments => 2, seed => 1,"
        " dependent_type => %s, num_classes => %s)",
        source,
        target,
        inputs,
        kind,
        classes,
    )
    number = bench.model(architecture)
    bench.configure(f"{name}_configs", [compile_text("SGD(lr=0.1)", loss, metrics)], model=number)
    bench.fit(f"{name}_packed", name, f"{name}_configs", 1, seed=1)
    return name


def test_a_float_target_gives_its_value(bench: Workbench, model: str) -> None:
    name = fit(
        bench,
        "points",
        perceptron(1, "linear"),
        "amount",
        loss="mse",
        metrics=["mae"],
        kind="float",
    )
    found = bench.rows(
        f"SELECT id, class_name, class_value, prob FROM {predict(bench, name)} ORDER BY id"
    )
    values = outputs(
        bench, name, [x for (x,) in bench.rows("SELECT x FROM points ORDER BY id")], 1.0
    )
    assert {(name, label) for _, name, label, _ in found} == {("amount", None)}
    assert [value for _, _, _, value in found] == pytest.approx(values[:, 0], abs=TOLERANCE)
    amounts = [amount for (amount,) in bench.rows("SELECT amount FROM points ORDER BY id")]
    loss, metric, *_ = evaluate(bench, name, f"{name}_packed")
    assert loss == pytest.approx(np.mean((values[:, 0] - amounts) ** 2), abs=TOLERANCE)
    assert metric == pytest.approx(np.mean(np.abs(values[:, 0] - amounts)), abs=TOLERANCE)


@pytest.mark.long
def test_several_float_targets_are_named_by_their_place(bench: Workbench) -> None:
    name = fit(bench, "points", perceptron(2, "linear"), "pair", loss="mse")
    found = bench.rows(
        f"SELECT id, class_value, prob FROM {predict(bench, name)} ORDER BY id, class_value"
    )
    values = outputs(
        bench, name, [x for (x,) in bench.rows("SELECT x FROM points ORDER BY id")], 1.0
    )
    assert [(number, label) for number, label, _ in found] == [
        (n, c) for n in range(1, 97) for c in ("0", "1")
    ]
    assert [value for _, _, value in found] == pytest.approx(values.reshape(-1), abs=TOLERANCE)
    assert evaluate(bench, name, f"{name}_packed")[1:] == (None, None, "mse")


@pytest.mark.long
def test_one_unit_for_two_classes(bench: Workbench) -> None:
    name = fit(
        bench,
        "points",
        perceptron(1, "sigmoid"),
        "positive",
        loss="binary_crossentropy",
        metrics=["accuracy"],
    )
    found = bench.rows(
        f"SELECT id, class_value, prob FROM {predict(bench, name)} ORDER BY id, class_value"
    )
    values = outputs(
        bench, name, [x for (x,) in bench.rows("SELECT x FROM points ORDER BY id")], 1.0
    )
    assert [label for _, label, _ in found] == ["false", "true"] * 96
    assert [p for _, _, p in found] == pytest.approx(
        np.hstack([1 - values, values]).reshape(-1), abs=TOLERANCE
    )


@pytest.mark.checklist(30)
def test_a_null_class_is_predicted_as_null(bench: Workbench, model: str) -> None:
    source = fresh()
    bench.rows(f"CREATE TABLE {source} AS SELECT id, x, nullif(label, 'low') AS y FROM points")
    name = fit(bench, source, CLASSES, "y")
    found = bench.rows(f"SELECT class_value, prob FROM {predict(bench, name)} WHERE id = 1")
    values = outputs(bench, name, [bench.value("SELECT x FROM points WHERE id = 1")], 1.0)[0]
    assert dict(found) == pytest.approx(
        dict(zip([None, "high", "middle"], values, strict=True)), abs=TOLERANCE
    )


@pytest.mark.long
def test_classes_that_only_pad_are_not_predicted(bench: Workbench) -> None:
    name = fit(bench, "points", perceptron(5, "softmax"), "label", classes=[5])
    found = bench.rows(
        f"SELECT class_value, prob, rank FROM {predict(bench, name)} WHERE id = 1 ORDER BY rank"
    )
    values = outputs(bench, name, [bench.value("SELECT x FROM points WHERE id = 1")], 1.0)[0, :3]
    assert [(label, rank) for label, _, rank in found] == [
        (label, rank) for label, _, rank in ranked(values)
    ]
    assert [p for _, p, _ in found] == pytest.approx(sorted(values, reverse=True), abs=TOLERANCE)
    written = (
        f"SELECT p.label_class_values, m.label_class_values FROM {name}_packed_summary p, "
        f"{name}_summary m"
    )
    assert bench.row(written) == ([*LABELS, None, None],) * 2


def test_encoded_targets_are_named_by_their_place(bench: Workbench, model: str) -> None:
    source = fresh()
    bench.rows(f"CREATE TABLE {source} AS SELECT id, x, ARRAY[id % 2, 1 - id % 2] AS y FROM points")
    name = fit(bench, source, perceptron(2, "softmax"), "y", metrics=["accuracy"])
    found = bench.rows(f"SELECT class_value, prob FROM {predict(bench, name)} WHERE id = 1")
    values = outputs(bench, name, [bench.value("SELECT x FROM points WHERE id = 1")], 1.0)[0]
    assert dict(found) == pytest.approx({"0": values[0], "1": values[1]}, abs=TOLERANCE)


@pytest.mark.long
def test_scalar_inputs(bench: Workbench) -> None:
    name = fit(bench, "points", sequential([1], dense(3, "o", "softmax")), "label", inputs="amount")
    table = predict(bench, name, inputs="amount", pred_type="'prob'")
    found = [p for (p,) in bench.rows(f"SELECT prob FROM {table} ORDER BY id, class_value")]
    values = outputs(bench, name, bench.rows("SELECT amount FROM points ORDER BY id"), 1.0)
    assert found == pytest.approx(values.reshape(-1), abs=TOLERANCE)


@pytest.mark.parametrize("kind", ["smallint", "integer", "double precision", "numeric"])
def test_inputs_of_any_number_type(bench: Workbench, model: str, kind: str) -> None:
    source = fresh()
    bench.rows(f"CREATE TABLE {source} AS SELECT id, ARRAY[id, 1, 2, 3]::{kind}[] AS x FROM points")
    found = [
        p
        for (p,) in bench.rows(
            f"SELECT prob FROM {predict(bench, table=source)} ORDER BY id, class_value"
        )
    ]
    values = outputs(bench, model, [[number, 1, 2, 3] for number in range(1, 97)], CONSTANT)
    assert found == pytest.approx(values.reshape(-1), abs=TOLERANCE)


def test_an_empty_table_gives_an_empty_table(bench: Workbench, model: str) -> None:
    bench.rows("CREATE TABLE empty AS SELECT * FROM points LIMIT 0")
    assert bench.rows(f"SELECT * FROM {predict(bench, table='empty')}") == []


HELD = "Greenplum's trainers are not those of the caller's own session, which alone sees the table"
TEMPORARY = pytest.param("CREATE TEMP TABLE {} AS TABLE points", marks=pytest.mark.postgresql(HELD))


@pytest.mark.parametrize("statement", ["CREATE VIEW {} AS TABLE points", TEMPORARY])
def test_views_and_temporary_tables(bench: Workbench, model: str, statement: str) -> None:
    source = fresh()
    bench.rows(statement.format(source))
    assert bench.value(f"SELECT count(*) FROM {predict(bench, table=source)}") == 288


@pytest.mark.postgresql(HELD)
def test_predicting_in_a_transaction_that_made_the_rows(bench: Workbench, model: str) -> None:
    query = "SELECT array_agg(name || '=' || setting ORDER BY name) FROM pg_settings"
    source = fresh()
    bench.rows("BEGIN")
    bench.rows(f"CREATE TABLE {source} AS SELECT * FROM points")
    before = bench.value(query)
    table = predict(bench, table=source)
    assert bench.value(query) == before
    assert bench.value("SELECT count(*) FROM pg_cursors WHERE name ~ 'cerebro'") == 0
    assert bench.value(f"SELECT count(*) FROM {table}") == 288
    bench.rows("ROLLBACK")
    assert not bench.exists(source, table)


def test_odd_names_from_packing_to_prediction(bench: Workbench, model: str) -> None:
    bench.rows('CREATE SCHEMA "100% \'s"')
    source, packed, configs, trained, predicted, evaluated = (
        f'"100% \'s"."{name} %s ""x"" {{}}"' for name in ("s", "p", "c", "t", "r", "e")
    )
    bench.rows(
        f'CREATE TABLE {source} AS SELECT id AS "%d", x AS "my ""X""%s", label AS "Étiquette 100%" '
        "FROM points"
    )
    bench.rows(
        "SELECT training_preprocessor_dl(%s, %s, %s, %s)",
        source,
        packed,
        '"Étiquette 100%"',
        '"my ""X""%s"',
    )
    bench.configure(configs, [compile_text()])
    bench.fit(packed, trained, configs, 1)
    bench.rows("SELECT madlib_evaluate(%s, %s, %s, mst_key => 1)", trained, packed, evaluated)
    bench.rows(PREDICT.format(pred_type="1"), trained, source, '"%d"', '"my ""X""%s"', predicted, 1)
    assert bench.row(f'SELECT count(DISTINCT "%d"), min(class_name) FROM {predicted}') == (
        96,
        "Étiquette 100%",
    )
    assert bench.value(f"SELECT count(*) FROM {evaluated}") == 1


def test_long_names_of_raw_tables(bench: Workbench, model: str) -> None:
    source = "r" * 63
    bench.rows(f"CREATE TABLE {source} AS SELECT * FROM points")
    assert bench.value(f"SELECT count(*) FROM {predict(bench, table=source, pred_type='1')}") == 96


@pytest.mark.parametrize("suffix", ["_info", "_summary"])
@pytest.mark.parametrize("function", ["evaluate", "predict"])
def test_a_model_table_without_its_companions(
    bench: Workbench, model: str, suffix: str, function: str
) -> None:
    name = fresh("copy")
    for part in {"", "_info", "_summary"} - {suffix}:
        bench.rows(f"CREATE TABLE {name}{part} AS SELECT * FROM model{part}")
    with pytest.raises(
        psycopg2.errors.WrongObjectType, match=f"Missing summary and/or info tables for {name}"
    ):
        evaluate(bench, name, "packed") if function == "evaluate" else predict(bench, name)


@pytest.mark.checklist(32)
def test_predicting_needs_nothing_but_the_model_tables(bench: Workbench, model: str) -> None:
    name = fit(bench, "points", CLASSES, "label")
    before = bench.rows(f"SELECT id, class_value, prob FROM {predict(bench, name)} ORDER BY 1, 2")
    bench.rows(f"DROP TABLE {bench.states(name)} CASCADE")
    for suffix in ("packed", "packed_summary", "configs", "configs_summary"):
        bench.rows(f"DROP TABLE {name}_{suffix}")
    bench.rows("SELECT delete_keras_model('models', (SELECT max(model_id) FROM models))")
    assert (
        bench.rows(f"SELECT id, class_value, prob FROM {predict(bench, name)} ORDER BY 1, 2")
        == before
    )


@pytest.mark.checklist(9)
def test_weights_of_a_model_go_back_into_training(bench: Workbench, model: str) -> None:
    weights = bench.value("SELECT model_weights FROM model WHERE mst_key = 1")
    bench.rows("SELECT load_keras_model('models', %s, %s)", CLASSES, bytes(weights))
    number = bench.value("SELECT max(model_id) FROM models")
    bench.configure("going_on", [compile_text("SGD(lr=0.0)")], model=number)
    bench.fit("packed", "gone_on", "going_on", 1)
    assert json.dumps(bench.rows("SELECT training_loss_final FROM gone_on_info")) == json.dumps(
        bench.rows("SELECT training_loss_final FROM model_info WHERE mst_key = 1")
    )
    assert bytes(bench.value("SELECT model_weights FROM gone_on")) == bytes(weights)


def test_weights_of_another_model_fail_their_configuration_only(
    bench: Workbench, model: str
) -> None:
    bench.rows("SELECT load_keras_model('models', %s, %s)", CLASSES, bytes(40))
    number = bench.value("SELECT max(model_id) FROM models")
    bench.configure("misfit", [compile_text()], model=number)
    bench.rows(
        "INSERT INTO misfit (model_id, compile_params, fit_params) SELECT 1, compile_params, '' "
        "FROM misfit"
    )
    bench.fit("packed", "fitted", "misfit", 1)
    reason = bench.value(
        "SELECT reason FROM cerebro.config WHERE mst_key = 1 ORDER BY run_id DESC LIMIT 1"
    )
    assert "Number of elements in model weights(10) doesn't match model(67)" in reason
    assert bench.rows("SELECT mst_key FROM fitted_info WHERE training_loss_final > 0") == [(2,)]
    with pytest.raises(
        psycopg2.errors.ObjectNotInPrerequisiteState, match="mst_key 1 has no weights"
    ):
        predict(bench, "fitted")


def test_every_row_of_a_table_of_many_blocks_is_predicted_once(
    bench: Workbench, model: str
) -> None:
    """A block holds at most 10,000 rows."""
    for rows in (10_000, 10_001):
        bench.rows("DROP VIEW IF EXISTS many")
        bench.rows(
            f"CREATE VIEW many AS SELECT n AS id, p.x FROM generate_series(1, {rows}) n"
            " JOIN points p ON p.id = n % 96 + 1"
        )
        table = predict(bench, table="many", pred_type="'response'")
        assert bench.row(f"SELECT count(*), count(DISTINCT id), min(id), max(id) FROM {table}") == (
            rows,
            rows,
            1,
            rows,
        )
        equal = (
            f"SELECT count(DISTINCT class_value), max(prob) - min(prob) FROM {table} GROUP BY id % "
            "96"
        )
        # The last batch of a block is smaller than others, of which the last bit of a product may
        # be another.
        assert all(classes == 1 and apart < 1e-6 for classes, apart in bench.rows(equal))


def test_the_row_that_cannot_be_predicted_is_named_by_its_id(bench: Workbench, model: str) -> None:
    bench.rows(
        "CREATE VIEW short AS SELECT 'row ' || id AS id, CASE WHEN id = 77 THEN x[2:] ELSE x END "
        "AS x FROM points"
    )
    with pytest.raises(psycopg2.errors.InvalidParameterValue) as refused:
        predict(bench, table="short")
    assert str(refused.value.diag.message_detail).endswith("whose id is row 77.")
