"""The scales of exports are those that the database encodes rows by, to the bit, whatever a recipe
has.
"""

from __future__ import annotations

import json

from drawn_recipes import RECIPES
from hypothesis import given

from cerebro_db.export.recipe.rows import NUMBERS, RawRows
from cerebro_db.export.recipe.scales import RawInput
from cerebro_plpy.configs.templates.layers.model_io import wide_name
from cerebro_plpy.preprocessing.kinds.array import Array
from cerebro_plpy.preprocessing.recipe.recipe import MISSING, NUMBERS_INPUT, Recipe


@given(RECIPES)
def test_constants_are_those_of_the_database_in_its_order(drawn: Recipe) -> None:
    told = json.loads(json.dumps(drawn.to_json()))
    recipe, rows = Recipe.from_json(told), RawRows.of(json.dumps(told))
    found = dict(rows.scaled_inputs)
    expected = [
        tuple(constants.in_wire_order)
        for feature in recipe.inputs
        for constants in feature.scale_constants
    ]
    numbers = found.pop(NUMBERS, RawInput(NUMBERS, ()))
    assert NUMBERS == NUMBERS_INPUT and [each.constants for each in numbers.numbers] == expected
    shared = [(column, what) for column, what in recipe.numbers if what != MISSING]
    assert [(each.column, each.part) for each in numbers.numbers] == shared
    groups = [
        {numbers.numbers[place].column for place in places} for places in numbers.missing_groups
    ]
    assert groups == [{column} for column, what in recipe.numbers if what == MISSING]
    arrays = {
        wide_name(place): each
        for place, each in enumerate(recipe.wide, 1)
        if isinstance(each, Array)
    }
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        channels = list(map(tuple, array.input_constants(name)["scales"]))
        elements = array.shape_of_input.elements
        wanted = [channels[place % len(channels)] for place in range(elements)]
        assert [each.constants for each in found[name].numbers] == wanted
    assert list(rows.wide_features) == [
        wide_name(place) for place in range(1, len(recipe.wide) + 1)
    ]
    categories = [each["column"] for each in rows.categories]
    assert categories == list(recipe.category_columns)
