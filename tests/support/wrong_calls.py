"""Wrong calls of the data functions, with what each is refused with; the tables are those of
`scene`.
"""

from __future__ import annotations

from dataclasses import dataclass

from models import CLASSES
from scene import COMPILE


@dataclass(frozen=True)
class Case:
    """A wrong call, the SQLSTATE it is refused with, and a noun of the message; whole ones are in
    `madlib_messages`.
    """

    call: str
    sqlstate: str
    words: str


def pack(arguments: str, sqlstate: str, words: str) -> Case:
    return Case(f"training_preprocessor_dl({arguments})", sqlstate, words)


def validate(arguments: str, sqlstate: str, words: str) -> Case:
    return Case(f"validation_preprocessor_dl({arguments})", sqlstate, words)


def load_selection(arguments: str, sqlstate: str, words: str) -> Case:
    return Case(f"load_model_selection_table({arguments})", sqlstate, words)


def generate(arguments: str, sqlstate: str, words: str) -> Case:
    return Case(f"generate_model_configs({arguments})", sqlstate, words)


NULL, WRONG, TABLE, COLUMN, EXISTS, NAME = "22004", "22023", "42P01", "42703", "42P07", "42602"
PACKING = [
    pack("'points', 'o', NULL, 'x'", NULL, "dependent_varname"),
    pack("'points', 'o', 'label', ''", NULL, "independent_varname"),
    pack("'gone.points', 'o', 'label', 'x'", TABLE, "gone.points"),
    pack("'a.b.c', 'o', 'label', 'x'", NAME, "a.b.c"),
    pack("'points; DROP TABLE points', 'o', 'label', 'x'", NAME, "Invalid"),
    pack("'an_index', 'o', 'label', 'x'", "42809", "an_index"),
    pack("'points', 'exists2', 'label', 'x'", EXISTS, "exists2_summary"),
    pack("'points', 'an_index', 'label', 'x'", EXISTS, "an_index"),
    pack("'points', 'gone.o', 'label', 'x'", NAME, "gone.o"),
    pack(f"'points', '{'o' * 60}', 'label', 'x'", NAME, "Invalid"),
    pack("'points', 'o', 'label', 'gone'", COLUMN, "gone"),
    pack("'points', 'o', 'label', '\"X\"'", COLUMN, "X"),
    pack("'points', 'o', 'label', 'x,'", NAME, "names"),
    pack("'points', 'o', 'label', 'x, x'", WRONG, "once"),
    pack("'points', 'o', 'x', 'x'", WRONG, "once"),
    pack("'points', 'o', 'x', 'label'", "42804", "label"),
    pack("'typed', 'o', 'texts', 'x'", "42804", "texts"),
    pack("'typed', 'o', 'j', 'x'", "42883", "operator"),
    pack("'typed', 'o', 'label', 'texts'", "42804", "texts"),
    pack("'typed', 'o', 'label', 'buffer_id'", "42701", "buffer_id"),
    pack("'typed', 'o', '__dist_key__', 'x'", "42701", "twice"),
    pack("'typed', 'o', 'label', 'x, x_shape'", "42701", "_shape"),
    pack("'typed', 'o', 'label', 'huge'", "22003", "float32"),
    pack("'typed', 'o', 'large', 'x'", "22003", "smallint"),
    pack("'typed', 'o', 'label', 'odd'", "22003", "16777217"),
    pack("'typed', 'o', 'label', 'scrawl'", WRONG, "PNG"),
    pack(f"'long_column', 'o', 'label', '{'x' * 60}'", COLUMN, "label"),
    pack(f"'long_column', 'o', '{'y' * 60}', 'id'", NAME, "73"),
    pack(f"'long_column', 'o', 'id', '{'x' * 60}'", NAME, "66"),
    pack("'holes', 'o', 'label', 'x'", NULL, "x"),
    pack("'null_elements', 'o', 'label', 'x'", NULL, "element"),
    pack("'ragged', 'o', 'label', 'x'", WRONG, "shape"),
    pack("'hollow', 'o', 'label', 'x'", WRONG, "array"),
    pack("'points', 'o', 'label', 'x', -3", WRONG, "buffer size"),
    pack("'points', 'o', 'label', 'x', NULL, 0", WRONG, "normalizing constant"),
    pack("'points', 'o', 'label', 'x', NULL, -1", WRONG, "normalizing constant"),
    pack("'points', 'o', 'label', 'x', NULL, 'NaN'", WRONG, "normalizing constant"),
    pack("'points', 'o', 'label', 'x', NULL, 'Infinity'", WRONG, "normalizing constant"),
    pack("'points', 'o', 'label', 'x', num_classes => ARRAY[2]", WRONG, "Invalid num_classes"),
    pack("'points', 'o', 'label', 'x', num_classes => ARRAY[0]", WRONG, "Invalid num_classes"),
    pack("'points', 'o', 'label', 'x', num_classes => ARRAY[-1]", WRONG, "Invalid num_classes"),
    pack("'points', 'o', 'label', 'x', num_classes => '{}'", WRONG, "num_classes has"),
    pack("'points', 'o', 'label', 'x', num_classes => ARRAY[3, 3]", WRONG, "num_classes has"),
    pack("'points', 'o', 'label', 'x', num_classes => ARRAY[[3]]", WRONG, "dimensions"),
    pack("'points', 'o', 'label', 'x', num_classes => ARRAY[2147483647]", WRONG, "65536"),
    pack("'points', 'o', 'label', 'x', distribution_rules => 'gone'", TABLE, "gone"),
    pack("'points', 'o', 'label', 'x', distribution_rules => ''", NULL, "input table"),
    pack("'points', 'o', 'label', 'x', n_segments => 0", WRONG, "n_segments"),
    pack("'points', 'o', 'label', 'x', n_segments => -1", WRONG, "n_segments"),
    pack("'points', 'o', 'label', 'x', dependent_type => 'floats'", WRONG, "class"),
    pack("'points', 'o', 'label', 'x', dependent_type => 'float'", "42804", "float"),
    pack("'points', 'o', 'label', 'x', dependent_type => 'class, float'", WRONG, "class"),
    pack("'points', 'o', 'label, pair', 'x', dependent_type => 'class, '", WRONG, "dependent_type"),
    pack("'points', 'o', 'label, pair', 'x', dependent_type => 'float, class'", "42804", "float"),
    pack("'secret', 'o', 'label', 'x'", "42501", "secret"),
    pack("'points', 'closed.o', 'label', 'x'", "42501", "closed.o"),
    pack("'hidden.t', 'o', 'label', 'x'", "42501", "hidden"),
    validate("'points', 'o', NULL, 'x', 'packed'", NULL, "dependent_varname"),
    validate("'points', 'o', 'label', NULL, 'packed'", NULL, "independent_varname"),
    validate("'points', 'o', 'label', 'x', NULL", NULL, "input table"),
    validate("'points', 'o', 'label', 'x', ''", NULL, "input table"),
    validate("'points', 'o', 'label', 'x', 'gone'", TABLE, "preprocessed"),
    validate("'points', 'o', 'label', 'x', 'clean'", "42809", "preprocessed"),
    validate("'nothing', 'o', 'label', 'x', 'packed'", WRONG, "nothing"),
    validate("'points', 'packed', 'label', 'x', 'packed'", EXISTS, "packed"),
    validate("'points', 'o', 'gone', 'x', 'packed'", COLUMN, "gone"),
    validate("'points', 'o', 'label', 'gone', 'packed'", COLUMN, "gone"),
    validate("'points', 'o', 'label, id', 'x', 'packed'", WRONG, "independent"),
    validate("'points', 'o', 'label, amount', 'pair, x', 'two_packed'", WRONG, "order"),
    validate("'points', 'o', 'amount, label', 'x, pair', 'two_packed'", WRONG, "targets"),
    validate("'points', 'o', 'label', 'x', 'packed', 0", WRONG, "buffer size"),
    validate("'points', 'o', 'label', 'x', 'packed', NULL, 'gone'", TABLE, "gone"),
    validate("'points', 'o', 'label', 'x', 'floats'", "42804", "float"),
    validate("'points', 'o', 'pair', 'x', 'packed'", "42804", "single values"),
    validate("'points', 'o', 'label', 'x', 'encoded'", "42804", "array"),
]  # fmt: skip
MODELS = [
    Case(f"load_keras_model(NULL, '{CLASSES}')", NULL, "output table"),
    Case(f"load_keras_model('', '{CLASSES}')", NULL, "output table"),
    Case("load_keras_model('models', NULL)", NULL, "architecture"),
    Case(f"load_keras_model('gone.m', '{CLASSES}')", NAME, "gone.m"),
    Case(f"load_keras_model('closed.m', '{CLASSES}')", "42501", "permission"),
    Case(f"load_keras_model('closed.models', '{CLASSES}')", "42501", "permission"),
    Case("delete_keras_model('models', NULL)", "42704", "NULL"),
    Case("delete_keras_model('models', -1)", "42704", "-1"),
    Case("delete_keras_model('points', 1)", COLUMN, "architecture"),
]  # fmt: skip
TEXTS = f"ARRAY[$${COMPILE}$$], ARRAY['']"
GRIDS = "$$ {'loss': ['mse']} $$, $$ {'epochs': [1]} $$"
CONFIGS = [
    load_selection(f"NULL, 'm', ARRAY[1], {TEXTS}", NULL, "input table"),
    load_selection(f"'gone', 'm', ARRAY[1], {TEXTS}", TABLE, "gone"),
    load_selection(f"'points', 'm', ARRAY[1], {TEXTS}", COLUMN, "architecture"),
    load_selection(f"'models', 'mst', ARRAY[1], {TEXTS}", EXISTS, "mst"),
    load_selection(f"'models', 'exists2', ARRAY[1], {TEXTS}", EXISTS, "exists2_summary"),
    load_selection(f"'models', 'm', NULL, {TEXTS}", NULL, "ids"),
    load_selection(f"'models', 'm', '{{}}', {TEXTS}", NULL, "ids"),
    load_selection(f"'models', 'm', '{{1,NULL}}', {TEXTS}", NULL, "ids"),
    load_selection(f"'models', 'm', ARRAY[1, 77], {TEXTS}", "42704", "model_id"),
    load_selection(f"'models', 'm', ARRAY[[1], [2]], {TEXTS}", WRONG, "dimensions"),
    load_selection("'models', 'm', ARRAY[1], NULL, ARRAY['']", NULL, "compile_params_list"),
    load_selection("'models', 'm', ARRAY[1], '{}', ARRAY['']", NULL, "compile_params_list"),
    load_selection(
        "'models', 'm', ARRAY[1], ARRAY[NULL]::text[]::varchar[], ARRAY['']",
        NULL,
        "compile_params_list",
    ),
    load_selection(
        f"'models', 'm', ARRAY[1], ARRAY[[$${COMPILE}$$]], ARRAY['']", WRONG, "dimensions"
    ),
    load_selection(f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], NULL", NULL, "fit_params_list"),
    load_selection(
        f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY[['']]", WRONG, "dimensions"
    ),
    load_selection("'models', 'm', ARRAY[1], ARRAY[''], ARRAY['']", WRONG, "optimizer"),
    load_selection("'models', 'm', ARRAY[1], ARRAY['loss'], ARRAY['']", "22P02", "loss"),
    load_selection("'models', 'm', ARRAY[1], ARRAY[$$optimizer='SGD'$$], ARRAY['']", WRONG, "loss"),
    load_selection(
        f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY['epochs=0']", WRONG, "epochs"
    ),
    load_selection(
        f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY['class_weight=[1]']",
        WRONG,
        "class_weight",
    ),
    load_selection(
        f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY['initial_epoch=1']",
        WRONG,
        "initial_epoch",
    ),
    load_selection(
        f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY['callbacks=[]']",
        WRONG,
        "TensorBoard",
    ),
    load_selection(
        f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], "
        "ARRAY[$$callbacks=[TensorBoard(log_dir='/tmp')]$$]",
        "42501",
        "superuser",
    ),
    generate(f"NULL, 'm', ARRAY[1], {GRIDS}", NULL, "input table"),
    generate(f"'models', NULL, ARRAY[1], {GRIDS}", NULL, "output table"),
    generate(f"'gone', 'm', ARRAY[1], {GRIDS}", TABLE, "gone"),
    generate(f"'models', 'm', ARRAY[77], {GRIDS}", "42704", "model_id"),
    generate(f"'models', 'm', NULL, {GRIDS}", NULL, "ids"),
    generate(f"'models', 'points', ARRAY[1], {GRIDS}", TABLE, "load_model_selection_table"),
    generate("'models', 'm', ARRAY[1], NULL, NULL", WRONG, "loss"),
    generate("'models', 'm', ARRAY[1], 'x', ''", "22P02", "compile_params_dict"),
    generate("'models', 'm', ARRAY[1], $${'loss': ['mse']}$$, 'x'", "22P02", "fit_params_dict"),
    generate("'models', 'm', ARRAY[1], $${'loss': 'mse'}$$, '{}'", WRONG, "compile"),
    generate("'models', 'm', ARRAY[1], $${'loss': ['mse']}$$, $${'epochs': 1}$$", WRONG, "fit"),
    generate("'models', 'm', ARRAY[1], $${'loss': []}$$, '{}'", WRONG, "loss"),
    generate(f"'models', 'm', ARRAY[1], {GRIDS}, 'best'", WRONG, "search_type"),
    generate(f"'models', 'm', ARRAY[1], {GRIDS}, ''", WRONG, "search_type"),
    generate(f"'models', 'm', ARRAY[1], {GRIDS}, 'grid', 3", WRONG, "grid search"),
    generate(f"'models', 'm', ARRAY[1], {GRIDS}, 'grid', NULL, 3", WRONG, "grid search"),
    generate(f"'models', 'm', ARRAY[1], {GRIDS}, 'random'", WRONG, "num_configs"),
    generate(f"'models', 'm', ARRAY[1], {GRIDS}, 'random', 0", WRONG, "num_configs"),
    generate(f"'models', 'm', ARRAY[1], {GRIDS}, 'random', 2", WRONG, "search space"),
    generate(
        "'models', 'm', ARRAY[1], $${'loss': ['mse'], 'lr': [1, 2, 'log']}$$, '{}'",
        WRONG,
        "grid search",
    ),
    generate(
        "'models', 'm', ARRAY[1], $${'loss': ['mse'], 'lr': [1, 2, 'lag']}$$, '{}', 'random', 1",
        WRONG,
        "lr",
    ),
    generate(
        "'models', 'm', ARRAY[1], $${'loss': ['mse'], 'lr': [1, 'log']}$$, '{}', 'random', 1",
        WRONG,
        "lr",
    ),
    generate(
        "'models', 'm', ARRAY[1], $${'loss': ['mse'], 'lr': [2, 1, 'log']}$$, '{}', 'random', 1",
        WRONG,
        "lr",
    ),
    generate(
        "'models', 'm', ARRAY[1], $${'loss': ['mse'], 'lr': [1], 'optimizer_params_list': "
        "[{'optimizer': ['SGD']}]}$$, '{}'",
        WRONG,
        "optimizer_params_list",
    ),
]
ADMINISTRATION = [
    Case("load_custom_function('t', 'def f(a, b): pass', 'f')", "42501", "superuser"),
    Case("load_custom_function('t', 'def f(a, b): pass'::bytea, 'f')", "42501", "superuser"),
    Case("load_top_k_accuracy_function('t', 3)", "42501", "superuser"),
    Case("delete_custom_function('t', 1)", "42501", "superuser"),
    Case("delete_custom_function('t', 'f')", "42501", "superuser"),
    Case("gpu_configuration('gpus', 'intel')", WRONG, "intel"),
    Case("gpu_configuration('points')", EXISTS, "points"),
    load_selection(
        f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY[''], 'gone'", TABLE, "object table"
    ),
    load_selection(
        f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY[''], 'public.points'", WRONG, "table"
    ),
    load_selection(
        f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY[''], ''", NULL, "object table"
    ),
]
DATA = [*PACKING, *MODELS, *CONFIGS, *ADMINISTRATION]
