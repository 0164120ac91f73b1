"""The preprocessors: what they make, read back in Python and compared with the rows it was made
of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np
import psycopg2
import pytest
from followed_hints import read_statements
from hypothesis import assume, given
from hypothesis import strategies as st
from packed import (
    FLOATS,
    ONE_HOT,
    Array,
    Buffer,
    bag,
    buffers,
    examples,
    fresh,
    pack,
    summary,
)
from trials import trials
from workbench import Workbench

SOME = trials(12)


def columns(bench: Workbench, table: str) -> list[tuple[str, str]]:
    """Names and types of the columns of a table, in order."""
    query = (
        "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
    )
    return [(name, kind) for name, kind in bench.rows(query, table)]


@pytest.mark.checklist(2)
def test_the_packed_table_has_the_columns_of_the_contract(bench: Workbench, source: str) -> None:
    table = pack(bench, source, "y, n", "x, id")
    assert columns(bench, table) == [
        ("__dist_key__", "integer"),
        ("x", "bytea"),
        ("id", "bytea"),
        ("y", "bytea"),
        ("n", "bytea"),
        ("x_shape", "integer[]"),
        ("id_shape", "integer[]"),
        ("y_shape", "integer[]"),
        ("n_shape", "integer[]"),
        ("buffer_id", "integer"),
    ]


@pytest.mark.postgresql("elsewhere the summary names segments where not all are used")
def test_the_summary_has_the_columns_of_the_contract(bench: Workbench, source: str) -> None:
    table = pack(bench, source, "y, n", "x, id", buffer_size=5, normalizing_const=2, n_segments=2)
    assert columns(bench, f"{table}_summary") == [
        ("source_table", "text"),
        ("output_table", "text"),
        ("dependent_varname", "text[]"),
        ("independent_varname", "text[]"),
        ("dependent_vartype", "text[]"),
        ("y_class_values", "text[]"),
        ("n_class_values", "integer[]"),
        ("buffer_size", "integer"),
        ("normalizing_const", "real"),
        ("num_classes", "integer[]"),
        ("distribution_rules", "text"),
        ("__internal_gpu_config__", "text"),
    ]
    assert bench.row(f"SELECT * FROM {table}_summary") == (
        "plain",
        table,
        ["y", "n"],
        ["x", "id"],
        ["text", "integer"],
        ["A", "a", "b"],
        [0, 1, 2],
        5,
        2.0,
        [3, 3],
        "all_segments",
        "all_segments",
    )


def test_the_packed_table_is_indexed_and_stored_uncompressed(bench: Workbench, source: str) -> None:
    table = pack(bench, source)
    indexes = bench.rows(
        "SELECT array_agg(a.attname::text ORDER BY a.attnum)"
        " FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indexrelid"
        " WHERE i.indrelid = %s::regclass GROUP BY i.indexrelid",
        table,
    )
    assert indexes == [(["__dist_key__", "buffer_id"],)]
    stored = (
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attstorage = 'e' "
        "ORDER BY 1"
    )
    assert bench.rows(stored, table) == [("x",), ("y",)]


# Element types, with numbers that are the same number as real.
WHOLE = st.integers(-(2**15), 2**15 - 1)
EIGHTHS = st.integers(-(2**20), 2**20).map(lambda n: n / 8)
NUMBERS = {
    "smallint": WHOLE,
    "integer": st.integers(-(2**24), 2**24),
    "bigint": st.integers(-(2**24), 2**24),
    "real": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double precision": st.floats(-1e30, 1e30).filter(lambda x: x == 0 or abs(x) > 1e-30),
    "numeric": EIGHTHS,
}
SHAPES = [(), (1,), (5,), (2, 3), (2, 1, 3), (1, 2, 2, 2)]


@st.composite
def inputs(draw: st.DrawFn) -> tuple[str, list[Any]]:
    """The type of a column, and values of it that all have one shape."""
    kind = draw(st.sampled_from(sorted(NUMBERS)))
    shape = draw(st.sampled_from(SHAPES))
    value: st.SearchStrategy[Any] = NUMBERS[kind]
    for length in reversed(shape):
        value = st.lists(value, min_size=length, max_size=length)
    return (f"{kind}[]" if shape else kind), draw(st.lists(value, min_size=1, max_size=12))


@SOME
@given(
    inputs(),
    st.sampled_from([1.0, 255.0, 0.5]),
    st.none() | st.integers(1, 5),
    st.integers(1, 3),
    st.integers(-(2**63), 2**63 - 1),
)
def test_buffers_hold_the_rows_divided_by_the_constant_and_nothing_else(
    bench: Workbench,
    column: tuple[str, list[Any]],
    constant: float,
    size: int | None,
    segments: int,
    seed: int,
) -> None:
    kind, values = column
    divisor = np.float32(constant)
    with np.errstate(over="ignore"):
        expected = [
            (_floats(value) / divisor, _floats(number) / divisor, np.ones(1, np.int16))
            for number, value in enumerate(values)
        ]
    assume(
        all(np.isfinite(part).all() for part, _, _ in expected)
    )  # what becomes infinite is refused
    table = fresh()
    bench.rows(f"CREATE TABLE {table} (id integer, x {kind}, y text)")
    for number, value in enumerate(values):
        bench.rows(f"INSERT INTO {table} VALUES (%s, %s::{kind}, 'a')", number, literal(value))
    how = {"buffer_size": size, "normalizing_const": constant, "n_segments": segments, "seed": seed}
    packed = pack(bench, table, "y", "x, id", **how)
    found = examples(buffers(bench, packed, x=FLOATS, id=FLOATS, y=ONE_HOT))
    assert bag(found) == bag(expected)
    assert {part.shape for part, _, _ in found} == {part.shape for part, _, _ in expected}


@pytest.mark.postgresql("elsewhere there are as many segments as the server has")
@SOME
@given(st.integers(1, 70), st.none() | st.integers(1, 40), st.integers(1, 7))
def test_buffers_and_segments_are_even(
    bench: Workbench, rows: int, hint: int | None, asked: int
) -> None:
    view = fresh()
    bench.rows(f"CREATE VIEW {view} AS SELECT i AS x, 'a' AS y FROM generate_series(1, {rows}) i")
    packed = pack(bench, view, buffer_size=hint, n_segments=asked)
    found = buffers(bench, packed, x=FLOATS)
    segments = min(asked, rows)
    wanted = segments * ceil(rows / min(hint or rows, rows) / segments)
    sizes = [buffer.rows for buffer in found]
    assert [buffer.buffer_id for buffer in found] == list(range(min(wanted, rows)))
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) == ceil(rows / wanted) == summary(bench, packed, "buffer_size")
    by_segment = {s: [b.rows for b in found if b.segment == s] for s in range(segments)}
    assert sum(map(len, by_segment.values())) == len(found), "segments are numbered from 0"
    assert spread([sum(part) for part in by_segment.values()]) <= 1
    if wanted <= rows:
        assert spread([len(part) for part in by_segment.values()]) == 0


def literal(value: Any) -> str:
    """A number or nested lists of numbers as PostgreSQL reads them, -0.0 included."""
    return "{" + ",".join(map(literal, value)) + "}" if isinstance(value, list) else repr(value)


def _floats(value: Any) -> Array:
    """A value of a row as the packer sees it: a number is an array of one."""
    return np.atleast_1d(np.asarray(value, np.float32))


def spread(counts: Sequence[int]) -> int:
    """How far counts lie apart."""
    return max(counts) - min(counts)


@pytest.mark.postgresql("elsewhere there are as many segments as the server has")
def test_more_segments_than_rows_leave_none_empty(bench: Workbench, source: str) -> None:
    packed = pack(bench, source, n_segments=65_536)
    assert Counter(b.segment for b in buffers(bench, packed, x=FLOATS)) == {
        number: 1 for number in range(20)
    }


def test_there_are_at_least_two_segments_by_default(bench: Workbench, source: str) -> None:
    packed = pack(bench, source)
    assert len({b.segment for b in buffers(bench, packed, x=FLOATS)}) >= 2


def content(found: Sequence[Buffer]) -> list[tuple[int, int, tuple[bytes, ...]]]:
    """All that a packed table holds."""
    return [(b.segment, b.buffer_id, tuple(a.tobytes() for a in b.arrays)) for b in found]


def test_the_seed_decides_the_order_and_nothing_else_does(bench: Workbench, source: str) -> None:
    def packed(seed: int | None) -> list[Buffer]:
        table = pack(bench, source, seed=seed, n_segments=2, buffer_size=4)
        return buffers(bench, table, x=FLOATS, y=ONE_HOT)

    first, again, other = packed(1), packed(1), packed(2)
    assert content(first) == content(again)
    assert content(first) != content(other)
    assert bag(examples(first)) == bag(examples(other)) == bag(examples(packed(None)))


CLASSES = {
    "text, NULL first, by code point": (
        "text", ["'b'", "NULL", "'a'", "'B'", "'é'", "''", "'Z'"], [None, "", "B", "Z", "a", "b",
        "é"]
    ),
    "numbers by value": ("integer", ["10", "9", "-1"], ["-1", "9", "10"]),
    "numeric": ("numeric", ["10", "9.5", "NULL"], [None, "9.5", "10"]),
    "double precision": (
        "double precision", ["0.1::float8 + 0.2", "0.3", "1e300"], ["0.3", "0.30000000000000004",
        "1e+300"]
    ),
    "boolean": ("boolean", ["true", "false", "NULL"], [None, "false", "true"]),
    "date": ("date", ["'2024-02-01'", "'2023-12-31'"], ["2023-12-31", "2024-02-01"]),
    "enum in its own order": ("mood", ["'sad'", "'happy'", "'Meh'"], ["sad", "happy", "Meh"]),
    "varchar(n)": ("varchar(5)", ["'bcdef'", "'a'"], ["a", "bcdef"]),
    "char(n)": ("char(3)", ["'b'", "'a'"], ["a", "b"]),
    "quotes and signs": (
        "text",
        ["'it''s'", "'a\"b'", r"'back\slash'", "'%s'", "'{,}'", "'NULL'", "'50%'"],
        ["%s", "50%", "NULL", 'a"b', r"back\slash", "it's", "{,}"],
    ),
    "uuid": ("uuid", ["'b0000000-0000-0000-0000-000000000000'",
    "'a0000000-0000-0000-0000-000000000000'"],
             ["a0000000-0000-0000-0000-000000000000", "b0000000-0000-0000-0000-000000000000"]),
    "only NULL": ("text", ["NULL"], [None]),
}  # fmt: skip


@pytest.fixture(scope="module")
def mood(bench: Workbench) -> None:
    """An enum whose order is not that of its labels."""
    bench.rows("CREATE TYPE mood AS ENUM ('sad', 'happy', 'Meh')")


@pytest.mark.parametrize(("kind", "values", "expected"), CLASSES.values(), ids=CLASSES)
def test_classes_are_in_order_and_rows_are_encoded_by_them(
    bench: Workbench, mood: None, kind: str, values: list[str], expected: list[str | None]
) -> None:
    table = fresh()
    bench.rows(f"CREATE TABLE {table} (id integer, y {kind})")
    for number in range(3 * len(values)):
        bench.rows(f"INSERT INTO {table} VALUES ({number}, {values[number % len(values)]})")
    packed = pack(bench, table, "y", "id", n_segments=2)
    assert summary(bench, packed, "y_class_values::text[]") == expected
    same_type = f"pg_typeof(y_class_values) = (SELECT pg_typeof(array_agg(y)) FROM {table})"
    assert summary(bench, packed, same_type)
    assert summary(bench, packed, "num_classes") == [len(expected)]
    labels: dict[int, str | None] = dict(bench.rows(f"SELECT id, y::text FROM {table}"))
    for row, encoded in examples(buffers(bench, packed, id=FLOATS, y=ONE_HOT)):
        assert encoded.tolist() == [int(name == labels[int(row[0])]) for name in expected]


def test_the_digits_of_classes_do_not_depend_on_the_session(bench: Workbench) -> None:
    table = fresh()
    bench.rows(
        f"CREATE TABLE {table} AS SELECT i AS id, 0.1::float8 * i AS y FROM generate_series(1, 5) i"
    )
    bench.rows("SET extra_float_digits = 0")
    try:
        packed = pack(bench, table, "y", "id")
    finally:
        bench.rows("RESET extra_float_digits")
    assert len(summary(bench, packed, "y_class_values")) == 5


def test_a_class_that_is_null_and_one_named_null_stay_apart_where_the_session_mixes_them(
    bench: Workbench,
) -> None:
    table = fresh()
    bench.rows(
        f"CREATE TABLE {table} AS SELECT i AS id, (ARRAY[NULL, 'NULL', 'a'])[i % 3 + 1] AS y"
        " FROM generate_series(1, 6) i"
    )
    bench.rows("SET array_nulls = off")
    try:
        packed = pack(bench, table, "y", "id")
    finally:
        bench.rows("RESET array_nulls")
    assert summary(bench, packed, "y_class_values") == [None, "NULL", "a"]


def test_num_classes_pads_at_the_end(bench: Workbench, source: str) -> None:
    packed = pack(bench, source, num_classes=[5])
    assert summary(bench, packed, "y_class_values") == ["A", "a", "b", None, None]
    assert summary(bench, packed, "num_classes") == [5]
    encoded = [row for (row,) in examples(buffers(bench, packed, y=ONE_HOT))]
    assert {tuple(row[3:]) for row in encoded} == {(0, 0)}
    assert {int(row.sum()) for row in encoded} == {1}


NO_NUMBERS = {
    "boolean": "id % 2 = 0",
    "date": "date '2026-01-01' + id",
    "timestamptz": "timestamptz '2026-01-01 12:00+00' + id * interval '1 h'",
    "time": "time '12:00' + id * interval '1 min'",
    "interval": "id * interval '1 h'",
    "text": "(ARRAY['it''s', 'a \"b\"', NULL])[1 + id % 3]",
    "json": "to_json(id % 2)",
    "boolean[]": "ARRAY[id % 2 = 0, true]",
    "text[]": "ARRAY[id, 2]::text[]",
    "date[]": "ARRAY[date '2026-01-01' + id, date '2026-01-01']",
}


@pytest.mark.parametrize(("kind", "value"), NO_NUMBERS.items(), ids=NO_NUMBERS)
def test_the_hint_for_what_is_no_number_works(bench: Workbench, kind: str, value: str) -> None:
    table = fresh()
    bench.rows(
        f'CREATE TABLE {table} AS SELECT id, ({value})::{kind} AS "The X", id % 2 AS y FROM '
        "generate_series(1, 9) id"
    )
    with pytest.raises(psycopg2.errors.DatatypeMismatch) as refused:
        pack(bench, table, "y", '"The X"')
    template = "Pack a view that has it as numbers: SELECT t.*, {} AS as_numbers FROM {} t;"
    (query,) = read_statements(refused.value, template)
    bench.rows(f"CREATE VIEW {table}_numbers AS {query}")
    packed = pack(bench, f"{table}_numbers", "y", "as_numbers, id")
    found = {
        int(number[0]): x.tolist()
        for x, number, _ in examples(
            buffers(bench, packed, as_numbers=FLOATS, id=FLOATS, y=ONE_HOT)
        )
    }
    assert len(found) == 9 and found[1] != found[2]


TARGETS = {
    "whole arrays are taken as encoded": ("ARRAY[0, 1]", None, ONE_HOT, [0, 1], []),
    "smallint arrays too": ("ARRAY[1, 0]::smallint[]", None, ONE_HOT, [1, 0], []),
    "float arrays stay floats": ("ARRAY[0.25, 1.5]::real[]", None, FLOATS, [0.25, 1.5], None),
    "double arrays stay floats": ("ARRAY[0.25, 1.5]::float8[]", None, FLOATS, [0.25, 1.5], None),
    "float arrays as classes": ("ARRAY[0, 1]::real[]", "class", ONE_HOT, [0, 1], []),
    "whole arrays as floats": ("ARRAY[3, 100000]", "float", FLOATS, [3, 100000], None),
    "whole scalars as floats": ("7", "float", FLOATS, [7], None),
    "float scalars as floats": ("0.5::float8", "float", FLOATS, [0.5], None),
    "float scalars are classes by default": ("0.5::real", None, ONE_HOT, [1], [1]),
    "two dimensions": ("ARRAY[[1, 2], [3, 4]]::real[]", None, FLOATS, [[1, 2], [3, 4]], None),
}


@pytest.mark.parametrize(
    ("value", "kind", "stored", "expected", "classes"), TARGETS.values(), ids=TARGETS
)
def test_targets(
    bench: Workbench,
    value: str,
    kind: str | None,
    stored: str,
    expected: Any,
    classes: list[int] | None,
) -> None:
    table = fresh()
    bench.rows(f"CREATE TABLE {table} AS SELECT i AS id, {value} AS y FROM generate_series(1, 3) i")
    packed = pack(bench, table, "y", "id", normalizing_const=10.0, dependent_type=kind)
    assert [row.tolist() for (row,) in examples(buffers(bench, packed, y=stored))] == [expected] * 3
    assert summary(bench, packed, "num_classes") == classes
    if classes != [1]:
        assert summary(bench, packed, "y_class_values") is None


@pytest.mark.parametrize(
    ("value", "kind", "told"),
    [
        ("i::real", None, "30 different values"),
        ("i::numeric", None, "30 different values"),
        ("(i % 20)::float8", None, ""),
        ("i", None, ""),
        ("i::real", "class", ""),
        ("i::real", "float", ""),
        ("nullif(i % 3, 0)", None, "NULLs"),
        ("nullif(i % 3, 0)", "class", "NULLs"),
    ],
)
def test_targets_that_become_classes_by_surprise_are_told(
    bench: Workbench, value: str, kind: str | None, told: str
) -> None:
    table = fresh()
    bench.rows(
        f"CREATE TABLE {table} AS SELECT i AS id, {value} AS y FROM generate_series(1, 30) i"
    )
    bench.messages()
    pack(bench, table, "y", "id", dependent_type=kind)
    said = [message for message in bench.messages() if message.startswith("NOTICE")]
    assert [told in message for message in said] == ([True] if told else [])


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("column", ["x", "y"])
def test_what_is_no_number_is_refused(bench: Workbench, column: str, value: str) -> None:
    table = fresh()
    bench.rows(
        f"CREATE TABLE {table} AS SELECT i AS id, ARRAY[i, 1]::real[] AS x, ARRAY[i]::real[] AS y"
        " FROM generate_series(1, 9) i"
    )
    bench.rows(f"UPDATE {table} SET {column}[1] = %s WHERE id = 5", value)
    with pytest.raises(psycopg2.errors.NumericValueOutOfRange, match=r"1 of a block of \d+ rows"):
        pack(bench, table, "y", "x")


def test_values_that_are_equal_are_one_class_however_they_are_written(bench: Workbench) -> None:
    table = fresh()
    bench.rows(
        f"CREATE TABLE {table} AS SELECT i AS id, (ARRAY['1.0', '2', '1.00', '2.000'])[i % 4 + "
        "1]::numeric AS y FROM generate_series(1, 12) i"
    )
    packed = pack(bench, table, "y", "id")
    assert bench.value(f"SELECT y_class_values = '{{1, 2}}' FROM {packed}_summary")
    for number, encoded in examples(buffers(bench, packed, id=FLOATS, y=ONE_HOT)):
        assert encoded.tolist() == ([1, 0] if number[0] % 2 == 0 else [0, 1])


def test_many_classes_are_encoded_as_few_are(bench: Workbench) -> None:
    view = fresh()
    bench.rows(
        f"CREATE VIEW {view} AS SELECT i AS id, 'c' || lpad((i % 700)::text, 3, '0') AS y"
        " FROM generate_series(1, 1400) i"
    )
    packed = pack(bench, view, "y", "id")
    for number, encoded in examples(buffers(bench, packed, id=FLOATS, y=ONE_HOT)):
        assert [int(encoded.sum()), int(encoded.argmax())] == [1, int(number[0]) % 700]


ODD_ARRAYS = {
    "a bitmap that no NULL needs any more": "UPDATE {table} SET x[2] = id WHERE x[2] IS NULL",
    "stored out of line": "ALTER TABLE {table} ALTER x SET STORAGE EXTERNAL; UPDATE {table} SET "
    "x[2] = id",
}


@pytest.mark.parametrize("change", ODD_ARRAYS.values(), ids=ODD_ARRAYS)
def test_how_an_array_lies_in_the_table_does_not_matter(bench: Workbench, change: str) -> None:
    table = fresh()
    bench.rows(
        f"CREATE TABLE {table} AS SELECT i AS id, ARRAY[1, CASE WHEN i % 2 = 0 THEN i END]"
        " || array_fill(0, ARRAY[998]) AS x, 'a' AS y FROM generate_series(1, 6) i"
    )
    bench.rows(change.format(table=table))
    found = examples(buffers(bench, pack(bench, table, "y", "id, x"), id=FLOATS, x=FLOATS))
    assert sorted((float(i[0]), x[:3].tolist()) for i, x in found) == [
        (i, [1, i, 0]) for i in range(1, 7)
    ]


@pytest.mark.parametrize("value", ["NaN", None])
def test_an_error_says_how_the_rows_are_found(bench: Workbench, value: str | None) -> None:
    table = fresh()
    bench.rows(
        f"CREATE TABLE {table} AS SELECT i AS id, ARRAY[i, 1]::float8[] AS x, 1 AS y FROM "
        "generate_series(1, 9) i"
    )
    bench.rows(f"UPDATE {table} SET x[2] = %s WHERE id = 5", value)
    with pytest.raises(
        psycopg2.errors.DataError, match=rf"\(column x of table {table}\)"
    ) as refused:
        pack(bench, table, "y", "x")
    condition = str(refused.value.diag.message_detail).partition("found by ")[2].removesuffix(".")
    assert bench.rows(f"SELECT id FROM {table} {condition}") == [(5,)]


def test_a_table_has_the_weights_of_its_rows_beside_them(bench: Workbench, source: str) -> None:
    call = (
        "SELECT training_preprocessor_dl('weighing', %s, 'y', 'x', n_segments => 2, "
        "sample_weight_varname => 'w')"
    )
    bench.rows(
        "CREATE TABLE weighing AS SELECT t.*, (id % 4)::numeric / 3 AS w, t.id AS kept FROM "
        f"{source} t"
    )
    table = fresh()
    bench.rows(call, table)
    stored = bench.rows(f"SELECT w, w_shape[1] FROM {table}")
    packed = [
        float(value) for data, rows in stored for value in np.frombuffer(data, np.float32, rows)
    ]
    assert Counter(packed) == Counter(
        float(np.float32(w)) for (w,) in bench.rows("SELECT w FROM weighing")
    )
    assert bench.value(f"SELECT sample_weight_varname FROM {table}_summary") == "w"
    for weight, code in {
        "-1": "22023",
        "'NaN'": "22023",
        "'Infinity'": "22023",
        "NULL": "22004",
        "0": "22023",
    }.items():
        where = "true" if weight == "0" else "kept = (SELECT min(kept) FROM weighing)"
        bench.rows("BEGIN")
        bench.rows(
            f"ALTER TABLE weighing ALTER w TYPE float8; UPDATE weighing SET w = {weight} WHERE "
            f"{where}"
        )
        with pytest.raises(psycopg2.Error) as error:
            bench.rows(call, fresh())
        bench.rows("ROLLBACK")
        assert error.value.pgcode == code, (weight, error.value)
