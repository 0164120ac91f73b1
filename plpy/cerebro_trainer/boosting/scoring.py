"""Scores of rows by numpy, with the bits of LightGBM.

The score of a row is the base plus the values of its leaves, in double precision, added tree by
tree in order. LightGBM adds in this order as well, so it makes no difference which of both
computes a score, or how many trees a call adds.
"""

from __future__ import annotations

import numpy as np

from cerebro_trainer.boosting.blocks import iterate_blocks
from cerebro_trainer.boosting.model.forest import CATEGORY, Forest
from cerebro_trainer.boosting.model.spec import WORD_BITS
from cerebro_trainer.data.arrays import Booleans, Floats
from cerebro_trainer.wire.frames import Array, Float32Array

BLOCK_ROWS = 20_000
"""Rows whose columns and positions fit into the caches of a core."""
FEW_ROWS = 1024
"""Up to so many rows are scored level by level, all trees at once."""
BLOCK_STEPS = 1 << 19
"""Pairs of a row and a tree that take a step at once."""


def score_rows(forest: Forest, matrix: Float32Array) -> Floats:
    """Return the scores of rows, shape (rows, outputs)."""
    scores = repeat_base(forest, len(matrix))
    add_trees(forest, matrix, scores, 0)
    return scores


def repeat_base(forest: Forest, rows: int) -> Floats:
    """Return the scores of rows before the first round: LightGBM has no negative zero there."""
    return np.tile(forest.base + 0.0, (rows, 1))


def add_trees(forest: Forest, matrix: Float32Array, scores: Floats, first_round: int) -> None:
    """Add the values of the rounds from `first_round` to the scores of rows."""
    first_tree = first_round * forest.outputs
    if len(matrix) <= FEW_ROWS:
        steps = max(1, forest.size - first_tree)
        for block in iterate_blocks(len(matrix), matrix.shape[1], max(1, BLOCK_STEPS // steps)):
            scores[block] = _add_level_by_level(forest, matrix[block], scores[block], first_round)
        return
    for block in iterate_blocks(len(matrix), matrix.shape[1], BLOCK_ROWS):
        columns = np.asfortranarray(matrix[block])
        for position in range(first_tree, forest.size):
            _add_tree(forest, position, columns, scores[block, position % forest.outputs])


def _add_tree(forest: Forest, position: int, columns: Float32Array, scores: Floats) -> None:
    """Add a tree's values: rows are divided from node to node."""
    values = forest.values[position]
    if forest.leaves[position] == 1:
        scores += values[0]
        return
    left = forest.left[position].tolist()
    right = forest.right[position].tolist()
    unvisited: list[tuple[int, Array]] = [(0, np.arange(len(columns)))]
    while unvisited:
        node, rows = unvisited.pop()
        if node < 0:
            scores[rows] += values[~node]
            continue
        numbers = columns[rows, forest.features[position, node]]
        goes_left = _divide(forest, position, node, numbers)
        unvisited.append((left[node], rows[goes_left]))
        unvisited.append((right[node], rows[~goes_left]))


def _divide(forest: Forest, position: int, node: int, numbers: Float32Array) -> Booleans:
    """Return whether each number goes to the left child."""
    if forest.decisions[position, node] & CATEGORY:
        return look_up_codes(forest.sets[position, node], numbers)
    threshold = forest.number_thresholds[position, node]
    result: Booleans = numbers <= threshold
    if forest.missing_left[position, node]:
        result |= np.isnan(numbers)
    return result


def look_up_codes(words: Array, numbers: Float32Array) -> Booleans:
    """Return whether codes are in sets; NaN and codes behind the last word are not.

    Args:
        words: one set for all codes, shape (words,), or one set a code, shape (codes, words).
    """
    codes = np.nan_to_num(numbers, nan=-1.0).astype(np.int64)
    is_inside = (codes >= 0) & (codes < words.shape[-1] * WORD_BITS)
    positions = np.where(is_inside, codes, 0)
    word_positions = positions // WORD_BITS
    if words.ndim > 1:
        chosen_words = np.take_along_axis(words, word_positions[:, np.newaxis], axis=1)[:, 0]
    else:
        chosen_words = words[word_positions]
    bits = chosen_words >> (positions % WORD_BITS).astype(np.uint32)
    result: Booleans = is_inside & ((bits & 1) == 1)
    return result


def _add_level_by_level(
    forest: Forest, matrix: Float32Array, scores: Floats, first_round: int
) -> Floats:
    """Return the scores after the rounds from `first_round`.

    All trees and rows take a step from level to level at once.
    """
    rows = len(matrix)
    outputs = forest.outputs
    new_trees = np.arange(first_round * outputs, forest.size)
    trees = np.tile(new_trees, rows)
    positions = np.repeat(np.arange(rows), len(new_trees))
    nodes = np.where(forest.leaves[trees] > 1, 0, -1)
    unfinished = np.flatnonzero(nodes >= 0)
    while len(unfinished):
        tree = trees[unfinished]
        node = nodes[unfinished]
        numbers = matrix[positions[unfinished], forest.features[tree, node]]
        goes_left = numbers <= forest.number_thresholds[tree, node]
        goes_left |= np.isnan(numbers) & forest.missing_left[tree, node]
        is_category = (forest.decisions[tree, node] & CATEGORY) > 0
        places = np.flatnonzero(is_category)
        if len(places):
            sets = forest.sets[tree[places], node[places]]
            goes_left[places] = look_up_codes(sets, numbers[places])
        nodes[unfinished] = np.where(goes_left, forest.left[tree, node], forest.right[tree, node])
        unfinished = unfinished[nodes[unfinished] >= 0]
    values = forest.values[trees, ~nodes].reshape(rows, -1, outputs)
    # Unlike a sum, a cumulative sum adds in order.
    ordered = np.concatenate([scores[:, np.newaxis], values], axis=1)
    result: Floats = ordered.cumsum(axis=1)[:, -1]
    return result
