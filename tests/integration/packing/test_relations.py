"""What can be packed: relations of every kind, any name, inside transactions, and what fit takes as
packed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from packed import (
    FLOATS,
    ONE_HOT,
    bag,
    buffers,
    examples,
    fresh,
    named_buffers,
    pack,
    quoted,
    summary,
)
from processes import trainers
from workbench import Workbench, compile_text

FIT_WORKERS = 1
Bag = Counter[tuple[bytes, ...]]
RELATIONS = {
    "view": "CREATE VIEW {name} AS SELECT * FROM plain",
    "materialized view": "CREATE MATERIALIZED VIEW {name} AS SELECT * FROM plain",
    "temporary table": "CREATE TEMPORARY TABLE {name} AS SELECT * FROM plain",
    "unlogged table": "CREATE UNLOGGED TABLE {name} AS SELECT * FROM plain",
    "partitioned table": "CREATE TABLE {name} (LIKE plain) PARTITION BY HASH (id);"
    "CREATE TABLE {name}_0 PARTITION OF {name} FOR VALUES WITH (MODULUS 2, REMAINDER 0);"
    "CREATE TABLE {name}_1 PARTITION OF {name} FOR VALUES WITH (MODULUS 2, REMAINDER 1);"
    "INSERT INTO {name} SELECT * FROM plain",
    "inherited table": "CREATE TABLE {name} (LIKE plain); CREATE TABLE {name}_child () INHERITS "
    "({name});INSERT INTO {name}_child SELECT * FROM plain",
    "table with a dropped column": "CREATE TABLE {name} AS SELECT 1 AS gone, * FROM plain;"
    "ALTER TABLE {name} DROP COLUMN gone",
}


@pytest.fixture(scope="module")
def expected(bench: Workbench, source: str) -> Bag:
    """The rows of a plain table as they are packed."""
    return bag(examples(buffers(bench, pack(bench, source), x=FLOATS, y=ONE_HOT)))


@pytest.mark.parametrize("statements", RELATIONS.values(), ids=RELATIONS)
def test_any_relation_with_rows_can_be_packed(
    bench: Workbench, expected: Bag, statements: str
) -> None:
    name = fresh()
    bench.rows(statements.format(name=name))
    assert bag(examples(buffers(bench, pack(bench, name), x=FLOATS, y=ONE_HOT))) == expected


def test_a_foreign_table_can_be_packed(
    bench: Workbench,
    shared_superuser: Workbench,
    source: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    for statement in (
        "CREATE EXTENSION file_fdw",
        "CREATE SERVER files FOREIGN DATA WRAPPER file_fdw",
        "CREATE FOREIGN TABLE far (id integer, x real[], y text, n integer) SERVER files"
        " OPTIONS (program 'printf ''1\\t{1,2}\\ta\\t0\\n2\\t{3,4}\\tb\\t1\\n''')",
        "GRANT SELECT ON far TO PUBLIC",
    ):
        shared_superuser.rows(statement)
    rows = examples(buffers(bench, pack(bench, "far"), x=FLOATS, y=ONE_HOT))
    assert sorted((x.tolist(), y.tolist()) for x, y in rows) == [([1, 2], [1, 0]), ([3, 4], [0, 1])]


NAMES = {
    "capitals and spaces": ("My Table", "My Input", "My Label"),
    "quotes": ('a"b', "it's", 'say "x"'),
    "signs": ("100%", "%s", "{x} %(y)s $1 \\ ;--"),
    "unicode": ("Таблица 表", "входы", "étiquette 🌼"),
    "words of SQL": ("select", "table", "order"),
    "words of the packer": ("number", "position", "buffer"),
    "names that the packer used": ("data", "number", "packed"),
    "longest": ("t" * 55, "x" * 57, "y" * 50),
    "longest in bytes": ("é" * 27, "ü" * 28, "ñ" * 25),
    "dots and commas": ("a.b", "c,d", "e.f,g"),
}


@pytest.mark.parametrize(("table", "x", "y"), NAMES.values(), ids=NAMES)
def test_any_name_can_be_used(
    bench: Workbench, source: str, expected: Bag, table: str, x: str, y: str
) -> None:
    schema = '"Other %s schema"'
    bench.rows(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    named = f"{schema}.{quoted(table)}"
    bench.rows(f"CREATE TABLE {named} AS SELECT x AS {quoted(x)}, y AS {quoted(y)} FROM {source}")
    output, validation = (f"{schema}.{quoted(letter + table[1:])}" for letter in "pv")
    columns = (quoted(y), quoted(x))
    bench.rows(
        "SELECT training_preprocessor_dl(%s, %s, %s, %s, seed => 3)", named, output, *columns
    )
    bench.rows(
        "SELECT validation_preprocessor_dl(%s, %s, %s, %s, %s)", named, validation, *columns, output
    )
    assert (
        bench.value(f"SELECT source_table FROM {schema}.{quoted('p' + table[1:] + '_summary')}")
        == named
    )
    found = examples(named_buffers(bench, output, [(x, FLOATS), (y, ONE_HOT)]))
    assert bag(found) == expected


def test_names_are_resolved_as_sql_resolves_them(bench: Workbench, source: str) -> None:
    bench.rows("CREATE SCHEMA first_in_path")
    bench.rows("CREATE TABLE first_in_path.plain AS SELECT 1 AS x, 'only' AS y")
    bench.rows(
        "SELECT set_config('search_path', 'first_in_path, ' || current_setting('search_path'), "
        "false)"
    )
    try:
        pack_here = pack(bench, "PLAIN", "Y", " X ")
        assert summary(bench, f"first_in_path.{pack_here}", "y_class_values") == ["only"]
    finally:
        bench.rows("RESET search_path")


def test_packing_belongs_to_the_caller_s_transaction(bench: Workbench, source: str) -> None:
    table = fresh()
    bench.rows("BEGIN")
    bench.rows(f"CREATE TABLE {table} AS SELECT * FROM {source}")
    packed = pack(bench, table)
    assert bench.value(f"SELECT sum(x_shape[1]) FROM {packed}") == 20
    bench.rows("ROLLBACK")
    assert not bench.exists(table, packed, f"{packed}_summary")


def test_packing_leaves_the_settings_of_the_transaction_as_they_were(
    bench: Workbench, source: str
) -> None:
    query = (
        "SELECT array_agg(name || '=' || setting ORDER BY name) FROM pg_settings WHERE name <> "
        "'gp_command_count'"
    )
    bench.rows("BEGIN")
    bench.rows("SET LOCAL enable_hashagg = on")
    before = bench.value(query)
    pack(bench, source)
    after = bench.value(query)
    bench.rows("ROLLBACK")
    assert after == before


def test_a_trainer_of_packing_ends_with_the_call(bench: Workbench, source: str) -> None:
    pack(bench, source)
    assert not trainers({bench.pid()})


def make_packed(bench: Workbench, table: str, key: Sequence[int] | None) -> None:
    """A table as MADlib packs, of the 96 points: with keys as on Greenplum, or without as on
    PostgreSQL.
    """
    rows = bench.rows("SELECT x, label FROM points ORDER BY id")
    names = ["high", "low", "middle"]
    x = np.array([row[0] for row in rows], "<f4")
    y = np.array([[int(row[1] == name) for name in names] for row in rows], "<i2")
    first = "__dist_key__ integer, " if key else ""
    bench.rows(
        f"CREATE TABLE {table} ({first}x bytea, label bytea, x_shape integer[], label_shape "
        "integer[], buffer_id integer)"
    )
    for number in range(4):
        part = slice(24 * number, 24 * number + 24)
        fields = [x[part].tobytes(), y[part].tobytes(), [24, 4], [24, 3], number]
        fields = [*([key[number % len(key)]] if key else []), *fields]
        bench.rows(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(fields))})", *fields)
    bench.rows(
        f"CREATE TABLE {table}_summary AS SELECT 'points' AS source_table, '{table}' AS "
        "output_table, ARRAY['label'] AS dependent_varname, ARRAY['x'] AS independent_varname, "
        "ARRAY['text'] AS dependent_vartype, ARRAY['high', 'low', 'middle', NULL] AS "
        "label_class_values, 24 AS buffer_size, 1.0::real AS normalizing_const, ARRAY[3] AS "
        "num_classes, 'all_segments' AS distribution_rules, 'all_segments' AS "
        "__internal_gpu_config__"
    )


OF_POSTGRESQL = pytest.param(
    None,
    id="of PostgreSQL",
    marks=pytest.mark.postgresql("elsewhere a segment's rows are found by their key"),
)


@pytest.mark.parametrize("key", [OF_POSTGRESQL, pytest.param((3, 11), id="of Greenplum")])
def test_fit_accepts_a_table_that_madlib_packed(
    bench: Workbench, key: Sequence[int] | None
) -> None:
    table = fresh("madlib")
    make_packed(bench, table, key)
    configs = bench.configure(fresh("configs"), [compile_text()])
    run = bench.fit(table, f"{table}_model", configs, 2, seed=1)
    query = "SELECT DISTINCT segment_id, rows FROM cerebro.visit WHERE run_id = %s ORDER BY 1"
    visited = bench.rows(query, run)
    assert sum(rows for _, rows in visited) == 96
    assert key is None or [segment for segment, _ in visited] == list(key)
    assert bench.value(f"SELECT num_classes FROM {table}_model_summary") == [3]
    assert bench.value(f"SELECT training_loss_final FROM {table}_model_info") < 1.2
