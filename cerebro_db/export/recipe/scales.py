"""Scale raw numbers to the inputs of a network, in the steps and the precision of the database."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Json = Mapping[str, Any]
Array = NDArray[Any]
MAX_WIDTHS = 1e6
"""Distance from the center, in widths, beyond which numbers are clipped."""
MAX_CONSTANT = 1e300
"""Largest absolute value of a constant."""
MAX_INTEGER_WIDTH = 1e30
"""Largest width at which whole numbers need no padding."""
INTEGER_PARTS = {"month": 12, "day": 31, "dow": 6, "hour": 23}
"""Parts of timestamps that are whole numbers from 0 to these."""
PARTS = ("epoch", "year", "month", "day", "dow", "hour")
INTEGER_FAMILIES = ("integer", "integer[]")
ABSENT = "absent"
VALUE = "value"
SCALED = ("number", "moment", "vector")
ARRAYS = ("long vector", "series", "image")
"""Kinds of array columns that are separate inputs, with scales; image files have none."""


@dataclass(frozen=True)
class RawNumber:
    """A number that a column contributes to an input, with the constants that scale it."""

    column: str
    part: str  # "value", "absent", a part of a timestamp, or the position in an array
    center: float
    width: float
    padding: float  # added and subtracted, so that no difference is too near to 0

    @property
    def constants(self) -> tuple[float, ...]:
        """The lower and the upper bound, the center, the width and the padding."""
        reach = MAX_WIDTHS * self.width
        low = max(-MAX_CONSTANT, self.center - reach)
        high = min(MAX_CONSTANT, self.center + reach)
        return (low, high, self.center, self.width, self.padding)


@dataclass(frozen=True)
class RawInput:
    """An input of a network that is computed from raw numbers.

    Each group of positions in `missing_groups` adds a number: 1 if the whole group is missing.
    """

    name: str
    numbers: tuple[RawNumber, ...]
    missing_groups: tuple[tuple[int, ...], ...] = ()

    @property
    def constants(self) -> NDArray[np.float64]:
        """The constants of all numbers, shape (5, numbers)."""
        return np.array([number.constants for number in self.numbers], np.float64).T

    def scale(self, raw: Array) -> Array:
        """Return the input for raw numbers of shape (rows, ...), in which NaN is missing."""
        values = raw.reshape(len(raw), -1)
        unknown = np.isnan(values)
        low, high, center, width, padding = self.constants
        bounded = np.minimum(np.maximum(np.where(unknown, 0.0, values), low), high)
        scaled = (bounded - center + padding - padding) / width
        scaled = np.where(unknown, 0.0, scaled).astype(np.float32)
        if not self.missing_groups:
            return scaled.reshape(raw.shape)
        marks = [
            unknown[:, positions].all(axis=1, keepdims=True).astype(np.float32)
            for positions in self.missing_groups
        ]
        return np.concatenate([scaled, *marks], axis=1)


def find_missing_groups(
    columns: Sequence[tuple[Json, Sequence[RawNumber]]],
) -> Iterator[tuple[int, ...]]:
    """Yield the positions of the numbers of each feature that may be missing."""
    begin = 0
    for feature, numbers in columns:
        end = begin + len(numbers)
        if feature["kind"] in SCALED and feature["missing"]:
            yield tuple(range(begin, end))
        begin = end


def list_numbers(feature: Json) -> Iterator[RawNumber]:
    """Yield the numbers of a feature in the input that columns share."""
    kind = feature["kind"]
    column = feature["column"]
    if kind in ARRAYS and feature["missing"]:
        yield RawNumber(column, ABSENT, 0.0, 1.0, 0.0)
    if kind == "number":
        yield _scale_number(column, VALUE, feature["scale"], feature["family"] in INTEGER_FAMILIES)
    if kind == "vector":
        is_integer = feature["family"] in INTEGER_FAMILIES
        for position, scale in enumerate(feature["scales"], 1):
            yield _scale_number(column, str(position), scale, is_integer)
    if kind == "moment":
        for part in PARTS:
            if part in feature["parts"]:
                yield _scale_part(column, part, feature["parts"][part])


def list_elements(feature: Json) -> Iterator[RawNumber]:
    """Yield the elements of arrays in the shape of the input; each channel has its own scale."""
    scales = feature["scales"]
    is_integer = feature["family"] in INTEGER_FAMILIES
    for index in range(math.prod(feature["shape"])):
        scale = scales[index % len(scales)]
        yield _scale_number(feature["column"], str(index + 1), scale, is_integer)


def _scale_number(column: str, part: str, scale: Json, is_integer: bool) -> RawNumber:
    center = float(scale["center"])
    width = float(scale["width"])
    is_exact = is_integer and center % 1 == 0 and width <= MAX_INTEGER_WIDTH
    return RawNumber(column, part, center, width, 0.0 if is_exact else 4 * width)


def _scale_part(column: str, part: str, scale: Json) -> RawNumber:
    number = _scale_number(column, part, scale, part in INTEGER_PARTS)
    low, high, *_ = number.constants
    if part in INTEGER_PARTS and low <= 0 and INTEGER_PARTS[part] <= high:
        return number
    return RawNumber(column, part, number.center, number.width, 4 * number.width)
