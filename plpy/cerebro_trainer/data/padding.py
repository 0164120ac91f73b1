"""Rows of a buffer brought to lengths that are already compiled for: cut, gathered, or filled
up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Columns: TypeAlias = tuple[list[Any], list[Any]]
"""Inputs and targets, each by position; all arrays have equal lengths."""

CAPACITIES = 8
LEAST_CAPACITY = 64
"""Loops are compiled for so many rows, or for one of a few numbers of rows up to each power of two.
"""


def mapped(columns: Columns, change: Callable[[Any], Any]) -> Columns:
    """The columns with every array changed alike."""
    inputs, targets = columns
    return [change(array) for array in inputs], [change(array) for array in targets]


def taken(columns: Columns, chosen: npt.NDArray[np.int32]) -> Columns:
    """The chosen rows, in their order."""
    return mapped(columns, lambda array: np.take(array, chosen, axis=0))


def cut(columns: Columns, begin: int, end: int) -> Columns:
    """The rows from `begin` up to but not including `end`."""
    return mapped(columns, lambda array: array[begin:end])


def blocked(columns: Columns, batch_size: int) -> Columns:
    """Arrays of shape (batches, batch_size, ...)."""
    return mapped(columns, lambda array: array.reshape(-1, batch_size, *array.shape[1:]))


def filled(columns: Columns, order: npt.NDArray[np.int32]) -> tuple[Columns, Array]:
    """The columns, and an order of their rows, at the columns' capacity."""
    rows = capacity(len(columns[0][0]))
    return mapped(columns, lambda array: padded(array, rows)), padded(order, rows)


def padded(array: Array, rows: int) -> Array:
    """The array with zeros after it, so that it has so many rows."""
    result = np.zeros((rows, *array.shape[1:]), array.dtype)
    result[: len(array)] = array
    return result


def capacity(rows: int) -> int:
    """The number of rows for which a loop over so many is compiled; a table's buffers are about
    equally long.

    >>> capacity(1), capacity(1000), capacity(1001), capacity(1025)
    (64, 1024, 1024, 1280)
    """
    unit = max(LEAST_CAPACITY, (1 << (rows - 1).bit_length()) // CAPACITIES)
    return -(-rows // unit) * unit
