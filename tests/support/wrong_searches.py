"""Wrong calls of AutoML, with what each is refused with; the tables are those of `scene`."""

from __future__ import annotations

from wrong_calls import COLUMN, EXISTS, NAME, NULL, TABLE, WRONG, Case

COMPILE = (
    "$${'loss': ['categorical_crossentropy'], 'optimizer': ['SGD'], 'lr': [0.01, 0.1, 'log']}$$"
)
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
    automl(f"NULL, 'o', 'models', 'm', ARRAY[1], {GRIDS}", NULL, "input table"),
    automl(f"'packed', NULL, 'models', 'm', ARRAY[1], {GRIDS}", NULL, "output table"),
    automl(f"'packed', NULL, 'models', 'mst', ARRAY[1], {GRIDS}", NULL, "output table"),
    automl(f"'packed', 'exists', 'models', NULL, ARRAY[1], {GRIDS}", NULL, "output table"),
    automl(f"'packed', 'o', NULL, 'm', ARRAY[1], {GRIDS}", NULL, "input table"),
    automl(f"'packed', 'o', 'models', NULL, ARRAY[1], {GRIDS}", NULL, "output table"),
    automl(f"'packed', 'o', 'models', 'm', NULL, {GRIDS}", NULL, "model_id_list"),
    automl(f"'gone', 'o', 'models', 'm', ARRAY[1], {GRIDS}", TABLE, "gone"),
    automl(f"'points', 'o', 'models', 'm', ARRAY[1], {GRIDS}", "42809", "preprocessed"),
    automl(f"'secret', 'o', 'models', 'm', ARRAY[1], {GRIDS}", "42501", "secret"),
    automl(f"'packed', 'packed', 'models', 'm', ARRAY[1], {GRIDS}", EXISTS, "packed"),
    automl(f"'packed', 'exists', 'models', 'm', ARRAY[1], {GRIDS}", EXISTS, "exists_info"),
    automl(f"'packed', 'o', 'models', 'mst', ARRAY[1], {GRIDS}", EXISTS, "mst"),
    automl(f"'packed', 'o', 'models', 'o', ARRAY[1], {GRIDS}", EXISTS, "o"),
    automl(f"'packed', 'o', 'models', 'o_info', ARRAY[1], {GRIDS}", EXISTS, "o_info"),
    automl(f"'packed', 'gone.o', 'models', 'm', ARRAY[1], {GRIDS}", NAME, "gone.o"),
    automl(f"'packed', 'o', 'gone', 'm', ARRAY[1], {GRIDS}", TABLE, "gone"),
    automl(f"'packed', 'o', 'points', 'm', ARRAY[1], {GRIDS}", COLUMN, "architecture"),
    automl(f"'packed', 'o', 'models', 'm', ARRAY[1, -1], {GRIDS}", "42704", "model_id"),
    automl(f"'packed', 'o', 'models', 'm', ARRAY[1, 2], {GRIDS}", "42804", "shape"),
    automl(f"'packed', 'o', 'models', 'm', ARRAY[1, 2], {GRIDS}, 'hyperopt', 'num_configs=1'",
    "42804", "shape"),
    searching("'hyperbrand'", WRONG, "hyperband"),
    searching("'hb'", WRONG, "hyperband"),
    searching("''", WRONG, "hyperband"),
    searching("'hyperband', 'R=2, eta=3'", WRONG, "eta"),
    searching("'hyperband', 'R=9, eta=1'", WRONG, "eta"),
    searching("'hyperband', 'R=9, eta=3, skip_last=3'", WRONG, "skip_last"),
    searching("'hyperband', 'R=9, eta=3, skip_last=-1'", WRONG, "skip_last"),
    searching("'hyperband', 'R=9, rounds=2'", WRONG, "eta"),
    searching("'hyperband', 'r=9'", WRONG, "eta"),
    searching("'hyperband', 'R=9, R=27'", TEXT, "automl_params"),
    searching("'hyperband', 'R=nine'", TEXT, "nine"),
    searching("'hyperband', 'R=99999999999'", TEXT, "most"),
    searching("'hyperband', 'nine'", TEXT, "nine"),
    searching("'hyperband', 'R=400000, eta=2'", WRONG, "configurations"),
    searching("'hyperopt', 'num_configs=2147483647'", WRONG, "at most 100000"),
    searching("'hyperopt', 'algorithm=atpe'", WRONG, "algorithm"),
    searching("'hyperopt', 'num_configs=0'", WRONG, "automl_params"),
    searching("'hyperopt', 'num_iterations=-1'", WRONG, "automl_params"),
    searching("'hyperopt', 'R=6'", WRONG, "num_configs"),
    searching("'hyperopt', 'num_iterations=3', metrics_compute_frequency => 4", WRONG,
    "metrics_compute_frequency"),
    searching("validation_table => 'gone'", TABLE, "gone"),
    searching("validation_table => 'spread_packed'", WRONG, "packed"),
    searching("use_gpus => TRUE", "55000", "GPU"),
    spaced("'{''loss''}'", FIT, TEXT, "Invalid syntax in 'compile_params_dict'"),
    spaced(COMPILE, "'batch_size=8'", TEXT, "Invalid syntax in 'fit_params_dict'"),
    spaced("$${'loss': ['nix'], 'optimizer': ['SGD'], 'lr': [0.1, 1, 'log']}$$", FIT, WRONG,
    "Compile param check"),
    spaced("$${'loss': ['mse'], 'lr': [0.1, 1, 'normal']}$$", FIT, WRONG,
    "Please choose a valid distribution type"),
    spaced("$${'loss': ['mse'], 'lr': [0.1, 0.2]}$$", FIT, WRONG,
           "tries 5 configurations, but the search space holds 2 different ones"),
    schedule("NULL, 9", NULL, "output table"),
    schedule("'o', NULL", NULL, "hyperband_schedule"),
    schedule("'packed', 9", EXISTS, "packed"),
]  # fmt: skip
