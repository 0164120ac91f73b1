"""Recipes as Hypothesis draws them."""

from __future__ import annotations

from base64 import b64encode

from hypothesis import strategies as st

from cerebro_plpy.preprocessing.kinds.array import Array
from cerebro_plpy.preprocessing.kinds.category import Category
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.kinds.image import Image
from cerebro_plpy.preprocessing.kinds.image_file import CHANNELS, SIDES, ImageFile
from cerebro_plpy.preprocessing.kinds.left_out import LeftOut
from cerebro_plpy.preprocessing.kinds.long_vector import LongVector
from cerebro_plpy.preprocessing.kinds.moment import Moment
from cerebro_plpy.preprocessing.kinds.number import Number
from cerebro_plpy.preprocessing.kinds.plain_array import PlainArray
from cerebro_plpy.preprocessing.kinds.series import Series
from cerebro_plpy.preprocessing.kinds.text import Text
from cerebro_plpy.preprocessing.kinds.vector import Vector
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.recipe.target_scale import TargetScale
from cerebro_plpy.preprocessing.values.column_values import LARGEST
from cerebro_plpy.preprocessing.values.families import ARRAYS, MOMENTS, NUMBERS, TEXT_NUMBERS
from cerebro_plpy.preprocessing.values.scale import Scale
from cerebro_plpy.records import replace

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
NAMES = WORDS.filter(lambda name: 0 < len(name.encode()) <= 63)
CONSTANTS = st.floats(-LARGEST, LARGEST)
EDGES = st.lists(CONSTANTS, max_size=5, unique=True).map(sorted).map(tuple)
SCALES = st.builds(Scale, CONSTANTS, st.floats(1 / LARGEST, LARGEST, exclude_min=True), EDGES)

VECTORS = st.lists(SCALES, min_size=1, max_size=3).map(tuple)
COLUMN = st.just("c")
"""The name of every column, until it gets one of its own: strategies that are made anew for each
name take long.
"""
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
DIVISORS = st.floats(0, 1e30, exclude_min=True)
FLAGS, FAMILIES, SIZES = st.booleans(), st.sampled_from(sorted(ARRAYS)), st.integers(1, 4)


def moments(family: str) -> st.SearchStrategy[Moment]:
    parts = st.lists(st.sampled_from(MOMENTS[family]), min_size=1, unique=True)
    ordered = parts.map(lambda some: [part for part in MOMENTS[family] if part in some])
    scales = ordered.flatmap(lambda some: st.fixed_dictionaries({part: SCALES for part in some}))
    return st.builds(Moment, COLUMN, st.just(family), scales, FLAGS)


WIDE_ARRAYS: st.SearchStrategy[Array] = st.one_of(
    st.builds(LongVector, COLUMN, FAMILIES, st.tuples(SIZES), st.tuples(SCALES), FLAGS),
    st.builds(Image, COLUMN, FAMILIES, st.tuples(SIZES, SIZES, SIZES), st.tuples(SCALES), FLAGS),
    st.builds(
        lambda family, steps, scales, missing: Series("c", family, (steps, len(scales)), scales,
        missing),
        FAMILIES, SIZES, VECTORS, FLAGS,
    ),
)  # fmt: skip
"""Columns of arrays that are inputs of their own."""
PIXELS = st.sampled_from(SIDES)
FILES = st.builds(
    ImageFile,
    COLUMN,
    st.tuples(PIXELS, PIXELS, st.sampled_from(CHANNELS)),
    st.integers(1, 1 << 30),
    FLAGS,
)
"""Columns of image files."""
FEATURES: st.SearchStrategy[Feature] = st.one_of(
    st.builds(Number, COLUMN, st.sampled_from((*NUMBERS, *TEXT_NUMBERS)), SCALES, FLAGS),
    st.builds(Category, COLUMN, st.lists(WORDS, min_size=1, max_size=5, unique=True).map(tuple)),
    st.builds(Text, COLUMN, st.integers(1, 40), st.integers(1, 1000)),
    st.builds(
        lambda told: Text("rare", 3, len(told), b64encode(told).decode()),
        st.binary(min_size=1, max_size=9),
    ),
    st.builds(LeftOut, COLUMN, WORDS),
    st.one_of(*map(moments, sorted(MOMENTS))),
    WIDE_ARRAYS,
    FILES,
    st.builds(Vector, COLUMN, FAMILIES, VECTORS, FLAGS),
)
POSITIVE = st.floats(1e-100, 1e100)
TARGET_SCALES = st.builds(
    lambda low, width, offset, deviation: TargetScale(low, low + width, offset, deviation),
    st.floats(-1e6, 1e6),
    st.floats(1, 1e100),
    POSITIVE,
    POSITIVE,
)
RECIPES = st.builds(
    lambda pairs, scale, text_format: Recipe(
        tuple(replace(feature, column=name) for name, feature in pairs),
        target_scale=scale,
        target_format=text_format,
    ),
    st.lists(st.tuples(NAMES, FEATURES), max_size=6, unique_by=lambda pair: pair[0]),
    st.none() | TARGET_SCALES,
    st.none() | st.sampled_from(TEXT_NUMBERS),
)
SCALE = Scale(0.0, 1.0)
ONE_OF_EACH = Recipe(
    (
        Number("number", "real", SCALE, True),
        Category("category", ("a", "b")),
        Moment("moment", "date", dict.fromkeys(MOMENTS["date"], SCALE), True),
        Vector("vector", "real[]", (SCALE, SCALE), True),
        LongVector("long", "numeric[]", (3,), (SCALE,), True),
        Series("series", "integer[]", (4, 1), (SCALE,), True),
        Image("image", "real[]", (2, 2, 1), (SCALE,), True),
        ImageFile("photo", (8, 8, 3), 1000, True),
        Text("text", 8, 100),
        LeftOut("id", "it is of the primary key, and names a row"),
    )
)
"""A column of each kind, for an example beside those that are drawn."""
PLAIN_ARRAYS = (
    st.lists(NAMES, min_size=1, max_size=3, unique=True)
    .flatmap(
        lambda names: st.tuples(
            *(st.builds(PlainArray, st.just(n), SHAPES, DIVISORS, st.just(False)) for n in names)
        )
    )
    .map(Recipe)
)
"""Those of models that no template has made."""
