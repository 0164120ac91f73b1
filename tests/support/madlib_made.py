"""Tables as MADlib makes them, written by SQL alone: packed tables, architectures, configurations,
trained models.

The shapes are those of MADlib 2.x, of its manual, which still shows single values where 2.x has
arrays, and of 1.17.
"""

from __future__ import annotations

import keras
import numpy as np
from madlib_job import Floats
from models import CLASSES
from psycopg2 import Binary
from workbench import Workbench

LABELS = ["high", "low", "middle"]
CONSTANT = 2.0
BUFFERS = 5
INFO = (
    "mst_key integer PRIMARY KEY, model_id integer, compile_params text, fit_params text, "
    "model_type text, model_size double precision, metrics_elapsed_time double precision[], "
    "metrics_type text[],{} training_metrics_final double precision, training_loss_final double "
    "precision, training_metrics double precision[], training_loss double precision[], "
    "validation_metrics_final double precision, validation_loss_final double precision, "
    "validation_metrics double precision[], validation_loss double precision[]"
)
COMPILE = "optimizer='Adam(lr=0.01)',metrics=['accuracy'],loss='categorical_crossentropy'"


def packed(
    bench: Workbench, name: str, *, keys: bool = True, summary: str = "2.x", encoded: bool = False
) -> str:
    """The points, packed; with `keys` as on Greenplum, or without as on PostgreSQL.

    Targets that came `encoded` have no classes.
    """
    key = "__dist_key__ integer, " if keys else ""
    bench.rows(
        f"CREATE TABLE {name} ({key}x bytea, label bytea, x_shape integer[], label_shape "
        "integer[], buffer_id integer)"
    )
    rows = bench.rows("SELECT x, label FROM points ORDER BY id")
    for number in range(BUFFERS):
        part = rows[number::BUFFERS]
        x = np.array([x for x, _ in part], "<f4") / np.float32(CONSTANT)
        y = np.array([[label == known for known in LABELS] for _, label in part], "<i2")
        values = [Binary(x.tobytes()), Binary(y.tobytes()), list(x.shape), list(y.shape), number]
        values = [number % 2 * 7, *values] if keys else values
        bench.rows(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(values))})", *values)
    bench.rows(
        f"CREATE TABLE {name}_summary AS SELECT 'points'::text AS source_table, '{name}'::text AS "
        f"output_table, {packed_summary(summary, encoded)}"
    )
    return name


def packed_summary(shape: str, encoded: bool) -> str:
    """The other columns of the summary of a packed table."""
    kind = "integer[]" if encoded else "text"
    classes = "NULL::text[]" if encoded else "ARRAY['high', 'low', 'middle']::text[]"
    rest = "20 AS buffer_size, 2.0::real AS normalizing_const"
    placed = (
        "'all_segments'::text AS distribution_rules, 'all_segments'::text AS "
        "__internal_gpu_config__"
    )
    if shape == "2.x":
        count = "'{}'::integer[]" if encoded else "ARRAY[3]"
        return (
            "ARRAY['label']::text[] AS dependent_varname, ARRAY['x']::text[] AS "
            f"independent_varname, ARRAY['{kind}']::text[] AS dependent_vartype, {classes} AS "
            f"label_class_values, {rest}, {count} AS num_classes, {placed}"
        )
    count = "NULL::integer" if encoded else "3"
    return (
        f"'label'::text AS dependent_varname, 'x'::text AS independent_varname, '{kind}'::text AS "
        f"dependent_vartype, {classes} AS class_values, {rest}, {count} AS num_classes, {placed}"
    )


def packed_of_1_17(bench: Workbench, name: str) -> str:
    """Columns of fixed names, shapes of smallint, single values in the summary."""
    packed(bench, name, summary="1.17")
    bench.rows(
        f"ALTER TABLE {name} RENAME x TO independent_var; ALTER TABLE {name} RENAME label TO "
        "dependent_var"
    )
    for target in ("x", "label"):
        column = {"x": "independent", "label": "dependent"}[target]
        bench.rows(f"ALTER TABLE {name} RENAME {target}_shape TO {column}_var_shape")
        bench.rows(f"ALTER TABLE {name} ALTER {column}_var_shape TYPE smallint[]")
    return name


