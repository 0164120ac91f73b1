"""Architecture tables and model selection tables, as MADlib's users know them."""

from __future__ import annotations

import itertools
import json
from typing import Any

import networks
import psycopg2
import pytest
from models import CLASSES, dense, layer, perceptron, sequential
from processes import eventually
from workbench import Workbench, compile_text

Json = dict[str, Any]
numbers = itertools.count(1)
GRID = "SELECT generate_model_configs(%s, %s, %s, %s, %s)"
RANDOM = "SELECT generate_model_configs(%s, %s, %s, %s, %s, %s, %s, %s)"
LOSS = "{'loss': ['mse'], 'optimizer': ['SGD']}"


@pytest.fixture
def desk(bench: Workbench) -> Workbench:
    """The shared session in a schema of the test's own, with two architectures in `models`."""
    schema = f"schema_{next(numbers)}"
    bench.rows(f"CREATE SCHEMA {schema}; SET search_path = {schema}, madlib")
    for units in (2, 3):
        bench.rows("SELECT load_keras_model('models', %s)", perceptron(units, "softmax"))
    bench.messages()
    return bench


def load(bench: Workbench, architecture: str | Json, table: str = "models") -> int:
    """Load an architecture; its model_id."""
    text = architecture if isinstance(architecture, str) else json.dumps(architecture)
    bench.rows("SELECT load_keras_model(%s, %s)", table, text)
    return int(bench.value(f"SELECT max(model_id) FROM {table}"))


def configs(bench: Workbench, table: str) -> list[tuple[int, str, str]]:
    """Model, compile and fit parameters of a model selection table, by key."""
    found = bench.rows(
        f"SELECT mst_key, model_id, compile_params, fit_params FROM {table} ORDER BY mst_key"
    )
    assert [row[0] for row in found] == list(range(1, len(found) + 1)), "keys are numbered from 1"
    return [(model, compiled, fit) for _, model, compiled, fit in found]


def test_the_first_load_makes_the_table(desk: Workbench) -> None:
    desk.rows("SELECT load_keras_model('arch', %s, NULL, 'small', 'of three classes')", CLASSES)
    assert desk.messages() == [
        "INFO:  Keras Model Arch: Created new keras model architecture table arch.\n",
        "INFO:  Keras Model Arch: Added model id 1 to arch table\n",
    ]
    columns = desk.rows(
        "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'arch'::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert columns == [
        ("model_id", "integer"),
        ("model_arch", "json"),
        ("model_weights", "bytea"),
        ("name", "text"),
        ("description", "text"),
        ("__internal_madlib_id__", "text"),
    ]
    row = desk.row("SELECT model_id, model_arch, model_weights, name, description FROM arch")
    assert row == (1, json.loads(CLASSES), None, "small", "of three classes")


def test_ids_go_up_and_internal_ids_differ(desk: Workbench) -> None:
    assert load(desk, CLASSES) == 3
    assert desk.messages() == ["INFO:  Keras Model Arch: Added model id 3 to models table\n"]
    assert desk.value("SELECT count(DISTINCT __internal_madlib_id__) FROM models") == 3


def test_deleting_the_last_model_drops_the_table(desk: Workbench) -> None:
    desk.rows("SELECT delete_keras_model('models', 1)")
    assert desk.rows("SELECT model_id FROM models") == [(2,)]
    desk.rows("SELECT delete_keras_model('models', 2)")
    assert not desk.exists("models")
    assert desk.messages() == [
        f"INFO:  Keras Model Arch: Model id {number} has been deleted from models.\n"
        for number in (1, 2)
    ]


WAITS = {
    "models": "SELECT FROM pg_locks l WHERE l.pid = %s AND NOT l.granted",
    "new_models": "SELECT FROM pg_locks l WHERE l.pid = %s AND l.relation = 'pg_locks'::regclass",
}
"""Whether a session waits for the lock of a table; or has looked who makes one, which it does as
long as it waits.
"""


