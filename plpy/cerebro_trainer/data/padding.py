"""Selection, padding and batches of rows; loops are compiled for some lengths of buffers only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from cerebro_trainer.data.row_order import Rows
from cerebro_trainer.wire.frames import Array, Arrays

Columns: TypeAlias = tuple[list[Any], list[Any]]
"""Inputs and targets, each by position; all arrays have equal lengths."""

CAPACITIES = 8
"""Number of capacities up to each power of two."""
MIN_CAPACITY = 64
"""Smallest number of rows for which a loop is compiled."""


def map_arrays(columns: Columns, function: Callable[[Any], Any]) -> Columns:
    """Apply a function to every array."""
    inputs, targets = columns
    return [function(array) for array in inputs], [function(array) for array in targets]


def take_rows(columns: Columns, positions: Rows) -> Columns:
    """Return the rows at some positions, in their order."""
    return map_arrays(columns, lambda array: np.take(array, positions, axis=0))


def slice_rows(columns: Columns, begin: int, end: int) -> Columns:
    """Return the rows from `begin` up to but not including `end`."""
    return map_arrays(columns, lambda array: array[begin:end])


def split_batches(columns: Columns, batch_size: int) -> Columns:
    """Return arrays of shape (batches, batch_size, ...)."""
    return map_arrays(columns, lambda array: array.reshape(-1, batch_size, *array.shape[1:]))


def pad_to_capacity(columns: Columns, order: Rows) -> tuple[Columns, Array]:
    """Pad the columns and an order of their rows to the capacity for that many rows."""
    rows = round_up_to_capacity(len(columns[0][0]))
    return map_arrays(columns, lambda array: pad_rows(array, rows)), pad_rows(order, rows)


def pad_rows(array: Array, rows: int) -> Array:
    """Append zeros to an array, so that it has `rows` rows."""
    padded = np.zeros((rows, *array.shape[1:]), array.dtype)
    padded[: len(array)] = array
    return padded


def round_up_to_capacity(rows: int) -> int:
    """Return the number of rows for which a loop over `rows` rows is compiled.

    The buffers of a table have about equal lengths, so that a few compilations serve all of them.

    >>> [round_up_to_capacity(rows) for rows in (1, 1000, 1001, 1025)]
    [64, 1024, 1024, 1280]
    """
    unit = max(MIN_CAPACITY, (1 << (rows - 1).bit_length()) // CAPACITIES)
    return -(-rows // unit) * unit


def iterate_batches(arrays: Arrays, batch_size: int) -> Iterator[list[Array]]:
    """Yield arrays in batches of rows; the last one may be smaller."""
    for begin in range(0, len(arrays[0]), batch_size):
        yield [array[begin : begin + batch_size] for array in arrays]


def join_batches(batches: Iterable[Sequence[Any]]) -> list[Array]:
    """Return the outputs of all rows from the outputs of batches."""
    return [np.concatenate([*map(np.asarray, parts)]) for parts in zip(*batches, strict=True)]
