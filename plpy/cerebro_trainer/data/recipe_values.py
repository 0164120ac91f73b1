"""What was learned of columns, applied to the values of blocks of rows: where who sends the values must not read it.

The same steps in the same order as the expressions that a backend makes of a recipe, and so the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cerebro_trainer.data import arrays, raw_rows
from cerebro_trainer.errors import RequestError
from cerebro_trainer.wire.fields import integer, integers, items, text, typed
from cerebro_trainer.wire.frames import Bytes

Array = npt.NDArray[Any]
CONSTANTS = 5
"""Of each number: its bounds, center and width, and what is added and taken away so that nothing is too near to 0."""


class Kind(NamedTuple):
    """How a part of a payload is declared, and what it is an array of."""

    name: str
    element: arrays.ElementType


VALUES, MARKS = Kind("float64", arrays.FLOAT8), Kind("int64", arrays.INT8)


@dataclass(frozen=True)
class Codes:
    """The values of a category by their hashes: `first` is sorted, `second` and the codes lie beside it."""

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64]

    @classmethod
    def of(cls, hashes: Sequence[int]) -> Codes:
        """From the first hashes of all values, and then the second ones, in the order of their codes."""
        first, second = np.array(hashes, np.int64).reshape(2, -1)
        order = first.argsort(kind="stable")
        return cls(first[order], second[order], order + 1)

    def find(self, marks: npt.NDArray[np.int64]) -> Array:
        """The codes of rows, of shape (rows, 2) by both hashes; 0 for any value that is not known."""
        place = np.minimum(self.first.searchsorted(marks[:, 0]), len(self.first) - 1)
        known = (self.first[place] == marks[:, 0]) & (self.second[place] == marks[:, 1])
        return np.where(known, self.codes[place], 0)


@dataclass(frozen=True)
class RecipeValues:
    """The constants of a recipe: of each number its five, the numbers that say whether they are missing, categories.

    Columns that are inputs of their own come as they are; of these it knows how they are sent.
    """

    scales: npt.NDArray[np.float64]
    missing: tuple[int, ...]
    categories: tuple[Codes, ...]
    wide: tuple[str, ...]

    @classmethod
    def from_header(cls, told: Mapping[str, Any]) -> RecipeValues:
        """Read the object `recipe` of a request."""
        scales = typed(told, "scales", list)
        if not all(isinstance(row, list) and len(row) == CONSTANTS for row in scales):
            raise RequestError(f'"scales" must be lists of {CONSTANTS} numbers')
        missing = tuple(integers(told, "missing"))
        if not all(0 <= place < len(scales) for place in missing):
            raise RequestError(f'"missing" must be places of {len(scales)} scales')
        categories = typed(told, "categories", list)
        lists = [integers({"categories": hashes}, "categories") for hashes in categories]
        if not all(hashes and len(hashes) % 2 == 0 for hashes in lists):
            raise RequestError('"categories" must have two hashes of each value')
        numbers = np.array(scales, np.float64).reshape(-1, CONSTANTS)
        wide = typed(told, "wide", list)
        if not all(kind in raw_rows.INPUTS for kind in wide):
            raise RequestError(f'"wide" must be some of {", ".join(raw_rows.INPUTS)}')
        return cls(numbers, missing, tuple(map(Codes.of, lists)), tuple(wide))

    def inputs(self, header: Mapping[str, Any], payload: Bytes) -> list[Array]:
        """The inputs of a model of the values of rows: float32, of shape (rows, ...)."""
        rows, entries = integer(header, "rows", minimum=1), items(header, "arrays")
        kinds = [text(each, "kind") for each in entries]
        steps = (
            (VALUES, len(self.scales), self._scaled),
            (MARKS, 2 * len(self.categories), self._codes),
        )
        wanted = [step for step in steps if step[1]]
        expected = [*(kind.name for kind, _, _ in wanted), *self.wide]
        if kinds != expected:
            raise RequestError(f'"arrays" must be {expected}; received {kinds!r}'[:300])
        parts = raw_rows.split(header, payload, len(expected))
        found = [
            step(_decoded(part, rows, kind.element, width))
            for part, (kind, width, step) in zip(parts, wanted, strict=False)
        ]
        return [*found, *raw_rows.columns(entries[len(wanted) :], parts[len(wanted) :], rows)]

    def _scaled(self, values: npt.NDArray[np.float64]) -> Array:
        low, high, center, width, padding = self.scales.T
        unknown = np.isnan(values)
        bounded = np.minimum(np.maximum(np.where(unknown, 0.0, values), low), high)
        scaled = (bounded - center + padding - padding) / width
        numbers = np.where(unknown, 0.0, scaled).astype(np.float32)
        return np.concatenate([numbers, unknown[:, list(self.missing)].astype(np.float32)], axis=1)

    def _codes(self, marks: npt.NDArray[np.int64]) -> Array:
        pairs = marks.reshape(len(marks), -1, 2)
        found = [codes.find(pairs[:, place]) for place, codes in enumerate(self.categories)]
        return np.stack(found, axis=1).astype(np.float32)


def _decoded(part: Bytes, rows: int, element: arrays.ElementType, wanted: int) -> Array:
    values = arrays.decode(part, rows, element)
    if values.shape != (rows, wanted):
        raise RequestError(f"the values of a row have shape {values.shape[1:]}; expected {wanted}", sqlstate="42804")
    return values