@pytest.mark.parametrize("table", WAITS, ids=["existing table", "new table"])
def test_concurrent_loads_get_different_ids(desk: Workbench, table: str) -> None:
    other, watcher = desk.another(), desk.another()
    other.rows(f"SET search_path = {desk.value('SHOW search_path')}")
    desk.rows("BEGIN")
    first = load(desk, CLASSES, table)
    with other.calling(lambda: load(other, CLASSES, table)) as second:
        eventually(lambda: second.done() or watcher.rows(WAITS[table], other.pid()))
        desk.rows("COMMIT")
        assert second.result() == first + 1
    other.close()
    watcher.close()


def keras_2(*layers: Json, listed: bool = False) -> str:
    """A model as Keras 2 wrote it, or as Keras before 2.2.3 did."""
    config = list(layers) if listed else {"name": "sequential_1", "layers": list(layers)}
    return json.dumps({"class_name": "Sequential", "keras_version": "2.1.6", "config": config})


OLD_DENSE = {
    "class_name": "Dense",
    "config": {
        "name": "dense_1", "trainable": True, "batch_input_shape": [None, 4], "dtype": "float32",
        "units": 3,
        "activation": "softmax", "use_bias": True, "kernel_regularizer": None,
        "kernel_initializer": {
            "class_name": "VarianceScaling",
            "config": {"scale": 1.0, "mode": "fan_avg", "distribution": "uniform", "seed": None},
        },
        "bias_initializer": {"class_name": "Zeros", "config": {}},
    },
}  # fmt: skip
ACCEPTED = {
    "Keras 3": CLASSES,
    "Keras 2": keras_2(OLD_DENSE),
    "Keras before 2.2.3": keras_2(OLD_DENSE, listed=True),
    "functional": json.dumps({
        "class_name": "Functional", "module": "keras.src.models.functional",
        "registered_name": "Functional",
        "config": {
            "name": "functional", "trainable": True,
            "layers": [
                {"module": "keras.layers", "class_name": "InputLayer", "registered_name": None,
                "name": "i",
                 "config": {"batch_shape": [None, 4], "dtype": "float32", "name": "i"},
                 "inbound_nodes": []},
                {"module": "keras.layers", "class_name": "Dense", "registered_name": None,
                "name": "o",
                 "config": {"name": "o", "units": 3, "activation": "softmax"},
                 "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__",
                                              "config": {"shape": [None, 4], "dtype": "float32",
                                                         "keras_history": ["i", 0, 0]}}],
                                                         "kwargs": {}}]},
            ],
            "input_layers": [["i", 0, 0]], "output_layers": [["o", 0, 0]],
        },
    }),
    "a backbone of keras_hub": json.dumps(networks.vit()),
}  # fmt: skip


@pytest.mark.parametrize("architecture", ACCEPTED.values(), ids=ACCEPTED)
def test_architectures_of_any_keras_are_accepted(desk: Workbench, architecture: str) -> None:
    number = load(desk, architecture)
    assert desk.value("SELECT model_arch FROM models WHERE model_id = %s", number) == json.loads(
        architecture
    )


