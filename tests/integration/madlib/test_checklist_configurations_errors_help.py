"""What MADlib's users expect of configurations, errors, help and privileges: rows 35 to 47 of the checklist."""

from __future__ import annotations

import json
import re
from typing import Any

import madlib_job
import psycopg2
import pytest
from madlib_job import COMPILE, ITERATIONS, configure
from models import dense, sequential
from workbench import Workbench, setting

FIT = "madlib_keras_fit_multiple_model"
GENERATE = "SELECT generate_model_configs('models', %s, %s, %s, %s"
SGD = COMPILE.format("SGD", 0.05)
LOSS = "'loss': ['categorical_crossentropy'], 'metrics': [['accuracy']]"
TWO_FAMILIES = (
    f"{{{LOSS}, 'optimizer_params_list': [{{'optimizer': ['Adam'], 'lr': [0.1, 0.01]}},"
    " {'optimizer': ['SGD'], 'momentum': [0.5, 0.9], 'nesterov': [False]}]}"
)
SIZES = "{'batch_size': [8, 16]}"


@pytest.fixture(scope="module", autouse=True)
def job(bench: Workbench) -> list[str]:
    """The messages of the job."""
    bench.messages()
    madlib_job.build(bench)
    said = bench.messages()
    configure(bench, "one", SGD)
    return said


def generate(
    bench: Workbench,
    name: str,
    search: str = "",
    *,
    grid: str = TWO_FAMILIES,
    models: tuple[int, ...] = (1,),
    fit: str = SIZES,
) -> list[tuple[Any, ...]]:
    """Generate configurations; all rows of the table."""
    bench.rows(f"{GENERATE}{search})", name, list(models), grid, fit)
    return bench.rows(f"SELECT model_id, compile_params, fit_params FROM {name} ORDER BY mst_key")


def test_35_grids_are_products_per_optimizer(bench: Workbench) -> None:
    other = bench.model(sequential([4], dense(3, "only", "softmax")))
    found = generate(bench, "grid", models=(1, other))
    assert len(found) == (2 + 2) * 2 * 2
    assert [model for model, _, _ in found[:4]] == [1, other, 1, other]
    optimizers = {re.search(r"optimizer='(.*?)'", text)[1] for _, text, _ in found}  # type: ignore[index]
    assert optimizers == {
        "Adam(lr=0.1)",
        "Adam(lr=0.01)",
        "SGD(momentum=0.5,nesterov=False)",
        "SGD(momentum=0.9,nesterov=False)",
    }
    assert generate(bench, "grid", ", 'g'", models=(1, other)) == found, "what is there already is not added again"
    assert len(generate(bench, "grid", models=(1,), fit="{'batch_size': [32]}")) == len(found) + 4


@pytest.mark.parametrize("seed", [0, 1])
def test_35_random_searches_repeat_by_random_state(bench: Workbench, seed: int) -> None:
    drawn = f"{{{LOSS}, 'optimizer_params_list': [{{'optimizer': ['SGD'], 'lr': [0.001, 0.1, 'log'],"
    drawn += " 'momentum': [0.9, 0.99, 'log_near_one'], 'clipnorm': [1, 2, 'linear']}]}"
    first = generate(bench, f"random_{seed}", f", 'rand', 6, {seed}", grid=drawn)
    assert generate(bench, f"repeated_{seed}", f", 'random', 6, {seed}", grid=drawn) == first
    assert len(set(first)) == 6
    for _, text, _ in first:
        lr, momentum, clipnorm = (
            float(re.search(rf"{k}=([0-9.e-]+)", text)[1])  # type: ignore[index]
            for k in ("lr", "momentum", "clipnorm")
        )
        assert 0.001 <= lr <= 0.1 and 0.9 <= momentum <= 0.99 and 1 <= clipnorm <= 2


AUTOML = (
    "SELECT madlib_keras_automl('packed', %s, 'models', %s, ARRAY[1], %s, %s, %s, %s, %s, NULL, FALSE, 'packed_val')"
)
SEARCHED = f"{{{LOSS}, 'optimizer_params_list': [{{'optimizer': ['SGD'], 'lr': [0.001, 0.1, 'log']}}]}}"


