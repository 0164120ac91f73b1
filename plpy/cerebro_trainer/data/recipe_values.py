"""What was learned of columns, applied to raw values of blocks of rows, as they are packed or
predicted.

The same steps in the same order as the expressions that a backend makes of a recipe, and so the
same bits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data import arrays, raw_rows, timestamps
from cerebro_trainer.errors import RequestError
from cerebro_trainer.wire.fields import integer, integers, items, text, typed
from cerebro_trainer.wire.frames import Bytes

Array = npt.NDArray[Any]
CONSTANTS = 5
"""Of each number: its bounds, center and width, and what is added and taken away so that nothing is
too near to 0.
"""


class Kind(NamedTuple):
    """How a part of a payload is declared, and what it is an array of."""

    name: str
    element: arrays.ElementType


VALUES, MARKS = Kind("float64", arrays.FLOAT8), Kind("int64", arrays.INT8)


@dataclass(frozen=True)
class Codes:
    """The values of a category by their hashes: `first` is sorted, `second` and the codes lie
    beside it.
    """

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]

    @classmethod
    def of(cls, hashes: Sequence[int]) -> Codes:
        """From the first hashes of all values, and then the second ones, in the order of their
        codes.
        """
        first, second = np.array(hashes, np.int64).reshape(2, -1)
        order = first.argsort(kind="stable")
        return cls(first[order], second[order], order + 1)

    def find(self, marks: npt.NDArray[np.int64]) -> Array:
        """The codes of rows, of shape (rows, 2) by both hashes; 0 for any value that is not
        known.
        """
        place = np.minimum(self.first.searchsorted(marks[:, 0]), len(self.first) - 1)
        known = (self.first[place] == marks[:, 0]) & (self.second[place] == marks[:, 1])
        return np.where(known, self.codes[place], 0)


@dataclass(frozen=True)
class Wide:
    """A column that is an input of its own: how it is sent; of arrays the five constants of each
    channel, else none.
    """

    kind: str
    scales: npt.NDArray[np.float64]

    @classmethod
    def of(cls, told: object) -> Wide:
        """Read an object of "wide"."""
        if not isinstance(told, dict):
            raise RequestError(f'"wide" must be objects; received {told!r}'[:300])
        kind = text(told, "kind", choices=raw_rows.INPUTS)
        scales = _scales(told)
        if len(scales) and kind != VALUES.name:
            raise RequestError(f'"scales" are for {VALUES.name}; received kind {kind}')
        return cls(kind, scales)

    def values(self, entry: dict[str, Any], part: Bytes, rows: int) -> Array:
        """The values of rows, float32; of scaled arrays NaN is what is missing, and others may be
        infinite.
        """
        if not len(self.scales):
            return raw_rows.columns([entry], [part], rows)[0]
        values = arrays.decode(part, rows, VALUES.element)
        if values.ndim != 2 or values.shape[1] % len(self.scales):
            raise RequestError(f"the arrays have shape {values.shape[1:]}", sqlstate="42804")
        channels = values.reshape(rows, -1, len(self.scales))
        return scaled(channels, self.scales, np.isnan(channels)).reshape(values.shape)


def scaled(
    values: npt.NDArray[np.float64], scales: npt.NDArray[np.float64], unknown: Array
) -> Array:
    """Values by the constants of the last dimension, as float32; 0 where they are unknown."""
    low, high, center, width, padding = scales.T
    bounded = np.minimum(np.maximum(np.where(unknown, 0.0, values), low), high)
    found = (bounded - center + padding - padding) / width
    return np.where(unknown, 0.0, found).astype(np.float32)


def _scales(told: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    scales = typed(told, "scales", list)
    if not all(isinstance(row, list) and len(row) == CONSTANTS for row in scales):
        raise RequestError(f'"scales" must be lists of {CONSTANTS} numbers')
    return np.array(scales, np.float64).reshape(-1, CONSTANTS)


@dataclass(frozen=True)
class RecipeValues:
    """The constants of a recipe: of each number its five, numbers of which it is told if none is
    there, categories.

    `parts` are what becomes of each raw number, in the order of the scales. Columns that are inputs
    of their own are sent as `wide` says.
    """

    scales: npt.NDArray[np.float64]
    parts: tuple[tuple[str, ...], ...]
    missing: tuple[list[int], ...]
    categories: tuple[Codes, ...]
    wide: tuple[Wide, ...]

    @classmethod
    def from_header(cls, told: Mapping[str, Any]) -> RecipeValues:
        """Read the object `recipe` of a request."""
        numbers = _scales(told)
        parts = _parts(told, len(numbers))
        missing = tuple(
            integers({"missing": places}, "missing") for places in typed(told, "missing", list)
        )
        if not all(
            places and all(0 <= place < len(parts) for place in places) for places in missing
        ):
            raise RequestError(f'"missing" must be lists of places of {len(parts)} numbers')
        categories = typed(told, "categories", list)
        lists = [integers({"categories": hashes}, "categories") for hashes in categories]
        if not all(hashes and len(hashes) % 2 == 0 for hashes in lists):
            raise RequestError('"categories" must have two hashes of each value')
        wide = map(Wide.of, typed(told, "wide", list))
        return cls(numbers, parts, missing, tuple(map(Codes.of, lists)), tuple(wide))

    def inputs(self, header: Mapping[str, Any], payload: Bytes) -> list[Array]:
        """The inputs of a model of the values of rows: float32, of shape (rows, ...)."""
        rows, entries = integer(header, "rows", minimum=1), items(header, "arrays")
        kinds = [text(each, "kind") for each in entries]
        steps = (
            (VALUES, len(self.parts), self._scaled),
            (MARKS, 2 * len(self.categories), self._codes),
        )
        wanted = [step for step in steps if step[1]]
        expected = [*(kind.name for kind, _, _ in wanted), *(each.kind for each in self.wide)]
        if kinds != expected:
            raise RequestError(f'"arrays" must be {expected}; received {kinds!r}'[:300])
        parts = raw_rows.split(header, payload, len(expected))
        found = [
            step(_decoded(part, rows, kind.element, width))
            for part, (kind, width, step) in zip(parts, wanted, strict=False)
        ]
        rest = zip(self.wide, entries[len(wanted) :], parts[len(wanted) :], strict=True)
        return [*found, *(each.values(entry, part, rows) for each, entry, part in rest)]

    def _scaled(self, values: npt.NDArray[np.float64]) -> Array:
        unknown = np.isnan(values)
        numbers = timestamps.numbers(values, self.parts)
        missing = [
            unknown[:, places].all(axis=1, keepdims=True).astype(np.float32)
            for places in self.missing
        ]
        return np.concatenate([scaled(numbers, self.scales, np.isnan(numbers)), *missing], axis=1)

    def _codes(self, marks: npt.NDArray[np.int64]) -> Array:
        pairs = marks.reshape(len(marks), -1, 2)
        found = [codes.find(pairs[:, place]) for place, codes in enumerate(self.categories)]
        return np.stack(found, axis=1).astype(np.float32)


@lru_cache(64)
def read(told: str) -> RecipeValues:
    """The constants that a text of JSON has, which comes again with each block."""
    try:
        found = json.loads(told)
    except (ValueError, RecursionError) as error:
        raise RequestError('"recipe" must be JSON') from error
    if not isinstance(found, dict):
        raise RequestError('"recipe" must be an object')
    return RecipeValues.from_header(found)


def _parts(told: Mapping[str, Any], scales: int) -> tuple[tuple[str, ...], ...]:
    """What becomes of each raw number; of all together there are so many scales."""
    lists = typed(told, "parts", list)
    if not all(isinstance(names, list) and timestamps.known(names) for names in lists):
        raise RequestError(f'"parts" must be lists of {", ".join(timestamps.PARTS)}')
    if sum(map(len, lists)) != scales:
        raise RequestError(
            f'"parts" are {sum(map(len, lists))} numbers, but there are {scales} scales'
        )
    return tuple(map(tuple, lists))


def _decoded(part: Bytes, rows: int, element: arrays.ElementType, wanted: int) -> Array:
    values = arrays.decode(part, rows, element)
    if values.shape != (rows, wanted):
        raise RequestError(
            f"the values of a row have shape {values.shape[1:]}; expected {wanted}",
            sqlstate="42804",
        )
    return values
