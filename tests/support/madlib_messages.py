"""Each message that a user of MADlib knows, whole and in the order of its contract, with a call
that gets it.

The tables are those of `scene`. Some are given earlier than MADlib did, which is before any work.
"""

from __future__ import annotations

from models import CLASSES
from scene import COMPILE
from wrong_calls import COLUMN, EXISTS, NAME, NULL, TABLE, WRONG, Case

PACK, VALIDATE = "training_preprocessor_dl", "validation_preprocessor_dl"
LOAD, SELECT, GENERATE = "load_keras_model", "load_model_selection_table", "generate_model_configs"
FIT, EVALUATE, PREDICT = (
    "madlib_keras_fit_multiple_model",
    "madlib_keras_evaluate",
    "madlib_keras_predict",
)
RUN, ONE = "madlib_keras_fit_multiple", "madlib_keras_fit"
BYOM, AUTOML, ROUNDS = "madlib_keras_predict_byom", "madlib_keras_automl", "hyperband_schedule"
GRIDS = "$${'loss': ['mse'], 'optimizer': ['SGD'], 'lr': [0.01, 0.1, 'log']}$$, $${'epochs': [1]}$$"
NO_SHAPE = (
    '{"class_name": "Sequential", "config": {"layers": [{"class_name": "Dense", "config": '
    '{"units": 3}}]}}'
)
KNOWN_TYPES = "['linear', 'log', 'log_near_one']"


def compiled(text: str) -> str:
    """A selection of one configuration with these compile parameters."""
    return f"{SELECT}('models', 'o', ARRAY[1], ARRAY[$${text}$$], ARRAY[''])"


def grid(text: str, search: str = "", fit: str = "{}") -> str:
    """A call that generates configurations from a grid."""
    return f"{GENERATE}('models', 'o', ARRAY[1], $${text}$$, $${fit}$${search})"


