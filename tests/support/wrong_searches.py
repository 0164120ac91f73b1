"""Wrong calls of AutoML, with what each is refused with; the tables are those of `scene`."""

from __future__ import annotations

from wrong_calls import COLUMN, EXISTS, NAME, NULL, TABLE, WRONG, Case

COMPILE = "$${'loss': ['categorical_crossentropy'], 'optimizer': ['SGD'], 'lr': [0.01, 0.1, 'log']}$$"
FIT = "'{''batch_size'': [8]}'"
GRIDS = f"{COMPILE}, {FIT}"


def automl(arguments: str, sqlstate: str, words: str) -> Case:
    return Case(f"madlib_keras_automl({arguments})", sqlstate, words)


def searching(more: str, sqlstate: str, words: str) -> Case:
    """A call whose tables are right."""
    return automl(f"'packed', 'o', 'models', 'm', ARRAY[1], {GRIDS}, {more}", sqlstate, words)


def spaced(compiles: str, fits: str, sqlstate: str, words: str) -> Case:
    """A call with other grids."""
    return automl(f"'packed', 'o', 'models', 'm', ARRAY[1], {compiles}, {fits}", sqlstate, words)


def schedule(arguments: str, sqlstate: str, words: str) -> Case:
    return Case(f"hyperband_schedule({arguments})", sqlstate, words)


