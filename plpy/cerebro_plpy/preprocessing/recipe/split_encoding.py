"""A recipe in two halves: expressions that have nothing of what was learned, and constants that a
trainer applies.

So rows are packed, whose values a trainer encodes by whole blocks, quicker than a database row by
row; and so who may predict with a model, and not read what it was made of, has expressions only, in
a session whose plans and cursors can be looked at. Both halves together do what `encoding` does,
bit by bit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import wide_name
from cerebro_plpy.database.platform_protocol import Reader
from cerebro_plpy.database.queries import sql
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.errors import FeatureNotSupported
from cerebro_plpy.preprocessing.recipe.encoding import (
    DOUBLE,
    Expression,
    NetworkInput,
    absent,
    array_constants,
    category,
    element,
    moment,
    network_inputs,
    number,
    paddings,
    raw_array,
    wide_inputs,
)
from cerebro_plpy.preprocessing.recipe.feature import (
    MARKED,
    MOMENTS,
    Array,
    Category,
    Feature,
    ImageFile,
    LeftOut,
    Moment,
    Number,
    PlainArray,
    Scale,
    Text,
    Vector,
    WideFeature,
)
from cerebro_plpy.preprocessing.recipe.recipe import CODES_INPUT, NUMBERS_INPUT, Recipe
from cerebro_plpy.records import replace

UNKNOWN = Scale(0.0, 1.0)
"""In the place of every scale that was learned."""
NOTHING = ("",)
"""In the place of all categories."""
MARKS = 2
"""Hashes of 64 bits by which the values of a category are told apart."""
VALUE = "value"
"""What becomes of a raw number that is scaled as it is."""
SECONDS, FRACTION = "epoch", "microseconds"
"""Parts of a point of time that tell all of it: see `_told`."""
MOST_MARKED = 4096
"""Values of categories whose hashes go to a packing trainer with every block; of more a database
finds the codes.
"""


class Marks(NamedTuple):
    """The hashes of the values of a category, in the order of their codes."""

    first: Sequence[int]
    second: Sequence[int]


def outline(recipe: Recipe) -> Recipe:
    """The recipe without what was learned of values: which columns it takes, and what of each.

    Raises FeatureNotSupported where it has a column of a kind of which there are no halves.
    """
    return Recipe(tuple(_blank(each) for each in recipe.features if not isinstance(each, LeftOut)))


def _blank(feature: Feature) -> Feature:
    if isinstance(feature, Number):
        return replace(feature, scale=UNKNOWN)
    if isinstance(feature, Moment):
        return replace(feature, parts=dict.fromkeys(feature.parts, UNKNOWN))
    if isinstance(feature, Vector):
        return replace(feature, scales=(UNKNOWN,) * len(feature.scales))
    if isinstance(feature, Category):
        return replace(feature, values=NOTHING)
    if isinstance(feature, Array):
        return replace(feature, scales=(UNKNOWN,) * len(feature.scales))
    if isinstance(feature, Text):
        return replace(feature, rarity="")
    if isinstance(feature, (ImageFile, PlainArray)):
        return feature  # it knows nothing of values
    raise FeatureNotSupported(
        f"predictions with column {feature.column!r}, which is of kind {feature.kind}, cannot be "
        "granted",
        hint="Who may read the model can train one of their own: GRANT SELECT on the table that "
        "it was trained on.",
    )


def raw_inputs(recipe: Recipe, row: str = "t") -> tuple[NetworkInput, ...]:
    """The first half: what a trainer that has the second half takes of a row. NaN stands for what
    is missing.
    """
    values: list[Expression] = []
    marks: list[Expression] = []
    for each in recipe.inputs:
        if isinstance(each, Number):
            values.append(_raw_number(each, row))
        elif isinstance(each, Moment):
            values += [moment(each.column, each.family, part, row) for part in _told(each)]
        elif isinstance(each, Vector):
            values += [element(each.column, each.family, place, row) for place in each.places]
        elif isinstance(each, MARKED):
            values += [absent(each, row)] * each.missing
        elif isinstance(each, Category):
            text = category(each.column, each.family, row).text
            marks += [
                Expression(f"pg_catalog.hashtextextended({text}, {seed})") for seed in range(MARKS)
            ]
    numbers = _array(values, f"'NaN'::{DOUBLE}", DOUBLE)
    hashes = _array(marks, "0", "bigint")
    found = (
        NetworkInput(NUMBERS_INPUT, "float64", numbers),
        NetworkInput(CODES_INPUT, "int64", hashes),
    )
    return (
        *(each for each, items in zip(found, (values, marks)) if items),
        *map(_raw, recipe.wide, wide_inputs(recipe, row), repeat(row)),
    )


def _raw_number(feature: Number, row: str) -> Expression:
    """NULL or NaN where it is missing: a NaN is what stands for NULL afterwards."""
    if feature.family == "real":
        return Expression(f"{row}.{quote_identifier(feature.column)}::{DOUBLE}")
    return number(feature.column, feature.family, row)


def _told(feature: Moment) -> tuple[str, ...]:
    """The parts of a moment of which a trainer makes all others: seconds, and where it has hours,
    those of the minute.

    Seconds are a number of 53 bits, which a point of time in the far future does not fit into; so
    they are told twice.
    """
    return (SECONDS, FRACTION) if "hour" in MOMENTS[feature.family] else (SECONDS,)


def _raw(feature: WideFeature, whole: NetworkInput, row: str) -> NetworkInput:
    """What is sent of a column that is an input of its own: elements of arrays as they are."""
    if isinstance(feature, Array):
        return NetworkInput(whole.name, "float64", raw_array(feature, row))
    return whole


def _array(items: Sequence[Expression], missing: str, element: str) -> Expression:
    text = ", ".join(f"coalesce({item.text}, {missing})" for item in items)
    return Expression(
        f"ARRAY[{text}]::{element}[]", tuple(value for item in items for value in item.values)
    )


def constants(recipe: Recipe, marks: Sequence[Marks]) -> dict[str, Any]:
    """The second half, as a trainer takes it; `marks` are those of each category.

    `parts` are what becomes of each raw number; of one that belongs to the number before, nothing.
    """
    scales: list[list[float]] = []
    parts: list[Sequence[str]] = []
    missing: list[list[int]] = []
    for each in recipe.inputs:
        if isinstance(each, (Category, Text, PlainArray)):
            continue
        if each.missing and not isinstance(each, MARKED):
            count = len(each.scales) if isinstance(each, Vector) else 1
            missing.append(list(range(len(parts), len(parts) + count)))
        found = [
            [*scale.bounds, scale.center, scale.width, padding] for scale, padding in paddings(each)
        ]
        scales += found
        if isinstance(each, Moment):
            parts += [tuple(each.parts), *[()] * (len(_told(each)) - 1)]
        else:
            parts += [(VALUE,)] * len(found)
    return {
        "scales": scales,
        "parts": parts,
        "missing": missing,
        "categories": [[*each.first, *each.second] for each in marks],
        "wide": [_wide(*each) for each in zip(recipe.wide, wide_inputs(recipe))],
    }


def packed_inputs(recipe: Recipe) -> tuple[NetworkInput, ...]:
    """What a packing trainer takes of a row: raw values, but codes where there are many
    categories.
    """
    raw = raw_inputs(recipe)
    if not _many(recipe):
        return raw
    codes = {each.name: each for each in network_inputs(recipe) if each.name == CODES_INPUT}
    return tuple(codes.get(each.name, each) for each in raw)


def _many(recipe: Recipe) -> bool:
    return sum(recipe.cardinalities) > MOST_MARKED


def constants_by_input(reader: Reader, recipe: Recipe) -> dict[str, str]:
    """The second half for each of these inputs alone, as JSON, by its name; what is taken as it
    comes has none.
    """
    whole = constants(recipe, [] if _many(recipe) else _read_marks(reader, recipe))
    nothing: dict[str, Any] = {name: [] for name in whole}
    found = {
        NUMBERS_INPUT: {
            **nothing,
            **{name: whole[name] for name in ("scales", "parts", "missing")},
        },
        CODES_INPUT: {**nothing, "categories": whole["categories"]},
        **{
            wide_name(place): {**nothing, "wide": [each]}
            for place, each in enumerate(whole["wide"], 1)
        },
    }
    return {
        name: json.dumps(each)
        for name, each in found.items()
        if each["scales"] or each["categories"] or any(wide["scales"] for wide in each["wide"])
    }


def _read_marks(reader: Reader, recipe: Recipe) -> list[Marks]:
    """The hashes of the values of each category."""
    lists = [list(each.values) for each in recipe.inputs if isinstance(each, Category)]
    return [Marks(*reader.run(sql("features.marks"), (values,))[0]) for values in lists]


def _wide(feature: WideFeature, whole: NetworkInput) -> dict[str, Any]:
    """How a column is sent that is an input of its own, and its scales if it has any."""
    if not isinstance(feature, Array):
        return {"kind": whole.kind, "scales": []}
    scales = [
        [low, high, center, width, padding]
        for center, low, high, width, padding in array_constants(feature)
    ]
    return {"kind": "float64", "scales": scales}
