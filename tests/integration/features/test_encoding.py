"""What SQL makes of a row is what the recipe says, whatever stands in it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipes import Session, encoded
from trials import trials
from workbench import Workbench

from cerebro_plpy.configs.templates.template import FARTHEST
from cerebro_plpy.database.names import quote_identifier
from cerebro_plpy.features.recipe import MOMENTS, Category, Moment, Number, Recipe
from cerebro_plpy.features.scale import LARGEST, Scale

SCALES = st.builds(Scale, st.floats(-LARGEST, LARGEST), st.floats(1 / LARGEST, LARGEST))
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NAMES = TEXTS.filter(lambda name: 0 < len(name.encode()) <= 63)
MOMENTS_OF = {
    "date": ("2024-02-29", "infinity", "-infinity", "4713-01-01 BC", None),
    "timestamp": ("2024-02-29 23:59:60", "infinity", "294276-01-01", None),
    "timestamptz": ("2024-02-29 23:59:60+14", "-infinity", None),
    "time": ("00:00", "24:00", None),
    "interval": ("1 year 3 days", "-178000000 years", None),
}


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Session:
    return Session(bench)


def table(name: str, type_name: str) -> str:
    """Rows of one column, whose texts are the elements of a JSON array."""
    column = quote_identifier(name)
    return f"(SELECT v.x::{type_name} AS {column} FROM json_array_elements_text(%s::json) WITH ORDINALITY v (x, n))"


def texts(values: Sequence[object]) -> str:
    return json.dumps([None if value is None else str(value) for value in values])


@pytest.mark.parametrize(
    ("type_name", "family"), [("double precision", "real"), ("real", "real"), ("numeric", "numeric")]
)
@trials(40)
@given(data=st.data())
def test_numbers(bench: Workbench, session: Session, type_name: str, family: str, data: st.DataObject) -> None:
    name, scale = data.draw(NAMES), data.draw(SCALES)
    infinite = type_name != "numeric" or not bench.greenplum  # numeric has infinities since PostgreSQL 14
    floats = st.floats(width=32 if type_name == "real" else 64, allow_infinity=infinite)
    drawn = data.draw(st.lists(st.none() | floats, min_size=1, max_size=20))
    recipe = Recipe((Number(name, family, scale, missing=True),))
    found, _ = encoded(session, recipe, table(name, type_name), texts(drawn))
    for value, (number, missing) in zip(drawn, found, strict=True):
        assert number == pytest.approx(np.float32(scale.apply(value)), rel=1e-6, abs=1e-15)
        assert missing == (value is None or math.isnan(value))


def test_numbers_beyond_double_precision(session: Session) -> None:
    recipe = Recipe((Number("x", "numeric", Scale(0.0, 1.0), missing=False),))
    found, _ = encoded(session, recipe, table("x", "numeric"), texts(["1e1000", "-1e1000", "1e-1000"]))
    assert [number for (number,) in found] == [FARTHEST, -FARTHEST, 0]


@pytest.mark.parametrize("family", MOMENTS_OF)
def test_moments(session: Session, family: str) -> None:
    values = MOMENTS_OF[family]
    recipe = Recipe((Moment("m", family, {part: Scale(0.0, 10.0) for part in MOMENTS[family]}, missing=True),))
    found, _ = encoded(session, recipe, table("m", family), texts(values))
    assert all(len(row) == len(MOMENTS[family]) + 1 for row in found)
    assert all(-FARTHEST <= number <= FARTHEST for row in found for number in row)
    assert [row[-1] for row in found] == [float(value is None) for value in values]


def test_a_point_in_time_has_the_same_parts_in_every_zone(session: Session, bench: Workbench) -> None:
    recipe = Recipe((Moment("m", "timestamptz", {"day": Scale(0, 10), "hour": Scale(0, 10)}, missing=False),))
    source = "(SELECT '2024-03-10 23:30+00'::timestamptz AS m)"
    here = encoded(session, recipe, source)
    bench.rows("SET timezone = 'Asia/Tokyo'")
    try:
        assert encoded(session, recipe, source) == here
    finally:
        bench.rows("RESET timezone")


@trials(60)
@given(st.lists(TEXTS, min_size=1, max_size=6, unique=True), st.lists(TEXTS | st.none(), max_size=6), NAMES)
def test_categories(session: Session, values: list[str], others: list[str | None], name: str) -> None:
    """Those that the recipe has are told apart, and all others are as NULL is."""
    recipe = Recipe((Category(name, tuple(values)),))
    _, codes = encoded(session, recipe, table(name, "text"), texts([*values, *others]))
    place: dict[str | None, int] = {text: number for number, text in enumerate(values, 1)}
    assert [code for (code,) in codes] == [place.get(text, 0) for text in [*values, *others]]


def test_a_table_of_very_many_columns(session: Session) -> None:
    """A row of results has at most 1,664 columns; inputs are elements of two."""
    names = [f"c{number}" for number in range(1500)]
    recipe = Recipe(
        tuple(
            Number(name, "integer", Scale(0.0, 1.0), missing=True) if number % 2 else Category(name, ("0", "1"))
            for number, name in enumerate(names)
        )
    )
    columns = ", ".join(f"{number % 2} AS {name}" for number, name in enumerate(names))
    ((numbers,), (codes,)) = encoded(session, recipe, f"(SELECT {columns})")
    assert (len(numbers), len(codes)) == (1500, 750) and set(codes) == {1}


def test_a_recipe_of_no_inputs(session: Session) -> None:
    assert encoded(session, Recipe(()), "(SELECT 1 AS x)") == ([[]], [[]])
