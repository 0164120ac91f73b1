"""Features as they are kept: JSON, which whoever owns a model could have changed, checked part by
part.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from cerebro_plpy.database.sql.identifiers import check_name
from cerebro_plpy.errors import DataCorrupted, InvalidName
from cerebro_plpy.preprocessing.recipe.feature import (
    ARRAYS,
    CHANNELS,
    JSON,
    LARGEST,
    LARGEST_DIVISOR,
    MOMENTS,
    MOST_BUCKETS,
    MOST_BYTES,
    MOST_CATEGORIES,
    MOST_DIMENSIONS,
    MOST_EDGES,
    MOST_ELEMENTS,
    MOST_NUMBERS,
    MOST_PLAIN,
    NUMBERS,
    SIDES,
    Array,
    Category,
    Feature,
    Image,
    ImageFile,
    LeftOut,
    LongVector,
    Moment,
    Number,
    PlainArray,
    Scale,
    Series,
    Text,
    Vector,
)
from cerebro_plpy.preprocessing.recipe.text_hashing import MOST_WORDS

PLAIN, ZONED = "text", "timestamptz"
"""Families of categories in recipes that had no others."""


def read_feature(value: object) -> Feature:
    """The feature that this is; raises DataCorrupted where it is none, whatever it is."""
    kind = value.get("kind") if isinstance(value, dict) else None
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise wrong("feature", value, f"an object whose kind is one of {', '.join(_READERS)}")
    return reader(value)


def _number(value: object) -> Number:
    found = record(value, "feature", "kind", "column", "family", "scale", "missing")
    family = _choice(found["family"], "family", (*NUMBERS, JSON))
    return Number(_column(found["column"]), family, _scale(found["scale"]), _flag(found["missing"]))


def _category(value: object) -> Category:
    before = isinstance(value, dict) and "zoned" in value  # a recipe of 0.3.0
    found = record(value, "feature", "kind", "column", "values", "zoned" if before else "family")
    values = found["values"]
    if not isinstance(values, (list, tuple)) or not 1 <= len(values) <= MOST_CATEGORIES:
        raise wrong("values", values, f"a list of 1 to {MOST_CATEGORIES} texts")
    texts = tuple(_text(each, "a category") for each in values)
    if len(set(texts)) < len(texts):
        raise wrong("values", values, "no text twice")
    if before:
        return Category(
            _column(found["column"]), texts, ZONED if _flag(found["zoned"], "zoned") else PLAIN
        )
    family = _choice(found["family"], "family", (PLAIN, *NUMBERS, JSON, *MOMENTS))
    return Category(_column(found["column"]), texts, family)


def _moment(value: object) -> Moment:
    found = record(value, "feature", "kind", "column", "family", "parts", "missing")
    family = _choice(found["family"], "family", tuple(MOMENTS))
    parts = found["parts"]
    if not isinstance(parts, dict) or not parts or not set(parts) <= set(MOMENTS[family]):
        raise wrong("parts", parts, f"an object with some of {', '.join(MOMENTS[family])}")
    # JSON keeps no order.
    scales = {part: _scale(parts[part]) for part in MOMENTS[family] if part in parts}
    return Moment(_column(found["column"]), family, scales, _flag(found["missing"]))


def _free_text(value: object) -> Text:
    found = record(value, "feature", "kind", "column", "words", "buckets", "rarity")
    words, buckets = (
        _whole(found["words"], "words", MOST_WORDS),
        _whole(found["buckets"], "buckets", MOST_BUCKETS),
    )
    return Text(_column(found["column"]), words, buckets, _rarity(found["rarity"], buckets))


def _rarity(value: object, buckets: int) -> str:
    try:
        if isinstance(value, str) and len(b64decode(value, validate=True)) in (0, buckets):
            return value
    except ValueError:
        pass
    raise wrong("rarity", value, f"{buckets} bytes in base64, or none")


def _vector(value: object) -> Vector:
    found = record(value, "feature", "kind", "column", "family", "scales", "missing")
    family = _choice(found["family"], "family", tuple(ARRAYS))
    return Vector(
        _column(found["column"]),
        family,
        _scales(found["scales"], MOST_NUMBERS),
        _flag(found["missing"]),
    )


def _array(of: type[Array]) -> Callable[[object], Array]:
    def read(value: object) -> Array:
        found = record(value, "feature", "kind", "column", "family", "shape", "scales", "missing")
        family, shape = _choice(found["family"], "family", tuple(ARRAYS)), found["shape"]
        if not isinstance(shape, (list, tuple)) or len(shape) != of.dimensions:
            raise wrong("shape", shape, f"a list of {of.dimensions} sizes")
        sizes = tuple(_whole(size, "a size", MOST_ELEMENTS) for size in shape)
        if prod(sizes) > MOST_ELEMENTS:
            raise wrong("shape", shape, f"one of at most {MOST_ELEMENTS} elements")
        scales = _scales(found["scales"], MOST_ELEMENTS)
        if len(scales) != (sizes[-1] if of.by_channel else 1):
            raise wrong("scales", scales, "one for each channel" if of.by_channel else "one")
        return of(_column(found["column"]), family, sizes, scales, _flag(found["missing"]))

    return read


def _image(value: object) -> Array | ImageFile:
    """Pixels in an array of some family, or a file."""
    if isinstance(value, dict) and "family" in value:
        return _array(Image)(value)
    found = record(value, "feature", "kind", "column", "shape", "bytes", "missing")
    shape = found["shape"]
    if not isinstance(shape, (list, tuple)) or len(shape) != Image.dimensions:
        raise wrong("shape", shape, f"a list of {Image.dimensions} sizes")
    height, width, channels = (
        _of(each, "shape", few) for each, few in zip(shape, (SIDES, SIDES, CHANNELS))
    )
    size = _whole(found["bytes"], "bytes", MOST_BYTES)
    return ImageFile(
        _column(found["column"]), (height, width, channels), size, _flag(found["missing"])
    )


def _plain_array(value: object) -> PlainArray:
    found = record(value, "feature", "kind", "column", "shape", "divisor", "single")
    sizes, divisor = found["shape"], found["divisor"]
    if not isinstance(sizes, (list, tuple)) or not 1 <= len(sizes) <= MOST_DIMENSIONS:
        raise wrong("shape", sizes, f"a list of 1 to {MOST_DIMENSIONS} numbers")
    shape = tuple(_whole(size, "shape", MOST_PLAIN) for size in sizes)
    single = _flag(found["single"], "single")
    if prod(shape) > (1 if single else MOST_PLAIN):
        raise wrong("shape", sizes, f"at most {1 if single else MOST_PLAIN} elements")
    if (
        not isinstance(divisor, (int, float))
        or isinstance(divisor, bool)
        or not 0 < divisor <= LARGEST_DIVISOR
    ):
        raise wrong("divisor", divisor, f"a number above 0, at most {LARGEST_DIVISOR:g}")
    return PlainArray(_column(found["column"]), shape, float(divisor), single)


def _scales(value: object, most: int) -> tuple[Scale, ...]:
    if not isinstance(value, (list, tuple)) or not 1 <= len(value) <= most:
        raise wrong("scales", value, f"a list of 1 to {most} scales")
    return tuple(map(_scale, value))


def _left_out(value: object) -> LeftOut:
    found = record(value, "feature", "kind", "column", "reason")
    return LeftOut(_column(found["column"]), _text(found["reason"], "reason"))


_READERS: Mapping[str, Callable[[object], Feature]] = {
    Number.kind: _number,
    Category.kind: _category,
    Moment.kind: _moment,
    Text.kind: _free_text,
    Vector.kind: _vector,
    LongVector.kind: _array(LongVector),
    Series.kind: _array(Series),
    Image.kind: _image,
    PlainArray.kind: _plain_array,
    LeftOut.kind: _left_out,
}


def _scale(value: object) -> Scale:
    found = record(value, "scale", "center", "width", "edges")
    center, width, edges = found["center"], found["width"], found["edges"]
    if (
        not finite(center)
        or not finite(width)
        or abs(center) > LARGEST
        or not 1 / LARGEST <= width <= LARGEST
    ):
        raise wrong("scale", value, f"a center and a width above 0, none beyond {LARGEST:g}")
    if (
        not isinstance(edges, (list, tuple))
        or len(edges) > MOST_EDGES
        or not all(map(finite, edges))
    ):
        raise wrong("edges", edges, f"at most {MOST_EDGES} numbers, none beyond {LARGEST:g}")
    if any(low >= high for low, high in zip(edges, edges[1:])):
        raise wrong("edges", edges, "numbers of which each is greater than the one before")
    return Scale(float(center), float(width), tuple(map(float, edges)))


def finite(value: object) -> bool:
    """Whether it is a number that a constant may be."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