COMPILED, EMPTY = f"ARRAY[$${COMPILE}$$]", "ARRAY['']"
# The functions by the names that their messages give them, with a place for an input table and one
# for an output table.
READING = {
    PACK: f"{PACK}(?, 'o', 'label', 'x')",
    VALIDATE: f"{VALIDATE}(?, 'o', 'label', 'x', 'packed')",
    "delete_keras_model": "delete_keras_model(?, 1)",
    SELECT: f"{SELECT}(?, 'o', ARRAY[1], {COMPILED}, {EMPTY})",
    GENERATE: f"{GENERATE}(?, 'o', ARRAY[1], '{{}}', '{{}}')",
    RUN: f"{FIT}(?, 'o', 'mst', 1)",
    ONE: f"{ONE}(?, 'o', 'models', 1, $${COMPILE}$$, '', 1)",
    EVALUATE: f"{EVALUATE}(?, 'packed', 'o', FALSE, 1)",
    PREDICT: f"{PREDICT}(?, 'points', 'id', 'x', 'o', mst_key => 1)",
    BYOM: f"{BYOM}(?, 1, 'points', 'id', 'x', 'o')",
    AUTOML: f"{AUTOML}(?, 'o', 'models', 'm', ARRAY[1], {GRIDS})",
}
WRITING = {
    PACK: f"{PACK}('points', ?, 'label', 'x')",
    VALIDATE: f"{VALIDATE}('points', ?, 'label', 'x', 'packed')",
    SELECT: f"{SELECT}('models', ?, ARRAY[1], {COMPILED}, {EMPTY})",
    RUN: f"{FIT}('packed', ?, 'mst', 1)",
    EVALUATE: f"{EVALUATE}('model', 'packed', ?, FALSE, 1)",
    PREDICT: f"{PREDICT}('model', 'points', 'id', 'x', ?, mst_key => 1)",
    AUTOML: f"{AUTOML}('packed', ?, 'models', 'm', ARRAY[1], {GRIDS})",
}
THERE = "Output table 'points' already exists. Drop it before calling the function."
TABLES = [
    *(Case(READING[module].replace("?", name), NULL,
    f"{module} error: NULL/empty input table name!")
      for module in READING for name in ("NULL", "'  '")),
    *(Case(READING[module].replace("?", "'gone'"), TABLE,
    f"{module} error: Input table 'gone' does not exist.")
      for module in READING),
    *(Case(WRITING[module].replace("?", name), NULL,
    f"{module} error: NULL/empty output table name!")
      for module in WRITING for name in ("NULL", "''")),
    *(Case(WRITING[module].replace("?", "'points'"), EXISTS,
    f"{module} error: {THERE}") for module in WRITING),
    Case(f"{FIT}('packed', 'o', 'mst', 1, FALSE, 'gone')", TABLE,
    f"{RUN} error: Input table 'gone' does not exist."),
    *(Case(call, WRONG, f"{module} error: Input table '{table}' is empty!") for call, module,
    table in [
        (f"{PACK}('nothing', 'o', 'label', 'x')", PACK, "nothing"),
        (f"{FIT}('drained', 'o', 'mst', 1)", RUN, "drained"),
        (f"{FIT}('packed', 'o', 'mst', 1, FALSE, 'drained')", RUN, "drained"),
        (f"{FIT}('packed', 'o', 'empty_mst', 1)", RUN, "empty_mst"),
        (f"{EVALUATE}('model', 'drained', 'o', FALSE, 1)", EVALUATE, "drained"),
    ]),
    *(Case(call, NAME, f"{module} error: Invalid output table name a.b.c") for call, module in [
        (f"{PACK}('points', 'a.b.c', 'label', 'x')", PACK), (f"{FIT}('packed', 'a.b.c', 'mst', 1)",
        RUN),
        (f"{EVALUATE}('model', 'packed', 'a.b.c', FALSE, 1)", EVALUATE),
        (f"{PREDICT}('model', 'points', 'id', 'x', 'a.b.c', mst_key => 1)", PREDICT),
    ]),
    Case(f"{PACK}('points', 'o', 'gone', 'x')", COLUMN,
         f"{PACK} error: Column 'gone' does not exist in table 'points'!"),
]  # fmt: skip
PREPROCESSED = [
    Case(
        f"{FIT}('packed', 'o', 'alone', 1)",
        TABLE,
        "Please ensure that the model selection table (alone) has been"
        " created by load_model_selection_table().",
    ),
    Case(
        f"{FIT}('posing', 'o', 'mst', 1)",
        COLUMN,
        f"{RUN}: invalid column name ('x_shape') for table (posing). Please"
        " ensure that the input table (posing) has been preprocessed.",
    ),
    Case(
        f"{FIT}('old_packed', 'o', 'mst', 1)",
        "42809",
        "Input table 'old_packed' was preprocessed with an older version of the input "
        "preprocessor. Please re-run the current version of input preprocessor on the dataset.",
    ),
    Case(
        f"{EVALUATE}('model', 'points', 'o', FALSE, 1)",
        "42809",
        "Please ensure that the test table (points) has been"
        " preprocessed by the image preprocessor.",
    ),
    Case(
        f"{VALIDATE}('points', 'o', 'label', 'x', 'points')",
        "42809",
        "Please ensure that table 'points' has been preprocessed using training_preprocessor_dl().",
    ),
    Case(
        f"{PACK}('points', 'o', 'label', 'x', 0)",
        WRONG,
        f"{PACK}: The buffer size has to be a positive integer or NULL.",
    ),
    Case(
        f"{PACK}('points', 'o', 'label', 'x', 1, 0)",
        WRONG,
        f"{PACK}: The normalizing constant has to be a positive integer or NULL.",
    ),
    Case(
        f"{PACK}('points', 'o', 'label', 'x', 1, 1, ARRAY[2])",
        WRONG,
        "Invalid num_classes value specified. It must be"
        " equal to or greater than distinct class values found in table (3).",
    ),
    Case(
        f"{VALIDATE}('other_classes', 'o', 'label', 'x', 'packed')",
        WRONG,
        "the class values in other_classes (highx,"
        " lowx, middlex) should be a subset of class values in packed (high, low, middle)",
    ),
]
ARCHITECTURES = [
    Case(
        f"{FIT}('packed', 'o', 'wide_mst', 1)",
        "42804",
        "model_keras error: Input shape [5] in the model architecture"
        " does not match the input shape [4] of column x in table packed.",
    ),
    Case(
        f"{LOAD}('models', '{NO_SHAPE}')",
        WRONG,
        "Unable to get input shape from model architecture. Make sure that the"
        " first layer defines an input_shape.",
    ),
    Case(f"{LOAD}('models', '[1]')", "22P02", "Unable to read model architecture JSON."),
    Case(
        f"{LOAD}('models', '{CLASSES}', 'abc'::bytea)",
        "22P02",
        "Keras Model Arch: model_weights has 3 bytes; expected a multiple of 4",
    ),
    Case(
        f"{LOAD}('points', '{CLASSES}')",
        COLUMN,
        "Keras Model Arch: Invalid keras model architecture table points, missing columns: "
        "model_id, model_arch, model_weights, name, description, __internal_madlib_id__",
    ),
    Case("delete_keras_model('models', 99)", "42704", "Keras Model Arch: Model id 99 not found"),
    Case(
        f"{FIT}('packed', 'o', 'no_model_mst', 1)",
        "42704",
        "no model arch found in table models with id 77",
    ),
]
PARAMETERS = [
    Case(compiled(f"{COMPILE},nix=1"), WRONG, "nix is not currently accepted as a parameter."),
    Case(compiled("optimizer='SGD(lr=\"fast\")',loss='mse'"), WRONG,
         "invalid input value for parameter lr='fast', please refer to the documentation"),
    Case(compiled("loss='mse'"), WRONG, "optimizer is a required parameter for compile"),
    Case(compiled("optimizer='SGD'"), WRONG, "loss is a required parameter for compile"),
    Case(compiled("optimizer='Nix',loss='mse'"), WRONG,
    "model_keras error: invalid optimizer name: Nix"),
    Case(compiled("optimizer='SGD',loss='nix'"), WRONG, "Loss function nix is not supported."),
    Case(compiled("optimizer='SGD',loss='mse',metrics=['nix']"), WRONG,
    "Metric nix is not supported."),
    Case(compiled("optimizer='SGD',loss='nix'"), WRONG,
         "Compile param check failed for: \"optimizer='SGD',loss='nix'\""),
    Case(compiled(f"{COMPILE},sample_weight_mode='temporal'"), "0A000",
         "sample_weight_mode='temporal' is not supported"),
    Case(f"{SELECT}('models', 'o', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY['nix=1'])", WRONG,
         "Fit param check failed for: 'nix=1'"),
    Case(f"{SELECT}('models', 'o', ARRAY[1], NULL, ARRAY[''])", NULL,
    "compile_params_list cannot be NULL"),
    Case(f"{SELECT}('models', 'o', ARRAY[1], ARRAY[$${COMPILE}$$], NULL)", NULL,
    "fit_params_list cannot be NULL"),
    Case(f"{SELECT}('models', 'o', ARRAY[1, 77], ARRAY[$${COMPILE}$$], ARRAY[''])", "42704",
         f"{SELECT}: One or more model_id of (1, 77) not found in table models"),
]  # fmt: skip
GRID = [
    Case(grid("x"), "22P02", "Invalid syntax in 'compile_params_dict'"),
    Case(grid("{'loss': ['mse']}", fit="x"), "22P02", "Invalid syntax in 'fit_params_dict'"),
    Case(grid("{'loss': 'mse'}"), WRONG, "DL: compile param values must be specified in a list"),
    Case(
        grid("{'loss': ['mse']}", fit="{'epochs': 1}"),
        WRONG,
        "DL: fit param values must be specified in a list",
    ),
    Case(
        grid("{'loss': ['mse']}", ", 'best'"),
        WRONG,
        "DL: 'search_type' must be either 'grid' or 'random'",
    ),
    Case(
        grid("{'loss': ['mse']}", ", 'grid', 3"),
        WRONG,
        "DL: 'num_configs' and 'random_state' must be NULL for grid search",
    ),
    Case(
        grid("{'loss': ['mse'], 'lr': [1, 2, 'log']}"),
        WRONG,
        "DL: Cannot search from a distribution with grid search",
    ),
    Case(
        grid("{'loss': ['mse']}", ", 'random'"),
        WRONG,
        "DL: 'num_configs' cannot be NULL and needs to be a natural number for random search",
    ),
    Case(
        grid("{'loss': ['mse'], 'lr': [1, 'log']}", ", 'random', 1"),
        WRONG,
        "DL: 'lr' should have exactly 3 elements if picking from a distribution",
    ),
    Case(
        grid("{'loss': ['mse'], 'lr': [2, 1, 'log']}", ", 'random', 1"),
        WRONG,
        "DL: 'lr' should be of the format [lower_bound, upper_bound, distribution_type]",
    ),
    Case(
        grid("{'loss': ['mse'], 'lr': [1, 2, 'lag']}", ", 'random', 1"),
        WRONG,
        f"DL: Please choose a valid distribution type for 'lr': {KNOWN_TYPES}",
    ),
    Case(
        grid("{'loss': ['mse'], 'lr': [1], 'optimizer_params_list': [{'optimizer': ['SGD']}]}"),
        WRONG,
        "DL: 'optimizer_params_list' key should only contain 'optimizer' and/or optimizer related "
        "params and no such params should reside out of the key",
    ),
    Case(
        f"{GENERATE}('other_models', 'mst', ARRAY[1], $${{'loss': ['mse']}}$$, $${{'epochs': "
        f"[1]}}$$)",
        WRONG,
        "DL: Inconsistent model arch table. Use 'models' if appending rows to 'mst'",
    ),
]
TRAINING = [
    Case(f"{FIT}('packed', 'o', 'mst', 0)", WRONG, f"{RUN}: Number of iterations cannot be < 1."),
    Case(
        f"{FIT}('packed', 'o', 'mst', 3, FALSE, NULL, 4)",
        WRONG,
        f"{RUN}: metrics_compute_frequency must be in the range (1 - 3).",
    ),
    Case(f"{FIT}('packed', 'o', 'mst', 1, TRUE)", "55000", "No GPUs configured on hosts."),
]
MODELS = [
    Case(
        f"{PREDICT}('model', 'points', 'id', 'x', 'o', 'best', FALSE, 1)",
        WRONG,
        f"{PREDICT}: Invalid value for pred_type param (best). Must be integer>0, double precision "
        "in the range [0.0,1.0), 'response' or 'prob'.",
    ),
    Case(
        f"{PREDICT}('model', 'points', 'gone', 'x', 'o', mst_key => 1)",
        COLUMN,
        f"{PREDICT} error: invalid id column ('gone') for test table (points).",
    ),
    Case(
        f"{PREDICT}('model', 'points', 'id', 'gone', 'o', mst_key => 1)",
        COLUMN,
        f"{PREDICT} error: invalid independent_varname ('gone') for test table (points).",
    ),
    *(
        Case(call, WRONG, f"{module}: Single model should not pass mst_key")
        for call, module in [
            (f"{EVALUATE}('single', 'packed', 'o', FALSE, 1)", EVALUATE),
            (f"{PREDICT}('single', 'points', 'id', 'x', 'o', mst_key => 1)", PREDICT),
        ]
    ),
    *(
        Case(call, NULL, f"{module}: Multi-model needs to pass mst_key")
        for call, module in [
            (f"{EVALUATE}('model', 'packed', 'o')", EVALUATE),
            (f"{PREDICT}('model', 'points', 'id', 'x', 'o')", PREDICT),
        ]
    ),
    *(
        Case(call, "42704", f"{module}: mst_key 7 does not exist in the info table")
        for call, module in [
            (f"{EVALUATE}('model', 'packed', 'o', FALSE, 7)", EVALUATE),
            (f"{PREDICT}('model', 'points', 'id', 'x', 'o', mst_key => 7)", PREDICT),
        ]
    ),
    Case(
        f"{EVALUATE}('lonely', 'packed', 'o', FALSE, 1)",
        "42809",
        f"{EVALUATE}: Missing summary and/or info tables for lonely",
    ),
    Case(
        f"{EVALUATE}('points', 'packed', 'o', FALSE, 1)",
        COLUMN,
        f"{EVALUATE} error: column 'model_weights' does not exist in model table 'points'.",
    ),
    Case(
        f"{EVALUATE}('strange', 'packed', 'o', FALSE, 1)",
        COLUMN,
        "One or more expected columns missing in model summary table ('strange_summary').",
    ),
]
CALLBACKS = [
    Case(
        f"{SELECT}('models', 'o', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY['callbacks=[]'])",
        WRONG,
        "Invalid callbacks fit param.  Currently, only TensorBoard and EarlyStopping callbacks "
        "are accepted.",
    ),
    Case(
        f"{SELECT}('models', 'o', ARRAY[1], ARRAY[$${COMPILE}$$], "
        "ARRAY[$$callbacks=[TensorBoard(log_dir='/tmp')]$$])",
        "42501",
        "Only a superuser may use callbacks.",
    ),
    Case(
        f"{SELECT}('models', 'o', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY[''], 'public.points')",
        WRONG,
        "DL: Custom function table has to be in the madlib schema",
    ),
]
OWN_MODELS = [
    Case(
        f"{BYOM}('own_models', 2, 'points', 'id', 'x', 'o')",
        NULL,
        f"{BYOM}: Model weights and architecture should not be NULL.",
    ),
    Case(
        f"{BYOM}('own_models', 5, 'points', 'id', 'x', 'o')",
        "MS001",
        "Number of elements in model weights(1) doesn't match model(67)",
    ),
    Case(
        f"{BYOM}('own_models', 1, 'points', 'id', 'x', 'o', class_values => ARRAY['a', 'b'])",
        WRONG,
        f"{BYOM}: The number of class values do not match the provided architecture.",
    ),
]


