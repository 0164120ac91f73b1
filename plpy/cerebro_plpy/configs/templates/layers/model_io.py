"""What a model is made for, whatever template it is of: the inputs that a table comes to, and a
head for its target.

Predictions need no more of templates than this.
"""

from __future__ import annotations

import math
from typing import Union

from cerebro_plpy.errors import InvalidParameter
from cerebro_plpy.records import dataclass

TEXT, LONG_VECTOR, SERIES, IMAGE = "text", "long vector", "series", "image"
"""Kinds of columns that are inputs of their own."""
FARTHEST = 1e6
"""Centred and scaled numbers beyond it, and infinite ones, count as this; its square is far from
float32's end.
"""
LARGEST_CODE = 1 << 24
"""Inputs are packed as float32, which tells whole numbers apart up to here."""
SCALES = 2.0**-60, 2.0**60
"""Deviations of float targets whose squares float32 holds."""
RARITIES = 8
"""Steps of rarity in which a word becomes half as frequent."""


@dataclass(frozen=True)
class Wide:
    """A column that is an input of its own: what it is of, and the shape that it has in each row.

    One of whole numbers has `levels` of them, as a category has, of which 0 stands for nothing;
    others have none. How rare they are may be known: a number of each but 0, in steps of which
    RARITIES make one half as frequent.
    """

    kind: str
    shape: tuple[int, ...]
    levels: int = 0
    rarities: bytes = b""

    def __post_init__(self) -> None:
        if (
            not self.shape
            or min(self.shape) < 1
            or not (self.levels == 0 or 2 <= self.levels <= LARGEST_CODE)
        ):
            raise InvalidParameter(
                f"an input of its own must have elements, and no or 2 to {LARGEST_CODE} levels; "
                f"received the shape {list(self.shape)} and {self.levels} levels"
            )
        if self.rarities and len(self.rarities) != self.levels - 1:
            raise InvalidParameter(
                f"an input of {self.levels} levels must have the rarity of each but 0; received "
                f"{len(self.rarities)}"
            )

    @property
    def dtype(self) -> str:
        """The type of the network's input."""
        return "int32" if self.levels else "float32"

    @property
    def elements(self) -> int:
        """How many numbers a row has of it."""
        return math.prod(self.shape)


def wide_name(place: int) -> str:
    """What an input of its own is called, where it is packed and in the network; the first has
    place 1.
    """
    return f"wide_{place}"


@dataclass(frozen=True)
class Table:
    """What the recipe of a table gives a model: the columns of its inputs.

    `numbers` are centred and scaled in double precision, and not clipped: the graph does that.
    Behind them, in the same input, come `indicators`: columns that are missing or not, and
    categories that are columns of their own. `cardinalities` are those of the categories that come
    as numbers, in an input of their own; the first number of each, 0, stands for missing and unseen
    ones. `wide` columns come in an input of their own each, behind these. `pieces` are of each
    number the ends of ranges in which about as many training rows lie, as far as they are known.
    """

    numbers: int = 0
    indicators: int = 0
    cardinalities: tuple[int, ...] = ()
    wide: tuple[Wide, ...] = ()
    pieces: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if min(self.numbers, self.indicators) < 0 or not (
            self.columns or self.cardinalities or self.wide
        ):
            raise InvalidParameter(
                f"a model needs a column; received {self.numbers} numbers, {self.indicators} "
                f"indicators and {len(self.cardinalities)} categories"
            )
        if not all(2 <= count <= LARGEST_CODE for count in self.cardinalities):
            raise InvalidParameter(
                f"cardinalities of categories must be from 2 to {LARGEST_CODE}, received "
                f"{list(self.cardinalities)}"
            )

    @property
    def columns(self) -> int:
        """The width of the input of numbers and indicators."""
        return self.numbers + self.indicators

    @property
    def levels(self) -> int:
        """Numbers of all categories together."""
        return sum(self.cardinalities)

    @property
    def elements(self) -> int:
        """How many numbers a row has, of all inputs."""
        return self.columns + len(self.cardinalities) + sum(each.elements for each in self.wide)


@dataclass(frozen=True)
class Classes:
    """A head that gives the probability of each class: two classes have two units too, as one-hot
    targets have.

    `calibrated` where models are compared by what probabilities are, and not by which is the
    largest alone.
    """

    count: int
    calibrated: bool = False
    loss = "categorical_crossentropy"

    def __post_init__(self) -> None:
        if self.count < 2:
            raise InvalidParameter(f"classes must be at least 2, received {self.count}")

    @property
    def units(self) -> int:
        return self.count


@dataclass(frozen=True)
class Measure:
    """A float target: its mean and standard deviation, and the range that predictions are clamped
    to.
    """

    mean: float
    deviation: float
    low: float
    high: float

    def __post_init__(self) -> None:
        hint = "Train on the target divided by a constant. One that has one value needs no model."
        if not (
            self.low <= self.high
            and all(abs(n) <= SCALES[1] for n in (self.low, self.high, self.mean))
        ):
            raise InvalidParameter(
                f"a target's range must be one, and it and its mean within {SCALES[1]:g}; received "
                f"{self.low} to {self.high} around {self.mean}",
                hint=hint,
            )
        if not SCALES[0] <= self.deviation <= SCALES[1]:
            raise InvalidParameter(
                f"a target's standard deviation must be from {SCALES[0]:g} to {SCALES[1]:g}, "
                f"received {self.deviation}",
                hint=hint,
            )


@dataclass(frozen=True)
class Floats:
    """A head that gives float targets in their own units."""

    targets: tuple[Measure, ...]
    loss = "mean_squared_error"

    def __post_init__(self) -> None:
        if not self.targets:
            raise InvalidParameter("a model needs a target")

    @property
    def units(self) -> int:
        return len(self.targets)


Head = Union[Classes, Floats]
