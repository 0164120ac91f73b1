"""A recipe as SQL: expressions that make the inputs of a network from the columns of a row.

They are made anew for each use, of PostgreSQL's own functions and types alone; names are quoted,
constants are values. The same expressions serve training and prediction, and all rows of a
statement at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import wide_name
from cerebro_plpy.database.queries import around_placeholders
from cerebro_plpy.database.sql.identifiers import quote_identifier
from cerebro_plpy.database.sql.literals import literal
from cerebro_plpy.preprocessing.recipe import (
    array_layout,
    canonical_text,
    json_scalars,
    text_hashing,
    thumbnails,
)
from cerebro_plpy.preprocessing.recipe.feature import (
    ARRAYS,
    JSON,
    LARGEST,
    MARKED,
    WIDE,
    Array,
    Category,
    ImageFile,
    Marked,
    Moment,
    Number,
    PlainArray,
    Scale,
    Scaled,
    Vector,
    WideFeature,
)
from cerebro_plpy.preprocessing.recipe.recipe import CODES_INPUT, NUMBERS_INPUT, Recipe

DOUBLE = "double precision"
REACHES = {"month": 12, "day": 31, "dow": 6, "hour": 23}
"""Parts of points of time that are whole numbers from 0 to these, or nothing."""
CAST = "cast to real[]"
WHOLE = ("integer", "integer[]")
"""Families of whole numbers."""
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
    """What makes the inputs of a row: `numbers` is a real[], `codes` an integer[]; each may be of
    no elements.
    """

    numbers: Expression
    codes: Expression


class NetworkInput(NamedTuple):
    """An input of a network: the name that it has where rows are packed, how it is sent, and what
    makes it of a row.
    """

    name: str
    kind: str
    value: Expression
    array: PlainArray | None = None

    @property
    def entry(self) -> dict[str, object]:
        """How it is sent, as a trainer is told it, which divides arrays that are taken as they
        are.
        """
        own = {"column": self.array.column, "divide": self.array.divisor} if self.array else {}
        return {"kind": self.kind, **own}

    @property
    def sent(self) -> Expression:
        """The bytes that a trainer takes."""
        call = (
            "pg_catalog.array_send(ARRAY[{}])"
            if self.kind == thumbnails.KIND
            else "cerebro.array_bytes({})"
        )
        return Expression(call.format(self.value.text), self.value.values)


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
        _wide_input(wide_name(place), each, row) for place, each in enumerate(recipe.wide, 1)
    )


def _wide_input(name: str, feature: WideFeature, row: str) -> NetworkInput:
    array = feature if isinstance(feature, PlainArray) else None
    kind = thumbnails.KIND if isinstance(feature, ImageFile) else feature.wide.dtype
    return NetworkInput(name, kind, wide(feature, row), array)


def wide(feature: WideFeature, row: str = "t") -> Expression:
    """What the network is given of a column that is an input of its own: of the same shape in every
    row, never NULL.

    But for arrays that are taken as they are: whether one has no NULL, and the shape that is
    wanted, the trainer sees.
    """
    if isinstance(feature, ImageFile):
        return Expression(
            thumbnails.value(feature.column, row), (thumbnails.head(feature.column, feature.shape),)
        )
    if isinstance(feature, PlainArray):
        name = f"{row}.{quote_identifier(feature.column)}"
        plain = f"ARRAY[{name}]" if feature.single else name
        return Expression(f"coalesce({plain}::real[], ARRAY[NULL]::real[])")
    if isinstance(feature, Array):
        return array(feature, row)
    text = category(feature.column, row=row).text
    return Expression(text_hashing.numbers(text, feature.words, feature.buckets))


def extent(feature: WideFeature, row: str = "t") -> Expression:
    """How long the value of such a column is, as double precision; NULL where there is none."""
    if isinstance(feature, Array):
        return Expression(
            f"nullif(pg_catalog.cardinality({elements(feature.column, feature.family, row)}), "
            f"0)::{DOUBLE}"
        )
    if isinstance(feature, ImageFile):
        return Expression(f"nullif({thumbnails.size(feature.column, row)}, 0)::{DOUBLE}")
    if isinstance(feature, PlainArray):
        return Expression(f"pg_catalog.cardinality({wide(feature, row).text})::{DOUBLE}")
    return Expression(f"pg_catalog.length({category(feature.column, row=row).text})::{DOUBLE}")


def absent(feature: Marked, row: str = "t") -> Expression:
    """Whether no element of an array is a number, or a file has no bytes, as 1 or 0; so it is of
    NULL.
    """
    if isinstance(feature, ImageFile):
        return Expression(
            f"CASE WHEN {thumbnails.size(feature.column, row)} > 0 THEN '0'::real ELSE '1'::real "
            "END"
        )
    value = number_of("e.x", ARRAYS[feature.family])
    found = (
        f"SELECT FROM pg_catalog.unnest({elements(feature.column, feature.family, row)}) AS e (x)"
    )
    text = (
        f"CASE WHEN EXISTS ({found} WHERE {value.text} IS NOT NULL) THEN '0'::real ELSE '1'::real "
        "END"
    )
    return Expression(text, value.values)


def array(feature: Array, row: str = "t") -> Expression:
    """The elements of a column of arrays as the network takes them, of all dimensions one behind
    another.
    """
    family = ARRAYS[feature.family]
    value = number_of(array_layout.ELEMENT, family)
    columns = [list(each) for each in zip(*array_constants(feature))]
    several = len(feature.scales) > 1
    center, low, high, width, padding = columns if several else (each[0] for each in columns)

    def scaled(channel: str) -> str:
        constant = f"(%s::{DOUBLE}[])[{channel}]" if several else f"%s::{DOUBLE}"
        bounded = f"least(greatest(coalesce({value.text}, {constant}), {constant}), {constant})"
        return f"(({bounded} - {constant} + {constant} - {constant}) / {constant})::real"

    laid = array_layout.laid_out(
        elements(feature.column, feature.family, row), feature.shape, scaled, "'0'::real"
    )
    values = (*value.values, center, low, high, center, padding, padding, width)
    return Expression(laid.text, values * laid.elements)


def array_constants(feature: Array) -> list[tuple[float, ...]]:
    """Of each scale of an array the center, the bounds, the width, and what is added and taken
    away: see `_scaled`.
    """
    whole = ARRAYS[feature.family] == "integer"
    return [
        (
            scale.center,
            *scale.bounds,
            scale.width,
            0.0 if whole and _is_coarse(scale) else 4 * scale.width,
        )
        for scale in feature.scales
    ]


def raw_array(feature: Array, row: str = "t") -> Expression:
    """The same of elements as they are, in double precision; NaN stands for what is missing."""
    value = number_of(array_layout.ELEMENT, ARRAYS[feature.family])
    missing = f"'NaN'::{DOUBLE}"
    plain = f"coalesce({value.text}, {missing})"
    laid = array_layout.laid_out(
        elements(feature.column, feature.family, row), feature.shape, lambda _: plain, missing
    )
    return Expression(laid.text, value.values * laid.elements)


def encode(recipe: Recipe, row: str = "t") -> Encoding:
    """The encoding of rows that have this alias."""
    numbers: list[Expression] = []
    missing: list[Expression] = []
    codes: list[Expression] = []
    for feature in recipe.inputs:
        if isinstance(feature, Category):
            codes.append(code(feature, row))
        if isinstance(feature, MARKED) and feature.missing:
            numbers.append(absent(feature, row))
        if isinstance(feature, (Category, *WIDE)):
            continue
        scaled = list(_scaled_values(feature, row))
        numbers += [value for value, _ in scaled]
        missing += [_missing(_any(feature, [value for _, value in scaled], row))] * feature.missing
    return Encoding(_array([*numbers, *missing], "real"), _array(codes, "integer"))


def _any(feature: Scaled, values: Sequence[Expression], row: str) -> Expression:
    """A value that is NULL where the column has none: of a vector, where no element is a number."""
    if isinstance(feature, Moment):
        return moment(feature.column, feature.family, "epoch", row)
    if not isinstance(feature, Vector):
        return values[0]
    text = ", ".join(value.text for value in values)
    return Expression(f"coalesce({text})", tuple(value for each in values for value in each.values))


def _scaled_values(feature: Scaled, row: str) -> Iterator[tuple[Expression, Expression]]:
    """Each number of a feature as the network takes it, and as it is."""
    if isinstance(feature, Vector):
        for place, scale in zip(feature.places, feature.scales):
            value = element(feature.column, feature.family, place, row)
            yield _scaled(value, scale, ARRAYS[feature.family] == "integer"), value
        return
    if isinstance(feature, Number):
        value = number(feature.column, feature.family, row)
        yield _scaled(value, feature.scale, feature.family == "integer"), value
        return
    for part, scale in feature.parts.items():
        value = moment(feature.column, feature.family, part, row)
        reach = REACHES.get(part)
        yield (
            (_within(value, scale) if reach and _reached(scale, reach) else _scaled(value, scale)),
            value,
        )


def paddings(feature: Scaled | Marked) -> Iterator[tuple[Scale, float]]:
    """The scale of each number of a feature, and what is added and taken away before it is divided:
    see `_scaled`.
    """
    if isinstance(feature, MARKED):
        yield from [(Scale(0.0, 1.0), 0.0)] * feature.missing  # as it is
        return
    if isinstance(feature, (Number, Vector)):
        whole = feature.family in WHOLE
        for scale in feature.scales if isinstance(feature, Vector) else (feature.scale,):
            yield scale, 0.0 if whole and _is_coarse(scale) else 4 * scale.width
        return
    for part, scale in feature.parts.items():
        reach = REACHES.get(part)
        yield scale, 0.0 if reach and _reached(scale, reach) else 4 * scale.width


def number(column: str, family: str, row: str = "t") -> Expression:
    """A column of numbers as double precision, NULL where it is NULL or NaN."""
    return number_of(f"{row}.{quote_identifier(column)}", family)


def element(column: str, family: str, place: int, row: str = "t") -> Expression:
    """An element of arrays of one dimension as double precision, NULL where there is none, or it is
    NULL or NaN.
    """
    # A slice begins at 1, wherever the array does.
    return number_of(f"(({elements(column, family, row)})[:])[{place}]", ARRAYS[family])


def elements(column: str, family: str, row: str = "t") -> str:
    """A column of arrays as arrays of numbers."""
    name = f"{row}.{quote_identifier(column)}"
    return f"{name}::pg_catalog.float4[]" if family == CAST else name


def number_of(name: str, family: str) -> Expression:
    """A number of this family as double precision, NULL where it is NULL or NaN."""
    if family == "integer":
        return Expression(f"{name}::{DOUBLE}")
    if family == "real":
        return Expression(f"nullif({name}::{DOUBLE}, 'NaN'::{DOUBLE})")
    name = {JSON: json_scalars.number, canonical_text.MONEY: canonical_text.amount}.get(
        family, str
    )(name)
    # One that double precision cannot hold, for it is too large or too near to 0, would be an
    # error.
    bounded = f"least(greatest({name}::numeric, %s::numeric), %s::numeric)::{DOUBLE}"
    text = (
        f"CASE WHEN {name}::numeric > %s::numeric AND {name}::numeric < %s::numeric THEN 0"
        f" WHEN {name}::numeric <> 'NaN'::numeric THEN {bounded} END"
    )
    return Expression(text, (-1 / LARGEST, 1 / LARGEST, -LARGEST, LARGEST))


def moment(column: str, family: str, part: str, row: str = "t") -> Expression:
    """A part of a point or span of time as double precision; NULL where it is NULL, or has no such
    part.
    """
    name = f"{row}.{quote_identifier(column)}"
    moved = f"({name} AT TIME ZONE 'UTC')" if family == "timestamptz" else name
    return Expression(f"pg_catalog.date_part('{part}', {moved})")


def category(column: str, family: str | None = "text", row: str = "t") -> Expression:
    """A column of a family as the text by whose bytes its values are told apart."""
    text = canonical_text.told_apart(f"{row}.{quote_identifier(column)}", family)
    return Expression(f'({text} COLLATE pg_catalog."C")')


def _scaled(value: Expression, scale: Scale, whole: bool = False) -> Expression:
    """See `Scale.apply`; what has no value is put where the center is.

    A quotient that is too near to 0 is an error of PostgreSQL, and so is the cast of such a number
    to real: four widths are added and taken away, which leaves none. Of the difference of whole
    numbers there is none anyway.
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
    """Whether a whole number is at the center, or so far from it that real holds the distance in
    widths.
    """
    return scale.center % 1 == 0 and scale.width <= COARSEST


def _missing(value: Expression) -> Expression:
    return Expression(
        f"CASE WHEN {value.text} IS NULL THEN '1'::real ELSE '0'::real END", value.values
    )


def code(feature: Category, row: str = "t") -> Expression:
    """The number of a category, 0 where the recipe does not know it.

    By a subselect, which is evaluated once, however many rows there are.
    """
    value = category(feature.column, feature.family, row)
    place = "pg_catalog.json_object(%s::text[], %s::text[])::jsonb"
    numbers = [str(number) for number in range(1, len(feature.values) + 1)]
    return Expression(
        f"coalesce(pg_catalog.jsonb_object_field_text((SELECT {place}), {value.text})::integer, 0)",
        (list(feature.values), numbers, *value.values),
    )


def _array(items: list[Expression], element: str) -> Expression:
    text = ", ".join(item.text for item in items)
    return Expression(
        f"ARRAY[{text}]::{element}[]", tuple(value for item in items for value in item.values)
    )
