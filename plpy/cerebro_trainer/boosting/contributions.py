"""Contributions of columns to predictions: exact Shapley values of the trees.

TreeSHAP (Lundberg, Erion and Lee, 2018) divides the score of a row, compared with the mean score,
among the columns. The scores of classes are no probabilities: each contribution is multiplied by
the mean slope of the probability between both scores, so that all add up to the difference of the
probabilities.
"""

from __future__ import annotations

import numpy as np

from cerebro_trainer.boosting.blocks import iterate_blocks
from cerebro_trainer.boosting.loaded_model import LoadedModel
from cerebro_trainer.boosting.model.forest import Forest
from cerebro_trainer.boosting.model.spec import PackedInputs, TreesSpec
from cerebro_trainer.boosting.transforms import average_slopes
from cerebro_trainer.data.arrays import Floats
from cerebro_trainer.errors import ConfigError
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.programs.learner import ColumnPositions, Columns
from cerebro_trainer.wire.frames import Array, Float32Array

MAX_WORK = 1 << 37
"""Rows times leaves times squared depth of all trees: some minutes of a core."""
BLOCK_ROWS = 256


def attribute_rows(
    spec: TreesSpec,
    model: LoadedModel,
    matrix: Float32Array,
    columns: Columns,
    unit_weights: Floats,
) -> Array:
    """Attribute a weighted sum of the units of each row to the columns of the table.

    Raises:
        ConfigError: the rows would take too long.
    """
    _check_work(model.forest, len(matrix))
    features = [find_features(spec.inputs, column) for column in columns]
    values = np.zeros((len(matrix), len(columns)))
    width = spec.outputs * (spec.inputs.columns + 1)
    for block in iterate_blocks(len(matrix), width, BLOCK_ROWS):
        values[block] = _attribute_block(spec, model, matrix[block], features, unit_weights[block])
    return values


def find_mean_scores(model: LoadedModel, matrix: Float32Array) -> Floats:
    """Return the mean scores of the training rows, from which contributions begin.

    Args:
        matrix: rows, of which the first is explained; each has the same mean scores.
    """
    means: Floats = model.explain(matrix[:1])[0, :, -1]
    return means


def _attribute_block(
    spec: TreesSpec,
    model: LoadedModel,
    matrix: Float32Array,
    features: list[list[int]],
    unit_weights: Floats,
) -> Array:
    contributions = model.explain(matrix)
    means = contributions[0, :, -1]
    slopes = average_slopes(spec, means, model.score(matrix), unit_weights)
    weighted = (contributions[:, :, :-1] * slopes[:, :, np.newaxis]).sum(axis=1)
    return np.stack([weighted[:, positions].sum(axis=1) for positions in features], axis=1)


def find_features(inputs: PackedInputs, column: ColumnPositions) -> list[int]:
    """Return the columns of the trees that come from a column of the table.

    Args:
        column: positions of the column in each input array.
    """
    remaining = list(column)
    features: list[int] = []
    begin = 0
    if inputs.width:
        positions = {position: index for index, position in enumerate(inputs.first_columns)}
        features += [positions[p] for p in remaining.pop(0) if p in positions]
        begin = len(positions)
    if inputs.cardinalities:
        features += [begin + position for position in remaining.pop(0)]
        begin += len(inputs.cardinalities)
    for array, (entries, width) in enumerate(zip(remaining, inputs.widths, strict=True)):
        elements = range(width) if entries and inputs.find_words(array) else entries
        features += [begin + element for element in elements if element < width]
        begin += width
    return features


def _check_work(forest: Forest, rows: int) -> None:
    """Refuse rows that would take too long: deep trees take the square of their depth."""
    work = rows * int((forest.leaves[: forest.size] * np.square(measure_depths(forest))).sum())
    if work > MAX_WORK:
        raise ConfigError(
            f"{count_nouns(rows, 'row')} would take too long to explain by "
            f"{count_nouns(forest.size, 'tree')}",
            sqlstate="54000",
            hint="Explain fewer rows at once.",
        )


def measure_depths(forest: Forest) -> Array:
    """Return the depth of each tree."""
    size = forest.size
    width = forest.left.shape[1]
    depths = np.zeros((size, width), np.int64)
    for node in range(width):  # children come after their parents
        trees = np.flatnonzero(forest.leaves[:size] - 1 > node)
        for children in (forest.left, forest.right):
            child = children[trees, node]
            is_inner = child >= 0
            depths[trees[is_inner], child[is_inner]] = depths[trees[is_inner], node] + 1
    is_node = np.arange(width) < forest.leaves[:size, np.newaxis].astype(np.int64) - 1
    result: Array = np.where(is_node, depths + 1, 0).max(axis=1, initial=0)
    return result
