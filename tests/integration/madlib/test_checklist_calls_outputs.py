"""What MADlib's users expect of a training call and of its output tables: rows 1 to 18 of the checklist."""

from __future__ import annotations

from typing import Any

import madlib_job
import numpy as np
import psycopg2
import pytest
from madlib_job import COMPILE, FREQUENCY, ITERATIONS, KEYS, TOLERANCE, configure, stored
from models import CLASSES
from workbench import Workbench

FIT = "SELECT madlib_keras_fit_multiple_model"
FLOATS = 5 * 8 + 9 * 3
POSITIONAL = ("FALSE", "'packed_val'", "2", "FALSE", "'a name'", "'a note'", "TRUE")
METRICS = ("training", "validation")


@pytest.fixture(scope="module", autouse=True)
def job(bench: Workbench) -> None:
    madlib_job.build(bench)
    configure(bench, "one", COMPILE.format("SGD", 0.05))


def summary(bench: Workbench, output: str, wanted: str) -> Any:
    return bench.row(f"SELECT {wanted} FROM {output}_summary")


@pytest.mark.parametrize("given", [1, 2, 3, 4, 5, 7])
def test_01_calls_with_5_to_11_arguments_and_by_name(bench: Workbench, given: int) -> None:
    """All forms that MADlib declares; what is left out is as if it were NULL."""
    output = f"called_{given}"
    bench.rows(f"{FIT}('packed', '{output}', 'one', 2, {', '.join(POSITIONAL[:given])})")
    table, frequency, warm, name, note = summary(
        bench, output, "validation_table, metrics_compute_frequency, warm_start, name, description"
    )
    wanted = ("packed_val", 2, False, "a name", "a note")
    assert (table, name, note) == tuple(
        value if given > at else None for value, at in zip((wanted[0], *wanted[3:]), (1, 4, 5), strict=True)
    )
    assert (frequency, warm) == (2, False)
    bench.rows(
        f"{FIT}(description => 'a note', num_iterations => 2, source_table => 'packed', use_gpus => FALSE,"
        f" model_output_table => '{output}_named', model_selection_table => 'one')"
    )
    assert summary(bench, f"{output}_named", "num_iterations, name, description") == (2, None, "a note")


def test_02_packed_tables_of_the_preprocessor(bench: Workbench) -> None:
    assert bench.columns("packed") == (
        "__dist_key__ integer, x bytea, label bytea, x_shape integer[], label_shape integer[], buffer_id integer"
    )
    sizes = bench.rows(
        "SELECT octet_length(x) = 4 * x_shape[1] * x_shape[2], x_shape[1] = label_shape[1],"
        " octet_length(label) = 2 * label_shape[1] * label_shape[2] FROM packed"
    )
    assert set(sizes) == {(True, True, True)}
    x, label, rows = bench.row("SELECT x, label, x_shape[1] FROM packed WHERE buffer_id = 0")
    codes = np.frombuffer(label, "<i2").reshape(rows, 3)
    assert set(codes.sum(axis=1)) == {1} and codes.min() == 0
    known = np.array([value for (value,) in bench.rows("SELECT x FROM points")], np.float32) / np.float32(2)
    for row in np.frombuffer(x, "<f4").reshape(rows, 4):
        assert (known == row).all(axis=1).any()


@pytest.mark.parametrize("objects", [True, False], ids=["with object_table", "without object_table"])
@pytest.mark.parametrize("made", ["generated", "loaded", "by hand"])
def test_03_configurations_however_they_were_made(bench: Workbench, made: str, objects: bool) -> None:
    name = f"mst_{made.replace(' ', '_')}_{objects}"
    if made == "loaded":
        configure(bench, name, COMPILE.format("SGD", 0.05))
    elif made == "generated":
        bench.rows(
            f"SELECT generate_model_configs('models', '{name}', ARRAY[1], $${{'loss': ['categorical_crossentropy'],"
            " 'metrics': [['acc']], 'optimizer_params_list': [{'optimizer': ['SGD'], 'lr': [0.05]}]}$$,"
            " $${'batch_size': [8], 'epochs': [1]}$$)"
        )
    else:
        bench.rows(
            f"CREATE TABLE {name} (mst_key serial, model_id integer, compile_params varchar, fit_params varchar)"
        )
        bench.rows(f"INSERT INTO {name} VALUES (1, 1, %s, 'batch_size=8')", COMPILE.format("SGD", 0.05))
        bench.rows(f"CREATE TABLE {name}_summary (model_arch_table varchar, object_table varchar)")
        bench.rows(f"INSERT INTO {name}_summary VALUES ('models', NULL)")
    if not objects:
        bench.rows(f"ALTER TABLE {name}_summary DROP COLUMN object_table")
    bench.rows(f"{FIT}('packed', 'of_{name}', '{name}', 1, FALSE)")
    assert summary(bench, f"of_{name}", "model_selection_table, model_arch_table, object_table") == (
        name,
        "models",
        None,
    )


