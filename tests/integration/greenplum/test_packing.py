"""Packing on Greenplum: where rows lie afterwards, and that they went there directly."""

from __future__ import annotations

import io
import re
import threading
import time
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from math import ceil
from typing import Any

import numpy as np
import psycopg2
import pytest
from greenplum import backends
from packed import FLOATS, ONE_HOT, bag, buffers, examples, fresh, pack, summary, validate
from PIL import Image
from processes import eventually, trainers
from workbench import Workbench, compile_text, superuser

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.database.platform_protocol import Distribution
from cerebro_plpy.database.queries import escape_percent
from cerebro_plpy.packing.fill_buffers import build_insert
from cerebro_plpy.packing.packed_columns import Column
from cerebro_plpy.packing.packing_plan import PackingPlan
from cerebro_plpy.platform.greenplum.packing import GreenplumPackers, Source

ROWS = 100
PLAIN = (
    "SELECT id, ARRAY[id, -id]::real[] AS x, (ARRAY['b', 'A', 'a', NULL])[1 + id % 4] AS y, id % "
    f"3 AS n, ARRAY[id / 8.0]::real[] AS f FROM generate_series(1, {ROWS}) id"
)
RELATIONS = {
    "heap": "CREATE TABLE {name} AS SELECT * FROM plain DISTRIBUTED BY (id)",
    "randomly distributed": "CREATE TABLE {name} AS SELECT * FROM plain DISTRIBUTED RANDOMLY",
    "all rows on one segment": "CREATE TABLE {name} AS SELECT *, 1 AS one FROM plain DISTRIBUTED "
    "BY (one)",
    "append-optimised": "CREATE TABLE {name} USING ao_row AS SELECT * FROM plain DISTRIBUTED BY "
    "(id)",
    "append-optimised by column": "CREATE TABLE {name} USING ao_column AS SELECT * FROM plain "
    "DISTRIBUTED BY (id)",
    "replicated": "CREATE TABLE {name} AS SELECT * FROM plain DISTRIBUTED REPLICATED",
    "temporary": "CREATE TEMPORARY TABLE {name} AS SELECT * FROM plain DISTRIBUTED BY (id)",
    "partitioned": "CREATE TABLE {name} (LIKE plain) DISTRIBUTED BY (id) PARTITION BY RANGE (id) "
    "(START (1) END (201) EVERY (50)); INSERT INTO {name} SELECT * FROM plain",
    "inherited": "CREATE TABLE {name} (LIKE plain) DISTRIBUTED BY (id); CREATE TABLE {name}_child "
    "() INHERITS ({name}); INSERT INTO {name}_child SELECT * FROM plain",
    "view": "CREATE VIEW {name} AS SELECT * FROM plain",
    "view of no table": "CREATE VIEW {name} AS " + PLAIN,
    "view of an aggregate": "CREATE VIEW {name} AS SELECT id, min(x) AS x, min(y) AS y, min(n) AS "
    "n, min(f) AS f FROM plain GROUP BY id",
    "materialized view": "CREATE MATERIALIZED VIEW {name} AS SELECT * FROM plain DISTRIBUTED BY "
    "(id)",
}


pytestmark = pytest.mark.parametrize("platform", ["greenplum"], indirect=True)


@pytest.fixture(scope="module", autouse=True)
def plain(bench: Workbench) -> None:
    """A table of rows."""
    bench.rows(f"CREATE TABLE plain AS {PLAIN} DISTRIBUTED BY (id)")


@pytest.fixture(scope="module")
def segments(bench: Workbench) -> int:
    """How many primary segments the server has."""
    return int(
        bench.value(
            "SELECT count(*) FROM gp_segment_configuration WHERE content >= 0 AND role = 'p'"
        )
    )


def content(bench: Workbench, table: str) -> list[tuple[int, int, bytes]]:
    """Which rows lie where in a packed table."""
    return [
        (buffer.segment, buffer.buffer_id, buffer.arrays[0].tobytes())
        for buffer in buffers(bench, table, id=FLOATS)
    ]


