"""A recipe: what was learned of raw columns from training rows, as data of a closed grammar.

It is kept as JSON, which whoever owns a model could have changed. So it is checked as a whole each time that it is
read; what is made of it afterwards relies on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, Union

from cerebro_plpy.configs.templates import encoders
from cerebro_plpy.configs.templates.template import Table, Wide, wide_name
from cerebro_plpy.database.names import check_name
from cerebro_plpy.errors import DataCorrupted, InvalidName
from cerebro_plpy.features.scale import LARGEST, Scale

VERSION = 1
MOST_FEATURES = 1600
"""As many columns as a table can have."""
MOST_CATEGORIES = 10_000
MOST_WORDS, MOST_BUCKETS = 1024, 1 << 18
MOST_EDGES = 65
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
class LeftOut:
    """A column that is no input, and why."""

    kind: ClassVar[str] = "left out"
    column: str
    reason: str


WideFeature = Union[Text]
WIDE = (Text,)
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
        scaled = self._scaled
        parts = [(s.column, part) for s in scaled for part in (s.parts if isinstance(s, Moment) else ("value",))]
        return (*parts, *((each.column, MISSING) for each in scaled if each.missing))

    @property
    def _scaled(self) -> tuple[Number | Moment, ...]:
        return tuple(each for each in self.inputs if isinstance(each, (Number, Moment)))

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
        pieces = tuple(scale.pieces for each in self._scaled for scale in _scales(each))
        return Table(len(self.numbers) - missing, missing, self.cardinalities, wide, pieces)

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


def _scales(feature: Number | Moment) -> tuple[Scale, ...]:
    return (feature.scale,) if isinstance(feature, Number) else tuple(feature.parts.values())


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


def _left_out(value: object) -> LeftOut:
    found = _record(value, "feature", "kind", "column", "reason")
    return LeftOut(_column(found["column"]), _text(found["reason"], "reason"))


_READERS: Mapping[str, Callable[[object], Feature]] = {
    Number.kind: _number,
    Category.kind: _category,
    Moment.kind: _moment,
    Text.kind: _free_text,
    LeftOut.kind: _left_out,
}


def _scale(value: object) -> Scale:
    found = _record(value, "scale", "center", "width", "edges")
    center, width, edges = found["center"], found["width"], found["edges"]
    if not _finite(center) or not _finite(width) or abs(center) > LARGEST or not 1 / LARGEST <= width <= LARGEST:
        raise _wrong("scale", value, f"a center and a width above 0, none beyond {LARGEST:g}")
    if not isinstance(edges, (list, tuple)) or len(edges) > MOST_EDGES or not all(map(_finite, edges)):
        raise _wrong("edges", edges, f"at most {MOST_EDGES} numbers, none beyond {LARGEST:g}")
    if any(low >= high for low, high in zip(edges, edges[1:])):
        raise _wrong("edges", edges, "numbers of which each is greater than the one before")
    return Scale(float(center), float(width), tuple(map(float, edges)))


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
