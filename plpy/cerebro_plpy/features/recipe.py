"""A recipe: what was learned of raw columns from training rows, as data of a closed grammar.

It is kept as JSON, which whoever owns a model could have changed. So it is checked as a whole each time that it is
read; what is made of it afterwards relies on nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, ClassVar, NamedTuple, Union

from cerebro_plpy.configs.templates import encoders
from cerebro_plpy.configs.templates.template import FARTHEST, Table, Wide, wide_name
from cerebro_plpy.database.names import check_name
from cerebro_plpy.errors import DataCorrupted, InvalidName
from cerebro_plpy.features.words import MOST_WORDS

VERSION = 1
MOST_FEATURES = 1600
"""As many columns as a table can have."""
MOST_CATEGORIES = 10_000
MOST_BUCKETS = 1 << 18
LARGEST = 1e300
"""No constant is larger: then nothing that is computed of it is infinite."""
NUMBERS = ("integer", "real", "numeric")
"""Families of numbers: those that a cast to double precision takes as they are, with a NaN, and of any size."""
MOMENTS = {
    "date": ("epoch", "year", "month", "day", "dow"),
    "timestamp": ("epoch", "year", "month", "day", "dow", "hour"),
    "timestamptz": ("epoch", "year", "month", "day", "dow", "hour"),
    "time": ("epoch",),
    "interval": ("epoch",),
}
"""Families of points and spans of time, with the parts that are taken of each."""
ARRAYS = {"integer[]": "integer", "real[]": "real", "numeric[]": "numeric", "cast to real[]": "real"}
"""Families of arrays of numbers, with the family of an element; the last are types that have a cast to real[]."""
MOST_NUMBERS = 64
"""Elements of a vector that are numbers of their own."""
MOST_ELEMENTS = 1 << 16
"""Of an array that is an input of its own."""
ABSENT = "absent"
"""A number that is 1 where such an array has no element that is a number, and else 0."""

MISSING = "missing"
"""What is 1 where a column has no value; all of these come after all others."""


@dataclass(frozen=True)
class Scale:
    """How a number becomes one near 0, before it loses digits: (x - center) / width, at most FARTHEST from 0.

    What lies far out is left to the network, which has all digits that a float32 has.
    """

    center: float
    width: float

    @property
    def bounds(self) -> tuple[float, float]:
        """Beyond them nothing changes any more, so that numbers of any size can be computed with."""
        reach = FARTHEST * self.width
        return max(-LARGEST, self.center - reach), min(LARGEST, self.center + reach)

    def apply(self, value: float | None) -> float:
        """What becomes of a number; NULL and NaN are in the middle.

        >>> [Scale(10.0, 2.0).apply(value) for value in (None, 11.0, -math.inf)]
        [0.0, 0.5, -1000000.0]
        """
        if value is None or math.isnan(value):
            return 0.0
        low, high = self.bounds
        return (min(max(value, low), high) - self.center) / self.width


@dataclass(frozen=True)
class Number:
    """A column of numbers; `missing` where an input of its own says whether there is none."""

    kind: ClassVar[str] = "number"
    column: str
    family: str
    scale: Scale
    missing: bool


@dataclass(frozen=True)
class Category:
    """A column of which only equality counts: value number i has code i + 1; 0 is NULL, and any other value.

    Values that are points of time with a zone are `zoned`: their texts are those of UTC.
    """

    kind: ClassVar[str] = "category"
    column: str
    values: tuple[str, ...]
    zoned: bool = False


@dataclass(frozen=True)
class Moment:
    """A column of points or spans of time: a number of each of its parts."""

    kind: ClassVar[str] = "moment"
    column: str
    family: str
    parts: Mapping[str, Scale]
    missing: bool


@dataclass(frozen=True)
class Vector:
    """A column of short arrays of one dimension: each element is a number of its own, with the scale of its place.

    Places are counted from 1, whatever the lower bound of an array is. What stands beyond them is not taken.
    """

    kind: ClassVar[str] = "vector"
    column: str
    family: str
    scales: tuple[Scale, ...]
    missing: bool

    @property
    def places(self) -> range:
        """Those of the elements."""
        return range(1, len(self.scales) + 1)


@dataclass(frozen=True)
class Text:
    """A column of free text: its first `words`, each as a number from 1 to `buckets` that a hash gives it; then zeros.

    Nothing of what is written there is learned beforehand.
    """

    kind: ClassVar[str] = encoders.TEXT
    column: str
    words: int
    buckets: int

    @property
    def wide(self) -> Wide:
        """The network's input."""
        return Wide(self.kind, (self.words,), self.buckets + 1)


@dataclass(frozen=True)
class Array:
    """A column of arrays that is an input of its own: of this shape, cut or filled with zeros in each dimension.

    There is a scale for all elements, or one for each channel, which is the last dimension. Where arrays are `missing`
    a number says so.
    """

    column: str
    family: str
    shape: tuple[int, ...]
    scales: tuple[Scale, ...]
    missing: bool

    kind: ClassVar[str]
    dimensions: ClassVar[int]
    by_channel: ClassVar[bool] = False

    @property
    def wide(self) -> Wide:
        """The network's input."""
        return Wide(self.kind, self.shape)


