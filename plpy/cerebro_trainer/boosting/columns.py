"""The columns that trees see: packed inputs as one matrix, with NaN where a value is missing.

Packing writes 0 for a missing number and marks it in an indicator. Trees split missing values from
others by themselves, so they get NaN instead, and no column for the indicator. Code 0 of a category
means missing or unseen, and becomes NaN, too. Of a text, trees get the counts of some words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cerebro_trainer.boosting.blocks import iterate_blocks
from cerebro_trainer.boosting.model.spec import TreesSpec
from cerebro_trainer.errors import ConfigError
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.wire.frames import Array, Arrays, Float32Array

MIN_MAGNITUDE = 1e-30
"""Smaller numbers become 0: LightGBM takes those up to 1e-35 for 0 in some calls only."""


class ColumnReader:
    """Converts packed inputs of shape (rows, …) to a matrix of the columns of trees."""

    def __init__(self, spec: TreesSpec) -> None:
        self._inputs = spec.inputs
        numbers = [number for number, _ in spec.inputs.missing]
        self._hidden = np.array([indicator for _, indicator in spec.inputs.missing], np.intp)
        self._numbers = np.array(numbers, np.intp)
        self._first = np.array(spec.inputs.first_columns, np.intp)
        self._largest_codes = np.array(spec.inputs.cardinalities, np.float64) - 1

    def read(self, arrays: Arrays) -> Float32Array:
        """Return the matrix of rows, shape (rows, columns).

        Raises:
            ConfigError: the arrays have other shapes, or codes that no category has.
        """
        inputs = self._inputs
        if len(arrays) != inputs.arrays:
            raise ConfigError(
                f"the trees have {count_nouns(inputs.arrays, 'input')}, but there are "
                f"{count_nouns(len(arrays), 'independent column')}",
                sqlstate="42804",
            )
        remaining = [array.reshape(len(array), -1) for array in arrays]
        matrix = np.empty((len(remaining[0]), inputs.columns), np.float32)
        end = 0
        if inputs.width:
            end = len(self._first)
            self._fill_numbers(remaining.pop(0), matrix[:, :end])
        if inputs.cardinalities:
            begin = end
            end += len(inputs.cardinalities)
            self._fill_codes(remaining.pop(0), matrix[:, begin:end])
        for position, (array, width) in enumerate(zip(remaining, inputs.widths, strict=True)):
            begin = end
            end += width
            words = inputs.find_words(position)
            if words:
                count_words(array, words, matrix[:, begin:end])
            elif width:
                _check_width(array, width, f"wide input {position + 1}")
                matrix[:, begin:end] = array
        matrix[np.abs(matrix) < MIN_MAGNITUDE] = 0
        return matrix

    def _fill_numbers(self, array: Array, part: Float32Array) -> None:
        _check_width(array, self._inputs.width, "the input of numbers")
        part[:] = array[:, self._first]
        if len(self._hidden):
            is_missing = array[:, self._hidden] == 1
            rows, pairs = np.nonzero(is_missing)
            # Numbers come first, and none of them is hidden: positions are the same in both.
            part[rows, self._numbers[pairs]] = np.nan

    def _fill_codes(self, array: Array, part: Float32Array) -> None:
        _check_width(array, len(self._largest_codes), "the input of categories")
        is_code = (array >= 0) & (array <= self._largest_codes) & (array == np.trunc(array))
        if not is_code.all():
            row, category = (int(position[0]) for position in np.nonzero(~is_code))
            raise ConfigError(
                f"category {category + 1} has codes from 0 to "
                f"{int(self._largest_codes[category])}, received {array[row, category]:g}",
                sqlstate="22023",
            )
        part[:] = array
        part[array == 0] = np.nan


def count_words(array: Array, words: Sequence[int], part: Float32Array) -> None:
    """Count some words in each row, and all words.

    Args:
        array: numbers of words, shape (rows, words); 0 is no word.
        words: the numbers that are counted, in increasing order.
        part: is filled with the counts, shape (rows, words + 1).
    """
    width = len(words) + 1
    largest = words[-1] + 1  # stands for all larger numbers
    positions = np.full(largest + 1, len(words))
    positions[list(words)] = np.arange(len(words))
    for block in iterate_blocks(len(array), max(width, array.shape[1])):
        numbers = np.clip(array[block].astype(np.int64), 0, largest)
        rows = np.arange(len(numbers))[:, np.newaxis]
        cells = rows * width + positions[numbers]
        part[block] = np.bincount(cells.ravel(), minlength=rows.size * width).reshape(-1, width)
        part[block, -1] = np.count_nonzero(numbers, axis=1)


def _check_width(array: Array, width: int, name: str) -> None:
    if array.shape[1] != width:
        raise ConfigError(
            f"{name} of the trees has {count_nouns(width, 'column')}, but the data have "
            f"{array.shape[1]}",
            sqlstate="42804",
        )
