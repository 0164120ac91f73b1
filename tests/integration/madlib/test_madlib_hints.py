"""Hints of MADlib's functions, and of runs that these began, can be followed to the letter."""

from __future__ import annotations

import pytest
from followed_hints import Call, error_of, follow, read_hint, read_statements, read_ways
from models import dense, sequential
from workbench import Workbench, compile_text, several

FIT_WORKERS = 1
ONE_UNIT = sequential([4], dense(1, "out", "linear"))
WEIGHTS = "\\x" + "00" * 4 * 5
PACKING = "training_preprocessor_dl"
FIT = Call(
    "madlib_fit_multiple_model",
    {
        "source_table": "'packed'",
        "model_output_table": "'model'",
        "model_selection_table": "'mst'",
        "num_iterations": "1",
        "seed": "1",
    },
)
PLAN = Call(
    "cerebro.plan_fit",
    {"source_table": "'packed'", "model_selection_table": "'mst'", "num_iterations": "2"},
)


def change(call: Call, **arguments: str) -> Call:
    """Return a call with other arguments, as they are typed."""
    return call._replace(arguments={**call.arguments, **arguments})


@pytest.fixture(scope="module")
def run_id(bench: Workbench) -> int:
    """The run of one configuration; beside its tables is a network that was loaded with weights."""
    bench.pack("packed", 2)
    bench.model(ONE_UNIT)
    bench.rows("SELECT load_keras_model('weighted', %s::json, %s::bytea)", ONE_UNIT, WEIGHTS)
    bench.configure("mst", several(1))
    bench.rows(str(FIT))
    return bench.newest_run()


def test_a_table_of_the_output_s_name_is_dropped(bench: Workbench, run_id: int) -> None:
    bench.rows("CREATE TABLE again AS SELECT 1; CREATE TABLE again_summary AS SELECT 1")
    call = Call(
        PACKING,
        {
            "source_table": "'points'",
            "output_table": "'again'",
            "dependent_varname": "'label'",
            "independent_varname": "'x'",
        },
    )
    read_statements(error_of(bench, call), "DROP TABLE {};")
    assert all(follow(bench, call, "DROP TABLE IF EXISTS again, again_summary"))


LIST_MODELS = "SELECT model_id, name FROM {};"
SELECTION = Call(
    "load_model_selection_table",
    {
        "model_arch_table": "'models'",
        "model_selection_table": "'other_mst'",
        "model_id_list": "ARRAY[{}]",
        "compile_params_list": f"ARRAY[$${compile_text()}$$]",
        "fit_params_list": "ARRAY['batch_size=8']",
    },
)
BYOM = Call(
    "madlib_predict_byom",
    {
        "model_arch_table": "'weighted'",
        "model_id": "{}",
        "test_table": "'points'",
        "id_col": "'id'",
        "independent_varname": "'x'",
        "output_table": "'byom'",
        "pred_type": "'response'::varchar",
    },
)
PREDICT = Call(
    "madlib_predict",
    {
        "model_table": "'model'",
        "test_table": "'points'",
        "id_col": "'id'",
        "independent_varname": "'x'",
        "output_table": "'predicted'",
        "pred_type": "'response'::varchar",
        "mst_key": "{}",
    },
)
EVALUATE = Call(
    "madlib_evaluate",
    {
        "model_table": "'model'",
        "test_table": "'packed'",
        "output_table": "'evaluated'",
        "mst_key": "{}",
    },
)
TRAIN = Call(
    "cerebro.plan",
    {
        "source": "'points'",
        "target": "'amount'",
        "columns": "'x'",
        "models": "ARRAY['models:{}']",
        "configs": "1",
        "epochs": "1",
    },
)
MISSING = {
    "networks of a selection table": (SELECTION, "99", LIST_MODELS),
    "a selection table without networks": (SELECTION, "NULL::integer", LIST_MODELS),
    "a network to predict with": (BYOM, "99", LIST_MODELS),
    "a network to train": (TRAIN, "99", LIST_MODELS),
    "a network to delete": (
        Call("delete_keras_model", {"keras_model_arch_table": "'spare'", "model_id": "{}"}),
        "99",
        LIST_MODELS,
    ),
    "a configuration to predict with": (PREDICT, "99", "SELECT mst_key FROM {};"),
    "a configuration to evaluate": (
        EVALUATE,
        "NULL",
        "SELECT mst_key, training_loss_final FROM {} ORDER BY 2;",
    ),
}
"""Calls with a key that does not exist, which the statement of the hint lists."""


