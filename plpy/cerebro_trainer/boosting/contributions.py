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
from cerebro_trainer.boosting.transforms import average_slopes, compute_outputs
from cerebro_trainer.errors import ConfigError
from cerebro_trainer.nouns import count_nouns
from cerebro_trainer.programs.learner import Attributions, ColumnPositions, Columns, Units
from cerebro_trainer.wire.frames import Array, Float32Array

MAX_WORK = 1 << 37
"""Rows times leaves times squared depth of all trees: some minutes of a core."""
BLOCK_ROWS = 256


def attribute_rows(
    spec: TreesSpec,
    model: LoadedModel,
    matrix: Float32Array,
    columns: Columns,
    patches: int,
    units: Units,
) -> Attributions:
    """Attribute one unit of each row to the columns of the table.

    Args:
        patches: number of patches of pictures, which trees do not read.

    Raises:
        ConfigError: the rows would take too long.
    """
    _check_work(model.forest, len(matrix))
    features = [find_features(spec.inputs, column) for column in columns]
    values = np.zeros((len(matrix), len(columns)))
    gap = np.zeros(len(matrix))
    width = spec.outputs * (spec.inputs.columns + 1)
    for block in iterate_blocks(len(matrix), width, BLOCK_ROWS):
        values[block], gap[block] = _attribute_block(
            spec, model, matrix[block], features, units[block]
        )
    return Attributions(values, gap, np.zeros((len(matrix), patches)))


def _attribute_block(
    spec: TreesSpec,
    model: LoadedModel,
    matrix: Float32Array,
    features: list[list[int]],
    units: Units,
) -> tuple[Array, Array]:
    contributions = model.explain(matrix)
    means = contributions[0, :, -1]
    scores = model.score(matrix)
    outputs = compute_outputs(spec, scores)
    unit_weights = np.eye(spec.units)[units]
    slopes = average_slopes(spec, means, scores, unit_weights)
    weighted = (contributions[:, :, :-1] * slopes[:, :, np.newaxis]).sum(axis=1)
    values = np.stack([weighted[:, positions].sum(axis=1) for positions in features], axis=1)
    change = ((outputs - compute_outputs(spec, means[np.newaxis])) * unit_weights).sum(axis=1)
    return values, values.sum(axis=1) - change


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
