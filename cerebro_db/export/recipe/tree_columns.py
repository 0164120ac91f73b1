"""The columns of boosted trees, from the inputs of a network.

They are those of the trainer (`boosting/columns.py`): numbers are NaN where their indicator is 1,
and categories where their code is 0. Of a text they are the counts of some words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .scales import Array

KEY = "trees"
"""Key of a description with the config of boosted trees."""
MIN_MAGNITUDE = 1e-30
"""Smaller numbers become 0."""


def join_columns(arrays: Sequence[Array], inputs: Mapping[str, Any]) -> Array:
    """Return the matrix of the trees' columns, in single precision.

    Args:
        arrays: the inputs of a network, in their order.
        inputs: description of the arrays in the config of the trees.
    """
    remaining = list(arrays)
    parts = []
    width = inputs["numbers"] + inputs["indicators"]
    if width:
        numbers = remaining.pop(0).reshape(-1, width).astype(np.float32)
        hidden = {indicator for _, indicator in inputs["missing"]}
        is_missing = {pair[0]: numbers[:, pair[1]] == 1 for pair in inputs["missing"]}
        for column in range(width):
            if column not in hidden:
                values = numbers[:, column]
                parts.append(np.where(is_missing.get(column, False), np.nan, values)[:, np.newaxis])
    if inputs["cardinalities"]:
        codes = remaining.pop(0).astype(np.float32)
        parts.append(np.where(codes == 0, np.nan, codes))
    word_lists = inputs.get("words") or [[]] * len(remaining)
    for array, size, words in zip(remaining, inputs["vectors"], word_lists, strict=True):
        if words:
            parts.append(count_words(array, words))
        elif size:
            parts.append(array.reshape(len(array), size))
    matrix = np.concatenate(parts, axis=1).astype(np.float32)
    matrix[np.abs(matrix) < MIN_MAGNITUDE] = 0
    return matrix


def count_words(array: Array, words: Sequence[int]) -> Array:
    """Return how often each of some words is in each row, and the number of all words.

    Args:
        array: numbers of words, shape (rows, words); 0 is no word.
    """
    counts = [np.count_nonzero(array == word, axis=1) for word in words]
    return np.stack([*counts, np.count_nonzero(array, axis=1)], axis=1)
