"""Tables of every wrong kind, beside good ones, for calls that must be refused."""

from __future__ import annotations

import json

from models import TWO_BY_TWO, dense, perceptron, sequential
from workbench import Workbench, compile_text

COMPILE = "optimizer='SGD()',loss='categorical_crossentropy',metrics=['accuracy']"
SCENE = f"""
CREATE TABLE nothing AS SELECT * FROM points LIMIT 0;
CREATE VIEW seen AS SELECT * FROM points;
CREATE TABLE holes AS SELECT id, CASE WHEN id <> 5 THEN x END AS x, label FROM points;
CREATE TABLE null_elements AS SELECT id, CASE WHEN id <> 5 THEN x ELSE '{{1,2,NULL,4}}' END AS x,
    label FROM points;
CREATE TABLE ragged AS SELECT id, CASE WHEN id <> 5 THEN x ELSE '{{1,2}}' END AS x, label
    FROM points;
CREATE VIEW uneven AS SELECT * FROM ragged ORDER BY id;
CREATE TABLE hollow AS SELECT id, '{{}}'::real[] AS x, label FROM points;
CREATE TABLE typed AS SELECT id, x, label, x::text[] AS texts, '{{}}'::json AS j,
    1e300::float8 AS huge,
    id AS buffer_id, x AS __dist_key__, x AS x_shape, ARRAY[70000] AS large,
    ARRAY[id, 16777217] AS odd, 'no/png?'::bytea AS scrawl FROM points;
CREATE TABLE {"l" * 50} AS SELECT * FROM points;
CREATE TABLE long_column AS SELECT id, x AS {"x" * 60}, label AS {"y" * 60} FROM points;
CREATE INDEX an_index ON points (id);
CREATE TABLE clean AS SELECT id, x, label FROM points;
CREATE TABLE clean_summary AS SELECT 1 AS a;
CREATE TABLE other_classes AS SELECT id, x, label || 'x' AS label FROM points;
CREATE TABLE no_model_columns AS SELECT 1 AS mst_key;
CREATE TABLE single AS SELECT model_weights, model_arch FROM models;
CREATE TABLE other_models AS TABLE models;
CREATE TABLE exists_info AS SELECT 1 AS a;
CREATE TABLE exists2_summary AS SELECT 1 AS a;
CREATE TABLE alone AS SELECT 1 AS mst_key, 1 AS model_id, $${COMPILE}$$ AS compile_params,
    '' AS fit_params;
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
    "callbacks_mst": (
        f"SELECT 1, 1, $${COMPILE}$$, 'callbacks=[TensorBoard(log_dir=''/tmp/'')]'",
        "models",
    ),
    "weight_mst": (f"SELECT 1, 1, $${COMPILE}$$, 'class_weight={{0: 1, 3: 2}}'", "models"),
    "two_mst": ("SELECT 1, 4, $$loss='mse',optimizer='SGD'$$, ''", "models"),
    "losses_mst": ("SELECT 1, 4, $$loss=['mse', 'mse', 'mae'],optimizer='SGD'$$, ''", "models"),
    "loss_of_no_output_mst": (
        "SELECT 1, 4, $$loss={'kind': 'mse', 'length': 'mse'},optimizer='SGD'$$, ''",
        "models",
    ),
    "loss_of_one_output_mst": (
        "SELECT 1, 4, $$loss={'kind': 'mse'},optimizer='SGD'$$, ''",
        "models",
    ),
    "loss_weights_mst": (
        "SELECT 1, 4, $$loss='mse',optimizer='SGD',loss_weights=[1.0]$$, ''",
        "models",
    ),
    "weight_of_one_output_mst": (
        "SELECT 1, 4, $$loss='mse',optimizer='SGD',loss_weights={'size': 2}$$, ''",
        "models",
    ),
    "metrics_mst": (
        "SELECT 1, 4, $$loss='mse',optimizer='SGD',metrics=[['mae'], [], []]$$, ''",
        "models",
    ),
    "metric_of_no_output_mst": (
        "SELECT 1, 4, $$loss='mse',optimizer='SGD',metrics={'length': ['mae']}$$, ''",
        "models",
    ),
    "weight_of_two_mst": (
        "SELECT 1, 4, $$loss='mse',optimizer='SGD'$$, 'class_weight={0: 1, 1: 2}'",
        "models",
    ),
    "text_key_mst": (f"SELECT 'one', 1, $${COMPILE}$$, ''", "models"),
    "wide_mst": (f"SELECT 1, 2, $${COMPILE}$$, ''", "models"),
    "four_mst": (f"SELECT 1, 3, $${COMPILE}$$, ''", "models"),
    "lambda_mst": (f"SELECT 1, 50, $${COMPILE}$$, ''", "models"),
    "broken_arch_mst": (f"SELECT 1, 51, $${COMPILE}$$, ''", "models"),
}
OWN_MODELS = """
CREATE TABLE own_models AS TABLE models;
DELETE FROM own_models WHERE model_id NOT IN (1, 4);
UPDATE own_models o SET model_weights = t.model_weights
FROM (SELECT 1 AS model_id, model_weights FROM model UNION ALL SELECT 4, model_weights FROM two) t
WHERE o.model_id = t.model_id;
INSERT INTO own_models (model_id, model_weights) SELECT 2, model_weights FROM model;
INSERT INTO own_models (model_id, model_arch) SELECT 3, model_arch FROM models WHERE model_id = 1;
INSERT INTO own_models (model_id, model_arch, model_weights)
SELECT 5, model_arch, '1234' FROM models WHERE model_id = 1;
"""
ARCHITECTURE_WITH_CODE = (
    '{"class_name": "Sequential", "config": {"layers": [{"class_name": "Lambda", "config": {}}]}}'
)
OF_THE_SUPERUSER = (
    "CREATE SCHEMA hidden",
    "CREATE TABLE hidden.t AS TABLE points",
    "CREATE SCHEMA closed",
    "GRANT USAGE ON SCHEMA closed TO PUBLIC",
    "CREATE TABLE closed.models AS TABLE models",
    "GRANT SELECT ON closed.models TO PUBLIC",
    "CREATE TABLE public.secret AS TABLE points",
)


def build(bench: Workbench, superuser: Workbench) -> None:
    """Make everything; model 2 takes inputs of five numbers, 3 has four units, 4 has two inputs and
    two outputs.
    """
    bench.model(sequential([5], dense(3, "o", "softmax")))
    bench.model(perceptron(4, "softmax"))
    bench.model(json.dumps(TWO_BY_TWO))
    bench.rows(SCENE)
    for name, (rows, architectures) in SELECTIONS.items():
        bench.rows(f"CREATE TABLE {name} (mst_key, model_id, compile_params, fit_params) AS {rows}")
        bench.rows(
            f"CREATE TABLE {name}_summary AS SELECT %s::varchar AS model_arch_table", architectures
        )
    insert = "INSERT INTO models (model_id, model_arch) VALUES (51, '[1]'), (50, %s)"
    bench.rows(insert, ARCHITECTURE_WITH_CODE)
    make_packed_tables(bench)
    bench.configure("mst", [compile_text()])
    bench.fit("packed", "model", "mst", 1)
    bench.fit("two_packed", "two", "two_mst", 1)
    make_model_tables(bench)
    bench.rows(OWN_MODELS)
    for statement in OF_THE_SUPERUSER:
        superuser.rows(statement)


def make_packed_tables(bench: Workbench) -> None:
    """Packed tables, good and bad."""
    bench.pack("packed", 2)
    bench.pack("spread_packed", 3)
    bench.pack("other_packed", 2, source="other_classes")
    bench.pack("floats", 2, target="amount", kind="float")
    bench.pack("pairs", 2, inputs="pair")
    bench.rows("CREATE TABLE with_codes AS SELECT x, ARRAY[id % 2, 1 - id % 2] AS code FROM points")
    bench.pack("encoded", 2, source="with_codes", target="code")
    bench.pack("several", 2, inputs="x, pair")
    bench.pack("two_floats", 2, target="pair")
    bench.pack("two_packed", 2, target="label, amount", inputs="x, pair", kind="class, float")
    bench.pack("targets_turned", 2, target="amount, label", inputs="x, pair", kind="float, class")
    bench.pack("inputs_turned", 2, target="label, amount", inputs="pair, x", kind="class, float")
    bench.rows("CREATE TABLE with_two AS SELECT x, pair, label, pair AS sizes FROM points")
    bench.pack("narrow", 2, source="with_two", target="label, sizes", inputs="x, pair")
    for name, change in {
        "posing": "ALTER TABLE posing DROP COLUMN x_shape",
        "bare": "DELETE FROM bare_summary",
        "drained": "DELETE FROM drained",
        "old_packed": "ALTER TABLE old_packed RENAME x TO independent_var;"
        " ALTER TABLE old_packed RENAME label TO dependent_var",
        "mixed": "UPDATE mixed SET x_shape = ARRAY[x_shape[1], 2, 2] WHERE buffer_id = 0",
    }.items():
        bench.rows(
            f"CREATE TABLE {name} AS TABLE packed; CREATE TABLE {name}_summary AS TABLE "
            "packed_summary"
        )
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
