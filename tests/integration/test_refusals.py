"""Wrong calls of every public function: each is told what is wrong before any work, and leaves nothing.

The words are those that MADlib's users know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg2
import pytest
from models import CLASSES, dense, perceptron, sequential
from processes import eventually, trainers
from workbench import Workbench, compile_text

COMPILE = "optimizer='SGD()',loss='categorical_crossentropy',metrics=['accuracy']"
SCENE = f"""
CREATE TABLE nothing AS SELECT * FROM points LIMIT 0;
CREATE VIEW seen AS SELECT * FROM points;
CREATE TABLE holes AS SELECT id, CASE WHEN id <> 5 THEN x END AS x, label FROM points;
CREATE TABLE null_elements AS SELECT id, CASE WHEN id <> 5 THEN x ELSE '{{1,2,NULL,4}}' END AS x, label FROM points;
CREATE TABLE ragged AS SELECT id, CASE WHEN id <> 5 THEN x ELSE '{{1,2}}' END AS x, label FROM points;
CREATE TABLE hollow AS SELECT id, '{{}}'::real[] AS x, label FROM points;
CREATE TABLE typed AS SELECT id, x, label, x::text[] AS texts, '{{}}'::json AS j, 1e300::float8 AS huge,
    id AS buffer_id, x AS __dist_key__, x AS x_shape, ARRAY[70000] AS large FROM points;
