"""Profiles are data of a closed grammar that fits a recipe; stability indices obey their laws."""

from __future__ import annotations

import json
import math

from drawn_recipes import ONE_OF_EACH, RECIPES
from hostile import changed
from hypothesis import example, given
from hypothesis import strategies as st
from trials import trials

from cerebro_plpy.database.queries import split_placeholders
from cerebro_plpy.errors import DataCorrupted
from cerebro_plpy.preprocessing.kinds.category import MOST_SINGLE_BINS, Category
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.scoring.drift_profile import (
    Histogram,
    Profile,
    build_counts,
    make_edges,
    stability,
)

COUNTS = st.lists(st.integers(0, 10_000), min_size=1, max_size=20)
NUMBERS = st.lists(st.floats(-1e9, 1e9), max_size=11)


def profiles(recipe: Recipe) -> st.SearchStrategy[Profile]:
    def histogram(feature: Feature) -> st.SearchStrategy[Histogram]:
        if isinstance(feature, Category):
            size = 1 + min(len(feature.values), MOST_SINGLE_BINS)
            return st.builds(Histogram, st.just(()), _counts(size))
        return NUMBERS.map(make_edges).flatmap(
            lambda edges: st.builds(Histogram, st.just(edges), _counts(len(edges) + 1))
        )

    histograms = {
        (feature.column, part): histogram(feature)
        for feature in recipe.inputs
        for part in feature.drift_parts
    }
    missing = {feature.column: st.integers(0, 10_000) for feature in recipe.inputs}
    return st.builds(Profile, st.fixed_dictionaries(missing), st.fixed_dictionaries(histograms))


def _counts(size: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[st.integers(0, 10_000)] * size)


RECIPES_AND_PROFILES = RECIPES.flatmap(lambda recipe: st.tuples(st.just(recipe), profiles(recipe)))


@given(RECIPES_AND_PROFILES)
def test_a_profile_is_read_from_its_json(recipe_and_profile: tuple[Recipe, Profile]) -> None:
    recipe, profile = recipe_and_profile
    assert Profile.from_json(json.loads(json.dumps(profile.to_json())), recipe) == profile


@trials(100)
@given(st.data(), RECIPES_AND_PROFILES)
def test_changed_json_is_a_usable_profile_or_refused(
    data: st.DataObject, recipe_and_profile: tuple[Recipe, Profile]
) -> None:
    recipe, profile = recipe_and_profile
    stored = json.loads(json.dumps(profile.to_json()))
    try:
        read = Profile.from_json(data.draw(changed(stored)), recipe)
    except DataCorrupted as error:
        assert error.hint
        return
    edges = {key: part.edges for key, part in read.parts.items()}
    for count in build_counts("t", recipe, edges):
        assert count.statement.text.count("%s") >= len(count.parts)
    for part in read.parts.values():
        assert not stability(part.counts, part.counts)


@given(RECIPES)
@example(ONE_OF_EACH)
def test_each_part_of_each_column_is_counted_once(recipe: Recipe) -> None:
    edges = {
        (feature.column, part): (0.0, 1.0)
        for feature in recipe.inputs
        for part in feature.drift_parts
    }
    counts = list(build_counts("t", recipe, edges))
    assert sorted(part for count in counts for part in count.parts.values()) == sorted(edges)
    for count in counts:
        statement = count.statement
        assert len(split_placeholders(statement.text)) == len(statement.values) + 1


@given(COUNTS, st.integers(2, 50))
def test_the_index_is_none_or_nearly_0_for_the_same_shares(counts: list[int], times: int) -> None:
    index = stability(counts, [times * count for count in counts])
    if sum(counts):
        assert index is not None
        assert 0 <= index < len(counts) ** 2 / sum(counts)
    else:
        assert index is None


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)), min_size=1, max_size=20))
def test_the_index_is_the_same_both_ways_and_never_below_0(pairs: list[tuple[int, int]]) -> None:
    training, current = zip(*pairs, strict=True)
    index = stability(training, current)
    reverse = stability(current, training)
    if not sum(training) or not sum(current):
        assert index is reverse is None
    else:
        assert index is not None
        assert reverse is not None
        assert index >= 0
        assert math.isclose(index, reverse)


@given(NUMBERS)
def test_every_number_of_the_sample_lies_within_the_edges(numbers: list[float]) -> None:
    edges = make_edges(sorted(numbers))
    assert all(edges[0] <= number < edges[-1] for number in numbers)
    assert list(edges) == sorted(set(edges))