SPELLINGS = {
    "keys in another order": "optimizer='SGD(lr=0.05)',loss='categorical_crossentropy',metrics=['acc']",
    "spaces": " loss = 'categorical_crossentropy' ,  metrics = [ 'acc' ],optimizer = 'SGD( lr = 0.05 )' ",
    "the new name of lr": "optimizer='sgd(learning_rate=0.05)', metrics=['acc'], loss='categorical_crossentropy'",
}


def test_04_strings_may_be_written_freely(bench: Workbench) -> None:
    weights = set()
    for number, text in enumerate([COMPILE.format("SGD", 0.05), *SPELLINGS.values()]):
        configure(
            bench, f"spelt_{number}", text, fit=(" epochs=1 ,batch_size=8", "batch_size=8, epochs = 1")[number % 2]
        )
        bench.fit("packed", f"of_spelt_{number}", f"spelt_{number}", 1, seed=5, schedule="rotation")
        weights.add(bench.weights(f"of_spelt_{number}")[1])
    assert len(weights) == 1


def test_05_names_with_schema_and_quotes_everywhere(bench: Workbench) -> None:
    bench.rows('CREATE SCHEMA "A Lab"')
    bench.rows('CREATE TABLE "A Lab"."Raw" AS SELECT id AS "Id", x AS "X", label AS "The Label" FROM points')
    at = {
        name: f'"A Lab"."{name.title()}, all"' for name in ("models", "packed", "held", "mst", "out", "score", "guess")
    }
    bench.rows("SELECT load_keras_model(%s, %s::json)", at["models"], CLASSES)
    raw, target, inputs = '"A Lab"."Raw"', '"The Label"', '"X"'
    bench.rows("SELECT training_preprocessor_dl(%s, %s, %s, %s)", raw, at["packed"], target, inputs)
    bench.rows("SELECT validation_preprocessor_dl(%s, %s, %s, %s, %s)", raw, at["held"], target, inputs, at["packed"])
    bench.rows(
        "SELECT load_model_selection_table(%s, %s, ARRAY[1], ARRAY[%s], ARRAY['batch_size=8'])",
        at["models"],
        at["mst"],
        COMPILE.format("SGD", 0.05),
    )
    bench.rows(f"{FIT}(%s, %s, %s, 1, FALSE, %s)", at["packed"], at["out"], at["mst"], at["held"])
    bench.rows("SELECT madlib_keras_evaluate(%s, %s, %s, FALSE, 1)", at["out"], at["held"], at["score"])
    bench.rows(
        "SELECT madlib_keras_predict(%s, %s, %s, %s, %s, 'response', FALSE, 1)",
        at["out"],
        raw,
        '"Id"',
        inputs,
        at["guess"],
    )
    assert bench.value(f"SELECT count(*) FROM {at['score']}") == 1
    assert bench.value(f'SELECT count(DISTINCT "Id") FROM {at["guess"]} WHERE class_name = %s', "The Label") == 96
    made = {
        name for (name,) in bench.rows("SELECT relname FROM pg_class WHERE relnamespace = '\"A Lab\"'::regnamespace")
    }
    assert {"Out, all", "Out, all_info", "Out, all_summary"} <= made


def test_06_null_is_the_default(bench: Workbench) -> None:
    bench.rows(f"{FIT}('packed', 'of_nulls', 'one', 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL)")
    found = summary(bench, "of_nulls", "validation_table, warm_start, name, description, metrics_iters")
    assert found == (None, False, None, None, [2])


TABLES = {
    "models": "model_id integer, model_arch json, model_weights bytea, name text, description text,"
    " __internal_madlib_id__ text",
    "packed_summary": "source_table text, output_table text, dependent_varname text[], independent_varname text[],"
    " dependent_vartype text[], label_class_values text[], buffer_size integer, normalizing_const real,"
    " num_classes integer[], distribution_rules text, __internal_gpu_config__ text",
    "mst": "mst_key integer, model_id integer, compile_params character varying, fit_params character varying",
    "mst_summary": "model_arch_table character varying, object_table character varying",
    "model": "mst_key integer, model_weights bytea, model_arch json, __dist_key__ integer",
    "model_info": "mst_key integer, model_id integer, compile_params text, fit_params text, model_type text,"
    " model_size double precision, metrics_elapsed_time double precision[], metrics_type text[], loss_type text,"
    " training_metrics_final double precision, training_loss_final double precision,"
    " training_metrics double precision[], training_loss double precision[],"
    " validation_metrics_final double precision, validation_loss_final double precision,"
    " validation_metrics double precision[], validation_loss double precision[]",
    "model_summary": "source_table text, validation_table text, model text, model_info text, dependent_varname text[],"
    " independent_varname text[], model_arch_table text, model_selection_table text, object_table text,"
    " num_iterations integer, metrics_compute_frequency integer, warm_start boolean, name text, description text,"
    " start_training_time timestamp without time zone, end_training_time timestamp without time zone,"
    " madlib_version text, num_classes integer[], label_class_values text[], dependent_vartype text[],"
    " normalizing_const real, metrics_iters integer[]",
}


