"""A recipe in two halves, one applied in SQL and one by a trainer, comes to the very bits of the
whole.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import drawn_arrays
import numpy as np
import pytest
from drawn_images import encoded
from drawn_recipes import FILES, WIDE_ARRAYS
from hypothesis import given
from hypothesis import strategies as st
from recipes import Session
from trials import trials
from workbench import Workbench

from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.preprocessing.kinds.category import Category
from cerebro_plpy.preprocessing.kinds.feature import NetworkInput
from cerebro_plpy.preprocessing.kinds.image_file import ImageFile
from cerebro_plpy.preprocessing.kinds.left_out import LeftOut
from cerebro_plpy.preprocessing.kinds.moment import Moment
from cerebro_plpy.preprocessing.kinds.number import Number
from cerebro_plpy.preprocessing.kinds.text import Text
from cerebro_plpy.preprocessing.kinds.vector import Vector
from cerebro_plpy.preprocessing.recipe.encoding import network_inputs
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.split_encoding import Marks, constants, outline, raw_inputs
from cerebro_plpy.preprocessing.values.column_values import LARGEST
from cerebro_plpy.preprocessing.values.families import MOMENTS
from cerebro_plpy.preprocessing.values.scale import Scale
from cerebro_plpy.records import replace
from cerebro_trainer.data import raw_rows
from cerebro_trainer.data.recipe_values import RecipeEncoder
from cerebro_trainer.wire.frames import Bytes

SCALES = st.builds(
    Scale, st.floats(-LARGEST, LARGEST), st.floats(1 / LARGEST, LARGEST)
) | st.builds(Scale, st.floats(-10, 10), st.floats(0.1, 10))
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NAMES = TEXTS.filter(lambda name: 0 < len(name.encode()) <= 63)
PIXELS = np.arange(12 * 9 * 3).reshape(12, 9, 3).astype(np.uint8)
PICTURES = [encoded(PIXELS, "JPEG"), encoded(PIXELS), encoded(PIXELS[:8, :8])]
TIMES = ("2024-02-29 23:59:60", "infinity", "-infinity", "1999-01-01", None)


@pytest.fixture(scope="module")
def session(bench: Workbench) -> Session:
    return Session(bench)


def sent(
    session: Session, inputs: Sequence[NetworkInput], source: str, values: Sequence[object]
) -> tuple[dict[str, object], Bytes]:
    """What a backend sends of all rows: the fields of the request, and the payload."""
    text = ", ".join(each.sent.text for each in inputs)
    constant = [value for each in inputs for value in each.sent.values]
    rows = session.run(f"SELECT {text} FROM {source} t", (*constant, *values))
    parts = [b"".join(bytes(row[place]) for row in rows) for place in range(len(inputs))]
    header = {
        "rows": len(rows),
        "arrays": [{"kind": each.kind} for each in inputs],
        "lengths": list(map(len, parts)),
    }
    return header, np.frombuffer(b"".join(parts), np.uint8)


def check(session: Session, recipe: Recipe, source: str, *values: object) -> None:
    """Both halves say of all rows what the whole says."""
    whole = raw_rows.decode_inputs(*sent(session, network_inputs(recipe), source, values))
    marks = [
        Marks(
            *session.run(
                "SELECT array_agg(hashtextextended(v, 0) ORDER BY n), "
                "array_agg(hashtextextended(v, 1) ORDER BY n) FROM unnest(%s::text[]) WITH "
                "ORDINALITY u (v, n)",
                (list(each.values),),
            )[0]
        )
        for each in recipe.inputs
        if isinstance(each, Category)
    ]
    second = RecipeEncoder.from_header(json.loads(json.dumps(constants(recipe, marks))))
    halves = second.encode(*sent(session, raw_inputs(outline(recipe)), source, values))
    assert [(each.dtype, each.shape) for each in halves] == [
        (each.dtype, each.shape) for each in whole
    ]
    assert [each.tobytes() for each in halves] == [each.tobytes() for each in whole]


def table(name: str, type_name: str) -> str:
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
    name, scale, missing = data.draw(NAMES), data.draw(SCALES), data.draw(st.booleans())
    infinite = (
        type_name != "numeric" or not bench.greenplum
    )  # numeric has infinities since PostgreSQL 14
    floats = st.floats(width=32 if type_name == "real" else 64, allow_infinity=infinite)
    drawn = data.draw(st.lists(st.none() | floats, min_size=1, max_size=20))
    recipe = Recipe((Number(name, family, scale, missing=missing),))
    check(session, recipe, table(name, type_name), texts(drawn))


@pytest.mark.parametrize("type_name", drawn_arrays.ELEMENTS)
@trials(30)
@given(data=st.data())
def test_arrays(session: Session, type_name: str, data: st.DataObject) -> None:
    name, scales = (
        data.draw(NAMES.filter(lambda name: name not in ("n", "w"))),
        data.draw(st.lists(SCALES, min_size=1, max_size=5)),
    )
    drawn = data.draw(
        st.lists(drawn_arrays.arrays(drawn_arrays.ELEMENTS[type_name]), min_size=1, max_size=5)
    )
    wide = replace(data.draw(WIDE_ARRAYS), column="w", family=drawn_arrays.FAMILIES[type_name])
    features = (
        wide,
        Vector(
            name, drawn_arrays.FAMILIES[type_name], tuple(scales), missing=data.draw(st.booleans())
        ),
        Number("n", "integer", Scale(1.0, 2.0), missing=True),
    )
    column = quote_identifier(name)
    check(
        session,
        Recipe(features),
        f"(SELECT v.*, 1 AS n, v.{column} AS w FROM {table(name, type_name)} v)",
        texts(drawn),
    )


@trials(60)
@given(
    st.lists(TEXTS, min_size=1, max_size=6, unique=True),
    st.lists(TEXTS | st.none(), max_size=6),
    NAMES,
)
def test_categories(
    session: Session, values: list[str], others: list[str | None], name: str
) -> None:
    check(
        session,
        Recipe((Category(name, tuple(values)),)),
        table(name, "text"),
        texts([*values, *others]),
    )


@st.composite
def points(draw: st.DrawFn) -> str:
    """Points of time of all that PostgreSQL has, often just before a day ends."""
    day = (
        draw(st.integers(1, 4713) | st.integers(1, 294275)),
        draw(st.integers(1, 12)),
        draw(st.integers(1, 28)),
    )
    time = draw(
        st.just((23, 59, 59, 999999))
        | st.tuples(*(st.integers(0, most) for most in (23, 59, 59, 999999)))
    )
    era = " BC" if day[0] < 4713 and draw(st.booleans()) else ""
    return "{:04d}-{:02d}-{:02d}".format(*day) + " {:02d}:{:02d}:{:02d}.{:06d}".format(*time) + era


@pytest.mark.parametrize("family", ["timestamp", "timestamptz", "date"])
@trials(60)
@given(data=st.data())
def test_points_of_time(session: Session, family: str, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(MOMENTS[family]), min_size=1, unique=True))
    parts = {part: data.draw(SCALES) for part in MOMENTS[family] if part in names}
    drawn = data.draw(st.lists(points() | st.sampled_from(TIMES), min_size=1, max_size=20))
    recipe = Recipe(
        (
            Number("n", "integer", Scale(1.0, 2.0), missing=True),
            Moment("x", family, parts, missing=True),
        )
    )
    check(session, recipe, f"(SELECT v.*, 1 AS n FROM {table('x', family)} v)", texts(drawn))


@trials(15)
@given(
    FILES,
    NAMES.filter(lambda name: name != "n"),
    st.lists(st.none() | st.sampled_from([b"", *PICTURES]), min_size=1, max_size=5),
)
def test_files_of_images(
    session: Session, feature: ImageFile, name: str, files: list[bytes | None]
) -> None:
    recipe = Recipe(
        (replace(feature, column=name), Number("n", "integer", Scale(1.0, 2.0), missing=True))
    )
    values = [None if file is None else f"\\x{file.hex()}" for file in files]
    check(session, recipe, f"(SELECT v.*, 1 AS n FROM {table(name, 'bytea')} v)", texts(values))


def test_columns_of_all_kinds_together(session: Session) -> None:
    parts = {part: Scale(float(place), 3.0) for place, part in enumerate(MOMENTS["timestamp"])}
    recipe = Recipe(
        (
            Category("c", ("a", "b")),
            LeftOut("o", "a key"),
            Number("x", "integer", Scale(1.5, 0.1), missing=False),
            Moment("m", "timestamp", parts, missing=True),
            Category("d", tuple(map(str, range(3000)))),
            Number("y", "integer", Scale(7.0, 2.0), missing=True),
            Text("t", 5, 300),
        )
    )
    source = (
        "(SELECT v.x::timestamp AS m, 'a'::text COLLATE \"C\" AS c, NULL::integer AS x, n AS d, "
        "nullif(n, 2) AS y, 1 AS o, v.x || ', ' || n AS t FROM json_array_elements_text(%s::json) "
        "WITH ORDINALITY v (x, n))"
    )
    check(session, recipe, source, texts(TIMES))


def test_an_outline_has_nothing_that_was_learned(session: Session) -> None:
    """Of two recipes that differ in what was learned alone it is the same, and so is what is done
    in SQL.
    """
    one, other = (
        Recipe((
            Number("x", "real", scale, missing=True), Category("c", values), LeftOut("o",
            values[0]),
            Moment("m", "date", {"year": scale, "day": scale}, missing=False), Text("t", 2, 3,
            rarity),
        ))
        for scale, values, rarity in (
            (Scale(4.0, 2.0), ("secret",), "AQID"), (Scale(-1.0, 9.0), ("other", "more"), "AwIB")
        )
    )  # fmt: skip
    assert outline(one) == outline(other)
    assert raw_inputs(one) == raw_inputs(other) == raw_inputs(outline(one))