TEXT = "22P02"
AUTOML = [
    automl(f"NULL, 'o', 'models', 'm', ARRAY[1], {GRIDS}", NULL, "madlib_keras_automl error: NULL/empty input table"),
    automl(f"'packed', NULL, 'models', 'm', ARRAY[1], {GRIDS}", NULL, "NULL/empty output table name!"),
    automl(f"'packed', 'o', NULL, 'm', ARRAY[1], {GRIDS}", NULL, "NULL/empty input table name!"),
    automl(f"'packed', 'o', 'models', NULL, ARRAY[1], {GRIDS}", NULL, "NULL/empty output table name!"),
    automl(f"'packed', 'o', 'models', 'm', NULL, {GRIDS}", NULL, "model_id_list is NULL, empty or has a NULL"),
    automl(f"'gone', 'o', 'models', 'm', ARRAY[1], {GRIDS}", TABLE, "Input table 'gone' does not exist."),
    automl(f"'points', 'o', 'models', 'm', ARRAY[1], {GRIDS}", "42809", "(points) has been preprocessed."),
    automl(f"'secret', 'o', 'models', 'm', ARRAY[1], {GRIDS}", "42501", "permission denied for input table 'secret'"),
    automl(f"'packed', 'packed', 'models', 'm', ARRAY[1], {GRIDS}", EXISTS,
           "madlib_keras_automl error: Output table 'packed' already exists. Drop it before calling the function."),
    automl(f"'packed', 'exists', 'models', 'm', ARRAY[1], {GRIDS}", EXISTS, "Output table 'exists_info' already"),
    automl(f"'packed', 'o', 'models', 'mst', ARRAY[1], {GRIDS}", EXISTS, "Output table 'mst' already exists."),
    automl(f"'packed', 'o', 'models', 'o', ARRAY[1], {GRIDS}", EXISTS, "Output table 'o' already exists."),
    automl(f"'packed', 'o', 'models', 'o_info', ARRAY[1], {GRIDS}", EXISTS, "Output table 'o_info' already exists."),
    automl(f"'packed', 'gone.o', 'models', 'm', ARRAY[1], {GRIDS}", NAME, "Invalid output table name gone.o"),
    automl(f"'packed', 'o', 'gone', 'm', ARRAY[1], {GRIDS}", TABLE, "Input table 'gone' does not exist."),
    automl(f"'packed', 'o', 'points', 'm', ARRAY[1], {GRIDS}", COLUMN, "Invalid keras model architecture table points"),
    automl(f"'packed', 'o', 'models', 'm', ARRAY[1, -1], {GRIDS}", "42704", "One or more model_id of (1, -1) not"),
    automl(f"'packed', 'o', 'models', 'm', ARRAY[1, 2], {GRIDS}", "42804", "Input shape"),
    automl(f"'packed', 'o', 'models', 'm', ARRAY[1, 2], {GRIDS}, 'hyperopt', 'num_configs=1'", "42804", "Input shape"),
    searching("'hyperbrand'", WRONG, "the chosen automl method must be 'hyperband' or 'hyperopt'"),
    searching("'hb'", WRONG, "the chosen automl method must be 'hyperband' or 'hyperopt'"),
    searching("''", WRONG, "the chosen automl method must be 'hyperband' or 'hyperopt'"),
    searching("'hyperband', 'R=2, eta=3'", WRONG, "madlib_keras_automl: R should not be less than eta"),
    searching("'hyperband', 'R=9, eta=1'", WRONG, "madlib_keras_automl: eta must be greater than 1"),
    searching("'hyperband', 'R=9, eta=3, skip_last=3'", WRONG, "skip_last must be non-negative and less than 3"),
    searching("'hyperband', 'R=9, eta=3, skip_last=-1'", WRONG, "skip_last must be non-negative and less than 3"),
    searching("'hyperband', 'R=9, rounds=2'", WRONG,
              "Invalid param(s) passed in for hyperband. Only R, eta, and skip_last may be specified"),
    searching("'hyperband', 'r=9'", WRONG, "Only R, eta, and skip_last may be specified"),
    searching("'hyperband', 'R=9, R=27'", TEXT, "automl_params has R twice"),
    searching("'hyperband', 'R=nine'", TEXT, "R in automl_params is 'nine'; expected a whole number"),
    searching("'hyperband', 'R=99999999999'", TEXT, "expected a whole number of at most 2147483647"),
    searching("'hyperband', 'nine'", TEXT, "automl_params has 'nine'; expected name=value"),
    searching("'hyperband', 'R=2147483647, eta=2'", WRONG, "configurations were asked for, at most"),
    searching("'hyperopt', 'num_configs=2147483647'", WRONG, "2147483647 configurations were asked for, at most"),
    searching("'hyperopt', 'algorithm=atpe'", WRONG, "valid algorithm 'automl_params' for hyperopt: 'rand', 'tpe'"),
    searching("'hyperopt', 'num_configs=0'", WRONG, "num_configs and num_iterations in 'automl_params' must"),
    searching("'hyperopt', 'num_iterations=-1'", WRONG, "num_configs and num_iterations in 'automl_params' must"),
    searching("'hyperopt', 'R=6'", WRONG,
              "Invalid param(s) passed in for hyperopt. Only num_configs, num_iterations, and algorithm may be"),
    searching("'hyperopt', 'num_iterations=3', metrics_compute_frequency => 4", WRONG,
              "'metrics_compute_frequency' out of iteration range"),
    searching("validation_table => 'gone'", TABLE, "Input table 'gone' does not exist."),
    searching("validation_table => 'spread_packed'", WRONG, "segments, not those of 'packed'"),
    searching("use_gpus => TRUE", "55000", "No GPUs configured on hosts."),
    spaced("'{''loss''}'", FIT, TEXT, "Invalid syntax in 'compile_params_dict'"),
    spaced(COMPILE, "'batch_size=8'", TEXT, "Invalid syntax in 'fit_params_dict'"),
    spaced("$${'loss': ['nix'], 'optimizer': ['SGD'], 'lr': [0.1, 1, 'log']}$$", FIT, WRONG, "Compile param check"),
    spaced("$${'loss': ['mse'], 'lr': [0.1, 1, 'normal']}$$", FIT, WRONG, "Please choose a valid distribution type"),
    spaced("$${'loss': ['mse'], 'lr': [0.1, 0.2]}$$", FIT, WRONG,
           "tries 5 configurations, but the search space holds 2 different ones"),
    schedule("NULL, 9", NULL, "hyperband_schedule error: NULL/empty output table name!"),
    schedule("'o', NULL", NULL, "hyperband_schedule error: r is NULL"),
    schedule("'packed', 9", EXISTS, "Output table 'packed' already exists."),
    schedule("'o', 9, 1", WRONG, "hyperband_schedule: eta must be greater than 1"),
    schedule("'o', 2, 3", WRONG, "hyperband_schedule: R should not be less than eta"),
    schedule("'o', 9, 3, 3", WRONG, "hyperband_schedule: skip_last must be non-negative and less than 3"),
]  # fmt: skip
