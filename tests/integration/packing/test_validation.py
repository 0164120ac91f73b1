"""Validation tables are packed as their training table was."""

from __future__ import annotations

import psycopg2
import pytest
from packed import (
    FLOATS,
    ONE_HOT,
    bag,
    buffers,
    examples,
    fresh,
    pack,
    summary,
    validate,
)
from workbench import Workbench


@pytest.mark.postgresql("elsewhere the rows of a table have no order")
def test_validation_rows_are_packed_as_the_training_rows_were(
    bench: Workbench, source: str
) -> None:
    training = pack(bench, source, normalizing_const=4.0, n_segments=3, num_classes=[4])
    table = fresh()
    bench.rows(
        f"CREATE TABLE {table} AS SELECT ARRAY[i, i]::real[] AS x, 'b'::varchar(9) AS y FROM "
        "generate_series(1, 11) i"
    )
    packed = validate(bench, table, training, buffer_size=2)
    found = buffers(bench, packed, x=FLOATS, y=ONE_HOT)
    rows = examples(found)
    assert [float(x[0]) for x, _ in rows] == [i / 4 for i in range(1, 12)], (
        "not shuffled, normalised"
    )
    assert {tuple(y) for _, y in rows} == {(0, 0, 1, 0)}
    assert {b.segment for b in found} == {0, 1, 2}
    assert summary(bench, packed, "y_class_values::text[]") == ["A", "a", "b", None]
    assert summary(bench, packed, "(num_classes, normalizing_const)::text") == "({4},4)"


def test_validation_classes_are_a_subset(bench: Workbench, source: str) -> None:
    training = pack(bench, source)
    table = fresh()
    bench.rows(
        f"CREATE TABLE {table} AS SELECT ARRAY[1, 1]::real[] AS x, unnest(ARRAY['b', 'z', NULL]) "
        "AS y"
    )
    with pytest.raises(psycopg2.errors.InvalidParameterValue) as refused:
        validate(bench, table, training)
    assert "(NULL, b, z) should be a subset of class values in" in str(refused.value)
    assert refused.value.diag.message_detail == "Not known there: NULL, z."


@pytest.mark.parametrize("value", ["ARRAY[0.5, 2]::real[]", "0.5::real", "ARRAY[0, 1]"])
def test_validation_targets_that_are_numbers(bench: Workbench, value: str) -> None:
    table = fresh()
    bench.rows(f"CREATE TABLE {table} AS SELECT i AS x, {value} AS y FROM generate_series(1, 4) i")
    training = pack(bench, table, dependent_type=None if "[" in value else "float")
    packed = validate(bench, table, training)
    kind = ONE_HOT if value == "ARRAY[0, 1]" else FLOATS
    assert bag(examples(buffers(bench, packed, y=kind))) == bag(
        examples(buffers(bench, training, y=kind))
    )


def test_fewer_validation_rows_than_segments(bench: Workbench, source: str) -> None:
    training = pack(bench, source, n_segments=3)
    packed = validate(bench, view_of(bench, source, 2), training)
    assert {b.segment for b in buffers(bench, packed, x=FLOATS)} <= {
        b.segment for b in buffers(bench, training, x=FLOATS)
    }
    assert len(examples(buffers(bench, packed, x=FLOATS))) == 2


def view_of(bench: Workbench, source: str, rows: int) -> str:
    """A view of the first rows of a table."""
    view = fresh("view")
    bench.rows(f"CREATE VIEW {view} AS SELECT * FROM {source} ORDER BY id LIMIT {rows}")
    return view


@pytest.mark.postgresql("elsewhere the rows of a table have no order")
@pytest.mark.parametrize("rows", [1, 5, 1001])
def test_rows_that_stay_in_their_order_are_packed_as_those_of_a_view_are(
    bench: Workbench, rows: int
) -> None:
    """Of a table, of which parts are missing, each block is read by itself; of a view all are
    sorted.
    """
    table = fresh()
    bench.rows(
        f"CREATE TABLE {table} AS SELECT i AS id, array_fill(i::real, ARRAY[700]) AS x, i % 3 AS y"
        f" FROM generate_series(1, {3 * rows}) i;"
        f" DELETE FROM {table} WHERE id % 3 > 0 AND id > 1 OR id BETWEEN 2000 AND 4000"
    )
    training = pack(bench, table, n_segments=2)
    view = view_of(bench, table, 2 * rows)
    for size in (None, 7):
        found, expected = (
            buffers(bench, validate(bench, source, training, buffer_size=size), x=FLOATS, y=ONE_HOT)
            for source in (table, view)
        )
        assert [(each.segment, each.buffer_id) for each in found] == [
            (each.segment, each.buffer_id) for each in expected
        ]
        assert [float(x[0]) for x, _ in examples(found)] == [
            n for (n,) in bench.rows(f"SELECT id FROM {table}")
        ]
        assert bag(examples(found)) == bag(examples(expected))
