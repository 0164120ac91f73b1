"""The scale of a number, which maps it to a number near 0, in Python and in SQL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from cerebro_plpy.configs.templates.layers.model_io import FARTHEST
from cerebro_plpy.nouns import count_nouns
from cerebro_plpy.preprocessing.values.checks import check_record, is_finite, wrong
from cerebro_plpy.preprocessing.values.column_values import LARGEST
from cerebro_plpy.preprocessing.values.expression import DOUBLE, Expression
from cerebro_plpy.records import dataclass

MOST_EDGES = 65
MIN_DISTANCE = 2.0**-20
"""Smallest distance of two edges in widths; a float32 has a few more digits."""
COARSEST = 1e30
"""Largest width for which the distance 1 of two whole numbers is not too near to 0 for real."""


@dataclass(frozen=True)
class Scale:
    """A linear scale: (x - center) / width, at most FARTHEST from 0.

    Larger values are left to the network, which has all digits of a float32. About as many training
    rows lie between each two of the `edges` of the column.
    """

    center: float
    width: float
    edges: tuple[float, ...] = ()

    @property
    def pieces(self) -> tuple[float, ...]:
        """The scaled edges that a network can distinguish.

        >>> Scale(10.0, 2.0, (8.0, 10.0, 10.0 + 1e-9, 1e9)).pieces
        (-1.0, 0.0, 1000000.0)
        """
        pieces: list[float] = []
        for edge in map(self.apply, self.edges):
            if not pieces or edge - pieces[-1] > MIN_DISTANCE * max(1.0, abs(edge)):
                pieces.append(edge)
        return tuple(pieces)

    @property
    def bounds(self) -> tuple[float, float]:
        """The values beyond which the scaled value stays the same."""
        reach = FARTHEST * self.width
        return max(-LARGEST, self.center - reach), min(LARGEST, self.center + reach)

    @property
    def is_coarse(self) -> bool:
        """True if whole numbers keep their distance to the center, in widths, as a real."""
        return self.center % 1 == 0 and self.width <= COARSEST

    def apply(self, value: float | None) -> float:
        """Return the scaled value; NULL and NaN become 0.

        >>> [Scale(10.0, 2.0).apply(value) for value in (None, 11.0, -math.inf)]
        [0.0, 0.5, -1000000.0]
        """
        if value is None or math.isnan(value):
            return 0.0
        low, high = self.bounds
        return (min(max(value, low), high) - self.center) / self.width

    @classmethod
    def from_json(cls, value: object) -> Scale:
        """Read a stored scale; raises DataCorrupted if the value is not one."""
        entry = check_record(value, "scale", "center", "width", "edges")
        center = entry["center"]
        width = entry["width"]
        if not is_finite(center) or not is_finite(width) or width < 1 / LARGEST:
            raise wrong("scale", value, f"a center and a width above 0, none beyond {LARGEST:g}")
        edges = entry["edges"]
        is_list = isinstance(edges, (list, tuple)) and len(edges) <= MOST_EDGES
        if not is_list or not all(map(is_finite, edges)):
            raise wrong("edges", edges, f"at most {MOST_EDGES} numbers, none beyond {LARGEST:g}")
        if any(low >= high for low, high in zip(edges, edges[1:])):
            raise wrong("edges", edges, "numbers of which each is greater than the one before")
        return cls(float(center), float(width), tuple(map(float, edges)))


UNKNOWN = Scale(0.0, 1.0)
"""Takes the place of a scale that must not be known; leaves a number as it is."""


class ScaleConstants(NamedTuple):
    """A scale as a trainer applies it.

    PostgreSQL refuses a quotient too near to 0, and its cast to real: `padding` is added to the
    difference and subtracted again, which leaves no such quotient.
    """

    scale: Scale
    padding: float

    @property
    def in_wire_order(self) -> list[float]:
        """Low bound, high bound, center, width, padding."""
        return [*self.scale.bounds, self.scale.center, self.scale.width, self.padding]


def scale_constants(scale: Scale, is_whole: bool) -> ScaleConstants:
    """Return the constants of a scale; whole numbers near the center need no padding."""
    if is_whole and scale.is_coarse:
        return ScaleConstants(scale, 0.0)
    return ScaleConstants(scale, 4 * scale.width)


def scaled(value: Expression, scale: Scale, is_whole: bool) -> Expression:
    """Return `Scale.apply` of a value as SQL; NULL becomes 0."""
    constants = scale_constants(scale, is_whole)
    low, high = scale.bounds
    bounded = f"least(greatest(coalesce({value.text}, %s::{DOUBLE}), %s::{DOUBLE}), %s::{DOUBLE})"
    values = (*value.values, scale.center, low, high, scale.center)
    if not constants.padding:
        return Expression(f"({bounded} - %s::{DOUBLE}) / %s::{DOUBLE}", (*values, scale.width))
    text = f"({bounded} - %s::{DOUBLE} + %s::{DOUBLE} - %s::{DOUBLE}) / %s::{DOUBLE}"
    return Expression(text, (*values, constants.padding, constants.padding, scale.width))


def scaled_within(value: Expression, scale: Scale) -> Expression:
    """Return `scaled` of whole numbers that all lie within the bounds of a scale."""
    text = f"coalesce(({value.text} - %s::{DOUBLE}) / %s::{DOUBLE}, '0'::{DOUBLE})"
    return Expression(text, (*value.values, scale.center, scale.width))


def read_scales(value: object, most: int) -> tuple[Scale, ...]:
    """Read a stored list of 1 to `most` scales."""
    if not isinstance(value, (list, tuple)) or not 1 <= len(value) <= most:
        raise wrong("scales", value, f"a list of 1 to {count_nouns(most, 'scale')}")
    return tuple(map(Scale.from_json, value))


def unknown_scales(scales: Sequence[Scale]) -> tuple[Scale, ...]:
    """Return as many unknown scales."""
    return (UNKNOWN,) * len(scales)
