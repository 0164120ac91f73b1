"""How raw numbers become those that a network takes: by constants, in the steps and the precision
of the database.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Json = Mapping[str, Any]
Array = NDArray[Any]
FARTHEST, LARGEST, COARSEST = 1e6, 1e300, 1e30
"""Widths from the center beyond which nothing changes; the largest constant; and the largest width
of whole numbers.
"""
REACHES = {"month": 12, "day": 31, "dow": 6, "hour": 23}
"""Parts of points of time that are whole numbers from 0 to these."""
PARTS = ("epoch", "year", "month", "day", "dow", "hour")
WHOLE = ("integer", "integer[]")
ABSENT, VALUE = "absent", "value"
SCALED = ("number", "moment", "vector")
ARRAYS = ("long vector", "series", "image")
"""Columns of arrays that are inputs of their own, with scales; of image files there are none."""


@dataclass(frozen=True)
class RawNumber:
    """A number of a column: the number itself, a part of a point of time, a place of an array; with
    its constants.
    """

    column: str
    part: str
    center: float
    width: float
    padding: float

    @property
    def constants(self) -> tuple[float, ...]:
        """Its bounds, center and width, and what is added and taken away, which leaves nothing too
        near to 0.
        """
        reach = FARTHEST * self.width
        low, high = max(-LARGEST, self.center - reach), min(LARGEST, self.center + reach)
        return (low, high, self.center, self.width, self.padding)


@dataclass(frozen=True)
class RawInput:
    """An input of a network: its numbers, and groups of them of which a further number says that
    all are missing.
    """

    name: str
    numbers: tuple[RawNumber, ...]
    missing: tuple[tuple[int, ...], ...] = ()

    @property
    def constants(self) -> NDArray[np.float64]:
        """Of shape (5, numbers)."""
        return np.array([each.constants for each in self.numbers], np.float64).T

    def scaled(self, raw: Array) -> Array:
        """What the network takes of raw numbers, of shape (rows, ...), in which NaN is missing."""
        values = raw.reshape(len(raw), -1)
        unknown = np.isnan(values)
        low, high, center, width, padding = self.constants
        bounded = np.minimum(np.maximum(np.where(unknown, 0.0, values), low), high)
        found = np.where(unknown, 0.0, (bounded - center + padding - padding) / width).astype(
            np.float32
        )
        marks = [
            unknown[:, places].all(axis=1, keepdims=True).astype(np.float32)
            for places in self.missing
        ]
        return np.concatenate([found, *marks], axis=1) if marks else found.reshape(raw.shape)


def missing(shared: Sequence[tuple[Json, Sequence[RawNumber]]]) -> Iterator[tuple[int, ...]]:
    begin = 0
    for feature, some in shared:
        if feature["kind"] in SCALED and feature["missing"]:
            yield tuple(range(begin, begin + len(some)))
        begin += len(some)


def numbers(feature: Json) -> Iterator[RawNumber]:
    """The numbers that a feature has in the input that columns share."""
    kind, column = feature["kind"], feature["column"]
    if kind in ARRAYS and feature["missing"]:
        yield RawNumber(column, ABSENT, 0.0, 1.0, 0.0)
    if kind == "number":
        yield _scaled(column, VALUE, feature["scale"], feature["family"] in WHOLE)
    if kind == "vector":
        for place, scale in enumerate(feature["scales"], 1):
            yield _scaled(column, str(place), scale, feature["family"] in WHOLE)
    if kind == "moment":
        for part in PARTS:
            if part in feature["parts"]:
                yield _part(column, part, feature["parts"][part])


def elements(feature: Json) -> Iterator[RawNumber]:
    """The elements of arrays of the shape of the input, one behind another; scales are those of
    channels.
    """
    scales, whole = feature["scales"], feature["family"] in WHOLE
    for place in range(math.prod(feature["shape"])):
        yield _scaled(feature["column"], str(place + 1), scales[place % len(scales)], whole)


def _scaled(column: str, part: str, scale: Json, whole: bool) -> RawNumber:
    center, width = float(scale["center"]), float(scale["width"])
    exact = whole and center % 1 == 0 and width <= COARSEST
    return RawNumber(column, part, center, width, 0.0 if exact else 4 * width)


def _part(column: str, part: str, scale: Json) -> RawNumber:
    found = _scaled(column, part, scale, part in REACHES)
    low, high, *_ = found.constants
    within = part in REACHES and low <= 0 and REACHES[part] <= high
    return found if within else RawNumber(column, part, found.center, found.width, 4 * found.width)
