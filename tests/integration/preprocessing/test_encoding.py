"""What SQL makes of a row is what the recipe says, whatever stands in it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import drawn_arrays
import numpy as np
import pytest
from drawn_arrays import NOTHING
from drawn_recipes import WIDE_ARRAYS
from hypothesis import given
from hypothesis import strategies as st
from recipes import Session, encoded
from trials import trials
from workbench import Workbench

from cerebro_plpy.configs.templates.layers.model_io import FARTHEST
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.kinds.category import Category
from cerebro_plpy.preprocessing.kinds.moment import Moment
from cerebro_plpy.preprocessing.kinds.number import Number
from cerebro_plpy.preprocessing.kinds.vector import Vector
from cerebro_plpy.preprocessing.recipe.encoding import network_inputs
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.values.column_values import LARGEST
from cerebro_plpy.preprocessing.values.families import JSON, MOMENTS
from cerebro_plpy.preprocessing.values.scale import Scale
from cerebro_plpy.records import replace

SCALES = st.builds(Scale, st.floats(-LARGEST, LARGEST), st.floats(1 / LARGEST, LARGEST))
PLAIN = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.text(PLAIN, max_size=8)
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
    return (
        f"(SELECT v.x::{type_name} AS {column} FROM json_array_elements_text(%s::json) WITH "
        "ORDINALITY v (x, n))"
    )


def texts(values: Sequence[object]) -> str:
    return json.dumps([None if value is None else str(value) for value in values])


@pytest.mark.parametrize(
    ("type_name", "family"),
    [("double precision", "real"), ("real", "real"), ("numeric", "numeric")],
)
@trials(40)
@given(data=st.data())
def test_numbers(
    bench: Workbench, session: Session, type_name: str, family: str, data: st.DataObject
) -> None:
    name, scale = data.draw(NAMES), data.draw(SCALES)
    infinite = (
        type_name != "numeric" or not bench.greenplum
    )  # numeric has infinities since PostgreSQL 14
    floats = st.floats(width=32 if type_name == "real" else 64, allow_infinity=infinite)
    drawn = data.draw(st.lists(st.none() | floats, min_size=1, max_size=20))
    recipe = Recipe((Number(name, family, scale, missing=True),))
    found, _ = encoded(session, recipe, table(name, type_name), texts(drawn))
    for value, (number, missing) in zip(drawn, found, strict=True):
        assert number == pytest.approx(np.float32(scale.apply(value)), rel=1e-6, abs=1e-15)
        assert missing == (value is None or math.isnan(value))


@pytest.mark.parametrize("type_name", ["json", "jsonb"])
@trials(40)
@given(data=st.data())
def test_values_of_json(session: Session, type_name: str, data: st.DataObject) -> None:
    """What is no number is missing, whatever it is."""
    name, scale = data.draw(NAMES), data.draw(SCALES)
    others = (
        st.booleans()
        | TEXTS
        | st.sampled_from(["1", "-2.5e3"])
        | st.lists(st.integers(), max_size=2)
    )
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    drawn = data.draw(
        st.lists(st.none() | numbers | others | st.just({"a": 1}), min_size=1, max_size=20)
    )
    recipe = Recipe((Number(name, JSON, scale, missing=True),))
    found, _ = encoded(
        session, recipe, table(name, type_name), texts([*map(json.dumps, drawn), None])
    )
    for value, (number, missing) in zip([*drawn, None], found, strict=True):
        plain = (
            float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        )
        assert number == pytest.approx(np.float32(scale.apply(plain)), rel=1e-6, abs=1e-15)
        assert missing == (plain is None)


@pytest.mark.parametrize("digits", ["1e999999", "-1e-999999", "1" * 200_000, f"0.{'1' * 20_000}"])
def test_a_number_of_json_that_no_type_holds_is_missing(session: Session, digits: str) -> None:
    recipe = Recipe((Number("x", JSON, Scale(0.0, 1.0), missing=True),))
    numbers, _ = encoded(session, recipe, table("x", "json"), json.dumps([digits]))
    assert numbers == [[0, 1]]


def known(element: float | None) -> bool:
    return element is not None and not math.isnan(element)


@pytest.mark.parametrize("type_name", drawn_arrays.ELEMENTS)
@trials(40)
@given(data=st.data())
def test_vectors(session: Session, type_name: str, data: st.DataObject) -> None:
    """Elements are numbers by their places; an array of another number of dimensions has none."""
    name, scales = data.draw(NAMES), data.draw(st.lists(SCALES, min_size=1, max_size=5))
    drawn = data.draw(
        st.lists(drawn_arrays.arrays(drawn_arrays.ELEMENTS[type_name]), min_size=1, max_size=5)
    )
    recipe = Recipe((Vector(name, drawn_arrays.FAMILIES[type_name], tuple(scales), missing=True),))
    found, _ = encoded(session, recipe, table(name, type_name), texts(drawn))
    for array, (*numbers, missing) in zip(drawn, found, strict=True):
        elements = [(array or NOTHING).at(place) for place in range(len(scales))]
        expected = [
            np.float32(scale.apply(element))
            for scale, element in zip(scales, elements, strict=True)
        ]
        assert numbers == pytest.approx(expected, rel=1e-6, abs=1e-15)
        assert missing == (not any(map(known, elements)))


@pytest.mark.parametrize("type_name", drawn_arrays.ELEMENTS)
@trials(40)
@given(data=st.data())
def test_arrays_that_are_inputs_of_their_own(
    session: Session, type_name: str, data: st.DataObject
) -> None:
    """They are cut and filled up in each dimension, whatever sizes, bounds and elements they
    have.
    """
    name = data.draw(NAMES)
    feature = replace(
        data.draw(WIDE_ARRAYS), column=name, family=drawn_arrays.FAMILIES[type_name], missing=True
    )
    drawn = data.draw(
        st.lists(drawn_arrays.arrays(drawn_arrays.ELEMENTS[type_name]), min_size=1, max_size=5)
    )
    numbers, wide = network_inputs(Recipe((feature,)))
    statement = f"SELECT {numbers.value.text}, {wide.value.text} FROM {table(name, type_name)} t"
    rows = session.run(statement, (*numbers.value.values, *wide.value.values, texts(drawn)))
    scales = feature.scales * (math.prod(feature.shape) // len(feature.scales))
    for array, ((absent,), found) in zip(drawn, rows, strict=True):
        elements = (array or NOTHING).laid_out(feature.shape)
        expected = [
            np.float32(scale.apply(element))
            for scale, element in zip(scales, elements, strict=True)
        ]
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-15)
        assert absent == (not any(map(known, (array or NOTHING).elements)))


def test_numbers_beyond_double_precision(session: Session) -> None:
    recipe = Recipe((Number("x", "numeric", Scale(0.0, 1.0), missing=False),))
    found, _ = encoded(
        session, recipe, table("x", "numeric"), texts(["1e1000", "-1e1000", "1e-1000"])
    )
    assert [number for (number,) in found] == [FARTHEST, -FARTHEST, 0]


@pytest.mark.parametrize("family", MOMENTS_OF)
def test_moments(session: Session, family: str) -> None:
    values = MOMENTS_OF[family]
    recipe = Recipe(
        (Moment("m", family, {part: Scale(0.0, 10.0) for part in MOMENTS[family]}, missing=True),)
    )
    found, _ = encoded(session, recipe, table("m", family), texts(values))
    assert all(len(row) == len(MOMENTS[family]) + 1 for row in found)
    assert all(-FARTHEST <= number <= FARTHEST for row in found for number in row)
    assert [row[-1] for row in found] == [float(value is None) for value in values]


def test_a_point_in_time_has_the_same_parts_in_every_zone(
    session: Session, bench: Workbench
) -> None:
    recipe = Recipe(
        (Moment("m", "timestamptz", {"day": Scale(0, 10), "hour": Scale(0, 10)}, missing=False),)
    )
    source = "(SELECT '2024-03-10 23:30+00'::timestamptz AS m)"
    here = encoded(session, recipe, source)
    bench.rows("SET timezone = 'Asia/Tokyo'")
    try:
        assert encoded(session, recipe, source) == here
    finally:
        bench.rows("RESET timezone")


@trials(60)
@given(
    st.lists(TEXTS, min_size=1, max_size=6, unique=True),
    st.lists(TEXTS | st.none(), max_size=6),
    NAMES,
)
def test_categories(
    session: Session, values: list[str], others: list[str | None], name: str
) -> None:
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
            Number(name, "integer", Scale(0.0, 1.0), missing=True)
            if number % 2
            else Category(name, ("0", "1"))
            for number, name in enumerate(names)
        )
    )
    columns = ", ".join(f"{number % 2} AS {name}" for number, name in enumerate(names))
    ((numbers,), (codes,)) = encoded(session, recipe, f"(SELECT {columns})")
    assert (len(numbers), len(codes)) == (1500, 750) and set(codes) == {1}


def test_a_recipe_of_no_inputs(session: Session) -> None:
    assert encoded(session, Recipe(()), "(SELECT 1 AS x)") == ([[]], [[]])
