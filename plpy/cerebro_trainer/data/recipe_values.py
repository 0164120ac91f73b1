"""Preprocessing of raw values with the constants of a recipe, for packing and for prediction.

The steps and their order are those of the SQL expressions that a backend derives from a recipe, so
that the bits are the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from cerebro_trainer.data import arrays, raw_rows, timestamps
from cerebro_trainer.data.arrays import Floats, Integers
from cerebro_trainer.errors import RequestError
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.wire.fields import Header, integer, integers, items, list_of, text, typed
from cerebro_trainer.wire.frames import Array, Bytes

CONSTANTS = 5
"""Constants of a number: two bounds, center, width, and padding, which removes tiny numbers."""
NUMBER_KIND = "float64"


@dataclass(frozen=True)
class CategoryCodes:
    """The codes of a category's values, by two hashes of each value."""

    first_hashes: Integers  # sorted
    second_hashes: Integers
    codes: Integers

    @classmethod
    def from_hashes(cls, hashes: Sequence[int]) -> CategoryCodes:
        """Create the codes from the first hashes of all values, followed by the second ones."""
        first, second = np.array(hashes, np.int64).reshape(2, -1)
        order = first.argsort(kind="stable")
        return cls(first[order], second[order], order + 1)

    def look_up(self, hashes: Integers) -> Array:
        """Return the codes of rows; 0 for an unknown value.

        Args:
            hashes: both hashes of each row's value, shape (rows, 2).
        """
        indices = self.first_hashes.searchsorted(hashes[:, 0])
        indices = np.minimum(indices, len(self.first_hashes) - 1)
        has_first_hash = self.first_hashes[indices] == hashes[:, 0]
        has_second_hash = self.second_hashes[indices] == hashes[:, 1]
        return np.where(has_first_hash & has_second_hash, self.codes[indices], 0)


@dataclass(frozen=True)
class WideColumn:
    """A column that is an input of its own."""

    kind: str  # its type in a payload
    scales: Floats  # shape (channels, CONSTANTS); no channels for other columns

    @classmethod
    def from_json(cls, entry: object) -> WideColumn:
        """Read an object of "wide"."""
        if not isinstance(entry, dict):
            raise RequestError(f'"wide" must be objects; received {entry!r}'[:300])
        kind = text(entry, "kind", choices=raw_rows.INPUT_KINDS)
        scales = _read_scales(entry)
        if len(scales) and kind != NUMBER_KIND:
            raise RequestError(f'"scales" are for {NUMBER_KIND}; received kind {kind}')
        return cls(kind, scales)

    def encode(self, entry: dict[str, Any], part: Bytes, rows: int) -> Array:
        """Return the values as float32; missing elements (NaN) of scaled arrays become 0."""
        if not len(self.scales):
            return raw_rows.decode_columns([entry], [part], rows)[0]
        values = arrays.decode(part, rows, arrays.FLOAT8)
        if values.ndim != 2 or values.shape[1] % len(self.scales):
            raise RequestError(f"the arrays have shape {values.shape[1:]}", sqlstate="42804")
        channels = values.reshape(rows, -1, len(self.scales))
        return scale(channels, self.scales, np.isnan(channels)).reshape(values.shape)


def scale(values: Floats, scales: Floats, is_missing: Array) -> Array:
    """Scale values with the constants of their last dimension; missing ones become 0."""
    low, high, center, width, padding = scales.T
    bounded = np.minimum(np.maximum(np.where(is_missing, 0.0, values), low), high)
    scaled = (bounded - center + padding - padding) / width
    return np.where(is_missing, 0.0, scaled).astype(np.float32)


def _read_scales(entry: Header) -> Floats:
    scales = typed(entry, "scales", list)
    if not all(isinstance(row, list) and len(row) == CONSTANTS for row in scales):
        raise RequestError(f'"scales" must be lists of {CONSTANTS} numbers')
    return np.array(scales, np.float64).reshape(-1, CONSTANTS)


class ArrayEncoder(NamedTuple):
    """The encoding of an array that contains several columns."""

    kind: str  # its type in a payload
    element: arrays.ElementType
    width: int  # elements of a row
    encode: Callable[[Array], Array]


