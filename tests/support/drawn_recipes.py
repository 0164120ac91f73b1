"""Recipes as Hypothesis draws them."""

from __future__ import annotations

from hypothesis import strategies as st

from cerebro_plpy.features.feature import (
    ARRAYS,
    LARGEST,
    MOMENTS,
    NUMBERS,
    Array,
    Category,
    Feature,
    Image,
    LeftOut,
    LongVector,
    Moment,
    Number,
    Scale,
    Series,
    Text,
    Vector,
)
from cerebro_plpy.features.recipe import Recipe

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
NAMES = WORDS.filter(lambda name: 0 < len(name.encode()) <= 63)
SCALES = st.builds(Scale, st.floats(-LARGEST, LARGEST), st.floats(1 / LARGEST, LARGEST, exclude_min=True))

VECTORS = st.lists(SCALES, min_size=1, max_size=3).map(tuple)


def moments(name: str) -> st.SearchStrategy[Feature]:
    def of(family: str) -> st.SearchStrategy[Feature]:
        parts = st.lists(st.sampled_from(MOMENTS[family]), min_size=1, unique=True)
        ordered = parts.map(lambda some: [part for part in MOMENTS[family] if part in some])
        scales = ordered.flatmap(lambda some: st.fixed_dictionaries({part: SCALES for part in some}))
        return st.builds(Moment, st.just(name), st.just(family), scales, st.booleans())

    return st.sampled_from(sorted(MOMENTS)).flatmap(of)


def wide_arrays(name: str) -> st.SearchStrategy[Array]:
    """Columns of arrays that are inputs of their own."""
    sizes = st.integers(1, 4)
    families, flags, alone = st.sampled_from(sorted(ARRAYS)), st.booleans(), st.tuples(SCALES)
    series = st.tuples(sizes, VECTORS).flatmap(
        lambda of: st.builds(Series, st.just(name), families, st.just((of[0], len(of[1]))), st.just(of[1]), flags)
    )
    return st.one_of(
        st.builds(LongVector, st.just(name), families, st.tuples(sizes), alone, flags),
        st.builds(Image, st.just(name), families, st.tuples(sizes, sizes, sizes), alone, flags),
        series,
    )


def features(name: str) -> st.SearchStrategy[Feature]:
    values = st.lists(WORDS, min_size=1, max_size=5, unique=True).map(tuple)
    return st.one_of(
        st.builds(Number, st.just(name), st.sampled_from(NUMBERS), SCALES, st.booleans()),
        st.builds(Category, st.just(name), values),
        st.builds(Text, st.just(name), st.integers(1, 40), st.integers(1, 1000)),
        st.builds(LeftOut, st.just(name), WORDS),
        moments(name),
        wide_arrays(name),
        st.builds(Vector, st.just(name), st.sampled_from(sorted(ARRAYS)), VECTORS, st.booleans()),
    )


RECIPES = (
    st.lists(NAMES, max_size=6, unique=True)
    .flatmap(lambda names: st.tuples(*(features(name) for name in names)))
    .map(Recipe)
)