def places(bench: Workbench, table: str) -> list[tuple[int, int]]:
    """Keys of a packed table, and the segments where their rows lie."""
    return [
        (k, s)
        for k, s in bench.rows(
            f"SELECT DISTINCT __dist_key__, gp_segment_id FROM {table} ORDER BY 2"
        )
    ]


@pytest.mark.parametrize("statements", RELATIONS.values(), ids=RELATIONS)
def test_each_row_of_any_relation_arrives_once(
    bench: Workbench, segments: int, statements: str
) -> None:
    name = fresh()
    for statement in statements.format(name=name).split("; "):
        bench.rows(statement)
    packed = pack(bench, name, "f", "id, x", seed=1, buffer_size=9, normalizing_const=2)
    rows = examples(buffers(bench, packed, id=FLOATS, x=FLOATS, f=FLOATS))
    expected = [
        tuple(np.array(part, np.float32) for part in ([i / 2], [i / 2, -i / 2], [i / 8]))
        for i in range(1, ROWS + 1)
    ]
    assert bag(rows) == bag(expected)
    assert len({s for _, s in places(bench, packed)}) == len(places(bench, packed)) == segments
    assert content(
        bench, pack(bench, name, "f", "id, x", seed=1, buffer_size=9, normalizing_const=2)
    ) == content(bench, packed)
    assert not bench.rows("SELECT FROM pg_class WHERE relname = 'cerebro_rows'")


def test_who_may_read_some_columns_can_pack_these(bench: Workbench) -> None:
    administrator, table = superuser(bench), fresh("granted")
    try:
        administrator.rows(
            f"CREATE TABLE {table} AS SELECT id, y, 'secret' AS z FROM plain DISTRIBUTED BY (id)"
        )
        administrator.rows(
            f"GRANT SELECT (id, y) ON {table} TO {bench.value('SELECT current_user')}"
        )
        assert len(examples(buffers(bench, pack(bench, table, "y", "id"), id=FLOATS))) == ROWS
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            pack(bench, table, "z", "id")
    finally:
        administrator.close()


def test_packing_belongs_to_the_caller_s_transaction(bench: Workbench) -> None:
    table = fresh()
    bench.rows("BEGIN")
    bench.rows(f"CREATE TABLE {table} AS SELECT * FROM plain DISTRIBUTED BY (id)")
    packed = pack(bench, table)
    assert bench.value(f"SELECT sum(x_shape[1]) FROM {packed}") == ROWS
    bench.rows("ROLLBACK")
    assert not bench.exists(table, packed, f"{packed}_summary")


def test_rows_that_stay_in_order_stay_where_they_are(bench: Workbench) -> None:
    training = pack(bench, "plain", "n", "id")
    found = validate(bench, "plain", training, "n", "id", buffer_size=1)
    lay: dict[int, int] = dict(bench.rows("SELECT id, gp_segment_id FROM plain"))
    lie = dict(places(bench, found))
    moved = sum(
        lay[int(b.arrays[0][0, 0])] != lie[b.segment] for b in buffers(bench, found, id=FLOATS)
    )
    uneven = sum(abs(count - ROWS / len(lie)) for count in Counter(lay.values()).values())
    assert moved <= uneven * len(lie)


@pytest.mark.parametrize(
    ("rows", "hint"), [(1, None), (2, 1), (3, None), (50, 7), (97, 40), (100, 1)]
)
def test_buffers_and_segments_are_even(
    bench: Workbench, segments: int, rows: int, hint: int | None
) -> None:
    table = fresh()
    bench.rows(f"CREATE TABLE {table} AS SELECT * FROM plain WHERE id <= {rows} DISTRIBUTED BY (n)")
    packed = pack(bench, table, "n", "id", buffer_size=hint)
    found = buffers(bench, packed, id=FLOATS)
    used = min(segments, rows)
    wanted = min(rows, used * ceil(rows / min(hint or rows, rows) / used))
    sizes = [buffer.rows for buffer in found]
    assert [buffer.buffer_id for buffer in found] == list(range(wanted))
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) == summary(bench, packed, "buffer_size")
    by_segment = Counter(buffer.segment for buffer in found).values()
    assert len(by_segment) == used
    assert max(by_segment) - min(by_segment) <= 1


