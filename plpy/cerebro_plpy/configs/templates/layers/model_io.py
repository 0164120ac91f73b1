"""The inputs and the outputs of a template's model: the columns of a table, and a head.

Predictions need only this module of the templates.
"""

from __future__ import annotations

import math
from typing import Union

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.records import dataclass

TEXT = "text"
LONG_VECTOR = "long vector"
SERIES = "series"
IMAGE = "image"
"""Kinds of columns that are inputs of their own."""
FARTHEST = 1e6
"""Bound to which standardized numbers are clipped, so that float32 can hold their squares."""
LARGEST_CODE = 1 << 24
"""Inputs are packed as float32, which represents all whole numbers up to this one."""
SMALLEST_SCALE = 2.0**-60
LARGEST_SCALE = 2.0**60
"""Bounds of the deviation of a float target, so that float32 can hold squares."""
SKEW = 3.0
"""Least ratio of the ranges above and below the mean of a target that is skewed.

It is at least 4 of counts of visits and of prices of diamonds, and 2.6 of wages.
"""
IDENTITY = "identity"
LOG = "log"
"""Links of a float target: what a network predicts first, the target or its logarithm."""
RARITIES = 8
"""Number of rarity steps in which a word becomes half as frequent."""


@dataclass(frozen=True)
class Wide:
    """A column that is an input of its own."""

    kind: str
    shape: tuple[int, ...]  # of a row
    levels: int = 0  # number of word numbers, of which 0 stands for no word; 0 for other kinds
    rarities: bytes = b""  # of each level but 0, if known, in steps of 1/RARITIES

    def __post_init__(self) -> None:
        has_elements = bool(self.shape) and min(self.shape) >= 1
        if not has_elements or not (self.levels == 0 or 2 <= self.levels <= LARGEST_CODE):
            raise InvalidParameter(
                f"an input of its own must have elements, and no or 2 to {LARGEST_CODE} levels; "
                f"received the shape {list(self.shape)} and {count_nouns(self.levels, 'level')}"
            )
        if self.rarities and len(self.rarities) != self.levels - 1:
            raise InvalidParameter(
                f"an input of {count_nouns(self.levels, 'level')} must have the rarity of each but "
                f"0; received {len(self.rarities)}"
            )

    @property
    def dtype(self) -> str:
        """Type of the network's input."""
        if self.levels:
            return "int32"
        return "float32"

    @property
    def elements(self) -> int:
        """Number of elements in a row."""
        return math.prod(self.shape)


def wide_name(number: int) -> str:
    """Return the name of a wide input in the packed table and in the network, counted from 1."""
    return f"wide_{number}"


@dataclass(frozen=True)
class Table:
    """The inputs that the recipe of a table provides to a model.

    The first input has the numbers, standardized in double precision but not clipped, and then the
    indicators. The second input has the codes of categories; code 0 of each category stands for
    missing and unseen values. Each wide column is an input of its own.
    """

    numbers: int = 0
    indicators: int = 0  # of missing values, and one-hot columns of categories
    cardinalities: tuple[int, ...] = ()  # number of codes of each category
    wide: tuple[Wide, ...] = ()
    pieces: tuple[tuple[float, ...], ...] = ()  # of each number, ends of about equally full ranges
    missing: tuple[tuple[int, int], ...] = ()
    """Positions of numbers in the first input, each with that of the indicator which is 1 if its
    value is missing."""

    def __post_init__(self) -> None:
        has_columns = self.columns or self.cardinalities or self.wide
        if min(self.numbers, self.indicators) < 0 or not has_columns:
            raise InvalidParameter(
                f"a model needs a column; received {count_nouns(self.numbers, 'number')}, "
                f"{count_nouns(self.indicators, 'indicator')} and "
                f"{count_nouns(len(self.cardinalities), 'category')}"
            )
        if not all(2 <= count <= LARGEST_CODE for count in self.cardinalities):
            raise InvalidParameter(
                f"cardinalities of categories must be from 2 to {LARGEST_CODE}, received "
                f"{list(self.cardinalities)}"
            )

    @property
    def columns(self) -> int:
        """Width of the input with numbers and indicators."""
        return self.numbers + self.indicators

    @property
    def levels(self) -> int:
        """Number of codes of all categories."""
        return sum(self.cardinalities)

    @property
    def elements(self) -> int:
        """Number of elements in a row of all inputs."""
        return self.columns + len(self.cardinalities) + sum(wide.elements for wide in self.wide)


@dataclass(frozen=True)
class Classes:
    """A head with the probability of each class; two classes have two units, too."""

    count: int
    calibrated: bool = False  # models are ranked by probabilities, not only by the largest
    loss = "categorical_crossentropy"

    def __post_init__(self) -> None:
        if self.count < 2:
            raise InvalidParameter(f"classes must be at least 2, received {self.count}")

    @property
    def units(self) -> int:
        return self.count


@dataclass(frozen=True)
class Measure:
    """The distribution of a float target."""

    mean: float
    deviation: float
    low: float  # predictions are clamped to the range from low to high
    high: float

    def __post_init__(self) -> None:
        hint = "Train on the target divided by a constant. One that has one value needs no model."
        are_scales_valid = all(abs(n) <= LARGEST_SCALE for n in (self.low, self.high, self.mean))
        if not (self.low <= self.high and are_scales_valid):
            raise InvalidParameter(
                f"a target's range must be one, and it and its mean within {LARGEST_SCALE:g}; "
                f"received {self.low} to {self.high} around {self.mean}",
                hint=hint,
            )
        if not SMALLEST_SCALE <= self.deviation <= LARGEST_SCALE:
            raise InvalidParameter(
                f"a target's standard deviation must be from {SMALLEST_SCALE:g} to "
                f"{LARGEST_SCALE:g}, received {self.deviation}",
                hint=hint,
            )

    @property
    def is_skewed(self) -> bool:
        """True if the numbers reach much further above their mean than below it."""
        return self.has_logarithms and self.high - self.mean >= SKEW * (self.mean - self.low)

    @property
    def has_logarithms(self) -> bool:
        """True if the mean of the distances from the lowest number has a logarithm."""
        return self.low + SMALLEST_SCALE <= self.mean < self.high


@dataclass(frozen=True)
class Floats:
    """A head that predicts float targets in their own units."""

    targets: tuple[Measure, ...]
    link: str = IDENTITY
    loss = "mean_squared_error"

    def __post_init__(self) -> None:
        if not self.targets:
            raise InvalidParameter("a model needs a target")

    @property
    def units(self) -> int:
        return len(self.targets)

    @property
    def is_standardized(self) -> bool:
        """True if the targets have mean 0 and deviation 1, exactly."""
        return all(target.mean == 0 and target.deviation == 1 for target in self.targets)

    @property
    def is_skewed(self) -> bool:
        """True if the logarithms of the targets may be easier to learn than the targets."""
        return all(target.is_skewed for target in self.targets)


Head = Union[Classes, Floats]
