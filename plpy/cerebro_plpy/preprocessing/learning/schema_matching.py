"""A recipe for another table than the one that it was learned of: its columns are found there by
name, and by family.

Numbers of any type are numbers, and a date is a point of time like a timestamp; of a category only
the text counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod

from cerebro_plpy.errors import DatatypeMismatch, UndefinedColumn
from cerebro_plpy.preprocessing.recipe.columns import TEXT, RawColumn
from cerebro_plpy.preprocessing.recipe.feature import (
    ARRAYS,
    BYTES,
    JSON,
    NUMBERS,
    Category,
    Feature,
    ImageFile,
    Input,
    LeftOut,
    Moment,
    Number,
    PlainArray,
    Text,
)
from cerebro_plpy.preprocessing.recipe.recipe import Recipe
from cerebro_plpy.records import asdict, replace

POINTS = ("date", "timestamp", "timestamptz")
"""Families of which each has all parts that the others have."""
OF_TYPES = ("family", "zoned", "single")
"""Fields that follow from the type of a column."""
_NUMBERS_ARRAY = re.compile(
    r"(smallint|integer|bigint|real|double precision|numeric(\([-0-9,]+\))?)\[\]"
)


def matched(module: str, recipe: Recipe, columns: Sequence[RawColumn], spelling: str) -> Recipe:
    """The recipe over a table with these columns; `spelling` names it in errors.

    Raises UndefinedColumn where columns are missing, and DatatypeMismatch where one is of another
    kind.
    """
    known = {column.name: column for column in columns}
    missing = [each.column for each in recipe.inputs if each.column not in known]
    if missing:
        raise UndefinedColumn(
            f"{module} error: {spelling} has no column {_listed(missing)}, which the model needs.",
            detail=f"The model expects {', '.join(map(expected, recipe.inputs))}.",
            hint="Predict from a view that has all of these: SELECT t.*, NULL::type AS name FROM "
            f"{spelling} t; a column of which nothing is known may be NULL.",
        )
    return Recipe(tuple(_matched(module, each, known, spelling) for each in recipe.features))


def take_alike(one: Recipe, other: Recipe) -> bool:
    """Return whether two recipes make the same inputs of a row, whatever the types of its columns
    are.
    """
    return list(map(_untyped, one.inputs)) == list(map(_untyped, other.inputs))


def _untyped(feature: Input) -> tuple[str, dict[str, object]]:
    return feature.kind, {
        name: value for name, value in asdict(feature).items() if name not in OF_TYPES
    }


def _matched(
    module: str, feature: Feature, known: Mapping[str, RawColumn], spelling: str
) -> Feature:
    if isinstance(feature, LeftOut):
        return feature
    column = known[feature.column]
    if isinstance(feature, Category):
        fits = column.family not in (None, BYTES)
        read = replace(feature, family=column.family or feature.family)
        return read if fits else _refuse(module, feature, column, spelling)
    if isinstance(feature, PlainArray):
        single = column.family in NUMBERS
        fits = prod(feature.shape) == 1 if single else bool(_NUMBERS_ARRAY.fullmatch(column.type))
        return (
            replace(feature, single=single) if fits else _refuse(module, feature, column, spelling)
        )
    if isinstance(feature, ImageFile):
        return feature if column.family == BYTES else _refuse(module, feature, column, spelling)
    if isinstance(feature, Text):
        return feature if column.family == TEXT else _refuse(module, feature, column, spelling)
    if column.family not in _alike(feature.family):
        return _refuse(module, feature, column, spelling)
    return replace(feature, family=column.family)


def _alike(family: str) -> tuple[str, ...]:
    """The families that can take the place of one."""
    return next(
        (alike for alike in ((*NUMBERS, JSON), POINTS, tuple(ARRAYS)) if family in alike), (family,)
    )


def _refuse(module: str, feature: Input, column: RawColumn, spelling: str) -> Feature:
    wanted = kind(feature)
    raise DatatypeMismatch(
        f"{module} error: column {column.name!r} of {spelling} has type {column.type}; the model "
        f"expects {wanted}.",
        hint="Cast it in a view, and predict from that.",
    )


def expected(feature: Input) -> str:
    """A column that a model takes, for messages.

    >>> expected(Category("b", ("x",)))
    "'b' (a text, or what has one)"
    """
    return f"{feature.column!r} ({kind(feature)})"


def kind(feature: Input) -> str:
    """What values a column that a model takes may have, for messages."""
    if isinstance(feature, Category):
        return "a text, or what has one"
    if isinstance(feature, PlainArray):
        return f"an array of {' x '.join(map(str, feature.shape))} numbers"
    if isinstance(feature, Text):
        return "a text"
    if isinstance(feature, ImageFile):
        return "a PNG or JPEG image, a bytea"
    if isinstance(feature, Moment):
        return f"a {' or '.join(_alike(feature.family))}"
    return "a number" if isinstance(feature, Number) else "an array of numbers"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