@pytest.mark.parametrize("case", MISSING)
def test_a_key_that_a_hint_lists_is_taken(bench: Workbench, run_id: int, case: str) -> None:
    call, wrong, template = MISSING[case]
    bench.rows(
        "DROP TABLE IF EXISTS spare, other_mst, other_mst_summary; "
        "CREATE TABLE spare AS TABLE models"
    )

    def write(key: object) -> Call:
        return call._replace(
            arguments={name: value.format(key) for name, value in call.arguments.items()}
        )

    (statement,) = read_statements(error_of(bench, write(wrong)), template)
    keys = [row[0] for row in bench.rows(statement)]
    assert keys and bench.rows(str(write(keys[-1])))


@pytest.mark.parametrize("name", ["compile_params_list", "fit_params_list"])
def test_parameters_of_configurations_are_written(bench: Workbench, run_id: int, name: str) -> None:
    arguments = {**SELECTION.arguments, "model_id_list": "ARRAY[1]", name: "NULL"}
    call = SELECTION._replace(arguments={**arguments, "model_selection_table": "'written_mst'"})
    read_hint(error_of(bench, call), "For example {} => ARRAY[{}].")
    assert all(follow(bench, call, "DROP TABLE IF EXISTS written_mst, written_mst_summary"))


def test_a_function_that_a_hint_lists_is_deleted(shared_superuser: Workbench) -> None:
    shared_superuser.rows("SELECT madlib.load_top_k_accuracy_function('few_functions', 2)")
    call = Call("madlib.delete_custom_function", {"object_table": "'few_functions'", "id": "99"})
    template = "SELECT id, name, description FROM {};"
    (statement,) = read_statements(error_of(shared_superuser, call), template)
    ((key, *_),) = shared_superuser.rows(statement)
    shared_superuser.rows(str(change(call, id=str(key))))
    assert not shared_superuser.exists("madlib.few_functions")


def test_outputs_are_counted(bench: Workbench, run_id: int) -> None:
    call = BYOM._replace(arguments={**BYOM.arguments, "model_id": "1", "output_table": "'counted'"})
    call = change(call, dependent_count="3")
    read_hint(error_of(bench, call), "Write dependent_count => {}.")
    assert all(follow(bench, call, "DROP TABLE IF EXISTS counted"))


POPULATION = 'Write search_params => \'{"configs": 8, "space": {}}\'.'
WRONG_PLANS = {
    "Leave strategy out. For one trainer with all cores write workers => 1.": change(
        PLAN, strategy="'data parallel'"
    ),
    POPULATION: change(PLAN, search="'pbt'"),
}


@pytest.mark.parametrize("template", WRONG_PLANS)
def test_a_plan_of_a_fit_succeeds_as_its_hint_writes_it(
    bench: Workbench, run_id: int, template: str
) -> None:
    call = WRONG_PLANS[template]
    read_hint(error_of(bench, call), template)
    assert all(follow(bench, call))


def test_a_replay_is_a_schedule(bench: Workbench, run_id: int) -> None:
    call = change(PLAN, replay_run=str(run_id), num_iterations="1")
    read_hint(error_of(bench, call), "Add schedule => 'replay'.")
    assert all(follow(bench, call))


