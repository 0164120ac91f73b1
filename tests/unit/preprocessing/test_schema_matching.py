"""A recipe fits each table that has its columns, of the same kinds, and no other."""

from __future__ import annotations

import pytest
from drawn_recipes import ONE_OF_EACH, PLAIN_ARRAYS, RECIPES
from hypothesis import example, given

from cerebro_plpy.errors import DatatypeMismatch, UndefinedColumn
from cerebro_plpy.preprocessing.kinds.category import Category
from cerebro_plpy.preprocessing.kinds.feature import Feature
from cerebro_plpy.preprocessing.kinds.image_file import ImageFile
from cerebro_plpy.preprocessing.kinds.text import Text
from cerebro_plpy.preprocessing.learning.schema_matching import match_recipe
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.preprocessing.values.columns import RawColumn
from cerebro_plpy.preprocessing.values.families import BYTES, TEXT, TEXT_NUMBERS, TEXT_POINTS


def family_of(feature: Feature) -> str:
    """Return the family of the columns that a feature is learned from."""
    if isinstance(feature, (Category, Text)):
        return TEXT
    if isinstance(feature, ImageFile):
        return BYTES
    family = str(getattr(feature, "family", "real[]"))
    return TEXT if family in (*TEXT_NUMBERS, *TEXT_POINTS) else family


def columns_of(recipe: Recipe) -> list[RawColumn]:
    """Return the columns of a table that the recipe could have been learned from."""
    return [
        RawColumn(feature.column, family_of(feature), family_of(feature), False)
        for feature in recipe.inputs
    ]


@given(RECIPES | PLAIN_ARRAYS)
@example(ONE_OF_EACH)
def test_a_recipe_fits_the_table_it_was_learned_from(recipe: Recipe) -> None:
    assert match_recipe("predict", recipe, columns_of(recipe), "orders") == recipe


@given(RECIPES | PLAIN_ARRAYS)
@example(ONE_OF_EACH)
def test_a_column_that_is_missing_or_of_another_kind_is_named(recipe: Recipe) -> None:
    columns = columns_of(recipe)
    for place, column in enumerate(columns):
        remaining = columns[:place] + columns[place + 1 :]
        with pytest.raises(UndefinedColumn) as missing:
            match_recipe("predict", recipe, remaining, "orders")
        assert repr(column.name) in str(missing.value)
        with pytest.raises(DatatypeMismatch) as different:
            point = column._replace(type="point", family=None)
            match_recipe("predict", recipe, [*remaining, point], "orders")
        assert f"column {column.name!r} of orders has type point" in str(different.value)