@pytest.mark.parametrize(
    ("method", "parameters", "places"),
    [("hyper", " R = 3 ,eta=3", "s, i"), ("hyperopt", "num_configs=5,num_iterations=1, algorithm='rand'", "0, 0")],
)
def test_36_searches_end_with_the_best(bench: Workbench, method: str, parameters: str, places: str) -> None:
    bench.messages()
    name = f"by_{method}"
    bench.rows(AUTOML, name, f"{name}_mst", SEARCHED, "{'batch_size': [8]}", method, parameters, 0)
    found = bench.rows(f"SELECT mst_key, {places}, validation_loss_final FROM {name}_info ORDER BY 4, 1")
    assert len(found) == 5
    assert {row[1:3] for row in found} <= ({(1, 0), (1, 1), (0, 0)} if places == "s, i" else {(0, 0)})
    best, loss = found[0][0], found[0][3]
    assert bench.rows(f"SELECT mst_key FROM {name}_mst") == [(best,)]
    said = "".join(bench.messages())
    told = re.findall(r"Best validation loss so far:\nmst_key=(\d+): metric=[0-9.]+, loss=([0-9.e-]+)", said)
    assert told[-1] == (str(best), str(loss)) and len(told) == 2
    for (times,) in bench.rows(f"SELECT metrics_elapsed_time FROM {name}_info"):
        assert times == sorted(set(times)) and times[0] > 0


@pytest.mark.parametrize(("method", "parameters", "said"), [
    ("grid", "R=3", "the chosen automl method must be 'hyperband' or 'hyperopt'"),
    ("hyperopt", "algorithm=adaptive", "valid algorithm 'automl_params' for hyperopt: 'rand', 'tpe'"),
    ("hyperopt", "num_configs=0", "num_configs and num_iterations in 'automl_params' must be > 0"),
])  # fmt: skip
def test_36_wrong_searches_are_refused(bench: Workbench, method: str, parameters: str, said: str) -> None:
    call = f"madlib_keras_automl('packed', 'o', 'models', 'm', ARRAY[1], $g${SEARCHED}$g$, $g${SIZES}$g$, %s, %s)"
    error = refused(bench, call % (f"'{method}'", f"'{parameters}'"))
    assert (said in str(error), error.pgcode) == (True, "22023")


def refused(bench: Workbench, call: str) -> psycopg2.Error:
    """The error of a call that trained nothing and made nothing."""
    everything = "SELECT oid::text FROM pg_class UNION ALL SELECT 'run ' || run_id FROM cerebro.run"
    before = set(bench.rows(everything))
    with pytest.raises(psycopg2.Error) as error:
        bench.rows(f"SELECT {call}")
    assert set(bench.rows(everything)) == before
    return error.value


INPUTS = {
    "training_preprocessor_dl": "training_preprocessor_dl({}, 'o', 'label', 'x')",
    "validation_preprocessor_dl": "validation_preprocessor_dl({}, 'o', 'label', 'x', 'packed')",
    "delete_keras_model": "delete_keras_model({}, 1)",
    "load_model_selection_table": "load_model_selection_table({}, 'o', ARRAY[1], ARRAY['a'], ARRAY[''])",
    "generate_model_configs": "generate_model_configs({}, 'o', ARRAY[1], '{{}}', '{{}}')",
    "madlib_keras_fit_multiple": f"{FIT}({{}}, 'o', 'mst', 1)",
    "madlib_keras_evaluate": "madlib_keras_evaluate({}, 'packed', 'o', FALSE, 3)",
    "madlib_keras_predict": "madlib_keras_predict({}, 'points', 'id', 'x', 'o', mst_key => 3)",
}


@pytest.mark.parametrize("module", INPUTS)
def test_37_input_tables_that_are_null_or_missing(bench: Workbench, module: str) -> None:
    for name in ("NULL", "''", "'  '"):
        error = refused(bench, INPUTS[module].format(name))
        assert f"{module} error: NULL/empty input table name!" in str(error)
        assert error.pgcode == "22004"
    error = refused(bench, INPUTS[module].format("'gone'"))
    assert (f"{module} error: Input table 'gone' does not exist." in str(error), error.pgcode) == (True, "42P01")


@pytest.mark.parametrize(
    ("module", "table"), [("training_preprocessor_dl", "points"), ("madlib_keras_fit_multiple", "packed")]
)
def test_37_input_tables_that_are_empty(bench: Workbench, module: str, table: str) -> None:
    for suffix in ("", "_summary") if table == "packed" else ("",):
        bench.rows(f"CREATE TABLE IF NOT EXISTS empty_{table}{suffix} AS TABLE {table}{suffix}")
    bench.rows(f"TRUNCATE empty_{table}")
    error = refused(bench, INPUTS[module].format(f"'empty_{table}'"))
    assert (f"{module} error: Input table 'empty_{table}' is empty!" in str(error), error.pgcode) == (True, "22023")


