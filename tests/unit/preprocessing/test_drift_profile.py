"""A profile is data of a closed grammar that fits its recipe, and an index of stability keeps its
laws.
"""

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
    def part(feature: Feature) -> st.SearchStrategy[Histogram]:
        if isinstance(feature, Category):
            size = 1 + min(len(feature.values), MOST_SINGLE_BINS)
            return st.builds(Histogram, st.just(()), _counts(size))
        return NUMBERS.map(make_edges).flatmap(
            lambda edges: st.builds(Histogram, st.just(edges), _counts(len(edges) + 1))
        )

    keys = {(each.column, name): part(each) for each in recipe.inputs for name in each.drift_parts}
    missing = {each.column: st.integers(0, 10_000) for each in recipe.inputs}
    return st.builds(Profile, st.fixed_dictionaries(missing), st.fixed_dictionaries(keys))


def _counts(size: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[st.integers(0, 10_000)] * size)


BOTH = RECIPES.flatmap(lambda recipe: st.tuples(st.just(recipe), profiles(recipe)))


@given(BOTH)
def test_json_says_the_same_again(both: tuple[Recipe, Profile]) -> None:
    recipe, profile = both
    assert Profile.from_json(json.loads(json.dumps(profile.to_json())), recipe) == profile


@trials(100)
@given(st.data(), BOTH)
def test_what_is_changed_is_a_profile_or_refused(
    data: st.DataObject, both: tuple[Recipe, Profile]
) -> None:
    """And one that is read can be used: nothing later relies on what was not checked."""
    recipe, profile = both
    try:
        read = Profile.from_json(
            data.draw(changed(json.loads(json.dumps(profile.to_json())))), recipe
        )
    except DataCorrupted as error:
        assert error.hint
        return
    edges = {key: part.edges for key, part in read.parts.items()}
    for each in build_counts("t", recipe, edges):
        assert each.statement.text.count("%s") >= len(each.parts)
    for part in read.parts.values():
        assert not stability(part.counts, part.counts)


@given(RECIPES)
@example(ONE_OF_EACH)
def test_each_part_of_each_column_is_counted_once(recipe: Recipe) -> None:
    edges = {(each.column, name): (0.0, 1.0) for each in recipe.inputs for name in each.drift_parts}
    statements = list(build_counts("t", recipe, edges))
    assert sorted(key for each in statements for key in each.parts.values()) == sorted(edges)
    for each in statements:
        assert len(split_placeholders(each.statement.text)) == len(each.statement.values) + 1


@given(COUNTS, st.integers(2, 50))
def test_the_index_is_none_or_nearly_0_for_the_same_shares(counts: list[int], times: int) -> None:
    found = stability(counts, [times * count for count in counts])
    assert found is None if not sum(counts) else 0 <= (found or 0) < len(counts) ** 2 / sum(counts)


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)), min_size=1, max_size=20))
def test_the_index_is_the_same_both_ways_and_never_below_0(pairs: list[tuple[int, int]]) -> None:
    before, now = zip(*pairs, strict=True)
    found, back = stability(before, now), stability(now, before)
    assert (found is None) == (not sum(before) or not sum(now)) == (back is None)
    assert found is None or back is None or (found >= 0 and math.isclose(found, back))


@given(NUMBERS)
def test_every_number_of_the_sample_lies_within_the_edges(numbers: list[float]) -> None:
    edges = make_edges(sorted(numbers))
    assert all(edges[0] <= number < edges[-1] for number in numbers)
    assert list(edges) == sorted(set(edges))
