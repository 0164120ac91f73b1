"""What becomes of a raw column: the kinds of features, as records with what was learned of
values.
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar, Union

from cerebro_plpy.configs.templates.layers.model_io import (
    FARTHEST,
    IMAGE,
    LONG_VECTOR,
    SERIES,
    TEXT,
    Wide,
)
from cerebro_plpy.preprocessing.recipe.canonical_text import MONEY
from cerebro_plpy.records import dataclass

MOST_CATEGORIES = 10_000
MOST_BUCKETS = 1 << 16
LARGEST = 1e300
"""No constant is larger: then nothing that is computed of it is infinite."""
MOST_EDGES = 65
NEAREST = 2.0**-20
"""How near two edges may be, in widths: a float32 has some further digits."""
NUMBERS = ("integer", "real", "numeric", MONEY)
"""Families of numbers: those that a cast to double precision takes as they are, with a NaN, and of
any size.
"""
JSON = "json"
"""The family of values of JSON, of which those that are numbers are one."""
MOMENTS = {
    "date": ("epoch", "year", "month", "day", "dow"),
    "timestamp": ("epoch", "year", "month", "day", "dow", "hour"),
    "timestamptz": ("epoch", "year", "month", "day", "dow", "hour"),
    "time": ("epoch",),
    "interval": ("epoch",),
}
"""Families of points and spans of time, with the parts that are taken of each."""
ARRAYS = {
    "integer[]": "integer",
    "real[]": "real",
    "numeric[]": "numeric",
    "cast to real[]": "real",
}
"""Families of arrays of numbers, with the family of an element; the last are types that have a cast
to real[].
"""
MOST_NUMBERS = 64
"""Elements of a vector that are numbers of their own."""
MOST_DIMENSIONS, MOST_PLAIN, LARGEST_DIVISOR = 6, 1 << 24, 1e30
"""Of arrays that a network takes as they are."""
MOST_ELEMENTS = 1 << 16
"""Of an array that is an input of its own."""
ABSENT = "absent"
"""A number that is 1 where such an array has no element that is a number, or there is no file; and
else 0.
"""
BYTES = "bytea"
"""The family of files of images."""
SIDES = (8, 16, 24, 32, 48, 64)
"""Pixels that a thumbnail may have in height and width."""
CHANNELS = (1, 3)
"""Of a thumbnail: grey, or colours."""
MOST_BYTES = 1 << 30
"""Of a file."""


@dataclass(frozen=True)
class Scale:
    """How a number becomes one near 0, before it loses digits: (x - center) / width, at most
    FARTHEST from 0.

    What lies far out is left to the network, which has all digits that a float32 has. Between the
    `edges` of the column about as many training rows lie each.
    """

    center: float
    width: float
    edges: tuple[float, ...] = ()

    @property
    def pieces(self) -> tuple[float, ...]:
        """The edges as the network gets them, as far as it tells them apart.

        >>> Scale(10.0, 2.0, (8.0, 10.0, 10.0 + 1e-9, 1e9)).pieces
        (-1.0, 0.0, 1000000.0)
        """
        found: list[float] = []
        for edge in map(self.apply, self.edges):
            if not found or edge - found[-1] > NEAREST * max(1.0, abs(edge)):
                found.append(edge)
        return tuple(found)

    @property
    def bounds(self) -> tuple[float, float]:
        """Beyond them nothing changes any more, so that numbers of any size can be computed
        with.
        """
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
    """A column of which only equality counts: value number i has code i + 1; 0 is NULL, and any
    other value.

    Texts are those that values of its `family` have under the settings of all recipes.
    """

    kind: ClassVar[str] = "category"
    column: str
    values: tuple[str, ...]
    family: str = "text"


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
    """A column of short arrays of one dimension: each element is a number of its own, with the
    scale of its place.

    Places are counted from 1, whatever the lower bound of an array is. What stands beyond them is
    not taken.
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
    """A column of free text: its first `words`, each as a number from 1 to `buckets` that a hash
    gives it; then zeros.

    Of what is written there only is learned beforehand how rare words are: `rarity` has a byte for
    each number in base64, or none where it is not to be told.
    """

    kind: ClassVar[str] = TEXT
    column: str
    words: int
    buckets: int
    rarity: str = ""

    @cached_property
    def rarities(self) -> bytes:
        """Of each number, in steps of which RARITIES make a word half as frequent."""
        return b64decode(self.rarity)

    @property
    def wide(self) -> Wide:
        """The network's input."""
        return Wide(self.kind, (self.words,), self.buckets + 1, self.rarities)


@dataclass(frozen=True)
class Array:
    """A column of arrays that is an input of its own: of this shape, cut or filled with zeros in
    each dimension.

    There is a scale for all elements, or one for each channel, which is the last dimension. Where
    arrays are `missing` a number says so.
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
    """Arrays of any dimensions, whose elements have nothing to do with each other, in the order in
    which they lie.
    """

    kind: ClassVar[str] = LONG_VECTOR
    dimensions: ClassVar[int] = 1


@dataclass(frozen=True)
class Series(Array):
    """Arrays whose elements follow each other: of a number for each step, or of several
    channels.
    """

    kind: ClassVar[str] = SERIES
    dimensions: ClassVar[int] = 2
    by_channel: ClassVar[bool] = True


@dataclass(frozen=True)
class Image(Array):
    """Arrays of height, width and channels."""

    kind: ClassVar[str] = IMAGE
    dimensions: ClassVar[int] = 3


@dataclass(frozen=True)
class ImageFile:
    """A column of PNG or JPEG files, of which a trainer makes thumbnails of this shape: height,
    width, channels.

    Nearly all training rows have files of at most so many `bytes`. Where one is `missing` a number
    says so.
    """

    kind: ClassVar[str] = IMAGE
    column: str
    shape: tuple[int, int, int]
    bytes: int
    missing: bool

    @property
    def wide(self) -> Wide:
        """The network's input."""
        return Wide(self.kind, self.shape)


@dataclass(frozen=True)
class PlainArray:
    """A column of arrays of numbers that the network takes as they are, of this shape, but for what
    divides them all.

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


WideFeature = Union[Text, Array, ImageFile, PlainArray]
WIDE = (Text, Array, ImageFile, PlainArray)
"""Those that are an input of their own."""
Marked = Union[Array, ImageFile]
MARKED = (Array, ImageFile)
"""Those of them of which a number may say that they are missing."""
Scaled = Union[Number, Moment, Vector]
SCALED = (Number, Moment, Vector)
"""Inputs that are numbers."""
Input = Union[Scaled, Category, WideFeature]
Feature = Union[Input, LeftOut]