def searching(method: str, params: str, message: str) -> Case:
    """A search whose tables are right."""
    return Case(
        f"{AUTOML}('packed', 'o', 'models', 'm', ARRAY[1], {GRIDS}, {method}, {params})",
        WRONG,
        message,
    )


SEARCHES = [
    searching("'hyperbrand'", "NULL", "the chosen automl method must be 'hyperband' or 'hyperopt'"),
    searching("'hyperband'", "'R=2, eta=3'", f"{AUTOML}: R should not be less than eta"),
    searching("'hyperband'", "'R=9, eta=1'", f"{AUTOML}: eta must be greater than 1"),
    searching(
        "'hyperband'", "'R=9, eta=3, skip_last=3'", "skip_last must be non-negative and less than 3"
    ),
    searching(
        "'hyperband'",
        "'R=9, rounds=2'",
        "Invalid param(s) passed in for hyperband. Only R, eta, and skip_last may be specified",
    ),
    searching(
        "'hyperopt'",
        "'algorithm=atpe'",
        "valid algorithm 'automl_params' for hyperopt: 'rand', 'tpe'",
    ),
    searching(
        "'hyperopt'",
        "'num_configs=0'",
        "num_configs and num_iterations in 'automl_params' must be > 0",
    ),
    searching(
        "'hyperopt'",
        "'R=6'",
        "Invalid param(s) passed in for hyperopt. Only num_configs, num_iterations, and algorithm "
        "may be",
    ),
    Case(f"{ROUNDS}('o', 9, 1)", WRONG, f"{ROUNDS}: eta must be greater than 1"),
    Case(f"{ROUNDS}('o', 2, 3)", WRONG, f"{ROUNDS}: R should not be less than eta"),
    Case(
        f"{ROUNDS}('o', 9, 3, 3)",
        WRONG,
        f"{ROUNDS}: skip_last must be non-negative and less than 3",
    ),
]
MESSAGES = [
    *TABLES,
    *PREPROCESSED,
    *ARCHITECTURES,
    *PARAMETERS,
    *GRID,
    *TRAINING,
    *MODELS,
    *CALLBACKS,
    *OWN_MODELS,
    *SEARCHES,
]