def architectures(bench: Workbench, name: str, *, version: str) -> str:
    """An architecture table with one architecture: of 1.x with a serial primary key, of 2.x without
    any key.
    """
    kind = "serial PRIMARY KEY" if version == "1.x" else "integer"
    bench.rows(
        f"CREATE TABLE {name} (model_id {kind}, model_arch json, model_weights bytea, name text,"
        " description text, __internal_madlib_id__ text)"
    )
    bench.rows(
        f"INSERT INTO {name} (model_id, model_arch, name) VALUES (1, %s, 'from MADlib')", CLASSES
    )
    return name


def selection(bench: Workbench, name: str, models: str, *, objects: bool = True) -> str:
    """A model selection table with one configuration, its summary with or without object_table."""
    bench.rows(
        f"CREATE TABLE {name} (mst_key serial, model_id integer, compile_params varchar, "
        "fit_params varchar, UNIQUE (model_id, compile_params, fit_params))"
    )
    bench.rows(
        f"INSERT INTO {name} (model_id, compile_params, fit_params) VALUES (1, %s, "
        "'batch_size=8,epochs=1')",
        COMPILE,
    )
    column = ", NULL::varchar AS object_table" if objects else ""
    bench.rows(
        f"CREATE TABLE {name}_summary AS SELECT '{models}'::varchar AS model_arch_table{column}"
    )
    return name


def network(seed: int) -> keras.Model:
    """A model with weights of its own."""
    keras.utils.set_random_seed(seed)
    return keras.models.model_from_json(CLASSES)


def flat(model: keras.Model) -> bytes:
    return b"".join(weights.astype("<f4").tobytes() for weights in model.get_weights())


def outputs(bench: Workbench, model: keras.Model) -> Floats:
    """What the model says of the points, by id."""
    rows = [x for (x,) in bench.rows("SELECT x FROM points ORDER BY id")]
    return np.asarray(model(np.array(rows, "<f4") / np.float32(CONSTANT)), np.float64)


def trained(
    bench: Workbench,
    name: str,
    models: dict[int, keras.Model],
    *,
    version: str,
    encoded: bool = False,
) -> str:
    """The output of a fit of several models, of MADlib 2.x or of 1.17, which had no loss_type and
    single values.
    """
    bench.rows(
        f"CREATE TABLE {name} (mst_key integer, model_weights bytea, model_arch json, __dist_key__ "
        "integer)"
    )
    bench.rows(
        f"CREATE TABLE {name}_info ({INFO.format(' loss_type text,' if version == '2.x' else '')})"
    )
    for key, model in models.items():
        bench.rows(f"INSERT INTO {name} VALUES (%s, %s, %s, 0)", key, Binary(flat(model)), CLASSES)
        bench.rows(
            f"INSERT INTO {name}_info (mst_key, model_id, compile_params, fit_params, model_type, "
            "metrics_type) VALUES (%s, 1, %s, 'batch_size=8', 'madlib_keras', '{accuracy}')",
            key,
            COMPILE,
        )
    objects = ", NULL::text AS object_table" if version == "2.x" else ""
    bench.rows(
        f"CREATE TABLE {name}_summary AS SELECT 'packed'::text AS source_table, NULL::text AS "
        f"validation_table, '{name}'::text AS model, '{name}_info'::text AS model_info, "
        f"'models'::text AS model_arch_table, 'mst'::text AS model_selection_table{objects}, 3 AS "
        "num_iterations, 3 AS metrics_compute_frequency, FALSE AS warm_start, NULL::text AS name, "
        "NULL::text AS description, now()::timestamp AS start_training_time, now()::timestamp AS "
        f"end_training_time, '{version}'::text AS madlib_version, ARRAY[3] AS metrics_iters, s.* "
        f"FROM (SELECT {packed_summary(version, encoded)}) s"
    )
    return name


def single(bench: Workbench, name: str, model: keras.Model) -> str:
    """The output of a fit of one model: two columns, and everything else in the summary."""
    bench.rows(
        f"CREATE TABLE {name} AS SELECT %s::bytea AS model_weights, %s::json AS model_arch",
        Binary(flat(model)),
        CLASSES,
    )
    bench.rows(
        f"CREATE TABLE {name}_summary AS SELECT 'packed'::text AS source_table, '{name}'::text AS "
        f"model, 1 AS model_id, 'models'::text AS model_arch_table, $${COMPILE}$$::text AS "
        "compile_params, 'batch_size=8'::text AS fit_params, ARRAY['accuracy'] AS metrics_type, "
        "'categorical_crossentropy'::text AS loss_type, s.* FROM (SELECT "
        f"{packed_summary('2.x', False)}) s"
    )
    return name
