"""Recipes are data of a closed grammar: their JSON is read again, and no other JSON."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import pytest
from drawn_recipes import PLAIN_ARRAYS, RECIPES, SCALES
from hostile import changed
from hypothesis import given
from hypothesis import strategies as st
from trials import trials

from cerebro_plpy.configs.architecture.architecture import read_architecture
from cerebro_plpy.configs.architecture.boosted_trees import check_any_architecture
from cerebro_plpy.configs.templates.layers.model_io import FARTHEST, Classes
from cerebro_plpy.configs.templates.registry import TEMPLATES
from cerebro_plpy.configs.templates.template import Template
from cerebro_plpy.errors import CerebroError, DataCorrupted, InvalidParameter
from cerebro_plpy.preprocessing.kinds.category import Category
from cerebro_plpy.preprocessing.kinds.optional_input import ABSENT
from cerebro_plpy.preprocessing.recipe.encoding import encode
from cerebro_plpy.preprocessing.recipe.recipe import MISSING, Recipe
from cerebro_plpy.preprocessing.values.scale import Scale

FAR = FARTHEST * (1 + 1e-9)


@given(RECIPES | PLAIN_ARRAYS)
def test_a_recipe_is_read_from_its_json(recipe: Recipe) -> None:
    assert Recipe.from_json(json.loads(json.dumps(recipe.to_json()))) == recipe


@pytest.mark.parametrize(
    ("fields", "family"),
    [({"zoned": False}, "text"), ({"zoned": True}, "timestamptz"), ({"family": "date"}, "date")],
)
def test_a_category_of_an_earlier_version_is_read(fields: dict[str, object], family: str) -> None:
    feature = {"kind": "category", "column": "c", "values": ["a", "b"], **fields}
    recipe = Recipe.from_json({"version": 1, "features": [feature]})
    assert recipe == Recipe((Category("c", ("a", "b"), family),))
    assert Recipe.from_json(json.loads(json.dumps(recipe.to_json()))) == recipe


@trials(100)
@given(st.data(), RECIPES | PLAIN_ARRAYS)
def test_changed_json_is_a_usable_recipe_or_refused(data: st.DataObject, recipe: Recipe) -> None:
    value: Any = data.draw(changed(json.loads(json.dumps(recipe.to_json()))))
    try:
        read = Recipe.from_json(value)
    except DataCorrupted as error:
        assert error.hint
        return
    encoded = encode(read)
    assert encoded.numbers.text.count("%s") >= sum(part != ABSENT for _, part in read.numbers)


@given(RECIPES, st.sampled_from(TEMPLATES))
def test_a_template_makes_a_network_for_its_inputs(recipe: Recipe, template: Template) -> None:
    if not recipe.inputs:
        with pytest.raises(InvalidParameter, match="needs a column"):
            recipe.table  # noqa: B018
        return
    head = Classes(2)
    pairs = recipe.table.missing
    assert [recipe.numbers[number][0] for number, _ in pairs] == [
        recipe.numbers[indicator][0] for _, indicator in pairs
    ]
    assert {indicator for _, indicator in pairs} <= {
        position for position, (_, part) in enumerate(recipe.numbers) if part == MISSING
    }
    assert not pairs or recipe.numbers[pairs[-1][0]][1] != MISSING
    text = template.architecture(recipe.table, head, template.params(head, 100, {}))
    assert check_any_architecture(read_architecture(text)).output_units == (2,)
    assert recipe.table.columns == len(recipe.numbers)


@pytest.mark.parametrize(
    "value",
    [
        None, 3, "x", [], {}, {"version": 1}, {"version": 2, "features": []}, {"version": 1,
        "features": [3]},
        {"version": 1, "features": [{"kind": "sound", "column": "c"}]}, {"version": 1,
        "features": [{"kind": []}]},
    ],
)  # fmt: skip
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(CerebroError, match="damaged"):
        Recipe.from_json(value)


@given(SCALES, st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_scales_keep_the_order_within_bounds(scale: Scale, first: float, second: float) -> None:
    low, high = sorted((first, second))
    rounding = abs(scale.center) / scale.width * sys.float_info.epsilon
    far = FAR + rounding
    assert -far <= scale.apply(low) <= scale.apply(high) <= far


@given(SCALES)
def test_the_center_and_missing_values_are_scaled_to_zero(scale: Scale) -> None:
    assert scale.apply(scale.center) == scale.apply(None) == scale.apply(math.nan) == 0
