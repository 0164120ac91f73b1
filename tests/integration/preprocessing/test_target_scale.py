"""The labels of a regression: a constant that is added to all numbers changes no bit of them, and
neither does a factor that is a power of two.
"""

from __future__ import annotations

import struct

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from recipes import Session
from trials import trials
from workbench import Workbench

from cerebro_plpy.database.catalog import Relation
from cerebro_plpy.preprocessing.learning.target_statistics import read_number_target
from cerebro_plpy.preprocessing.recipe.target_scale import TargetScale
from cerebro_plpy.preprocessing.rows.source import Source
from cerebro_plpy.preprocessing.values.columns import RawColumn, read_columns
from cerebro_plpy.preprocessing.values.expression import Expression

TABLE = Relation("measured", "public", "measured", 1, '"public"."measured"')
NUMBERS = st.lists(st.integers(-(1 << 20), 1 << 20), min_size=2, max_size=30)
"""Whole numbers, so that adding a constant is exact."""


@pytest.fixture(scope="module")
def column(bench: Workbench) -> RawColumn:
    bench.rows("CREATE TABLE measured (id integer, y double precision)")
    reader = Session(bench)
    return read_columns(reader, bench.value("SELECT 'measured'::regclass::oid::bigint"))[1]


def label(
    bench: Workbench, column: RawColumn, numbers: list[float]
) -> tuple[TargetScale, list[float]]:
    """Return the scale of numbers, and their labels."""
    bench.rows("TRUNCATE measured")
    bench.rows(
        "INSERT INTO measured SELECT n, y FROM unnest(%s::float8[]) WITH ORDINALITY u (y, n)",
        numbers,
    )
    source = Source("measured", Expression("true"), Expression("t.id::bigint"))
    scale = read_number_target(Session(bench), "train", source, column, TABLE).scale
    value = scale.label_sql(Expression('t."y"'))
    rows = bench.rows(f"SELECT {value.text} FROM measured t ORDER BY id", *value.values)
    return scale, [number for (number,) in rows]


def bits(numbers: list[float]) -> bytes:
    return struct.pack(f"{len(numbers)}d", *numbers)


@trials(25)
@given(
    NUMBERS,
    st.integers(-40, 40),
    st.integers(-(1 << 32), 1 << 32),
)
def test_labels_do_not_depend_on_the_unit_and_the_zero(
    bench: Workbench, column: RawColumn, numbers: list[int], power: int, constant: int
) -> None:
    assume(len(set(numbers)) > 1)
    first = [float(number) for number in numbers]
    factor = 2.0**power
    scale, labels = label(bench, column, first)
    moved, moved_labels = label(bench, column, [factor * (y + constant) for y in first])
    assert bits(labels) == bits(moved_labels)
    assert moved.deviation == factor * scale.deviation
    assert moved.offset == factor * scale.offset


@trials(25)
@given(st.lists(st.floats(-1e60, 1e60), min_size=2, max_size=20))
def test_sql_and_python_compute_the_same_labels(
    bench: Workbench, column: RawColumn, numbers: list[float]
) -> None:
    assume(max(numbers) - min(numbers) > 1e-60)
    scale, labels = label(bench, column, numbers)
    assert labels == [scale.label(number) for number in numbers]
    rounding = 1e-12 * (scale.high - scale.low)
    for number, found in zip(numbers, labels, strict=True):
        assert scale.number(found) == pytest.approx(number, abs=rounding)
        assert scale.prediction(found) == pytest.approx(scale.number(found), abs=rounding)


@pytest.mark.parametrize("far", [1e300, -1e300])
def test_a_number_of_other_rows_may_be_far_away(
    bench: Workbench, column: RawColumn, far: float
) -> None:
    """It is clipped to a label that float32 holds."""
    scale, _ = label(bench, column, [1.0, 2.0, 4.0])
    value = scale.label_sql(Expression("%s::double precision", (far,)))
    found = bench.value(f"SELECT ARRAY[{value.text}]::real[]", *value.values)
    assert found == pytest.approx([1e30 if far > 0 else -1e30])