CODE = layer(
    "Lambda", "code", function={"class_name": "__lambda__", "config": {"code": "4wEAAA=="}}
)
FOREIGN = {**dense(3, "o"), "module": "os.path"}
REFUSED = {
    "Lambda": (sequential([4], CODE), "0A000", "class 'Lambda' is not allowed as layer"),
    "Lambda in Keras 2": (keras_2(OLD_DENSE, {"class_name": "Lambda", "config": {}}), "0A000",
    "'Lambda'"),
    "unknown class": (sequential([4], layer("MyDense", "o", units=3)), "0A000", "'MyDense'"),
    "foreign module": (sequential([4], FOREIGN), "0A000", "'os.path'"),
    "registered elsewhere": (
        sequential([4], {**dense(3, "o"), "registered_name": "mine>Dense"}), "0A000", "mine>Dense"),
    "unknown activation": (sequential([4], dense(3, "o", "evil")), "0A000", "'evil'"),
    "Lambda within a wrapper": (
        sequential([4, 4], layer("TimeDistributed", "t", layer=CODE)), "0A000", "'Lambda'"),
    "look-up table": (
        sequential([4], layer("StringLookup", "l", vocabulary="/etc/passwd")), "0A000",
        "'StringLookup'"),
    "task of keras_hub": (
        sequential([6], networks.of_hub("BertTextClassifier", "t", num_classes=3)), "0A000",
        "'BertTextClassifier' of keras_hub"),
    "preset": (sequential([6], networks.bert(preset="bert_base_en")), "0A000",
    "preset 'bert_base_en'"),
    "backbone of a million layers": (
        sequential([6], networks.bert(num_layers=10**6)), "22023",
        "BertBackbone has 1000000 layers"),
    "no model": ('{"class_name": "Dense", "config": {}}', "0A000",
    "'Dense' is not allowed as the model"),
    "no input shape": (
        json.dumps({"class_name": "Sequential", "config": {"layers": [dense(3, "o")]}}), "22023",
        "Unable to get input shape from model architecture"),
    "an array": ("[1, 2]", "22P02", "Unable to read model architecture JSON."),
    "a number": ("3", "22P02", "Unable to read model architecture JSON."),
    "no layers": ('{"class_name": "Sequential", "config": {"layers": 3}}', "22P02",
    "Unable to read"),
    "no JSON": ("model", "22P02", "Unable to read model architecture JSON."),
    "enormous": (sequential([4], dense(2**31, "a"), dense(2**31, "b")), "22023", ""),
    "deep": ("[" * 2000 + "]" * 2000, "22P02", "Unable to read"),
}  # fmt: skip


@pytest.mark.parametrize(("architecture", "sqlstate", "words"), REFUSED.values(), ids=REFUSED)
def test_other_architectures_are_refused(
    desk: Workbench, architecture: str, sqlstate: str, words: str
) -> None:
    with pytest.raises(psycopg2.Error) as refused:
        load(desk, architecture)
    assert refused.value.pgcode == sqlstate
    assert words in str(refused.value.diag.message_primary)
    assert desk.value("SELECT count(*) FROM models") == 2


def test_weights_are_kept_as_they_are(desk: Workbench) -> None:
    weights = bytes(range(256)) * 4
    desk.rows("SELECT load_keras_model('models', %s, %s)", CLASSES, weights)
    assert bytes(desk.value("SELECT model_weights FROM models WHERE model_id = 3")) == weights


def test_weights_that_are_no_numbers_are_refused(desk: Workbench) -> None:
    with pytest.raises(
        psycopg2.errors.InvalidTextRepresentation, match="model_weights has 6 bytes"
    ):
        desk.rows("SELECT load_keras_model('models', %s, %s)", CLASSES, b"six...")


def test_loading_is_undone_with_its_transaction(desk: Workbench) -> None:
    desk.rows("BEGIN")
    load(desk, CLASSES, "brief")
    desk.rows("ROLLBACK")
    assert not desk.exists("brief")


def test_a_loaded_selection_is_the_cross_product(desk: Workbench) -> None:
    first, second = compile_text("Adam(lr=0.1)"), compile_text("SGD()", loss="mse", metrics=())
    desk.rows(
        "SELECT load_model_selection_table('models', 'chosen', ARRAY[1, 2], %s, %s)",
        [first, second],
        ["batch_size=8,epochs=1", ""],
    )
    assert configs(desk, "chosen") == [
        (model, compiled, fit)
        for model in (1, 2)
        for compiled in (first, second)
        for fit in ("batch_size=8,epochs=1", "")
    ]