OUTPUTS = {
    "training_preprocessor_dl": "training_preprocessor_dl('points', {}, 'label', 'x')",
    "validation_preprocessor_dl": "validation_preprocessor_dl('points', {}, 'label', 'x', 'packed')",
    "load_model_selection_table": f"load_model_selection_table('models', {{}}, ARRAY[1], ARRAY[$${SGD}$$], ARRAY[''])",
    "madlib_keras_fit_multiple": f"{FIT}('packed', {{}}, 'mst', 1)",
    "madlib_keras_evaluate": "madlib_keras_evaluate('model', 'packed', {}, FALSE, 3)",
    "madlib_keras_predict": "madlib_keras_predict('model', 'points', 'id', 'x', {}, mst_key => 3)",
}


@pytest.mark.parametrize("module", OUTPUTS)
def test_38_output_tables_that_exist(bench: Workbench, module: str) -> None:
    error = refused(bench, OUTPUTS[module].format("'points'"))
    said = f"{module} error: Output table 'points' already exists. Drop it before calling the function."
    assert (said in str(error), error.pgcode) == (True, "42P07")
    assert 'DROP TABLE "public"."points";' in str(error.diag.message_hint)


def test_39_input_that_was_not_preprocessed(bench: Workbench) -> None:
    error = refused(bench, f"{FIT}('points', 'o', 'mst', 1)")
    assert "Please ensure that the input table (points) has been preprocessed." in str(error)
    error = refused(bench, "madlib_keras_evaluate('model', 'points', 'o', FALSE, 3)")
    assert "the test table (points) has been preprocessed by the image preprocessor." in str(error)


def test_40_a_selection_table_without_summary(bench: Workbench) -> None:
    bench.rows("CREATE TABLE lonely AS TABLE mst")
    error = refused(bench, f"{FIT}('packed', 'o', 'lonely', 1)")
    said = "Please ensure that the model selection table (lonely) has been created by load_model_selection_table()."
    assert (said in str(error), error.pgcode) == (True, "42P01")


UNKNOWN = {
    "loss": ("loss='nix',optimizer='SGD'", "", "Loss function nix is not supported."),
    "metric": ("loss='mse',optimizer='SGD',metrics=['nix']", "", "Metric nix is not supported."),
    "optimizer": ("loss='mse',optimizer='Nix'", "", "model_keras error: invalid optimizer name: Nix"),
    "compile key": ("loss='mse',optimizer='SGD',nix=1", "", "nix is not currently accepted as a parameter."),
    "fit key": ("loss='mse',optimizer='SGD'", "nix=1", "nix is not currently accepted as a parameter."),
    "no loss": ("optimizer='SGD'", "", "loss is a required parameter for compile"),
    "no optimizer": ("loss='mse'", "", "optimizer is a required parameter for compile"),
}


@pytest.mark.parametrize(("compiled", "fit", "said"), UNKNOWN.values(), ids=UNKNOWN)
def test_41_unknown_words_are_named(bench: Workbench, compiled: str, fit: str, said: str) -> None:
    """When they are written down, and when a table made by hand has them."""
    error = refused(
        bench, f"load_model_selection_table('models', 'o', ARRAY[1], ARRAY[$${compiled}$$], ARRAY['{fit}'])"
    )
    assert said in str(error)
    assert re.search("(Compile|Fit) param check failed for: ", str(error))
    bench.rows("CREATE TABLE IF NOT EXISTS by_hand AS TABLE mst LIMIT 1")
    bench.rows("CREATE TABLE IF NOT EXISTS by_hand_summary AS TABLE mst_summary")
    bench.rows("UPDATE by_hand SET compile_params = %s, fit_params = %s", compiled, fit)
    assert said in str(refused(bench, f"{FIT}('packed', 'o', 'by_hand', 1)"))


def test_42_iterations_and_frequency(bench: Workbench) -> None:
    for iterations in (0, -1):
        error = refused(bench, f"{FIT}('packed', 'o', 'mst', {iterations})")
        assert "madlib_keras_fit_multiple: Number of iterations cannot be < 1." in str(error)
    for frequency in (0, 3, -1):
        error = refused(bench, f"{FIT}('packed', 'o', 'mst', 2, FALSE, NULL, {frequency})")
        assert "madlib_keras_fit_multiple: metrics_compute_frequency must be in the range (1 - 2)." in str(error)