@dataclass(frozen=True)
class LongVector(Array):
    """Arrays of any dimensions, whose elements have nothing to do with each other, in the order in which they lie."""

    kind: ClassVar[str] = encoders.LONG_VECTOR
    dimensions: ClassVar[int] = 1


@dataclass(frozen=True)
class Series(Array):
    """Arrays whose elements follow each other: of a number for each step, or of several channels."""

    kind: ClassVar[str] = encoders.SERIES
    dimensions: ClassVar[int] = 2
    by_channel: ClassVar[bool] = True


@dataclass(frozen=True)
class Image(Array):
    """Arrays of height, width and channels."""

    kind: ClassVar[str] = encoders.IMAGE
    dimensions: ClassVar[int] = 3


@dataclass(frozen=True)
class LeftOut:
    """A column that is no input, and why."""

    kind: ClassVar[str] = "left out"
    column: str
    reason: str


WideFeature = Union[Text, Array]
WIDE = (Text, Array)
"""Those that are an input of their own."""
Scaled = Union[Number, Moment, Vector]
SCALED = (Number, Moment, Vector)
"""Inputs that are numbers."""
Input = Union[Scaled, Category, WideFeature]
Feature = Union[Input, LeftOut]
NUMBERS_INPUT, CODES_INPUT = "numbers", "codes"
"""The names of the inputs that columns share."""


class Places(NamedTuple):
    """A column of the table, and its positions in those of a network's inputs that have something of it, by name."""

    column: str
    inputs: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Recipe:
    """The features of a table, in the order of its columns."""

    features: tuple[Feature, ...]

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Those that are inputs."""
        return tuple(each for each in self.features if not isinstance(each, LeftOut))

    @property
    def numbers(self) -> tuple[tuple[str, str], ...]:
        """The inputs that are numbers, in order: the column of each, and what of it."""
        scaled = [each for each in self.inputs if isinstance(each, SCALED)]
        parts = [(each.column, part) for each in self.inputs for part in _parts(each)]
        return (*parts, *((each.column, MISSING) for each in scaled if each.missing))

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """How many codes each category has, 0 included."""
        return tuple(len(each.values) + 1 for each in self.inputs if isinstance(each, Category))

    @property
    def wide(self) -> tuple[WideFeature, ...]:
        """The columns that are an input of their own, in order."""
        return tuple(each for each in self.inputs if isinstance(each, WIDE))

    @property
    def places(self) -> tuple[Places, ...]:
        """What of a network's inputs each column is, in the order of `inputs`."""
        columns = {
            NUMBERS_INPUT: [column for column, _ in self.numbers],
            CODES_INPUT: [each.column for each in self.inputs if isinstance(each, Category)],
            **{wide_name(place): [each.column] * each.wide.elements for place, each in enumerate(self.wide, 1)},
        }
        found: dict[str, dict[str, tuple[int, ...]]] = {each.column: {} for each in self.inputs}
        for name, of in columns.items():
            for place, column in enumerate(of):
                found[column][name] = (*found[column].get(name, ()), place)
        return tuple(Places(*each) for each in found.items())

    @property
    def table(self) -> Table:
        """What a template makes a network for; raises InvalidParameter where there is no input."""
        missing = sum(what == MISSING for _, what in self.numbers)
        wide = tuple(each.wide for each in self.wide)
        return Table(len(self.numbers) - missing, missing, self.cardinalities, wide)

    def to_json(self) -> dict[str, Any]:
        """As `from_json` takes it."""
        return {"version": VERSION, "features": [{"kind": each.kind, **asdict(each)} for each in self.features]}

    @classmethod
    def from_json(cls, value: object) -> Recipe:
        """The recipe that this is; raises DataCorrupted where it is none, whatever it is."""
        found = _record(value, "recipe", "version", "features")
        if found["version"] != VERSION:
            raise _wrong("version", found["version"], f"{VERSION}")
        features = found["features"]
        if not isinstance(features, list) or len(features) > MOST_FEATURES:
            raise _wrong("features", features, f"a list of at most {MOST_FEATURES}")
        read = tuple(_feature(each) for each in features)
        if len({each.column for each in read}) < len(read):
            raise _wrong("features", [each.column for each in read], "no column twice")
        return cls(read)


def _parts(feature: Input) -> Iterable[str]:
    """What of a column is a number of its own."""
    if isinstance(feature, Vector):
        return map(str, feature.places)
    if isinstance(feature, Array):
        return (ABSENT,) * feature.missing
    if isinstance(feature, (Category, Text)):
        return ()
    return feature.parts if isinstance(feature, Moment) else ("value",)


def _feature(value: object) -> Feature:
    kind = value.get("kind") if isinstance(value, dict) else None
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        raise _wrong("feature", value, f"an object whose kind is one of {', '.join(_READERS)}")
    return reader(value)


def _number(value: object) -> Number:
    found = _record(value, "feature", "kind", "column", "family", "scale", "missing")
    family = _choice(found["family"], "family", NUMBERS)
    return Number(_column(found["column"]), family, _scale(found["scale"]), _flag(found["missing"]))