def test_the_selection_tables_have_the_columns_of_the_contract(desk: Workbench) -> None:
    desk.configure("chosen", [compile_text()])
    query = (
        "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert desk.rows(query, "chosen") == [
        ("mst_key", "integer"),
        ("model_id", "integer"),
        ("compile_params", "character varying"),
        ("fit_params", "character varying"),
    ]
    assert desk.rows(query, "chosen_summary") == [
        ("model_arch_table", "character varying"),
        ("object_table", "character varying"),
    ]
    assert desk.rows("SELECT * FROM chosen_summary") == [("models", None)]
    constraints = (
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'chosen'::regclass "
        "ORDER BY contype"
    )
    assert desk.rows(constraints) == [
        ("PRIMARY KEY (mst_key)",),
        ("UNIQUE (model_id, compile_params, fit_params)",),
    ]


def test_the_key_of_a_row_added_by_hand_goes_on(desk: Workbench) -> None:
    desk.configure("chosen", [compile_text()])
    desk.rows("INSERT INTO chosen (model_id, compile_params, fit_params) VALUES (2, 'a', 'b')")
    assert [row[0] for row in configs(desk, "chosen")] == [1, 2]


def test_entries_that_differ_only_in_spaces_and_order_collapse(desk: Workbench) -> None:
    texts = [
        "loss='mse', optimizer='SGD(lr=0.1, momentum=0.9)'",
        "optimizer='SGD(momentum=0.9,lr=0.1)',loss='mse'",
    ]
    desk.rows(
        "SELECT load_model_selection_table('models', 'chosen', ARRAY[1, 1], %s, %s)",
        texts,
        ["batch_size=8,epochs=2", " epochs=2 , batch_size=8"],
    )
    assert configs(desk, "chosen") == [(1, texts[0], "batch_size=8,epochs=2")]


def test_a_missing_fit_text_means_the_defaults(desk: Workbench) -> None:
    desk.rows(
        "SELECT load_model_selection_table('models', 'chosen', ARRAY[1], %s, "
        "ARRAY[NULL]::varchar[])",
        [compile_text()],
    )
    assert configs(desk, "chosen") == [(1, compile_text(), "")]
    assert desk.rows("SELECT * FROM chosen_summary") == [("models", None)]


@pytest.mark.checklist(35)
def test_a_grid_is_in_madlib_s_order(desk: Workbench) -> None:
    desk.rows(
        GRID,
        "models",
        "grid",
        [1, 2],
        "{'loss': ['mse', 'mae'], 'optimizer': ['sgd'], 'lr': [0.1, 0.01], 'metrics': [['mae']]}",
        "{'batch_size': [8, 16], 'epochs': [1]}",
    )
    assert configs(desk, "grid") == [
        (
            model,
            f"optimizer='SGD(lr={rate})',loss='{loss}',metrics=['mae']",
            f"batch_size={size},epochs=1",
        )
        for loss in ("mse", "mae")
        for rate in (0.1, 0.01)
        for size in (8, 16)
        for model in (1, 2)
    ]


@pytest.mark.checklist(35)
def test_optimizers_may_have_lists_of_their_own(desk: Workbench) -> None:
    desk.rows(
        GRID,
        "models",
        "grid",
        [1],
        "{'optimizer_params_list': [{'optimizer': ['SGD'], 'lr': [0.1], 'nesterov': [True, False]},"
        " {'optimizer': ['adam', 'rmsprop']}], 'loss': ['mse']}",
        "{}",
    )
    assert [compiled for _, compiled, _ in configs(desk, "grid")] == [
        f"optimizer='{optimizer}',loss='mse'"
        for optimizer in (
            "SGD(lr=0.1,nesterov=True)",
            "SGD(lr=0.1,nesterov=False)",
            "Adam()",
            "RMSprop()",
        )
    ]