@dataclass(frozen=True)
class RecipeEncoder:
    """Computes the inputs of a network from raw values, with the constants of a recipe."""

    scales: Floats  # shape (numbers, CONSTANTS)
    parts: tuple[tuple[str, ...], ...]  # numbers derived from each raw number, see `timestamps`
    missing: tuple[list[int], ...]  # raw numbers that an indicator of missing values depends on
    categories: tuple[CategoryCodes, ...]
    wide: tuple[WideColumn, ...]

    @classmethod
    def from_header(cls, recipe: Header) -> RecipeEncoder:
        """Read the object `recipe` of a request."""
        scales = _read_scales(recipe)
        parts = _read_parts(recipe, len(scales))
        missing = tuple(list_of(recipe, "missing", integers))
        for positions in missing:
            if not positions or not all(0 <= position < len(parts) for position in positions):
                raise RequestError(
                    f'"missing" must be lists of places of {count_nouns(len(parts), "number")}'
                )
        hash_lists = list_of(recipe, "categories", integers)
        if not all(hashes and len(hashes) % 2 == 0 for hashes in hash_lists):
            raise RequestError('"categories" must have two hashes of each value')
        wide = tuple(WideColumn.from_json(entry) for entry in typed(recipe, "wide", list))
        categories = tuple(CategoryCodes.from_hashes(hashes) for hashes in hash_lists)
        return cls(scales, parts, missing, categories, wide)

    def encode(self, header: Header, payload: Bytes) -> list[Array]:
        """Return the inputs of a network for raw rows: float32 of shape (rows, ...)."""
        rows = integer(header, "rows", minimum=1)
        entries = items(header, "arrays")
        encoders = self._array_encoders()
        kinds = [text(entry, "kind") for entry in entries]
        expected = [encoder.kind for encoder in encoders] + [column.kind for column in self.wide]
        if kinds != expected:
            raise RequestError(f'"arrays" must be {expected}; received {kinds!r}'[:300])
        parts = raw_rows.split_payload(header, payload, len(expected))
        inputs = []
        for encoder, part in zip(encoders, parts, strict=False):
            inputs.append(encoder.encode(_decode(part, rows, encoder)))
        begin = len(encoders)
        for column, entry, part in zip(self.wide, entries[begin:], parts[begin:], strict=True):
            inputs.append(column.encode(entry, part, rows))
        return inputs

    def _array_encoders(self) -> list[ArrayEncoder]:
        encoders = []
        if self.parts:
            width = len(self.parts)
            encoders.append(ArrayEncoder(NUMBER_KIND, arrays.FLOAT8, width, self._encode_numbers))
        if self.categories:
            width = 2 * len(self.categories)
            encoders.append(ArrayEncoder("int64", arrays.INT8, width, self._encode_categories))
        return encoders

    def _encode_numbers(self, values: Floats) -> Array:
        numbers = timestamps.extract_parts(values, self.parts)
        is_missing = np.isnan(values)
        indicators = [
            is_missing[:, positions].all(axis=1, keepdims=True).astype(np.float32)
            for positions in self.missing
        ]
        scaled = scale(numbers, self.scales, np.isnan(numbers))
        return np.concatenate([scaled, *indicators], axis=1)

    def _encode_categories(self, hashes: Integers) -> Array:
        pairs = hashes.reshape(len(hashes), -1, 2)
        codes = [
            category.look_up(pairs[:, index]) for index, category in enumerate(self.categories)
        ]
        return np.stack(codes, axis=1).astype(np.float32)


@lru_cache(64)
def parse_recipe(recipe_json: str) -> RecipeEncoder:
    """Return the encoder of a recipe, which each block of rows repeats as JSON."""
    try:
        recipe = json.loads(recipe_json)
    except (ValueError, RecursionError) as error:
        raise RequestError('"recipe" must be JSON') from error
    if not isinstance(recipe, dict):
        raise RequestError('"recipe" must be an object')
    return RecipeEncoder.from_header(recipe)


def _read_parts(recipe: Header, scale_count: int) -> tuple[tuple[str, ...], ...]:
    """Read the numbers derived from each raw number; all together have `scale_count` scales."""
    parts = typed(recipe, "parts", list)
    if not all(isinstance(names, list) and timestamps.are_parts(names) for names in parts):
        raise RequestError(f'"parts" must be lists of {", ".join(timestamps.PARTS)}')
    if sum(map(len, parts)) != scale_count:
        raise RequestError(
            f'"parts" are {count_nouns(sum(map(len, parts)), "number")}, but there are '
            f"{count_nouns(scale_count, 'scale')}"
        )
    return tuple(map(tuple, parts))


def _decode(part: Bytes, rows: int, encoder: ArrayEncoder) -> Array:
    values = arrays.decode(part, rows, encoder.element)
    if values.shape != (rows, encoder.width):
        raise RequestError(
            f"the values of a row have shape {values.shape[1:]}; expected {encoder.width}",
            sqlstate="42804",
        )
    return values
