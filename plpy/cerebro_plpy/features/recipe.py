"""A recipe: what was learned of raw columns from training rows, as data of a closed grammar.

It is kept as JSON, which whoever owns a model could have changed. So it is checked as a whole each time that it is
read; what is made of it afterwards relies on nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, Union

from cerebro_plpy.configs.templates import encoders
from cerebro_plpy.configs.templates.template import FARTHEST, Table, Wide, wide_name
from cerebro_plpy.features.grammar import LARGEST as LARGEST
from cerebro_plpy.features.grammar import choice as _choice
from cerebro_plpy.features.grammar import column as _column
from cerebro_plpy.features.grammar import finite as _finite
from cerebro_plpy.features.grammar import flag as _flag
from cerebro_plpy.features.grammar import record as _record
from cerebro_plpy.features.grammar import text as _text
from cerebro_plpy.features.grammar import whole as _whole
from cerebro_plpy.features.grammar import wrong as _wrong
from cerebro_plpy.features.words import MOST_WORDS

VERSION = 1
MOST_FEATURES = 1600
"""As many columns as a table can have."""
MOST_CATEGORIES = 10_000
MOST_BUCKETS = 1 << 18
MOST_DIMENSIONS, MOST_PLAIN, LARGEST_DIVISOR = 6, 1 << 24, 1e30
"""Of arrays that a network takes as they are."""
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
class PlainArray:
    """A column of arrays of numbers that the network takes as they are, of this shape, but for what divides them all.

    Where it is `single`, the column has a number, which is an array of one.
    """

    kind: ClassVar[str] = "array"
    column: str
    shape: tuple[int, ...]
    divisor: float
    single: bool

    @property
    def wide(self) -> Wide:
        """The network's input."""
        return Wide(self.kind, self.shape)


@dataclass(frozen=True)
class LeftOut:
    """A column that is no input, and why."""

    kind: ClassVar[str] = "left out"
    column: str
    reason: str


WideFeature = Union[Text, PlainArray]
WIDE = (Text, PlainArray)
"""Those that are an input of their own."""
Input = Union[Number, Category, Moment, WideFeature]
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
        scaled = [each for each in self.inputs if isinstance(each, (Number, Moment))]
        parts = [(s.column, part) for s in scaled for part in (s.parts if isinstance(s, Moment) else ("value",))]
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
            **{wide_name(place): [each.column] * each.wide.shape[0] for place, each in enumerate(self.wide, 1)},
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


def _plain_array(value: object) -> PlainArray:
    found = _record(value, "feature", "kind", "column", "shape", "divisor", "single")
    sizes, divisor = found["shape"], found["divisor"]
    if not isinstance(sizes, (list, tuple)) or not 1 <= len(sizes) <= MOST_DIMENSIONS:
        raise _wrong("shape", sizes, f"a list of 1 to {MOST_DIMENSIONS} numbers")
    shape = tuple(_whole(size, "shape", MOST_PLAIN) for size in sizes)
    single = _flag(found["single"], "single")
    if math.prod(shape) > (1 if single else MOST_PLAIN):
        raise _wrong("shape", sizes, f"at most {1 if single else MOST_PLAIN} elements")
    if not isinstance(divisor, (int, float)) or isinstance(divisor, bool) or not 0 < divisor <= LARGEST_DIVISOR:
        raise _wrong("divisor", divisor, f"a number above 0, at most {LARGEST_DIVISOR:g}")
    return PlainArray(_column(found["column"]), shape, float(divisor), single)


def _left_out(value: object) -> LeftOut:
    found = _record(value, "feature", "kind", "column", "reason")
    return LeftOut(_column(found["column"]), _text(found["reason"], "reason"))


_READERS: Mapping[str, Callable[[object], Feature]] = {
    Number.kind: _number,
    Category.kind: _category,
    Moment.kind: _moment,
    Text.kind: _free_text,
    PlainArray.kind: _plain_array,
    LeftOut.kind: _left_out,
}


def _scale(value: object) -> Scale:
    found = _record(value, "scale", "center", "width")
    center, width = found["center"], found["width"]
    if not _finite(center) or not _finite(width) or abs(center) > LARGEST or not 1 / LARGEST <= width <= LARGEST:
        raise _wrong("scale", value, f"a center and a width above 0, none beyond {LARGEST:g}")
    return Scale(float(center), float(width))
