"""Recipes as Hypothesis draws them."""

from __future__ import annotations

from hypothesis import strategies as st

from cerebro_plpy.features.recipe import (
    LARGEST,
    MOMENTS,
    NUMBERS,
    Category,
    Feature,
    LeftOut,
    Moment,
    Number,
    PlainArray,
    Recipe,
    Scale,
    Text,
)

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
NAMES = WORDS.filter(lambda name: 0 < len(name.encode()) <= 63)
SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
DIVISORS = st.floats(0, 1e30, exclude_min=True)
SCALES = st.builds(Scale, st.floats(-LARGEST, LARGEST), st.floats(1 / LARGEST, LARGEST, exclude_min=True))


def moments(name: str) -> st.SearchStrategy[Feature]:
    def of(family: str) -> st.SearchStrategy[Feature]:
        parts = st.lists(st.sampled_from(MOMENTS[family]), min_size=1, unique=True)
        ordered = parts.map(lambda some: [part for part in MOMENTS[family] if part in some])
        scales = ordered.flatmap(lambda some: st.fixed_dictionaries({part: SCALES for part in some}))
        return st.builds(Moment, st.just(name), st.just(family), scales, st.booleans())

    return st.sampled_from(sorted(MOMENTS)).flatmap(of)


def features(name: str) -> st.SearchStrategy[Feature]:
    values = st.lists(WORDS, min_size=1, max_size=5, unique=True).map(tuple)
    return st.one_of(
        st.builds(Number, st.just(name), st.sampled_from(NUMBERS), SCALES, st.booleans()),
        st.builds(Category, st.just(name), values),
        st.builds(Text, st.just(name), st.integers(1, 40), st.integers(1, 1000)),
        st.builds(LeftOut, st.just(name), WORDS),
        moments(name),
    )


def plain_array(name: str) -> st.SearchStrategy[Feature]:
    return st.builds(PlainArray, st.just(name), SHAPES, DIVISORS, st.just(False))


RECIPES = (
    st.lists(NAMES, max_size=6, unique=True)
    .flatmap(lambda names: st.tuples(*(features(name) for name in names)))
    .map(Recipe)
)

PLAIN_ARRAYS = (
    st.lists(NAMES, min_size=1, max_size=3, unique=True)
    .flatmap(lambda names: st.tuples(*(plain_array(name) for name in names)))
    .map(Recipe)
)
"""Those of models that no template has made."""
