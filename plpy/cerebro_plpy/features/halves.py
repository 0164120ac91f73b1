"""A recipe in two halves, for who may predict with a model and not read what it was made of.

The expressions of the first half have nothing of what was learned: they run in the session of who predicts, where plans
and cursors can be looked at. The second half is applied to their values in a trainer. Both together do what `encoding`
does, bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cerebro_plpy.errors import FeatureNotSupported
from cerebro_plpy.features.encoding import (
    DOUBLE,
    Expression,
    NetworkInput,
    category,
    moment,
    number,
    paddings,
    wide_inputs,
)
from cerebro_plpy.features.recipe import WIDE, Category, Feature, LeftOut, Moment, Number, Recipe, Text
from cerebro_plpy.features.scale import Scale

UNKNOWN = Scale(0.0, 1.0)
"""In the place of every scale that was learned."""
NOTHING = ("",)
"""In the place of all categories."""
MARKS = 2
"""Hashes of 64 bits by which the values of a category are told apart."""


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
    if isinstance(feature, Category):
        return replace(feature, values=NOTHING)
    if isinstance(feature, Text):
        return feature  # it knows nothing of values
    raise FeatureNotSupported(
        f"predictions with column {feature.column!r}, which is of kind {feature.kind}, cannot be granted",
        hint="Who may read the model can train one of their own: GRANT SELECT on the table that it was trained on.",
    )


def raw_inputs(recipe: Recipe, row: str = "t") -> tuple[NetworkInput, ...]:
    """The first half: what a trainer that has the second half takes of a row. NaN stands for what is missing."""
    values: list[Expression] = []
    marks: list[Expression] = []
    for each in recipe.inputs:
        if isinstance(each, Number):
            values.append(number(each.column, each.family, row))
        elif isinstance(each, Moment):
            values += [moment(each.column, each.family, part, row) for part in each.parts]
        elif isinstance(each, Category):
            text = f'({category(each.column, each.zoned, row).text}) COLLATE pg_catalog."C"'
            marks += [Expression(f"pg_catalog.hashtextextended({text}, {seed})") for seed in range(MARKS)]
    numbers = _array(values, f"'NaN'::{DOUBLE}", DOUBLE)
    found = (NetworkInput("numbers", "float64", numbers), NetworkInput("marks", "int64", _array(marks, "0", "bigint")))
    return (*(each for each, items in zip(found, (values, marks)) if items), *wide_inputs(recipe, row))


def _array(items: Sequence[Expression], missing: str, element: str) -> Expression:
    text = ", ".join(f"coalesce({item.text}, {missing})" for item in items)
    return Expression(f"ARRAY[{text}]::{element}[]", tuple(value for item in items for value in item.values))


def constants(recipe: Recipe, marks: Sequence[Marks]) -> dict[str, Any]:
    """The second half, as a trainer takes it; `marks` are those of each category."""
    scales: list[list[float]] = []
    missing: list[int] = []
    for each in recipe.inputs:
        if isinstance(each, (Category, *WIDE)):
            continue
        if each.missing:
            missing.append(len(scales))
        scales += [[*scale.bounds, scale.center, scale.width, padding] for scale, padding in paddings(each)]
    return {
        "scales": scales,
        "missing": missing,
        "categories": [[*each.first, *each.second] for each in marks],
        "wide": [each.wide.dtype for each in recipe.wide],
    }