def test_the_seed_decides_the_order(bench: Workbench) -> None:
    first, again, other = (
        content(bench, pack(bench, "plain", "n", "id", seed=s, buffer_size=5)) for s in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_a_view_is_packed_by_what_its_rows_hold(bench: Workbench) -> None:
    """So the same seed gives the same bits, although its rows lie nowhere, and equal ones are dealt
    like others.
    """
    view = fresh()
    bench.rows(f"CREATE VIEW {view} AS SELECT p.id % 4 AS id, 'a' AS y FROM plain p")
    first, again = (pack(bench, view, "y", "id", seed=3, buffer_size=5) for _ in range(2))
    assert content(bench, first) == content(bench, again)
    sizes = [buffer.rows for buffer in buffers(bench, first, id=FLOATS)]
    assert max(sizes) - min(sizes) <= 1


def test_classes_are_found_and_encoded(bench: Workbench) -> None:
    packed = pack(bench, "plain", "y, n, f", "x, id", num_classes=[5, 3])
    assert summary(bench, packed, "y_class_values") == [None, "A", "a", "b", None]
    assert summary(bench, packed, "n_class_values") == [0, 1, 2]
    labels: dict[int, str | None] = dict(bench.rows("SELECT id, y FROM plain"))
    rows = examples(buffers(bench, packed, id=FLOATS, y=ONE_HOT, n=ONE_HOT, f=FLOATS))
    assert len(rows) == ROWS
    for number, y, n, f in rows:
        row = int(number[0])
        assert y.tolist() == [int(name == labels[row]) for name in (None, "A", "a", "b")] + [0]
        assert n.tolist() == [int(row % 3 == c) for c in range(3)]
        assert f.tolist() == [row / 8]


def test_images_are_packed(bench: Workbench) -> None:
    table = fresh()
    bench.rows(f"CREATE TABLE {table} (id integer, x bytea, y text) DISTRIBUTED BY (id)")
    for number in range(9):
        image = io.BytesIO()
        Image.fromarray(np.full((2, 3, 3), number, np.uint8)).save(image, "PNG")
        bench.rows(f"INSERT INTO {table} VALUES (%s, %s, 'a')", number, image.getvalue())
    for row, pixels in examples(
        buffers(bench, pack(bench, table, "y", "x, id"), id=FLOATS, x=FLOATS)
    ):
        assert pixels.shape == (2, 3, 3)
        assert set(pixels.ravel()) == {row[0]}


def test_validation_rows_go_where_the_training_rows_are(bench: Workbench, segments: int) -> None:
    training = pack(
        bench,
        "plain",
        "y",
        "id",
        num_classes=[6],
        normalizing_const=4,
        n_segments=max(1, segments - 1),
    )
    found = validate(bench, "plain", training, "y", "id", buffer_size=3)
    assert places(bench, found) == places(bench, training)
    assert bag(examples(buffers(bench, found, id=FLOATS, y=ONE_HOT))) == bag(
        examples(buffers(bench, training, id=FLOATS, y=ONE_HOT))
    )
    described = (
        "(distribution_rules::text, __internal_gpu_config__::text, normalizing_const, "
        "num_classes::text)::text"
    )
    assert summary(bench, found, described) == summary(bench, training, described)
    few = fresh()
    bench.rows(f"CREATE TABLE {few} AS SELECT * FROM plain LIMIT 1 DISTRIBUTED BY (id)")
    assert set(places(bench, validate(bench, few, training, "y", "id"))) <= set(
        places(bench, training)
    )


def test_fewer_segments_are_used_where_they_are_asked_for(bench: Workbench, segments: int) -> None:
    packed = pack(bench, "plain", "y", "id", n_segments=1)
    assert len(places(bench, packed)) == 1
    assert segments == 1 or summary(bench, packed, "cardinality(distribution_rules)") == 1
    with pytest.raises(psycopg2.errors.InvalidParameterValue, match=f"expected at most {segments}"):
        pack(bench, "plain", "y", "id", n_segments=segments + 1)


def test_all_segments_is_what_the_summary_says_by_default(bench: Workbench) -> None:
    for rules in (None, "all_segments"):
        packed = pack(bench, "plain", "y", "id", distribution_rules=rules)
        assert summary(bench, packed, "(distribution_rules, __internal_gpu_config__)::text") == (
            "(all_segments,all_segments)"
        )


def test_a_table_of_dbids_names_the_segments(bench: Workbench) -> None:
    dbid, segment = bench.rows(
        "SELECT dbid::integer, content::integer FROM gp_segment_configuration WHERE content >= 0 "
        "AND role = 'p' ORDER BY content DESC LIMIT 1"
    )[0]
    rules = fresh("rules")
    bench.rows(f"CREATE TABLE {rules} AS SELECT {dbid} AS dbid DISTRIBUTED BY (dbid)")
    packed = pack(bench, "plain", "y", "id", distribution_rules=rules)
    assert [s for _, s in places(bench, packed)] == [segment]
    assert summary(bench, packed, "distribution_rules") == [dbid]
    assert summary(bench, packed, "__internal_gpu_config__") == [segment]


REFUSED_RULES = {
    "duplicate dbids": ("SELECT unnest(ARRAY[2, 2]) AS dbid", "contains duplicate dbids"),
    "no segment": ("SELECT -7 AS dbid", "invalid dbid:-7 in the distribution rules table"),
    "the coordinator": ("SELECT 1 AS dbid", "invalid dbid:1 in the distribution rules table"),
    "NULL": ("SELECT NULL::integer AS dbid", "invalid dbid:NULL in the distribution rules table"),
    "empty": ("SELECT 2 AS dbid WHERE false", "is empty"),
    "another column": ("SELECT 2 AS id", "must contain dbid column"),
}


@pytest.mark.parametrize(("query", "words"), REFUSED_RULES.values(), ids=REFUSED_RULES)
def test_rules_that_name_no_segments_are_refused(bench: Workbench, query: str, words: str) -> None:
    rules = fresh("rules")
    bench.rows(f"CREATE TABLE {rules} AS {query} DISTRIBUTED RANDOMLY")
    with pytest.raises(psycopg2.Error, match=words):
        pack(bench, "plain", "y", "id", distribution_rules=rules)


def test_gpu_segments_are_those_of_machines_with_gpus(bench: Workbench, segments: int) -> None:
    administrator = superuser(bench)
    try:
        administrator.rows("INSERT INTO cerebro.setting VALUES ('gpus', '')")
        with pytest.raises(psycopg2.Error, match="No GPUs configured on hosts"):
            pack(bench, "plain", "y", "id", distribution_rules="gpu_segments")
        administrator.rows("UPDATE cerebro.setting SET value = '0' WHERE name = 'gpus'")
        assert (
            len(places(bench, pack(bench, "plain", "y", "id", distribution_rules="gpu_segments")))
            == segments
        )
    finally:
        administrator.rows("DELETE FROM cerebro.setting WHERE name = 'gpus'")
        administrator.close()


def copy_of(bench: Workbench, packed: str, distribution: str, key: str = "__dist_key__") -> str:
    """A packed table with its summary, distributed otherwise or with other keys."""
    name = fresh("copy")
    columns = "id, id_shape, y, y_shape, buffer_id"
    bench.rows(
        f"CREATE TABLE {name} AS SELECT {key} AS __dist_key__, {columns} FROM {packed} "
        f"{distribution}"
    )
    bench.rows(
        f"CREATE TABLE {name}_summary AS SELECT * FROM {packed}_summary DISTRIBUTED RANDOMLY"
    )
    return name


@pytest.mark.parametrize(
    "distribution", ["RANDOMLY", "BY (buffer_id)", "BY (__dist_key__, buffer_id)", "REPLICATED"]
)
def test_a_table_that_does_not_lie_by_its_key_is_refused(
    bench: Workbench, distribution: str
) -> None:
    wrong = copy_of(bench, pack(bench, "plain", "y", "id"), f"DISTRIBUTED {distribution}")
    with pytest.raises(
        psycopg2.errors.WrongObjectType, match=r"is not DISTRIBUTED BY \(__dist_key__\)"
    ):
        validate(bench, "plain", wrong, "y", "id")


def test_a_table_with_keys_that_nobody_knows_is_refused(bench: Workbench) -> None:
    wrong = copy_of(
        bench,
        pack(bench, "plain", "y", "id"),
        "DISTRIBUTED BY (__dist_key__)",
        "__dist_key__ + 1000000",
    )
    with pytest.raises(
        psycopg2.errors.WrongObjectType, match=r"not in cerebro\.segment_key: 10000"
    ):
        validate(bench, "plain", wrong, "y", "id")


def test_fit_takes_no_validation_table_on_other_segments(bench: Workbench, segments: int) -> None:
    training, validation = (
        pack(bench, "plain", n_segments=1),
        pack(bench, "plain", n_segments=segments),
    )
    configs = bench.configure(fresh("configs"), [compile_text()])
    with pytest.raises(psycopg2.errors.InvalidParameterValue, match="not those of"):
        bench.fit(training, fresh("model"), configs, 1, validation_table=validation)


def nothing_left(bench: Workbench, *tables: str) -> None:
    """Fails where a call has left a table or a process."""
    assert not bench.exists(
        *tables, *(f"{table}_summary" for table in tables), "pg_temp.cerebro_rows"
    )
    assert not trainers(backends(bench))


@pytest.mark.parametrize("size", [1, 30], ids=["between buffers", "within a buffer"])
@pytest.mark.parametrize("kind", ["TABLE", "VIEW"])
def test_an_error_leaves_nothing(bench: Workbench, size: int, kind: str) -> None:
    name, output = fresh(), fresh("packed")
    bench.rows(
        (
            f"CREATE {kind} {name} AS SELECT id, CASE WHEN id = 50 THEN x || x ELSE x END AS x, y "
            "FROM plain"
        )
        + (" DISTRIBUTED BY (id)" if kind == "TABLE" else "")
    )
    for _ in range(2):
        with pytest.raises(psycopg2.errors.InvalidParameterValue, match="shape"):
            bench.rows("SELECT training_preprocessor_dl(%s, %s, 'y', 'x', %s)", name, output, size)
        nothing_left(bench, output)
    pack(bench, "plain")
    nothing_left(bench, output)


def test_an_error_that_is_caught_leaves_nothing(bench: Workbench) -> None:
    view, output = fresh(), fresh("packed")
    bench.rows(
        f"CREATE VIEW {view} AS SELECT id, CASE WHEN id = 50 THEN x || x ELSE x END AS x, y FROM "
        "plain"
    )
    bench.rows(
        f"DO $$ BEGIN PERFORM training_preprocessor_dl('{view}', '{output}', 'y', 'x', 30);"
        " EXCEPTION WHEN invalid_parameter_value THEN NULL; END $$"
    )
    nothing_left(bench, output)


@pytest.mark.parametrize("milliseconds", [200, 600, 1000])
def test_a_cancel_leaves_nothing(bench: Workbench, milliseconds: int) -> None:
    view, output = fresh(), fresh("packed")
    bench.rows(f"CREATE VIEW {view} AS SELECT p.* FROM plain p, generate_series(1, 5000) g")
    pid = bench.pid()
    administrator = superuser(bench)

    def cancel() -> None:
        time.sleep(milliseconds / 1000)
        administrator.rows("SELECT pg_cancel_backend(%s)", pid)

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(psycopg2.errors.QueryCanceled):
        bench.rows("SELECT training_preprocessor_dl(%s, %s, 'y', 'x', seed => 1)", view, output)
    thread.join()
    administrator.close()
    eventually(lambda: not trainers(backends(bench)))
    nothing_left(bench, output)
    pack(bench, "plain")


def test_a_packer_ends_with_its_call(bench: Workbench) -> None:
    pack(bench, "plain")
    assert not trainers(backends(bench))


def test_the_user_hears_nothing_of_distribution_keys(bench: Workbench) -> None:
    bench.messages()
    pack(bench, "plain")
    view = fresh()
    bench.rows(f"CREATE VIEW {view} AS SELECT * FROM plain")
    bench.messages()
    validate(bench, view, pack(bench, view))
    assert not [message for message in bench.messages() if "istribut" in message]


def test_packing_leaves_the_settings_of_the_transaction_as_they_were(bench: Workbench) -> None:
    query = "SELECT array_agg(name || '=' || setting ORDER BY name) FROM pg_settings"
    query += " WHERE name <> 'gp_command_count'"
    bench.rows("BEGIN")
    before = bench.value(query)
    pack(bench, "plain")
    assert bench.value(query) == before
    bench.rows("ROLLBACK")


class Recorder:
    """What packing does to a database, as statements instead."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, tuple[object, ...]]] = []

    def rows(self, statement: str, *values: object) -> list[dict[str, Any]]:
        """Keep a statement."""
        self.statements.append((statement, values))
        return []

    def row(self, statement: str) -> dict[str, Any]:
        """Keep the question how numbers are spread, and answer it."""
        self.rows(statement)
        return {"bins": [0, 1], "counts": [ROWS // 2, ROWS // 2]}

    def value(self, statement: str, *values: object) -> str:
        """Keep the question for bounds, and answer it."""
        self.rows(statement, *values)
        return "{-3,3}"

    def configured(self, **settings: str) -> AbstractContextManager[None]:
        """Nothing is configured."""
        return nullcontext()


def plans(bench: Workbench, table: str, seed: int | None) -> list[str]:
    """The plans of all statements that see each row."""
    where = places(bench, pack(bench, "plain", "f", "id"))
    source = Relation(table, "public", table, 0, f"public.{table}")
    numbered = Source(source.quoted, "spread.number_of_row", "spread.number_in_order")
    inputs, targets = (
        Column("x", "real[]", "float32", False),
        Column("f", "real[]", "float32", False),
    )
    keys = tuple(key for key, _ in where)
    recorder: Any = Recorder()
    packers = GreenplumPackers(recorder, numbered)
    plan = PackingPlan(
        source=source,
        output=Relation("o", "public", "packed_plan", 0, "public.packed_plan"),
        dependent=(targets,),
        independent=(inputs,),
        weight=(),
        rows=ROWS,
        buffer_size=9,
        normalizing_const=1.0,
        distribution=Distribution(keys),
        seed=seed,
        packers=packers,
    )
    parts = build_insert(recorder, plan, ["x", "f"], ["x_shape", "f_shape"], 3 * len(where))
    packers.fill(parts, seed, "[]")
    bench.rows("SET optimizer = off")
    bench.rows("SET enable_hashagg = off")
    try:
        return [
            "\n".join(
                line
                for (line,) in bench.rows(
                    f"EXPLAIN (VERBOSE, COSTS OFF) {escape_percent(text)}", *values
                )
            )
            for text, values in recorder.statements
        ]
    finally:
        bench.rows("RESET optimizer")
        bench.rows("RESET enable_hashagg")


@pytest.mark.parametrize("seed", [7, None], ids=["shuffled", "in order"])
def test_rows_are_moved_once_and_not_to_the_coordinator(
    bench: Workbench, segments: int, seed: int | None
) -> None:
    if not bench.exists("packed_plan"):
        bench.rows(
            "CREATE TABLE packed_plan (__dist_key__ integer, x bytea, f bytea, x_shape integer[], "
            "f_shape integer[], buffer_id integer) DISTRIBUTED BY (__dist_key__)"
        )
    *narrow, fill, last = plans(bench, "plain", seed)
    for plan in narrow:
        for motion in re.findall(r"(Motion \d+:.*?)(?=->|$)", plan, re.DOTALL):
            assert not re.search(r"\bt\.(x|f)\b", motion), plan
    above, below = fill.split(f"Redistribute Motion {segments}:{segments}")
    assert "Motion" not in above + below, fill
    assert "pack_block" in above and "pack_block" not in below
    assert "Motion" not in last, last
