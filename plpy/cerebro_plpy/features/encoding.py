"""A recipe as SQL: expressions that make the inputs of a network from the columns of a row.

They are made anew for each use, of PostgreSQL's own functions and types alone; names are quoted, constants are values.
The same expressions serve training and prediction, and all rows of a statement at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cerebro_plpy.configs.templates.template import wide_name
from cerebro_plpy.database.names import literal, quote_identifier
from cerebro_plpy.database.queries import around_placeholders
from cerebro_plpy.features import words
from cerebro_plpy.features.recipe import CODES_INPUT, NUMBERS_INPUT, WIDE, Category, Moment, Number, Recipe, WideFeature
from cerebro_plpy.features.scale import LARGEST, Scale

DOUBLE = "double precision"
TEXTS = {
    "timezone": "UTC", "datestyle": "ISO, YMD", "intervalstyle": "postgres", "extra_float_digits": "1",
    "bytea_output": "hex", "lc_monetary": "C",
}  # fmt: skip
"""Settings under which a value has the same text for everybody, by which it is a category, or is hashed."""
REACHES = {"month": 12, "day": 31, "dow": 6, "hour": 23}
"""Parts of points of time that are whole numbers from 0 to these, or nothing."""
COARSEST = 1e30
"""The distance 1 of two whole numbers, in so large a width, is not too near to 0 for real."""


class Expression(NamedTuple):
    """SQL text, and the values of its placeholders."""

    text: str
    values: tuple[object, ...] = ()

    def inlined(self) -> str:
        """The text with its values, for statements that take none."""
        parts = around_placeholders(self.text)
        return "".join(a + b for a, b in zip(parts, (*map(literal, self.values), "")))


class Encoding(NamedTuple):
    """What makes the inputs of a row: `numbers` is a real[], `codes` an integer[]; each may be of no elements."""

    numbers: Expression
    codes: Expression


class NetworkInput(NamedTuple):
    """An input of a network: the name that it has where rows are packed, how it is sent, and what makes it of a row."""

    name: str
    kind: str
    value: Expression

    @property
    def sent(self) -> Expression:
        """The bytes that a trainer takes."""
        return Expression(f"cerebro.array_bytes({self.value.text})", self.value.values)


def network_inputs(recipe: Recipe) -> tuple[NetworkInput, ...]:
    """The inputs of a network in their order: each only where there is any of it."""
    numbers, codes = encode(recipe)
    found = (
        (recipe.table.columns, NetworkInput(NUMBERS_INPUT, "float32", numbers)),
        (len(recipe.cardinalities), NetworkInput(CODES_INPUT, "int32", codes)),
    )
    return (*(each for count, each in found if count), *wide_inputs(recipe))


def wide_inputs(recipe: Recipe, row: str = "t") -> tuple[NetworkInput, ...]:
    """The inputs that are one column each, of rows that have this alias."""
    return tuple(
        NetworkInput(wide_name(place), each.wide.dtype, wide(each, row)) for place, each in enumerate(recipe.wide, 1)
    )


def wide(feature: WideFeature, row: str = "t") -> Expression:
    """What the network is given of a column that is an input of its own: of the same shape in every row, never NULL."""
    text = category(feature.column, row=row).text
    return Expression(words.numbers(text, feature.words, feature.buckets))


def extent(feature: WideFeature, row: str = "t") -> Expression:
    """How long the value of such a column is, as double precision; NULL where there is none."""
    return Expression(f"pg_catalog.length({category(feature.column, row=row).text})::{DOUBLE}")


def encode(recipe: Recipe, row: str = "t") -> Encoding:
    """The encoding of rows that have this alias."""
    numbers: list[Expression] = []
    missing: list[Expression] = []
    codes: list[Expression] = []
    for feature in recipe.inputs:
        if isinstance(feature, Category):
            codes.append(code(feature, row))
        if isinstance(feature, (Category, *WIDE)):
            continue
        scaled = list(_scaled_values(feature, row))
        numbers += [value for value, _ in scaled]
        missing += [_missing(scaled[0][1])] * feature.missing
    return Encoding(_array([*numbers, *missing], "real"), _array(codes, "integer"))


def _scaled_values(feature: Number | Moment, row: str) -> Iterator[tuple[Expression, Expression]]:
    """Each number of a feature as the network takes it, and as it is."""
    if isinstance(feature, Number):
        value = number(feature.column, feature.family, row)
        yield _scaled(value, feature.scale, feature.family == "integer"), value
        return
    for part, scale in feature.parts.items():
        value = moment(feature.column, feature.family, part, row)
        reach = REACHES.get(part)
        yield (_within(value, scale) if reach and _reached(scale, reach) else _scaled(value, scale)), value


def paddings(feature: Number | Moment) -> Iterator[tuple[Scale, float]]:
    """The scale of each number of a feature, and what is added and taken away before it is divided: see `_scaled`."""
    if isinstance(feature, Number):
        whole = feature.family == "integer" and _is_coarse(feature.scale)
        yield feature.scale, 0.0 if whole else 4 * feature.scale.width
        return
    for part, scale in feature.parts.items():
        reach = REACHES.get(part)
        yield scale, 0.0 if reach and _reached(scale, reach) else 4 * scale.width


def number(column: str, family: str, row: str = "t") -> Expression:
    """A column of numbers as double precision, NULL where it is NULL or NaN."""
    name = f"{row}.{quote_identifier(column)}"
    if family == "integer":
        return Expression(f"{name}::{DOUBLE}")
    if family == "real":
        return Expression(f"nullif({name}::{DOUBLE}, 'NaN'::{DOUBLE})")
    # One that double precision cannot hold, for it is too large or too near to 0, would be an error.
    bounded = f"least(greatest({name}::numeric, %s::numeric), %s::numeric)::{DOUBLE}"
    text = (
        f"CASE WHEN {name}::numeric > %s::numeric AND {name}::numeric < %s::numeric THEN 0"
        f" WHEN {name}::numeric <> 'NaN'::numeric THEN {bounded} END"
    )
    return Expression(text, (-1 / LARGEST, 1 / LARGEST, -LARGEST, LARGEST))


def moment(column: str, family: str, part: str, row: str = "t") -> Expression:
    """A part of a point or span of time as double precision; NULL where it is NULL, or has no such part."""
    name = f"{row}.{quote_identifier(column)}"
    moved = f"({name} AT TIME ZONE 'UTC')" if family == "timestamptz" else name
    return Expression(f"pg_catalog.date_part('{part}', {moved})")


def category(column: str, zoned: bool = False, row: str = "t") -> Expression:
    """A column as the text by which its values are told apart: of points of time with a zone that of UTC."""
    name = f"{row}.{quote_identifier(column)}"
    return Expression(f"({name} AT TIME ZONE 'UTC')::text" if zoned else f"{name}::text")


def _scaled(value: Expression, scale: Scale, whole: bool = False) -> Expression:
    """See `Scale.apply`; what has no value is put where the center is.

    A quotient that is too near to 0 is an error of PostgreSQL, and so is the cast of such a number to real: four widths
    are added and taken away, which leaves none. Of the difference of whole numbers there is none anyway.
    """
    low, high = scale.bounds
    bounded = f"least(greatest(coalesce({value.text}, %s::{DOUBLE}), %s::{DOUBLE}), %s::{DOUBLE})"
    values = (*value.values, scale.center, low, high, scale.center)
    if whole and _is_coarse(scale):
        return Expression(f"({bounded} - %s::{DOUBLE}) / %s::{DOUBLE}", (*values, scale.width))
    scaled = f"({bounded} - %s::{DOUBLE} + %s::{DOUBLE} - %s::{DOUBLE}) / %s::{DOUBLE}"
    return Expression(scaled, (*values, 4 * scale.width, 4 * scale.width, scale.width))


def _within(value: Expression, scale: Scale) -> Expression:
    """The same of whole numbers that are all within the bounds."""
    return Expression(
        f"coalesce(({value.text} - %s::{DOUBLE}) / %s::{DOUBLE}, '0'::{DOUBLE})",
        (*value.values, scale.center, scale.width),
    )


def _reached(scale: Scale, reach: int) -> bool:
    low, high = scale.bounds
    return low <= 0 and reach <= high and _is_coarse(scale)


def _is_coarse(scale: Scale) -> bool:
    """Whether a whole number is at the center, or so far from it that real holds the distance in widths."""
    return scale.center % 1 == 0 and scale.width <= COARSEST


def _missing(value: Expression) -> Expression:
    return Expression(f"CASE WHEN {value.text} IS NULL THEN '1'::real ELSE '0'::real END", value.values)


def code(feature: Category, row: str = "t") -> Expression:
    """The number of a category, 0 where the recipe does not know it.

    By a subselect, which is evaluated once, however many rows there are.
    """
    value = category(feature.column, feature.zoned, row)
    place = "pg_catalog.json_object(%s::text[], %s::text[])::jsonb"
    numbers = [str(number) for number in range(1, len(feature.values) + 1)]
    return Expression(
        f"coalesce(pg_catalog.jsonb_object_field_text((SELECT {place}), {value.text})::integer, 0)",
        (list(feature.values), numbers, *value.values),
    )


def _array(items: list[Expression], element: str) -> Expression:
    text = ", ".join(item.text for item in items)
    return Expression(f"ARRAY[{text}]::{element}[]", tuple(value for item in items for value in item.values))