def _column(value: object) -> str:
    name = _text(value, "column")
    try:
        check_name(name)
    except InvalidName as error:
        raise wrong("column", value, "the name of a column") from error
    return name


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise wrong(what, value, "a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise wrong(what, ascii(value), "a text of Unicode characters") from error
    return value


def _whole(value: object, what: str, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise wrong(what, value, f"a whole number from 1 to {most}")
    return value


def _of(value: object, what: str, choices: tuple[int, ...]) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value not in choices:
        raise wrong(what, value, f"one of {', '.join(map(str, choices))}")
    return value


def _flag(value: object, what: str = "missing") -> bool:
    if not isinstance(value, bool):
        raise wrong(what, value, "true or false")
    return value


def _choice(value: object, what: str, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise wrong(what, value, f"one of {', '.join(choices)}")
    return value


def record(value: object, what: str, *names: str) -> dict[str, Any]:
    """An object that has these names, and no others."""
    if not isinstance(value, dict) or set(value) != set(names):
        raise wrong(what, value, f"an object with {', '.join(names)}")
    return value


def wrong(what: str, value: object, expected: str) -> DataCorrupted:
    """The error of a recipe of which something is not as expected."""
    return DataCorrupted(
        f"the recipe of the model is damaged: {what} is {value!r:.100}; expected {expected}",
        hint="Train the model again.",
    )
