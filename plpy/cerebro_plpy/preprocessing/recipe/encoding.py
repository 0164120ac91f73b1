"""A recipe as SQL: expressions that compute the inputs of a network from the columns of a row.

Expressions are built for each use, from PostgreSQL's own functions and types alone; names are
quoted, constants are values. Training and prediction use the same expressions, for all rows of a
statement at once.
"""

from __future__ import annotations

from typing import NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import wide_name
from cerebro_plpy.preprocessing.kinds.feature import NetworkInput
from cerebro_plpy.preprocessing.recipe.recipe import CODES_INPUT, NUMBERS_INPUT, Recipe
from cerebro_plpy.preprocessing.values.expression import Expression, array_of


class Encoding(NamedTuple):
    """The inputs that columns share; each may have no elements."""

    numbers: Expression  # a real[]
    codes: Expression  # an integer[]


def network_inputs(recipe: Recipe) -> tuple[NetworkInput, ...]:
    """Return the inputs of a network in their order, without those that have no elements."""
    numbers, codes = encode(recipe)
    inputs: list[NetworkInput] = []
    if recipe.table.columns:
        inputs.append(NetworkInput(NUMBERS_INPUT, "float32", numbers))
    if recipe.cardinalities:
        inputs.append(NetworkInput(CODES_INPUT, "int32", codes))
    return (*inputs, *wide_inputs(recipe))


def wide_inputs(recipe: Recipe, row: str = "t") -> tuple[NetworkInput, ...]:
    """Return the inputs that are one column each, for rows that have this alias."""
    return tuple(
        feature.network_input(wide_name(place), row) for place, feature in enumerate(recipe.wide, 1)
    )


def encode(recipe: Recipe, row: str = "t") -> Encoding:
    """Return the inputs that columns share, for rows that have this alias."""
    numbers: list[Expression] = []
    missing_flags: list[Expression] = []
    codes: list[Expression] = []
    for feature in recipe.inputs:
        numbers += feature.numbers(row)
        if feature.has_missing_flag:
            missing_flags.append(feature.missing_flag(row))
        if feature.cardinality is not None:
            codes.append(feature.code(row))
    return Encoding(array_of([*numbers, *missing_flags], "real"), array_of(codes, "integer"))