CREATE TABLE {"l" * 50} AS SELECT * FROM points;
CREATE TABLE long_column AS SELECT id, x AS {"x" * 60}, label AS {"y" * 60} FROM points;
CREATE INDEX an_index ON points (id);
CREATE TABLE clean AS SELECT id, x, label FROM points;
CREATE TABLE clean_summary AS SELECT 1 AS a;
CREATE TABLE other_classes AS SELECT id, x, label || 'x' AS label FROM points;
CREATE TABLE no_model_columns AS SELECT 1 AS mst_key;
CREATE TABLE single AS SELECT model_weights, model_arch FROM models;
CREATE TABLE exists_info AS SELECT 1 AS a;
CREATE TABLE exists2_summary AS SELECT 1 AS a;
CREATE TABLE exists3_state AS SELECT 1 AS a;
CREATE TABLE alone AS SELECT 1 AS mst_key, 1 AS model_id, $${COMPILE}$$ AS compile_params, '' AS fit_params;
CREATE TABLE keyless AS SELECT model_id, compile_params, fit_params FROM alone;
CREATE TABLE keyless_summary AS SELECT 'models' AS model_arch_table;
"""
# Hand-made model selection tables: name, rows, and the architecture table of the summary.
SELECTIONS = {
    "empty_mst": ("SELECT 1, 1, '', '' LIMIT 0", "models"),
    "null_key_mst": (f"SELECT NULL::int, 1, $${COMPILE}$$, ''", "models"),
    "twice_mst": (f"SELECT 1, 1, $${COMPILE}$$, '' FROM generate_series(1, 2)", "models"),
    "null_model_mst": (f"SELECT 1, NULL::int, $${COMPILE}$$, ''", "models"),
    "no_model_mst": (f"SELECT 1, 77, $${COMPILE}$$, ''", "models"),
    "no_table_mst": (f"SELECT 1, 1, $${COMPILE}$$, ''", "gone"),
    "no_arch_mst": (f"SELECT 1, 1, $${COMPILE}$$, ''", "points"),
    "null_arch_mst": (f"SELECT 1, 1, $${COMPILE}$$, ''", None),
    "null_compile_mst": ("SELECT 1, 1, NULL::text, ''", "models"),
    "empty_compile_mst": ("SELECT 1, 1, '', ''", "models"),
    "broken_mst": ("SELECT 1, 1, $$loss='mse$$, ''", "models"),
    "code_mst": ("SELECT 1, 1, $$loss=exit(),optimizer='SGD'$$, ''", "models"),
    "no_optimizer_mst": ("SELECT 1, 1, $$loss='mse'$$, ''", "models"),
    "no_loss_mst": ("SELECT 1, 1, $$optimizer='SGD'$$, ''", "models"),
    "loss_mst": ("SELECT 1, 1, $$loss='nix',optimizer='SGD'$$, ''", "models"),
    "metric_mst": ("SELECT 1, 1, $$loss='mse',optimizer='SGD',metrics=['nix']$$, ''", "models"),
    "optimizer_mst": ("SELECT 1, 1, $$loss='mse',optimizer='Nix'$$, ''", "models"),
    "rate_mst": ("SELECT 1, 1, $$loss='mse',optimizer='SGD(lr=fast)'$$, ''", "models"),
    "fit_mst": (f"SELECT 1, 1, $${COMPILE}$$, 'batch=1'", "models"),
    "size_mst": (f"SELECT 1, 1, $${COMPILE}$$, 'batch_size=-1'", "models"),
    "callbacks_mst": (f"SELECT 1, 1, $${COMPILE}$$, 'callbacks=[TensorBoard()]'", "models"),
    "weight_mst": (f"SELECT 1, 1, $${COMPILE}$$, 'class_weight={{0: 1}}'", "models"),
    "text_key_mst": (f"SELECT 'one', 1, $${COMPILE}$$, ''", "models"),
    "wide_mst": (f"SELECT 1, 2, $${COMPILE}$$, ''", "models"),
    "four_mst": (f"SELECT 1, 3, $${COMPILE}$$, ''", "models"),
    "lambda_mst": (f"SELECT 1, 50, $${COMPILE}$$, ''", "models"),
    "broken_arch_mst": (f"SELECT 1, 51, $${COMPILE}$$, ''", "models"),
}


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


def fit(arguments: str, sqlstate: str, words: str) -> Case:
    return Case(f"madlib_keras_fit_multiple_model({arguments})", sqlstate, words)


def evaluate(arguments: str, sqlstate: str, words: str) -> Case:
    return Case(f"madlib_keras_evaluate({arguments})", sqlstate, words)


def predict(arguments: str, sqlstate: str, words: str) -> Case:
    return Case(f"madlib_keras_predict({arguments})", sqlstate, words)


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
    pack("'typed', 'o', 'label', 'huge'", "22003", "out of range"),
    pack("'typed', 'o', 'large', 'x'", "22003", "smallint out of range"),
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
         "Invalid num_classes value specified. It must be equal to or greater than distinct class values found in table (3)."),
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
    validate("'points', 'o', 'label', 'x', 'packed', 0", WRONG,
             "The buffer size has to be a positive integer or NULL."),
    validate("'points', 'o', 'label', 'x', 'packed', NULL, 'gone'", TABLE, "Input table 'gone' does not exist."),
    validate("'other_classes', 'o', 'label', 'x', 'packed'", WRONG,
             "the class values in other_classes (highx, lowx, middlex) should be a subset of class values in packed (high, low, middle)"),
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


def load_selection(arguments: str, sqlstate: str, words: str) -> Case:
    return Case(f"load_model_selection_table({arguments})", sqlstate, words)


def generate(arguments: str, sqlstate: str, words: str) -> Case:
    return Case(f"generate_model_configs({arguments})", sqlstate, words)


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
                   "One or more model_id of [1, 77] not found in table models"),
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
    load_selection(f"'models', 'm', ARRAY[1], ARRAY[$${COMPILE}$$], ARRAY['class_weight=[1]']", "0A000",
                   "class_weight is not supported"),
    generate(f"NULL, 'm', ARRAY[1], {GRIDS}", NULL, "generate_model_configs error: NULL/empty input table name!"),
    generate(f"'models', NULL, ARRAY[1], {GRIDS}", NULL, "NULL/empty output table name!"),
    generate(f"'gone', 'm', ARRAY[1], {GRIDS}", TABLE, "Input table 'gone' does not exist."),
    generate(f"'models', 'm', ARRAY[77], {GRIDS}", "42704", "One or more model_id of [77] not found in table models"),
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
    generate("'models', 'm', ARRAY[1], $${'loss': ['mse'], 'lr': [1], 'optimizer_params_list': [{'optimizer': ['SGD']}]}$$, '{}'",
             WRONG, "DL: 'optimizer_params_list' key should only contain"),
]  # fmt: skip
FIT = [
    fit("NULL, 'o', 'mst', 1", NULL, "madlib_keras_fit_multiple error: NULL/empty input table name!"),
    fit("'', 'o', 'mst', 1", NULL, "NULL/empty input table name!"),
    fit("'packed', NULL, 'mst', 1", NULL, "NULL/empty output table name!"),
    fit("'packed', 'o', NULL, 1", NULL, "NULL/empty input table name!"),
    fit("'packed', 'o', 'mst', NULL", NULL, "num_iterations is NULL"),
    fit("'packed', 'o', 'mst', 0", WRONG, "madlib_keras_fit_multiple: Number of iterations cannot be < 1."),
    fit("'packed', 'o', 'mst', -1", WRONG, "Number of iterations cannot be < 1."),
    fit("'packed', 'o', 'mst', 3, metrics_compute_frequency => 0", WRONG,
        "metrics_compute_frequency must be in the range (1 - 3)."),
    fit("'packed', 'o', 'mst', 3, metrics_compute_frequency => 4", WRONG,
        "metrics_compute_frequency must be in the range (1 - 3)."),
    fit("'packed', 'o', 'mst', 1, schedule => 'fast'", WRONG, "schedule is 'fast'; expected one of longest, rotation"),
    fit("'packed', 'o', 'mst', 1, schedule => ''", WRONG, "schedule is ''; expected one of longest, rotation"),
    fit("'packed', 'o', 'mst', 1, workers => 0", WRONG, "workers is 0; expected a positive whole number or NULL"),
    fit("'packed', 'o', 'mst', 1, TRUE", "55000", "No GPUs configured on hosts."),
    fit("'packed', 'o', 'mst', 1, warm_start => TRUE", TABLE, "does not exist"),
    fit("'gone', 'o', 'mst', 1", TABLE, "Input table 'gone' does not exist."),
    fit("'packed', 'gone.o', 'mst', 1", NAME, "Invalid output table name gone.o"),
    fit("'packed', 'closed.o', 'mst', 1", "42501", "permission denied to create 'closed.o'"),
    fit("'secret', 'o', 'mst', 1", "42501", "permission denied for input table 'secret'"),
    fit("'packed', 'o', 'secret', 1", "42501", "permission denied for model selection table 'secret'"),
    fit("'packed', 'packed', 'mst', 1", EXISTS,
        "Output table 'packed' already exists. Drop it before calling the function."),
    fit("'packed', 'exists', 'mst', 1", EXISTS, "Output table 'exists_info' already exists."),
    fit("'packed', 'exists2', 'mst', 1", EXISTS, "Output table 'exists2_summary' already exists."),
    fit("'packed', 'exists3', 'mst', 1", EXISTS, "Output table 'exists3_state' already exists."),
    fit(f"'packed', '{'o' * 56}', 'mst', 1", NAME, "Invalid output table name"),
    fit("'points', 'o', 'mst', 1", "42809", "Please ensure that the input table (points) has been preprocessed."),
    fit("'seen', 'o', 'mst', 1", "42809", "Please ensure that the input table (seen) has been preprocessed."),
    fit("'clean', 'o', 'mst', 1", "42809", "Please ensure that the input table (clean) has been preprocessed."),
    fit(f"'{'l' * 50}', 'o', 'mst', 1", "42809", "has been preprocessed."),
    fit("'posing', 'o', 'mst', 1", COLUMN, "invalid column name ('x_shape') for table (posing). Please ensure that"),
    fit("'bare', 'o', 'mst', 1", "42809", "Please ensure that the input table (bare) has been preprocessed."),
    fit("'drained', 'o', 'mst', 1", WRONG, "Input table 'drained' is empty!"),
    fit("'mixed', 'o', 'mst', 1", "42804", "the buffers of table 'mixed' have 2 different shapes; expected one."),
    fit("'several', 'o', 'mst', 1", "0A000", "Multiple dependent and independent variables not supported"),
    fit("'packed', 'o', 'gone', 1", TABLE, "Input table 'gone' does not exist."),
    fit("'packed', 'o', 'alone', 1", TABLE,
        "Please ensure that the model selection table (alone) has been created by load_model_selection_table()."),
    fit("'packed', 'o', 'points', 1", TABLE, "has been created by load_model_selection_table()."),
    fit("'packed', 'o', 'keyless', 1", COLUMN, "Column 'mst_key' does not exist in table 'keyless'!"),
    fit("'packed', 'o', 'empty_mst', 1", WRONG, "Input table 'empty_mst' is empty!"),
    fit("'packed', 'o', 'null_key_mst', 1", WRONG, "has NULL or repeated keys"),
    fit("'packed', 'o', 'twice_mst', 1", WRONG, "has NULL or repeated keys"),
    fit("'packed', 'o', 'null_model_mst', 1", WRONG, "has NULL or repeated keys"),
    fit("'packed', 'o', 'no_model_mst', 1", "42704", "no model arch found in table models with id 77"),
    fit("'packed', 'o', 'no_table_mst', 1", TABLE, "Input table 'gone' does not exist."),
    fit("'packed', 'o', 'no_arch_mst', 1", COLUMN, "Invalid keras model architecture table points, missing columns"),
    fit("'packed', 'o', 'null_arch_mst', 1", WRONG, "names no model_arch_table"),
    fit("'packed', 'o', 'null_compile_mst', 1", WRONG, "optimizer is a required parameter for compile"),
    fit("'packed', 'o', 'empty_compile_mst', 1", WRONG,
        "mst_key 1 of table 'empty_compile_mst': optimizer is a required"),
    fit("'packed', 'o', 'broken_mst', 1", "22P02", "mst_key 1 of table 'broken_mst'"),
    fit("'packed', 'o', 'code_mst', 1", WRONG, "invalid input value for parameter loss=exit()"),
    fit("'packed', 'o', 'no_optimizer_mst', 1", WRONG, "optimizer is a required parameter for compile"),
    fit("'packed', 'o', 'no_loss_mst', 1", WRONG, "loss is a required parameter for compile"),
    fit("'packed', 'o', 'loss_mst', 1", WRONG, "Loss function nix is not supported."),
    fit("'packed', 'o', 'metric_mst', 1", WRONG, "Metric nix is not supported."),
    fit("'packed', 'o', 'optimizer_mst', 1", WRONG, "invalid optimizer name: Nix"),
    fit("'packed', 'o', 'rate_mst', 1", WRONG, "lr=fast"),
    fit("'packed', 'o', 'fit_mst', 1", WRONG, "batch is not currently accepted as a parameter."),
    fit("'packed', 'o', 'size_mst', 1", WRONG, "invalid input value for parameter batch_size=-1"),
    fit("'packed', 'o', 'callbacks_mst', 1", WRONG, "invalid input value for parameter callbacks=[TensorBoard()]"),
    fit("'packed', 'o', 'weight_mst', 1", "0A000", "class_weight is not supported"),
    fit("'packed', 'o', 'text_key_mst', 1", "22P02", "invalid input syntax for type integer"),
    fit("'packed', 'o', 'wide_mst', 1", "42804",
        "model_keras error: Input shape [5] in the model architecture does not match the input shape [4] of column x in table packed."),
    fit("'packed', 'o', 'four_mst', 1", "42804",
        "ends in 4 units, but column label of table packed has 3 values a row"),
    fit("'packed', 'o', 'lambda_mst', 1", "0A000", "class 'Lambda' is not allowed as layer"),
    fit("'packed', 'o', 'broken_arch_mst', 1", "22P02", "Unable to read model architecture JSON."),
    fit("'packed', 'o', 'mst', 1, validation_table => 'gone'", TABLE, "Input table 'gone' does not exist."),
    fit("'packed', 'o', 'mst', 1, validation_table => ''", NULL, "NULL/empty input table name!"),
    fit("'packed', 'o', 'mst', 1, validation_table => 'points'", "42809",
        "the input table (points) has been preprocessed."),
    fit("'packed', 'o', 'mst', 1, validation_table => 'other_packed'", WRONG,
        "'other_packed' has other classes than 'packed'"),
    fit("'packed', 'o', 'mst', 1, validation_table => 'spread_packed'", WRONG,
        "'spread_packed' has 4 segments, not those of 'packed'"),
    fit("'packed', 'o', 'mst', 1, validation_table => 'floats'", "42804", "rows of table 'floats' have shapes"),
]  # fmt: skip
SCORING = [
    evaluate("NULL, 'packed', 'o', FALSE, 1", NULL, "madlib_keras_evaluate error: NULL/empty input table name!"),
    evaluate("'model', NULL, 'o', FALSE, 1", NULL, "NULL/empty input table name!"),
    evaluate("'model', 'packed', NULL, FALSE, 1", NULL, "NULL/empty output table name!"),
    evaluate("'model', 'packed', 'o'", NULL, "madlib_keras_evaluate: Multi-model needs to pass mst_key"),
    evaluate("'model', 'packed', 'o', FALSE, 7", "42704", "mst_key 7 does not exist in the info table"),
    evaluate("'model', 'packed', 'o', FALSE, 0", "42704", "mst_key 0 does not exist in the info table"),
    evaluate("'model', 'packed', 'o', TRUE, 1", "55000", "No GPUs configured on hosts."),
    evaluate("'gone', 'packed', 'o', FALSE, 1", TABLE, "Input table 'gone' does not exist."),
    evaluate("'model', 'gone', 'o', FALSE, 1", TABLE, "Input table 'gone' does not exist."),
    evaluate("'model', 'packed', 'points', FALSE, 1", EXISTS, "Output table 'points' already exists."),
    evaluate("'model', 'packed', 'closed.o', FALSE, 1", "42501", "permission denied to create 'closed.o'"),
    evaluate("'secret', 'packed', 'o', FALSE, 1", "42501", "permission denied for model table 'secret'"),
    evaluate("'points', 'packed', 'o', FALSE, 1", COLUMN,
             "column 'model_weights' does not exist in model table 'points'."),
    evaluate("'no_model_columns', 'packed', 'o', FALSE, 1", COLUMN,
             "column 'model_weights' does not exist in model table"),
    evaluate("'single', 'packed', 'o', FALSE, 1", WRONG, "holds a single model"),
    evaluate("'lonely', 'packed', 'o', FALSE, 1", "42809", "Missing summary and/or info tables for lonely"),
    evaluate("'strange', 'packed', 'o', FALSE, 1", COLUMN,
             "One or more expected columns missing in model summary table"),
    evaluate("'weightless', 'packed', 'o', FALSE, 1", "55000", "the model with mst_key 1 has no weights"),
    evaluate("'model', 'points', 'o', FALSE, 1", "42809",
             "Please ensure that the test table (points) has been preprocessed by the image preprocessor."),
    evaluate("'model', 'floats', 'o', FALSE, 1", "42804",
             "ends in 3 units, but column amount of table floats has 1 values a row"),
    evaluate("'model', 'other_packed', 'o', FALSE, 1", WRONG, "has other classes than the model was trained on"),
    evaluate("'model', 'pairs', 'o', FALSE, 1", "42804",
             "Input shape [4] in the model architecture does not match the input shape [2]"),
    predict("NULL, 'points', 'id', 'x', 'o', mst_key => 1", NULL,
            "madlib_keras_predict error: NULL/empty input table name!"),
    predict("'model', NULL, 'id', 'x', 'o', mst_key => 1", NULL, "NULL/empty input table name!"),
    predict("'model', 'points', NULL, 'x', 'o', mst_key => 1", NULL, "id column is NULL or empty"),
    predict("'model', 'points', 'id', '', 'o', mst_key => 1", NULL, "independent_varname is NULL or empty"),
    predict("'model', 'points', 'id', 'x', NULL, mst_key => 1", NULL, "NULL/empty output table name!"),
    predict("'model', 'points', 'id', 'x', 'o'", NULL, "madlib_keras_predict: Multi-model needs to pass mst_key"),
    predict("'model', 'points', 'id', 'x', 'o', mst_key => 9", "42704", "mst_key 9 does not exist in the info table"),
    predict("'model', 'points', 'id', 'x', 'o', 'prob', TRUE, 1", "55000", "No GPUs configured on hosts."),
    *(predict(f"'model', 'points', 'id', 'x', 'o', {given}, FALSE, 1", WRONG,
              f"Invalid value for pred_type param ({shown}). Must be integer>0, double precision in the range [0.0,1.0)")
      for given, shown in [("'best'", "best"), ("''", ""), ("0", "0"), ("-1", "-1"), ("1.0", "1.0"), ("-0.1", "-0.1"),
                           ("'NaN'::float8", "nan"), ("'Infinity'::float8", "inf")]),
    predict("'gone', 'points', 'id', 'x', 'o', mst_key => 1", TABLE, "Input table 'gone' does not exist."),
    predict("'model', 'gone', 'id', 'x', 'o', mst_key => 1", TABLE, "Input table 'gone' does not exist."),
    predict("'model', 'secret', 'id', 'x', 'o', mst_key => 1", "42501", "permission denied for test table 'secret'"),
    predict("'model', 'points', 'id', 'x', 'points', mst_key => 1", EXISTS, "Output table 'points' already exists."),
    predict("'model', 'points', 'gone', 'x', 'o', mst_key => 1", COLUMN,
            "invalid id column ('gone') for test table (points)."),
    predict("'model', 'points', 'id, x', 'x', 'o', mst_key => 1", COLUMN,
            "invalid id column ('id, x') for test table (points)."),
    predict("'model', 'points', 'id', 'gone', 'o', mst_key => 1", COLUMN,
            "invalid independent_varname ('gone') for test table (points)."),
    predict("'model', 'points', 'id', 'label', 'o', mst_key => 1", "42804",
            "independent column 'label' is of type text"),
    predict("'model', 'points', 'id', 'pair', 'o', mst_key => 1", "42804",
            "Input shape [4] in the model architecture does not match the input shape [2] of column pair in table points."),
    predict("'model', 'points', 'id', 'id', 'o', mst_key => 1", "42804",
            "does not match the input shape [1] of column id"),
    predict("'model', 'holes', 'id', 'x', 'o', mst_key => 1", NULL, "values are not NULL"),
    predict("'model', 'null_elements', 'id', 'x', 'o', mst_key => 1", NULL, "has a NULL element"),
    predict("'model', 'ragged', 'id', 'x', 'o', mst_key => 1", WRONG, "has shape 2, but row 1 has shape 4"),
    predict("'model', 'hollow', 'id', 'x', 'o', mst_key => 1", WRONG, "an empty array"),
    predict("'lonely', 'points', 'id', 'x', 'o', mst_key => 1", "42809",
            "Missing summary and/or info tables for lonely"),
    predict("'weightless', 'points', 'id', 'x', 'o', mst_key => 1", "55000", "the model with mst_key 1 has no weights"),
    predict("'points', 'points', 'id', 'x', 'o', mst_key => 1", COLUMN,
            "column 'model_weights' does not exist in model table 'points'."),
]  # fmt: skip
CASES = [*PACKING, *MODELS, *CONFIGS, *FIT, *SCORING]
# What only shows while rows are read; a trainer runs by then, and must end.


@pytest.fixture(scope="module")
def scene(bench: Workbench, shared_superuser: Workbench) -> Iterator[Workbench]:
    """A new session beside tables of every wrong kind; no trainer runs at first."""
    bench.model(sequential([5], dense(3, "o", "softmax")))
    bench.model(perceptron(4, "softmax"))
    bench.rows(SCENE)
    for name, (rows, architectures) in SELECTIONS.items():
        bench.rows(f"CREATE TABLE {name} (mst_key, model_id, compile_params, fit_params) AS {rows}")
        bench.rows(f"CREATE TABLE {name}_summary AS SELECT %s::varchar AS model_arch_table", architectures)
    bench.rows("INSERT INTO models (model_id, model_arch) VALUES (51, '[1]'), (50, %s)",
               '{"class_name": "Sequential", "config": {"layers": [{"class_name": "Lambda", "config": {}}]}}')  # fmt: skip
    make_packed_tables(bench)
    bench.configure("mst", [compile_text()])
    bench.fit("packed", "model", "mst", 1)
    make_model_tables(bench)
    for statement in ("CREATE SCHEMA hidden", "CREATE TABLE hidden.t AS TABLE points", "CREATE SCHEMA closed",
                      "GRANT USAGE ON SCHEMA closed TO PUBLIC", "CREATE TABLE closed.models AS TABLE models",
                      "GRANT SELECT ON closed.models TO PUBLIC", "CREATE TABLE public.secret AS TABLE points"):  # fmt: skip
        shared_superuser.rows(statement)
    session = bench.another()
    bench.close()
    eventually(lambda: not session.workers())
    yield session
    session.close()


def make_packed_tables(bench: Workbench) -> None:
    """Packed tables, good and bad."""
    bench.pack("packed", 2)
    bench.pack("spread_packed", 4)
    bench.pack("other_packed", 2, source="other_classes")
    bench.pack("floats", 2, target="amount", kind="float")
    bench.pack("pairs", 2, inputs="pair")
    bench.rows("CREATE TABLE with_codes AS SELECT x, ARRAY[id % 2, 1 - id % 2] AS code FROM points")
    bench.pack("encoded", 2, source="with_codes", target="code")
    bench.pack("several", 2, inputs="x, pair")
    for name, change in {
        "posing": "ALTER TABLE posing DROP COLUMN x_shape",
        "bare": "DELETE FROM bare_summary",
        "drained": "DELETE FROM drained",
        "mixed": "UPDATE mixed SET x_shape = ARRAY[x_shape[1], 2, 2] WHERE buffer_id = 0",
    }.items():
        bench.rows(f"CREATE TABLE {name} AS TABLE packed; CREATE TABLE {name}_summary AS TABLE packed_summary")
        bench.rows(change)


def make_model_tables(bench: Workbench) -> None:
    """Copies of a model table, each lacking something."""
    bench.rows("CREATE TABLE lonely AS TABLE model")
    for name, change in {
        "strange": "ALTER TABLE strange_summary DROP COLUMN normalizing_const",
        "weightless": "UPDATE weightless SET model_weights = NULL",
    }.items():
        for part in ("", "_info", "_summary"):
            bench.rows(f"CREATE TABLE {name}{part} AS TABLE model{part}")
        bench.rows(change)


def everything(bench: Workbench) -> list[tuple[str, ...]]:
    """All relations of the database, and the runs in the log."""
    relations = "SELECT oid::regclass::text FROM pg_class WHERE relnamespace::regnamespace::text !~ '^pg_' ORDER BY 1"
    return bench.rows(f"SELECT * FROM ({relations}) r UNION ALL SELECT 'run ' || run_id FROM cerebro.run_log")


def refused(bench: Workbench, call: str) -> psycopg2.Error:
    """The error of a call, which left nothing behind."""
    before = everything(bench)
    with pytest.raises(psycopg2.Error) as error:
        bench.rows(f"SELECT {call}")
    assert everything(bench) == before
    eventually(lambda: not trainers({bench.pid(), *bench.workers()}))
    return error.value


@pytest.mark.parametrize("case", CASES, ids=[case.call for case in CASES])
def test_a_wrong_call_is_refused(scene: Workbench, case: Case) -> None:
    error = refused(scene, case.call)
    assert (case.words in str(error.diag.message_primary), error.pgcode) == (True, case.sqlstate), str(error)


def test_every_public_function_is_here(scene: Workbench) -> None:
    functions = scene.rows(
        "SELECT DISTINCT proname::text FROM pg_proc WHERE pronamespace = 'madlib'::regnamespace"
        " AND proname NOT IN ('madlib_fit_multiple_model', 'madlib_evaluate', 'madlib_predict')"
    )
    assert {name for (name,) in functions} == {case.call.split("(")[0] for case in CASES}


HELP = {
    "training_preprocessor_dl('gone', 'o', 'label', 'x')": "Check the spelling and the search_path",
    "training_preprocessor_dl('points', 'points', 'label', 'x')": 'DROP TABLE "public"."points";',
    "training_preprocessor_dl('points', 'o', 'gone', 'x')": "Its columns are: id, x, label",
    "training_preprocessor_dl('secret', 'o', 'label', 'x')": "Its owner can GRANT SELECT ON secret to you.",
    "delete_keras_model('models', 99)": 'SELECT model_id, name FROM "public"."models";',
    "madlib_evaluate('model', 'packed', 'o')": 'SELECT mst_key, training_loss_final FROM "public"."model_info"',
    "madlib_fit_multiple_model('points', 'o', 'mst', 1)": "Pack the table with training_preprocessor_dl()",
    "madlib_fit_multiple_model('packed', 'o', 'alone', 1)": "load_model_selection_table() or generate_model_configs()",
    "madlib_fit_multiple_model('packed', 'o', 'wide_mst', 1)": "Give the first layer the shape of the rows",
    "madlib_fit_multiple_model('packed', 'o', 'loss_mst', 1)": "categorical_crossentropy",
    "madlib_fit_multiple_model('packed', 'o', 'mst', 1, validation_table => 'spread_packed')": "validation_preprocessor_dl()",
}


@pytest.mark.parametrize(("call", "words"), HELP.items(), ids=HELP)
def test_a_hint_says_what_to_do(scene: Workbench, call: str, words: str) -> None:
    assert words in str(refused(scene, call).diag.message_hint)


WORK = {
    "packing": "training_preprocessor_dl('points', 'o', 'label', 'x')",
    "fit": "madlib_fit_multiple_model('packed', 'o', 'mst', 1)",
    "evaluate": "madlib_evaluate('model', 'packed', 'o', mst_key => 1)",
    "predict": "madlib_predict('model', 'points', 'id', 'x', 'o', mst_key => 1)",
}
INTERPRETERS = {
    "missing": (None, "55000", "no trainer interpreter is set"),
    "no file": ("/nowhere/python", "55000", "'/nowhere/python', which is not an executable file"),
    "not executable": ("/etc/passwd", "55000", "'/etc/passwd', which is not an executable file"),
    "a folder": ("/tmp", "55000", "'/tmp' cannot be started"),
    "another program": ("/bin/false", "55000", "could not start: /bin/false ended"),
    "without the package": ("/usr/bin/python3", "55000", "could not start: /usr/bin/python3 ended"),
}  # fmt: skip


@pytest.mark.parametrize(("interpreter", "sqlstate", "words"), INTERPRETERS.values(), ids=INTERPRETERS)
@pytest.mark.parametrize("call", WORK.values(), ids=WORK)
def test_an_unusable_trainer(
    scene: Workbench, shared_superuser: Workbench, call: str, interpreter: str | None, sqlstate: str, words: str
) -> None:
    query = "UPDATE cerebro.setting SET value = %s WHERE name = 'trainer_python' RETURNING value"
    before = shared_superuser.value("SELECT value FROM cerebro.setting WHERE name = 'trainer_python'")
    shared_superuser.value(query, interpreter)
    try:
        error = refused(scene, call)
    finally:
        shared_superuser.value(query, before)
    assert (words in str(error.diag.message_primary), error.pgcode) == (True, sqlstate), str(error)
    assert "trainer_python" in str(error.diag.message_hint) or interpreter is None


@pytest.mark.parametrize("call", [WORK["fit"], WORK["evaluate"], WORK["predict"]], ids=["fit", "evaluate", "predict"])
@pytest.mark.parametrize(
    ("begin", "sqlstate"),
    [("BEGIN READ ONLY", "25006"), ("BEGIN ISOLATION LEVEL REPEATABLE READ", "25001"),
     ("BEGIN ISOLATION LEVEL SERIALIZABLE", "25001")],
)  # fmt: skip
def test_transactions_that_could_not_see_the_work(scene: Workbench, call: str, begin: str, sqlstate: str) -> None:
    scene.rows(begin)
    try:
        with pytest.raises(psycopg2.Error) as error:
            scene.rows(f"SELECT {call}")
    finally:
        scene.rows("ROLLBACK")
    assert error.value.pgcode == sqlstate
    assert error.value.diag.message_hint


def test_packing_in_a_read_only_transaction(scene: Workbench) -> None:
    scene.rows("BEGIN READ ONLY")
    with pytest.raises(psycopg2.errors.ReadOnlySqlTransaction):
        scene.rows(f"SELECT {WORK['packing']}")
    scene.rows("ROLLBACK")


SETTINGS = {
    "unknown name": ("trainer", "x", "a row named 'trainer'; expected one of"),
    "no number": ("cache_mb", "much", "setting cache_mb is 'much'; expected a whole number of at least 0"),
    "negative": ("trainer_idle_seconds", "-1", "setting trainer_idle_seconds is '-1'"),
    "too little": (
        "trainer_memory_mb",
        "1",
        "setting trainer_memory_mb is '1'; expected a whole number of at least 64",
    ),
    "odd digits": ("cache_mb", "²", "setting cache_mb is '²'"),
}


@pytest.mark.parametrize(("name", "value", "words"), SETTINGS.values(), ids=SETTINGS)
def test_bad_settings(scene: Workbench, shared_superuser: Workbench, name: str, value: str, words: str) -> None:
    shared_superuser.rows("BEGIN; DELETE FROM cerebro.setting WHERE name = %s", name)
    shared_superuser.rows("INSERT INTO cerebro.setting VALUES (%s, %s); COMMIT", name, value)
    try:
        error = refused(scene, WORK["packing"])
    finally:
        shared_superuser.rows("DELETE FROM cerebro.setting WHERE name = %s", name)
    assert (words in str(error.diag.message_primary), error.pgcode) == (True, "22023"), str(error)


def test_without_a_schema_to_create_in(scene: Workbench) -> None:
    scene.rows("SET search_path = madlib, nowhere")
    try:
        with pytest.raises(psycopg2.Error) as error:
            scene.rows("SELECT training_preprocessor_dl('public.points', 'o', 'label', 'x')")
    finally:
        scene.rows("RESET search_path")
    assert error.value.pgcode == "42501"
    assert "schema madlib" in str(error.value)


@pytest.fixture
def stranger(scene: Workbench, shared_superuser: Workbench) -> Iterator[Workbench]:
    """A session of a role that was granted nothing, inside a transaction."""
    shared_superuser.rows("CREATE ROLE stranger")
    shared_superuser.rows("GRANT USAGE ON SCHEMA madlib TO stranger")
    shared_superuser.rows("BEGIN; SET LOCAL ROLE stranger")
    yield shared_superuser
    shared_superuser.rows("ROLLBACK; DROP OWNED BY stranger; DROP ROLE stranger")


@pytest.mark.parametrize("call", WORK.values(), ids=WORK)
def test_only_who_was_granted_may_call(stranger: Workbench, call: str) -> None:
    with pytest.raises(psycopg2.errors.InsufficientPrivilege, match="permission denied for function"):
        stranger.rows(f"SELECT madlib.{call}")