@pytest.mark.checklist(35)
def test_a_grid_is_appended_to_what_is_there_without_repeating_it(desk: Workbench) -> None:
    desk.rows(GRID, "models", "grid", [1], "{'loss': ['mse'], 'lr': [0.1]}", "{'batch_size': [8]}")
    desk.rows(
        GRID, "models", "grid", [1, 2], "{'loss': ['mse'], 'lr': [0.1]}", "{'batch_size': [8]}"
    )
    compiled = "optimizer='RMSprop(lr=0.1)',loss='mse'"
    assert configs(desk, "grid") == [(1, compiled, "batch_size=8"), (2, compiled, "batch_size=8")]
    assert desk.rows("SELECT * FROM grid_summary") == [("models", None)]
    desk.rows(
        GRID, "models", "grid", [1, 2], "{'loss': ['mse'], 'lr': [0.1]}", "{'batch_size': [8]}"
    )
    assert len(configs(desk, "grid")) == 2


def test_a_grid_is_appended_to_a_loaded_selection(desk: Workbench) -> None:
    desk.configure("chosen", [compile_text()])
    desk.rows(GRID, "models", "chosen", [1], LOSS, "{}")
    assert [row[1] for row in configs(desk, "chosen")] == [
        compile_text(),
        "optimizer='SGD()',loss='mse'",
    ]


def test_appending_over_other_architectures_is_refused(desk: Workbench) -> None:
    load(desk, CLASSES, "others")
    desk.rows(GRID, "models", "grid", [1], LOSS, "{}")
    with pytest.raises(psycopg2.errors.InvalidParameterValue) as refused:
        desk.rows(GRID, "others", "grid", [1], LOSS, "{}")
    assert "DL: Inconsistent model arch table. Use 'models' if appending rows to 'grid'" in str(
        refused.value
    )
    assert len(configs(desk, "grid")) == 1


def test_the_same_architectures_by_another_spelling_of_their_name(desk: Workbench) -> None:
    schema = desk.value("SELECT current_schema()")
    desk.rows(GRID, "models", "grid", [1], LOSS, "{}")
    desk.rows(GRID, f"{schema}.MODELS", f'{schema}."grid"', [2], LOSS, "{}")
    assert [row[0] for row in configs(desk, "grid")] == [1, 2]


def test_a_selection_whose_summary_was_dropped_is_appended_to(desk: Workbench) -> None:
    desk.rows(GRID, "models", "grid", [1], LOSS, "{}")
    desk.rows("DROP TABLE grid_summary")
    desk.rows(GRID, "models", "grid", [1, 2], LOSS, "{}")
    assert [row[0] for row in configs(desk, "grid")] == [1, 2]
    assert desk.rows("SELECT * FROM grid_summary") == [("models", None)]


def test_a_selection_means_the_same_architectures_from_every_search_path(desk: Workbench) -> None:
    """Their name is kept as it was given; the schema stands beside if it does not find them."""
    schema = desk.value("SELECT current_schema()")
    desk.rows(GRID, "models", "near", [1], LOSS, "{}")
    desk.rows(f'CREATE SCHEMA "{schema} far"; SET search_path = "{schema} far", {schema}, madlib')
    desk.rows(GRID, "models", "far", [1], LOSS, "{}")
    desk.rows("SET search_path = public, madlib")  # where there are other models
    for selection, kept, beside in (
        (f"{schema}.near", "models", None),
        (f'"{schema} far".far', f'"{schema}"."models"', schema),
    ):
        found = desk.value(f"SELECT to_jsonb(t) FROM {selection}_summary t")
        assert found["model_arch_table"] == "models"
        assert found.get("model_arch_schema") == beside
        desk.rows(GRID, f"{schema}.models", selection, [2], LOSS, "{}")
        assert [row[0] for row in configs(desk, selection)] == [1, 2]
        with pytest.raises(
            psycopg2.errors.InvalidParameterValue,
            match=f"Inconsistent model arch table. Use '{kept}'",
        ):
            desk.rows(GRID, "models", selection, [1], LOSS, "{}")


