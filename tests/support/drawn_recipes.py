"""Recipes as Hypothesis draws them."""

from __future__ import annotations

from hypothesis import strategies as st

from cerebro_plpy.features.recipe import MOMENTS, NUMBERS, Category, Feature, LeftOut, Moment, Number, Recipe, Text
from cerebro_plpy.features.scale import LARGEST, Scale

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
NAMES = WORDS.filter(lambda name: 0 < len(name.encode()) <= 63)
CONSTANTS = st.floats(-LARGEST, LARGEST)
EDGES = st.lists(CONSTANTS, max_size=5, unique=True).map(sorted).map(tuple)
SCALES = st.builds(Scale, CONSTANTS, st.floats(1 / LARGEST, LARGEST, exclude_min=True), EDGES)


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


RECIPES = (
    st.lists(NAMES, max_size=6, unique=True)
    .flatmap(lambda names: st.tuples(*(features(name) for name in names)))
    .map(Recipe)
)