def _category(value: object) -> Category:
    found = _record(value, "feature", "kind", "column", "values", "zoned")
    values = found["values"]
    if not isinstance(values, (list, tuple)) or not 1 <= len(values) <= MOST_CATEGORIES:
        raise _wrong("values", values, f"a list of 1 to {MOST_CATEGORIES} texts")
    texts = tuple(_text(each, "a category") for each in values)
    if len(set(texts)) < len(texts):
        raise _wrong("values", values, "no text twice")
    return Category(_column(found["column"]), texts, _flag(found["zoned"], "zoned"))


def _moment(value: object) -> Moment:
    found = _record(value, "feature", "kind", "column", "family", "parts", "missing")
    family = _choice(found["family"], "family", tuple(MOMENTS))
    parts = found["parts"]
    if not isinstance(parts, dict) or not parts or not set(parts) <= set(MOMENTS[family]):
        raise _wrong("parts", parts, f"an object with some of {', '.join(MOMENTS[family])}")
    # JSON keeps no order.
    scales = {part: _scale(parts[part]) for part in MOMENTS[family] if part in parts}
    return Moment(_column(found["column"]), family, scales, _flag(found["missing"]))


def _free_text(value: object) -> Text:
    found = _record(value, "feature", "kind", "column", "words", "buckets")
    words = _whole(found["words"], "words", MOST_WORDS)
    return Text(_column(found["column"]), words, _whole(found["buckets"], "buckets", MOST_BUCKETS))


def _vector(value: object) -> Vector:
    found = _record(value, "feature", "kind", "column", "family", "scales", "missing")
    family = _choice(found["family"], "family", tuple(ARRAYS))
    return Vector(_column(found["column"]), family, _scales(found["scales"], MOST_NUMBERS), _flag(found["missing"]))


def _array(of: type[Array]) -> Callable[[object], Array]:
    def read(value: object) -> Array:
        found = _record(value, "feature", "kind", "column", "family", "shape", "scales", "missing")
        family, shape = _choice(found["family"], "family", tuple(ARRAYS)), found["shape"]
        if not isinstance(shape, (list, tuple)) or len(shape) != of.dimensions:
            raise _wrong("shape", shape, f"a list of {of.dimensions} sizes")
        sizes = tuple(_whole(size, "a size", MOST_ELEMENTS) for size in shape)
        if prod(sizes) > MOST_ELEMENTS:
            raise _wrong("shape", shape, f"one of at most {MOST_ELEMENTS} elements")
        scales = _scales(found["scales"], MOST_ELEMENTS)
        if len(scales) != (sizes[-1] if of.by_channel else 1):
            raise _wrong("scales", scales, "one for each channel" if of.by_channel else "one")
        return of(_column(found["column"]), family, sizes, scales, _flag(found["missing"]))

    return read


def _scales(value: object, most: int) -> tuple[Scale, ...]:
    if not isinstance(value, (list, tuple)) or not 1 <= len(value) <= most:
        raise _wrong("scales", value, f"a list of 1 to {most} scales")
    return tuple(map(_scale, value))


def _left_out(value: object) -> LeftOut:
    found = _record(value, "feature", "kind", "column", "reason")
    return LeftOut(_column(found["column"]), _text(found["reason"], "reason"))


_READERS: Mapping[str, Callable[[object], Feature]] = {
    Number.kind: _number,
    Category.kind: _category,
    Moment.kind: _moment,
    Text.kind: _free_text,
    Vector.kind: _vector,
    LongVector.kind: _array(LongVector),
    Series.kind: _array(Series),
    Image.kind: _array(Image),
    LeftOut.kind: _left_out,
}


def _scale(value: object) -> Scale:
    found = _record(value, "scale", "center", "width")
    center, width = found["center"], found["width"]
    if not _finite(center) or not _finite(width) or abs(center) > LARGEST or not 1 / LARGEST <= width <= LARGEST:
        raise _wrong("scale", value, f"a center and a width above 0, none beyond {LARGEST:g}")
    return Scale(float(center), float(width))


def _finite(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


def _column(value: object) -> str:
    name = _text(value, "column")
    try:
        check_name(name)
    except InvalidName as error:
        raise _wrong("column", value, "the name of a column") from error
    return name


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise _wrong(what, value, "a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise _wrong(what, ascii(value), "a text of Unicode characters") from error
    return value


def _whole(value: object, what: str, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise _wrong(what, value, f"a whole number from 1 to {most}")
    return value


def _flag(value: object, what: str = "missing") -> bool:
    if not isinstance(value, bool):
        raise _wrong(what, value, "true or false")
    return value


def _choice(value: object, what: str, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise _wrong(what, value, f"one of {', '.join(choices)}")
    return value


def _record(value: object, what: str, *names: str) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(names):
        raise _wrong(what, value, f"an object with {', '.join(names)}")
    return value


def _wrong(what: str, value: object, expected: str) -> DataCorrupted:
    return DataCorrupted(
        f"the recipe of the model is damaged: {what} is {value!r:.100}; expected {expected}",
        hint="Train the model again.",
    )