@pytest.mark.parametrize("table", TABLES)
def test_07_columns_and_types(bench: Workbench, table: str) -> None:
    assert (bench.columns(table) + ", ").startswith(TABLES[table] + ", ")
    if table in ("models", "packed_summary", "mst", "mst_summary"):
        assert bench.columns(table) == TABLES[table]


def test_08_one_row_per_configuration(bench: Workbench) -> None:
    for table in ("mst", "model", "model_info"):
        assert bench.rows(f"SELECT mst_key FROM {table} ORDER BY 1") == [(key,) for key in KEYS]
    with pytest.raises(psycopg2.errors.UniqueViolation):
        bench.rows("INSERT INTO model_info (mst_key) VALUES (%s)", KEYS[0])
    repeated = "SELECT mst_key, model_id, compile_params::text, fit_params::text FROM {} ORDER BY 1"
    assert bench.rows(repeated.format("model_info")) == bench.rows(repeated.format("mst"))
    assert bench.rows("SELECT DISTINCT model_type FROM model_info") == [("madlib_keras",)]


def test_09_weights_can_be_used_elsewhere(bench: Workbench) -> None:
    """In Keras by set_weights, and as weights of load_keras_model: training that changes nothing keeps the loss."""
    rows = bench.rows("SELECT id, x, label FROM points ORDER BY id")
    built = stored(bench, "model", KEYS[0])
    found = np.asarray(built(np.array([x for _, x, _ in rows], np.float32) / np.float32(2)))
    classes = ["high", "low", "middle"]
    loss = -np.mean([np.log(p[classes.index(label)]) for p, (_, _, label) in zip(found, rows, strict=True)])
    final = bench.value("SELECT training_loss_final FROM model_info WHERE mst_key = %s", KEYS[0])
    assert final == pytest.approx(loss, abs=TOLERANCE)
    column = f"(SELECT {{}} FROM model WHERE mst_key = {KEYS[0]})"
    bench.rows(f"SELECT load_keras_model('models', {column.format('model_arch')}, {column.format('model_weights')})")
    loaded = int(bench.value("SELECT max(model_id) FROM models"))
    configure(bench, "still", COMPILE.format("SGD", 1e-30), model=loaded)
    bench.fit("packed", "stays", "still", 1)
    assert bench.value("SELECT training_loss_final FROM stays_info") == pytest.approx(final, abs=TOLERANCE)


def test_10_model_size_is_in_kilobytes(bench: Workbench) -> None:
    sizes = bench.rows("SELECT model_size, octet_length(model_weights) FROM model_info JOIN model USING (mst_key)")
    assert sizes == [(4 * FLOATS / 1024, 4 * FLOATS)] * 2


def test_11_metrics_iters(bench: Workbench) -> None:
    assert summary(bench, "model", "metrics_iters") == ([2, 4, 5],)


@pytest.mark.parametrize("kind", METRICS)
def test_12_arrays_and_final_values(bench: Workbench, kind: str) -> None:
    for what in ("metrics", "loss"):
        for values, final in bench.rows(f"SELECT {kind}_{what}, {kind}_{what}_final FROM model_info"):
            assert len(values) == -(-ITERATIONS // FREQUENCY)
            assert values[-1] == final
            assert all(np.isfinite(values))


def test_13_without_a_validation_table(bench: Workbench) -> None:
    bench.rows(f"{FIT}('packed', 'bare', 'one', 1, FALSE)")
    names = ", ".join(f"validation_{what}" for what in ("metrics", "loss", "metrics_final", "loss_final"))
    assert bench.row(f"SELECT {names} FROM bare_info") == (None,) * 4
    assert summary(bench, "bare", "validation_table") == (None,)


def test_14_elapsed_times_grow(bench: Workbench) -> None:
    (seconds,) = summary(bench, "model", "extract(epoch FROM end_training_time - start_training_time)")
    for (times,) in bench.rows("SELECT metrics_elapsed_time FROM model_info"):
        assert len(times) == 3
        assert 0 < times[0] < times[1] < times[2] <= float(seconds) + 1e-3


def test_15_metric_and_loss_as_they_were_written(bench: Workbench) -> None:
    found = bench.rows("SELECT DISTINCT metrics_type, loss_type FROM model_info")
    assert found == [(["acc"], "categorical_crossentropy")]


def test_16_name_description_times_and_version(bench: Workbench) -> None:
    found = summary(bench, "model", "name, description, start_training_time < end_training_time, madlib_version <> ''")
    assert found == ("a name", "a description", True, True)
    assert summary(bench, "model", "source_table, validation_table, model, model_info") == (
        "packed",
        "packed_val",
        "model",
        "model_info",
    )


def test_17_num_classes_are_classes(bench: Workbench) -> None:
    assert summary(bench, "model", "num_classes") == ([3],)
    assert summary(bench, "packed", "num_classes") == ([3],)


def test_18_what_predictions_need_is_in_the_summary(bench: Workbench) -> None:
    wanted = "label_class_values, dependent_vartype, dependent_varname, independent_varname, normalizing_const"
    assert summary(bench, "model", wanted) == summary(bench, "packed", wanted)
    assert summary(bench, "model", wanted) == (["high", "low", "middle"], ["text"], ["label"], ["x"], 2.0)