def test_measurements_are_packed_for_regression(bench: Workbench, run_id: int) -> None:
    """The hint is about the packed table of the call, which is made again."""
    bench.configure("regression", [compile_text(loss="mse", metrics=["mae"])], model=2)
    packing = Call(
        PACKING,
        {
            "source_table": "'points'",
            "output_table": "'measured'",
            "dependent_varname": "'amount'",
            "independent_varname": "'x'",
        },
    )
    bench.rows(str(packing))
    call = change(PLAN, source_table="'measured'", model_selection_table="'regression'")
    template = (
        "For regression, pack column {}, which is of type {}, with dependent_type => 'float'."
    )
    (way,) = read_ways(read_hint(error_of(bench, call), template))
    bench.rows("DROP TABLE measured, measured_summary")
    bench.rows(str(way.change(packing)))
    assert bench.rows(str(call))


def test_a_number_of_too_many_classes_is_predicted(bench: Workbench) -> None:
    bench.rows("CREATE TABLE counted AS SELECT n AS y, 1 AS x FROM generate_series(1, 65537) n")
    call = Call(
        PACKING,
        {
            "source_table": "'counted'",
            "output_table": "'counted_packed'",
            "dependent_varname": "'y'",
            "independent_varname": "'x'",
        },
    )
    read_hint(error_of(bench, call), "To predict a number write dependent_type => 'float'.")
    undo = "DROP TABLE IF EXISTS counted_packed, counted_packed_summary"
    assert all(follow(bench, call, undo))


def test_a_completed_run_is_trained_longer_or_written_again(bench: Workbench, run_id: int) -> None:
    error = error_of(bench, Call("cerebro.resume", {"run_id": str(run_id)}))
    template = (
        "To train longer, call again with the same model_output_table and warm_start => true. "
        "SELECT cerebro.write_outputs({}, 'model_of_run_{}'); writes the outputs of this run again."
    )
    (way,) = read_ways(read_hint(error, template))
    for statement in way.statements:
        bench.rows(statement)
    assert bench.weights(f"model_of_run_{run_id}") == bench.weights("model")
    bench.rows(str(way.change(FIT)))
    assert bench.weights(f"model_of_run_{run_id}") != bench.weights("model")


def test_a_table_without_states_is_trained_further_and_registered(
    bench: Workbench, run_id: int
) -> None:
    for suffix in ("", "_info", "_summary"):
        bench.rows(f"CREATE TABLE lone{suffix} AS TABLE model{suffix}")
    call = Call("cerebro.register", {"model": "'n'", "model_table": "'lone'", "mst_key": "1"})
    template = (
        "Load a network with these weights: {} Then train its model_id without warm_start, into "
        "another table."
    )
    (statement,) = read_statements(error_of(bench, call), template)
    bench.rows(statement)
    bench.rows(
        "SELECT load_model_selection_table('networks', 'loaded_mst', ARRAY[1], ARRAY[%s], "
        "ARRAY['batch_size=8'])",
        compile_text("SGD(learning_rate=1e-30)"),
    )
    further = change(FIT, model_output_table="'further'", model_selection_table="'loaded_mst'")
    bench.rows(str(further))
    assert bench.weights("further") == bench.weights("lone"), "these are the weights"
    assert bench.rows(str(change(call, model_table="'further'")))


def test_a_run_without_states_is_repeated(bench: Workbench, run_id: int) -> None:
    """The last test of the models: states of all runs are removed."""
    bench.rows(str(change(FIT, model_output_table="'original'")))
    weights = bench.weights("original")
    newest = str(bench.newest_run())
    bench.rows("SELECT cerebro.vacuum_runs('0 s')")
    call = Call("cerebro.write_outputs", {"run_id": newest, "output": "'lost'"})
    template = "Train again. For the same visits write schedule => 'replay', replay_run => {}."
    (way,) = read_ways(read_hint(error_of(bench, call), template))
    bench.rows(str(way.change(change(FIT, model_output_table="'repeated'"))))
    assert bench.weights("repeated") == weights