RANGES = "{'loss': ['mse', 'mae'], 'lr': [0.001, 0.1, 'log'], 'rho': [0.1, 0.9, 'linear']}"


@pytest.mark.checklist(35)
@pytest.mark.parametrize("state", [0, 1, -7])
def test_random_search_is_reproducible(desk: Workbench, state: int) -> None:
    for table, seed in (("one", state), ("two", state), ("three", state + 1)):
        desk.rows(
            RANDOM, "models", table, [1, 2], RANGES, "{'batch_size': [8, 16]}", "random", 6, seed
        )
    one, two, three = (configs(desk, table) for table in ("one", "two", "three"))
    assert one == two != three
    assert len(set(one)) == 6


def test_random_search_without_a_state_differs_each_time(desk: Workbench) -> None:
    for table in ("one", "two"):
        desk.rows(RANDOM, "models", table, [1], RANGES, "{}", "rand", 3, None)
    assert configs(desk, "one") != configs(desk, "two")


@pytest.mark.checklist(35)
@pytest.mark.parametrize("word", ["g", "gr", "GRID", "r", "rand", "Random"])
def test_search_types_may_be_shortened(desk: Workbench, word: str) -> None:
    count = 1 if word.lower().startswith("r") else None
    desk.rows(RANDOM, "models", "grid", [1], LOSS, "{}", word, count, None)
    assert configs(desk, "grid") == [(1, "optimizer='SGD()',loss='mse'", "")]


UNKNOWN = {
    "loss": ("{'loss': ['mses']}", "{}", "Loss function mses is not supported."),
    "metric": (
        "{'loss': ['mse'], 'metrics': [['accurate']]}",
        "{}",
        "Metric accurate is not supported.",
    ),
    "optimizer": ("{'loss': ['mse'], 'optimizer': ['Adm']}", "{}", "invalid optimizer name: Adm"),
    "compile key": (
        "{'loss': ['mse'], 'los': [1]}",
        "{}",
        "los is not currently accepted as a parameter.",
    ),
    "fit key": ("{'loss': ['mse']}", "{'batchsize': [1]}", "batchsize is not currently accepted"),
    "optimizer's argument": (
        "{'loss': ['mse'], 'optimizer': ['SGD'], 'beta_1': [0.9]}",
        "{}",
        "beta_1",
    ),
    "code": (
        "{'loss': [__import__('os').getcwd()]}",
        "{}",
        "Invalid syntax in 'compile_params_dict'",
    ),
}


@pytest.mark.parametrize(("compiled", "fit", "words"), UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_names_are_refused_at_generation(
    desk: Workbench, compiled: str, fit: str, words: str
) -> None:
    with pytest.raises(psycopg2.Error) as refused:
        desk.rows(GRID, "models", "grid", [1], compiled, fit)
    assert refused.value.pgcode in ("22023", "22P02")
    assert words in str(refused.value)
    assert not desk.exists("grid", "grid_summary")


def test_odd_names(desk: Workbench) -> None:
    names = {"archs": '"Arch %s ""x"""', "grid": f'"{"m" * 55}"', "chosen": '"Grid, 100%"'}
    load(desk, CLASSES, names["archs"])
    desk.rows(GRID, names["archs"], names["grid"], [1], LOSS, "{}")
    desk.rows(
        "SELECT load_model_selection_table(%s, %s, ARRAY[1], %s, ARRAY[''])",
        names["archs"],
        names["chosen"],
        [compile_text()],
    )
    assert desk.rows('SELECT model_arch_table FROM "Grid, 100%_summary"') == [(names["archs"],)]
    desk.rows(GRID, names["archs"], names["grid"], [1], LOSS.replace("mse", "mae"), "{}")
    assert len(configs(desk, names["grid"])) == 2