def test_43_an_input_shape_that_does_not_match(bench: Workbench) -> None:
    wide = bench.model(sequential([5], dense(3, "only", "softmax")))
    configure(bench, "wide", SGD, model=wide)
    error = refused(bench, f"{FIT}('packed', 'o', 'wide', 1)")
    assert (
        "model_keras error: Input shape [5] in the model architecture does not match the input shape [4] of column x in"
        " table packed."
    ) in str(error)


@pytest.mark.parametrize(
    "call",
    [f"{FIT}('packed', 'o', 'mst', 1, TRUE)", "madlib_keras_evaluate('model', 'packed', 'o', TRUE, 3)",
     "madlib_keras_predict('model', 'points', 'id', 'x', 'o', 'prob', TRUE, 3)"],
)  # fmt: skip
def test_44_a_gpu_that_is_not_there(bench: Workbench, call: str) -> None:
    with setting(bench, "gpus", ""):
        error = refused(bench, call)
    assert ("No GPUs configured on hosts." in str(error), error.pgcode) == (True, "55000")
    assert error.diag.message_hint


@pytest.mark.parametrize("name", ["load_keras_model", "training_preprocessor_dl", FIT, "madlib_keras_predict"])
def test_45_functions_explain_themselves(bench: Workbench, name: str) -> None:
    assert f"{name}(" in bench.value(f"SELECT {name}()")
    for message in ("usage", "help", "?"):
        assert "Example:" in bench.value(f"SELECT {name}('{message}')")


def test_46_one_message_per_iteration(job: list[str]) -> None:
    """All of them, in MADlib's words, with the numbers of the configurations where metrics were computed."""
    text = "".join(job)
    trained = [int(number) for number in re.findall(r"Time for training in iteration (\d+): [0-9.]+ sec", text)]
    assert trained == list(range(1, ITERATIONS + 1))
    for kind in ("Training", "Validation"):
        told = re.findall(rf"{kind} set after iteration (\d+):", text)
        assert told == ["2", "4", "5"]
    assert len(re.findall(r"mst_key=(?:3|40): metric=[0-9.]+, loss=[0-9.]+", text)) == 2 * 3 * 2


def test_47_an_unprivileged_user_trains_without_running_code(bench: Workbench) -> None:
    superuser, member = bench.row(
        "SELECT rolsuper, pg_has_role(current_user, 'pg_execute_server_program', 'member') FROM pg_roles"
        " WHERE rolname = current_user"
    )
    assert (superuser, member) == (False, False)
    assert bench.value("SELECT count(*) FROM model WHERE model_weights IS NOT NULL") == 2
    layer = {"class_name": "Lambda", "config": {"name": "code", "function": "gASVAAAA"}}
    error = refused(bench, f"load_keras_model('models', '{json.dumps(json.loads(sequential([4], layer)))}')")
    assert ("class 'Lambda' is not allowed" in str(error), error.pgcode) == (True, "0A000")


@pytest.mark.parametrize(
    "call",
    [
        "load_custom_function('own', 'def own(a, b): pass'::bytea, 'own')",
        "load_custom_function('own', 'def own(a, b): pass', 'own')",
        "load_top_k_accuracy_function('own', 3)",
        "delete_custom_function('own', 1)",
        "delete_custom_function('own', 'own')",
    ],
)
def test_47_only_a_superuser_registers_python_objects(bench: Workbench, call: str) -> None:
    error = refused(bench, call)
    assert ("only a superuser may register or delete custom functions" in str(error), error.pgcode) == (True, "42501")


def test_47_nothing_of_a_user_s_table_is_loaded(bench: Workbench) -> None:
    """A table of the user's own is no object table, whatever is in it."""
    bench.rows(
        "CREATE TABLE own_objects AS SELECT 1 AS id, 'own'::text AS name, NULL::text AS description,"
        " 'def own(a, b): pass'::bytea AS object"
    )
    configured = (
        "load_model_selection_table('models', 'o', ARRAY[1], ARRAY[$$optimizer='SGD()',loss='own'$$], ARRAY[''],"
    )
    error = refused(bench, f"{configured} 'own_objects')")
    assert ("object table 'own_objects' does not exist" in str(error), error.pgcode) == (True, "42P01")
    error = refused(bench, f"{configured} 'public.own_objects')")
    assert error.pgcode == "22023"
