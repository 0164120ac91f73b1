"""Wrong calls of the data functions, with what each is refused with; the tables are those of `scene`."""

from __future__ import annotations

from dataclasses import dataclass

from models import CLASSES
from scene import COMPILE


@dataclass(frozen=True)
class Case:
    """A wrong call, the SQLSTATE it is refused with, and words of the message."""

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
    pack("NULL, 'o', 'label', 'x'", NULL, "training_preprocessor_dl error: NULL/empty input table name!"),
    pack("'  ', 'o', 'label', 'x'", NULL, "NULL/empty input table name!"),
    pack("'points', NULL, 'label', 'x'", NULL, "training_preprocessor_dl error: NULL/empty output table name!"),
    pack("'points', '', 'label', 'x'", NULL, "NULL/empty output table name!"),
    pack("'points', 'o', NULL, 'x'", NULL, "dependent_varname is NULL or empty"),
    pack("'points', 'o', 'label', ''", NULL, "independent_varname is NULL or empty"),
    pack("'gone', 'o', 'label', 'x'", TABLE, "Input table 'gone' does not exist."),
    pack("'gone.points', 'o', 'label', 'x'", TABLE, "Input table 'gone.points' does not exist."),
    pack("'a.b.c', 'o', 'label', 'x'", NAME, "Invalid input table name a.b.c"),
    pack("'points; DROP TABLE points', 'o', 'label', 'x'", NAME, "Invalid input table name"),
    pack("'an_index', 'o', 'label', 'x'", "42809", "'an_index' is not a table or view"),
    pack("'nothing', 'o', 'label', 'x'", WRONG, "Input table 'nothing' is empty!"),
    pack("'points', 'points', 'label', 'x'", EXISTS, "Output table 'points' already exists. Drop it before"),
    pack("'points', 'exists2', 'label', 'x'", EXISTS, "Output table 'exists2_summary' already exists."),
    pack("'points', 'an_index', 'label', 'x'", EXISTS, "Output table 'an_index' already exists."),
    pack("'points', 'gone.o', 'label', 'x'", NAME, "Invalid output table name gone.o"),
    pack("'points', 'a.b.c', 'label', 'x'", NAME, "Invalid output table name a.b.c"),
    pack(f"'points', '{'o' * 60}', 'label', 'x'", NAME, "Invalid output table name"),
    pack("'points', 'o', 'gone', 'x'", COLUMN, "Column 'gone' does not exist in table 'points'!"),
    pack("'points', 'o', 'label', 'gone'", COLUMN, "Column 'gone' does not exist in table 'points'!"),
    pack("'points', 'o', 'label', '\"X\"'", COLUMN, "Column 'X' does not exist in table 'points'!"),
    pack("'points', 'o', 'label', 'x,'", NAME, "cannot be read as names"),
    pack("'points', 'o', 'label', 'x, x'", WRONG, "expected each to be named once"),
    pack("'points', 'o', 'x', 'x'", WRONG, "expected each to be named once"),
    pack("'points', 'o', 'x', 'label'", "42804", "independent column 'label' of table 'points' is of type text"),
    pack("'typed', 'o', 'texts', 'x'", "42804", "dependent column 'texts' of table 'typed' is of type text[]"),
    pack("'typed', 'o', 'j', 'x'", "42883", "could not identify an equality operator for type json"),
    pack("'typed', 'o', 'label', 'texts'", "42804", "independent column 'texts'"),
    pack("'typed', 'o', 'label', 'buffer_id'", "42701", "would have buffer_id twice"),
    pack("'typed', 'o', '__dist_key__', 'x'", "42701", "would have __dist_key__ twice"),
    pack("'typed', 'o', 'label', 'x, x_shape'", "42701", "would have x_shape twice"),
    pack("'typed', 'o', 'label', 'huge'", "22003", "beyond the range of float32"),
    pack("'typed', 'o', 'large', 'x'", "22003", "smallint out of range"),
    pack("'typed', 'o', 'label', 'odd'", "22003", "cannot hold the integer 16777217: it would become 16777216"),
    pack("'typed', 'o', 'label', 'scrawl'", WRONG, "7 bytes in column scrawl cannot be read as PNG or JPEG"),
    pack(f"'long_column', 'o', 'label', '{'x' * 60}'", COLUMN, "Column 'label' does not exist"),
    pack(f"'long_column', 'o', '{'y' * 60}', 'id'", NAME, "_class_values' of 73 bytes"),
    pack(f"'long_column', 'o', 'id', '{'x' * 60}'", NAME, "_shape' of 66 bytes"),
    pack("'holes', 'o', 'label', 'x'", NULL, "column 'x' of table 'holes' is NULL in 1 of 96 rows"),
    pack("'null_elements', 'o', 'label', 'x'", NULL, "has a NULL element"),
    pack("'ragged', 'o', 'label', 'x'", WRONG, "has shape"),
    pack("'hollow', 'o', 'label', 'x'", WRONG, "an empty array"),
    pack("'points', 'o', 'label', 'x', 0", WRONG, "The buffer size has to be a positive integer or NULL."),
    pack("'points', 'o', 'label', 'x', -3", WRONG, "The buffer size has to be a positive integer or NULL."),
    pack("'points', 'o', 'label', 'x', NULL, 0", WRONG,
         "The normalizing constant has to be a positive integer or NULL."),
    pack("'points', 'o', 'label', 'x', NULL, -1", WRONG, "The normalizing constant has to be"),
    pack("'points', 'o', 'label', 'x', NULL, 'NaN'", WRONG, "The normalizing constant has to be"),
    pack("'points', 'o', 'label', 'x', NULL, 'Infinity'", WRONG, "The normalizing constant has to be"),
    pack("'points', 'o', 'label', 'x', num_classes => ARRAY[2]", WRONG,
         "Invalid num_classes value specified. It must be equal to or greater than distinct class values found in"
         " table (3)."),
    pack("'points', 'o', 'label', 'x', num_classes => ARRAY[0]", WRONG, "Invalid num_classes value specified."),
    pack("'points', 'o', 'label', 'x', num_classes => ARRAY[-1]", WRONG, "Invalid num_classes value specified."),
    pack("'points', 'o', 'label', 'x', num_classes => '{}'", WRONG, "num_classes has 0 elements; expected 1"),
    pack("'points', 'o', 'label', 'x', num_classes => ARRAY[3, 3]", WRONG, "num_classes has 2 elements; expected 1"),
    pack("'points', 'o', 'label', 'x', num_classes => ARRAY[[3]]", WRONG, "num_classes has several dimensions"),
    pack("'points', 'o', 'label', 'x', num_classes => ARRAY[2147483647]", WRONG, "more than 65536 classes"),
    pack("'points', 'o', 'label', 'x', distribution_rules => 'gone'", TABLE, "Input table 'gone' does not exist."),
    pack("'points', 'o', 'label', 'x', distribution_rules => ''", NULL, "NULL/empty input table name!"),
    pack("'points', 'o', 'label', 'x', n_segments => 0", WRONG, "n_segments is 0; expected a positive whole number"),
    pack("'points', 'o', 'label', 'x', n_segments => -1", WRONG, "n_segments is -1"),
    pack("'points', 'o', 'label', 'x', dependent_type => 'floats'", WRONG, "expected 'class' or 'float'"),
    pack("'points', 'o', 'label', 'x', dependent_type => 'float'", "42804", "dependent_type 'float' expects a number"),
    pack("'points', 'o', 'label', 'x', dependent_type => 'class, float'", WRONG, "expected 'class' or 'float'"),
    pack("'points', 'o', 'label, pair', 'x', dependent_type => 'class, '", WRONG, "dependent_type is 'class, '"),
    pack("'points', 'o', 'label, pair', 'x', dependent_type => 'float, class'", "42804",
         "dependent_type 'float' expects a number"),
    pack("'secret', 'o', 'label', 'x'", "42501", "permission denied for input table 'secret'"),
    pack("'points', 'closed.o', 'label', 'x'", "42501", "permission denied to create 'closed.o' in schema closed"),
    pack("'hidden.t', 'o', 'label', 'x'", "42501", "permission denied for schema hidden"),
    validate("NULL, 'o', 'label', 'x', 'packed'", NULL,
             "validation_preprocessor_dl error: NULL/empty input table name!"),
    validate("'points', NULL, 'label', 'x', 'packed'", NULL, "NULL/empty output table name!"),
    validate("'points', 'o', NULL, 'x', 'packed'", NULL, "dependent_varname is NULL or empty"),
    validate("'points', 'o', 'label', NULL, 'packed'", NULL, "independent_varname is NULL or empty"),
    validate("'points', 'o', 'label', 'x', NULL", NULL, "NULL/empty input table name!"),
    validate("'points', 'o', 'label', 'x', ''", NULL, "NULL/empty input table name!"),
    validate("'points', 'o', 'label', 'x', 'gone'", TABLE,
             "Please ensure that table 'gone' has been preprocessed using training_preprocessor_dl()."),
    validate("'points', 'o', 'label', 'x', 'points'", "42809",
             "Please ensure that table 'points' has been preprocessed using training_preprocessor_dl()."),
    validate("'points', 'o', 'label', 'x', 'clean'", "42809",
             "Please ensure that table 'clean' has been preprocessed using training_preprocessor_dl()."),
    validate("'gone', 'o', 'label', 'x', 'packed'", TABLE, "Input table 'gone' does not exist."),
    validate("'nothing', 'o', 'label', 'x', 'packed'", WRONG, "Input table 'nothing' is empty!"),
    validate("'points', 'packed', 'label', 'x', 'packed'", EXISTS, "Output table 'packed' already exists."),
    validate("'points', 'o', 'gone', 'x', 'packed'", COLUMN, "Column 'gone' does not exist in table 'points'!"),
    validate("'points', 'o', 'label', 'gone', 'packed'", COLUMN, "Column 'gone' does not exist in table 'points'!"),
    validate("'points', 'o', 'label, id', 'x', 'packed'", WRONG, "received 2 dependent and 1 independent columns"),
    validate("'points', 'o', 'label, amount', 'pair, x', 'two_packed'", WRONG,
             "the inputs are pair, x; expected x, pair, in this order."),
    validate("'points', 'o', 'amount, label', 'x, pair', 'two_packed'", WRONG,
             "the targets are amount, label; expected label, amount, in this order."),
    validate("'points', 'o', 'label', 'x', 'packed', 0", WRONG,
             "The buffer size has to be a positive integer or NULL."),
    validate("'points', 'o', 'label', 'x', 'packed', NULL, 'gone'", TABLE, "Input table 'gone' does not exist."),
    validate("'other_classes', 'o', 'label', 'x', 'packed'", WRONG,
             "the class values in other_classes (highx, lowx, middlex) should be a subset of class values in packed"
             " (high, low, middle)"),
    validate("'points', 'o', 'label', 'x', 'floats'", "42804", "dependent_type 'float' expects a number"),
    validate("'points', 'o', 'pair', 'x', 'packed'", "42804", "of type real[]; expected single values"),
    validate("'points', 'o', 'label', 'x', 'encoded'", "42804", "of type text; expected an array of whole numbers"),
]  # fmt: skip
MODELS = [
    Case(f"load_keras_model(NULL, '{CLASSES}')", NULL, "NULL/empty output table name!"),
    Case(f"load_keras_model('', '{CLASSES}')", NULL, "NULL/empty output table name!"),
    Case("load_keras_model('models', NULL)", NULL, "Keras Model Arch: Model architecture is NULL."),
    Case(f"load_keras_model('points', '{CLASSES}')", COLUMN,
         "Keras Model Arch: Invalid keras model architecture table points, missing columns: model_id, model_arch"),
    Case(f"load_keras_model('gone.m', '{CLASSES}')", NAME, "Invalid output table name gone.m"),
    Case(f"load_keras_model('closed.m', '{CLASSES}')", "42501", "permission denied"),
    Case(f"load_keras_model('closed.models', '{CLASSES}')", "42501", "permission denied"),
    Case("delete_keras_model(NULL, 1)", NULL, "delete_keras_model error: NULL/empty input table name!"),
    Case("delete_keras_model('gone', 1)", TABLE, "Input table 'gone' does not exist."),
    Case("delete_keras_model('models', NULL)", "42704", "Keras Model Arch: Model id NULL not found"),
    Case("delete_keras_model('models', 99)", "42704", "Keras Model Arch: Model id 99 not found"),
    Case("delete_keras_model('models', -1)", "42704", "Keras Model Arch: Model id -1 not found"),
    Case("delete_keras_model('points', 1)", COLUMN, "Invalid keras model architecture table points, missing columns"),
]  # fmt: skip
TEXTS = f"ARRAY[$${COMPILE}$$], ARRAY['']"
GRIDS = "$$ {'loss': ['mse']} $$, $$ {'epochs': [1]} $$"
CONFIGS = [
    load_selection(f"NULL, 'm', ARRAY[1], {TEXTS}", NULL,
                   "load_model_selection_table error: NULL/empty input table name!"),
    load_selection(f"'models', NULL, ARRAY[1], {TEXTS}", NULL, "NULL/empty output table name!"),
    load_selection(f"'gone', 'm', ARRAY[1], {TEXTS}", TABLE, "Input table 'gone' does not exist."),
    load_selection(f"'points', 'm', ARRAY[1], {TEXTS}", COLUMN, "Invalid keras model architecture table points"),
    load_selection(f"'models', 'mst', ARRAY[1], {TEXTS}", EXISTS, "Output table 'mst' already exists."),
    load_selection(f"'models', 'exists2', ARRAY[1], {TEXTS}", EXISTS, "Output table 'exists2_summary' already exists."),
    load_selection(f"'models', 'm', NULL, {TEXTS}", NULL, "expected one or more model ids"),
    load_selection(f"'models', 'm', '{{}}', {TEXTS}", NULL, "expected one or more model ids"),
    load_selection(f"'models', 'm', '{{1,NULL}}', {TEXTS}", NULL, "expected one or more model ids"),
    load_selection(f"'models', 'm', ARRAY[1, 77], {TEXTS}", "42704",
                   "One or more model_id of (1, 77) not found in table models"),
    load_selection(f"'models', 'm', ARRAY[[1], [2]], {TEXTS}", WRONG, "model_id_list has several dimensions"),
    load_selection("'models', 'm', ARRAY[1], NULL, ARRAY['']", NULL, "compile_params_list cannot be NULL"),
    load_selection("'models', 'm', ARRAY[1], '{}', ARRAY['']", NULL, "compile_params_list cannot be NULL"),
    load_selection("'models', 'm', ARRAY[1], ARRAY[NULL]::text[]::varchar[], ARRAY['']", NULL,
                   "compile_params_list cannot be NULL"),
    load_selection(f"'models', 'm', ARRAY[1], ARRAY[[$${COMPILE}$$]], ARRAY['']", WRONG,
                   "compile_params_list has several dimensions"),
    load_selection(f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], NULL", NULL, "fit_params_list cannot be NULL"),
    load_selection(f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY[['']]", WRONG,
                   "fit_params_list has several dimensions"),
    load_selection("'models', 'm', ARRAY[1], ARRAY[''], ARRAY['']", WRONG,
                   "optimizer is a required parameter for compile"),
    load_selection("'models', 'm', ARRAY[1], ARRAY['loss'], ARRAY['']", "22P02",
                   "Compile param check failed for: 'loss'"),
    load_selection("'models', 'm', ARRAY[1], ARRAY[$$optimizer='SGD'$$], ARRAY['']", WRONG,
                   "loss is a required parameter"),
    load_selection(f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY['epochs=0']", WRONG,
                   "Fit param check failed for: 'epochs=0'"),
    load_selection(f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY['class_weight=[1]']", WRONG,
                   "Fit param check failed for: 'class_weight=[1]'"),
    load_selection(f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY['initial_epoch=1']", WRONG,
                   "initial_epoch=1 with epochs=1 leaves nothing to train"),
    load_selection(f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY['callbacks=[]']", WRONG,
                   "Invalid callbacks fit param.  Currently, only TensorBoard callbacks are accepted."),
    load_selection(f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY[$$callbacks=[TensorBoard(log_dir='/tmp')]$$]",
                   "42501", "Only a superuser may use callbacks."),
    generate(f"NULL, 'm', ARRAY[1], {GRIDS}", NULL, "generate_model_configs error: NULL/empty input table name!"),
    generate(f"'models', NULL, ARRAY[1], {GRIDS}", NULL, "NULL/empty output table name!"),
    generate(f"'gone', 'm', ARRAY[1], {GRIDS}", TABLE, "Input table 'gone' does not exist."),
    generate(f"'models', 'm', ARRAY[77], {GRIDS}", "42704", "One or more model_id of (77) not found in table models"),
    generate(f"'models', 'm', NULL, {GRIDS}", NULL, "expected one or more model ids"),
    generate(f"'models', 'points', ARRAY[1], {GRIDS}", TABLE, "has been created by load_model_selection_table()."),
    generate("'models', 'm', ARRAY[1], NULL, NULL", WRONG, "loss is a required parameter"),
    generate("'models', 'm', ARRAY[1], 'x', ''", "22P02", "Invalid syntax in 'compile_params_dict'"),
    generate("'models', 'm', ARRAY[1], $${'loss': ['mse']}$$, 'x'", "22P02", "Invalid syntax in 'fit_params_dict'"),
    generate("'models', 'm', ARRAY[1], $${'loss': 'mse'}$$, '{}'", WRONG,
             "DL: compile param values must be specified in a list"),
    generate("'models', 'm', ARRAY[1], $${'loss': ['mse']}$$, $${'epochs': 1}$$", WRONG,
             "DL: fit param values must be specified in a list"),
    generate("'models', 'm', ARRAY[1], $${'loss': []}$$, '{}'", WRONG, "the list for 'loss' is empty"),
    generate(f"'models', 'm', ARRAY[1], {GRIDS}, 'best'", WRONG, "DL: 'search_type' must be either 'grid' or 'random'"),
    generate(f"'models', 'm', ARRAY[1], {GRIDS}, ''", WRONG, "DL: 'search_type' must be either 'grid' or 'random'"),
    generate(f"'models', 'm', ARRAY[1], {GRIDS}, 'grid', 3", WRONG, "must be NULL for grid search"),
    generate(f"'models', 'm', ARRAY[1], {GRIDS}, 'grid', NULL, 3", WRONG, "must be NULL for grid search"),
    generate(f"'models', 'm', ARRAY[1], {GRIDS}, 'random'", WRONG,
             "DL: 'num_configs' cannot be NULL and needs to be a natural number"),
    generate(f"'models', 'm', ARRAY[1], {GRIDS}, 'random', 0", WRONG,
             "DL: 'num_configs' cannot be NULL and needs to be a natural number"),
    generate(f"'models', 'm', ARRAY[1], {GRIDS}, 'random', 2", WRONG,
             "the search space holds 1 different configurations"),
    generate("'models', 'm', ARRAY[1], $${'loss': ['mse'], 'lr': [1, 2, 'log']}$$, '{}'", WRONG,
             "DL: Cannot search from a distribution with grid search"),
    generate("'models', 'm', ARRAY[1], $${'loss': ['mse'], 'lr': [1, 2, 'lag']}$$, '{}', 'random', 1", WRONG,
             "DL: Please choose a valid distribution type for 'lr': ['linear', 'log', 'log_near_one']"),
    generate("'models', 'm', ARRAY[1], $${'loss': ['mse'], 'lr': [1, 'log']}$$, '{}', 'random', 1", WRONG,
             "DL: 'lr' should have exactly 3 elements if picking from a distribution"),
    generate("'models', 'm', ARRAY[1], $${'loss': ['mse'], 'lr': [2, 1, 'log']}$$, '{}', 'random', 1", WRONG,
             "DL: 'lr' should be of the format [lower_bound, upper_bound, distribution_type]"),
    generate("'models', 'm', ARRAY[1],"
             " $${'loss': ['mse'], 'lr': [1], 'optimizer_params_list': [{'optimizer': ['SGD']}]}$$, '{}'", WRONG,
             "DL: 'optimizer_params_list' key should only contain"),
]  # fmt: skip
ADMINISTRATION = [
    Case("load_custom_function('t', 'def f(a, b): pass', 'f')", "42501", "only a superuser may register or delete"),
    Case("load_custom_function('t', 'def f(a, b): pass'::bytea, 'f')", "42501", "only a superuser may register or"),
    Case("load_top_k_accuracy_function('t', 3)", "42501", "only a superuser may register or delete custom functions"),
    Case("delete_custom_function('t', 1)", "42501", "only a superuser may register or delete custom functions"),
    Case("delete_custom_function('t', 'f')", "42501", "only a superuser may register or delete custom functions"),
    Case("gpu_configuration('gpus', 'intel')", WRONG, "source is 'intel'; expected one of 'tensorflow'"),
    Case("gpu_configuration('points')", EXISTS, "Output table 'points' already exists."),
    load_selection(f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY[''], 'gone'", TABLE,
                   "object table 'gone' does not exist"),
    load_selection(f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY[''], 'public.points'", WRONG,
                   "DL: Custom function table has to be in the madlib schema"),
    load_selection(f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY[''], ''", NULL,
                   "NULL/empty object table name!"),
]  # fmt: skip
DATA = [*PACKING, *MODELS, *CONFIGS, *ADMINISTRATION]
