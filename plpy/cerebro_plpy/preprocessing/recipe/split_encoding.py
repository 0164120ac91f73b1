"""A recipe in two parts: expressions without anything learned, and constants that a trainer uses.

Rows are packed so, because a trainer encodes whole blocks faster than a database encodes rows. And
a role that may predict with a model, but not read what it was made of, gets the expressions only:
it can look at the plans and cursors of its session. Both parts together compute what `encoding`
computes, bit by bit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import wide_name
from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.preprocessing.kinds.feature import NetworkInput
from cerebro_plpy.preprocessing.recipe.encoding import network_inputs
from cerebro_plpy.preprocessing.recipe.recipe import CODES_INPUT, NUMBERS_INPUT, Recipe
from cerebro_plpy.preprocessing.values.checks import Json
from cerebro_plpy.preprocessing.values.expression import DOUBLE, Expression, array_of
from cerebro_plpy.records import replace

MOST_HASHED_VALUES = 4096
"""Values of categories whose hashes a packing trainer is sent; above, a database finds the codes.
"""


class Marks(NamedTuple):
    """Two hashes of each value of a category, in the order of the codes."""

    first: Sequence[int]
    second: Sequence[int]


def outline(recipe: Recipe) -> Recipe:
    """Return the recipe without anything that was learned from values."""
    features = tuple(feature.outline() for feature in recipe.inputs)
    return replace(recipe, features=features, target_scale=None)


def raw_inputs(recipe: Recipe, row: str = "t") -> tuple[NetworkInput, ...]:
    """Return the expressions; NaN takes the place of a missing number."""
    numbers: list[Expression] = []
    hashes: list[Expression] = []
    for feature in recipe.inputs:
        numbers += feature.raw_numbers(row)
        hashes += feature.hashes(row)
    inputs: list[NetworkInput] = []
    if numbers:
        array = array_of(numbers, DOUBLE, missing=f"'NaN'::{DOUBLE}")
        inputs.append(NetworkInput(NUMBERS_INPUT, "float64", array))
    if hashes:
        inputs.append(NetworkInput(CODES_INPUT, "int64", array_of(hashes, "bigint", missing="0")))
    wide = [
        feature.raw_network_input(wide_name(place), row)
        for place, feature in enumerate(recipe.wide, 1)
    ]
    return (*inputs, *wide)


def constants(recipe: Recipe, marks: Sequence[Marks]) -> Json:
    """Return the constants as a trainer takes them; `marks` are those of each category.

    `parts` has, for each raw number, the parts that are computed from it; the second raw number of
    a point in time has none.
    """
    scales: list[list[float]] = []
    parts: list[Sequence[str]] = []
    missing: list[list[int]] = []
    for feature in recipe.inputs:
        if feature.has_missing_flag:
            end = len(parts) + feature.deciding_numbers
            missing.append(list(range(len(parts), end)))
        scales += [constant.in_wire_order for constant in feature.scale_constants]
        parts += feature.raw_parts
    return {
        "scales": scales,
        "parts": parts,
        "missing": missing,
        "categories": [[*mark.first, *mark.second] for mark in marks],
        "wide": [
            feature.input_constants(wide_name(place))
            for place, feature in enumerate(recipe.wide, 1)
        ],
    }


def packed_inputs(recipe: Recipe) -> tuple[NetworkInput, ...]:
    """Return the expressions that rows are packed by: codes if categories have many values."""
    raw = raw_inputs(recipe)
    if not _has_many_values(recipe):
        return raw
    codes = [entry for entry in network_inputs(recipe) if entry.name == CODES_INPUT]
    replacements = {entry.name: entry for entry in codes}
    return tuple(replacements.get(entry.name, entry) for entry in raw)


def _has_many_values(recipe: Recipe) -> bool:
    return sum(recipe.cardinalities) > MOST_HASHED_VALUES


def constants_by_input(reader: Reader, recipe: Recipe) -> dict[str, str]:
    """Return the constants of each of `packed_inputs` as JSON; an input without any is left out."""
    marks = [] if _has_many_values(recipe) else _read_marks(reader, recipe)
    all_constants = constants(recipe, marks)
    empty: Json = {name: [] for name in all_constants}
    numbers = {name: all_constants[name] for name in ("scales", "parts", "missing")}
    by_input = {
        NUMBERS_INPUT: {**empty, **numbers},
        CODES_INPUT: {**empty, "categories": all_constants["categories"]},
    }
    for place, entry in enumerate(all_constants["wide"], 1):
        by_input[wide_name(place)] = {**empty, "wide": [entry]}
    return {name: json.dumps(entry) for name, entry in by_input.items() if _has_constants(entry)}


def _has_constants(entry: Json) -> bool:
    return bool(
        entry["scales"] or entry["categories"] or any(wide["scales"] for wide in entry["wide"])
    )


def _read_marks(reader: Reader, recipe: Recipe) -> list[Marks]:
    """Read the hashes of the values of each category."""
    statement = sql("features.marks")
    return [Marks(*reader.run(statement, (values,))[0]) for values in recipe.category_values]
