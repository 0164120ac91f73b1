"""Scores of many rows by LightGBM, one part of a forest after the other.

LightGBM scores a row by all trees before it reads the next row, and the nodes of hundreds of trees
do not fit into the nearest cache of a core. A part has few nodes, and scores all rows before the
next part begins, which takes about half the time.

The first trees of a part return the scores so far: both leaves of such a tree are linear, and
return the number of a column behind the others. So the values of leaves are added tree by tree in
order, and the scores have the bits of a single call.
"""

from __future__ import annotations

import numpy as np

from cerebro_trainer.boosting import library
from cerebro_trainer.boosting.model.forest import Forest
from cerebro_trainer.boosting.model.model_text import join_trees, name_columns, write_rounds
from cerebro_trainer.boosting.model.spec import TreesSpec
from cerebro_trainer.boosting.scoring import repeat_base, score_rows
from cerebro_trainer.data.arrays import Booleans, Floats
from cerebro_trainer.wire.frames import Float32Array

PART_LEAVES = 1024
"""Leaves of a part: their nodes fit into a cache of 32 KB."""
LEAST_NUMBER = 1e-35
"""LightGBM takes smaller numbers in a column for zeros."""


class ForestParts:
    """A checked forest in LightGBM, divided into parts.

    Args:
        rounds: number of rounds of a part; bits do not depend on it.
        threads: number of threads; bits do not depend on it.
    """

    def __init__(self, spec: TreesSpec, forest: Forest, rounds: int, threads: int) -> None:
        self._forest = forest
        self._rounds = rounds
        self._threads = threads
        self._columns = spec.inputs.columns
        sections: list[str] = []
        for first_round in range(0, forest.rounds, rounds):
            end = min(first_round + rounds, forest.rounds)
            sections += [_write_carrier(self._columns + output) for output in range(forest.outputs)]
            sections += write_rounds(forest, first_round, end)
        names = name_columns(self._columns + forest.outputs)
        self._booster = library.get().Booster(model_str=join_trees(spec, sections, names))

    def score(self, matrix: Float32Array) -> Floats:
        """Return the scores of rows, shape (rows, outputs)."""
        scores = repeat_base(self._forest, len(matrix))
        inputs = np.empty((len(matrix), self._columns + self._forest.outputs))
        inputs[:, : self._columns] = matrix
        is_lost = np.zeros(len(matrix), np.bool_)
        for part in range(-(-self._forest.rounds // self._rounds)):
            is_lost |= _find_lost_rows(scores)
            inputs[:, self._columns :] = scores
            scores = self._booster.predict(
                inputs,
                raw_score=True,
                num_threads=self._threads,
                start_iteration=part * (self._rounds + 1),
                num_iteration=self._rounds + 1,
            ).reshape(scores.shape)
        if is_lost.any():
            scores[is_lost] = score_rows(self._forest, matrix[is_lost])
        return scores


def count_part_rounds(spec: TreesSpec) -> int:
    """Return the number of rounds of a part that scores rows the fastest.

    A part reads all columns of a row again, which takes as long as some trees.
    """
    trees = max(PART_LEAVES // spec.leaves, spec.inputs.columns)
    return max(1, trees // spec.outputs)


def _write_carrier(column: int) -> str:
    """Return a tree whose value is the number of a column."""
    lines = {
        "num_leaves": "2",
        "num_cat": "0",
        "split_feature": f"{column}",
        "split_gain": "0",
        "threshold": "0",
        "decision_type": "0",
        "left_child": "-1",
        "right_child": "-2",
        "leaf_value": "0 0",
        "leaf_count": "0 0",
        "internal_count": "0",
        "is_linear": "1",
        "leaf_const": "0 0",
        "num_features": "1 1",
        "leaf_features": f"{column}  {column} ",
        "leaf_coeff": "1  1 ",
        "shrinkage": "1",
    }
    return "\n".join(f"{name}={value}" for name, value in lines.items())


def _find_lost_rows(scores: Floats) -> Booleans:
    """Return whether LightGBM would take a score of a row for zero, though it is not."""
    is_lost: Booleans = ((scores != 0) & (np.abs(scores) <= LEAST_NUMBER)).any(axis=1)
    return is_lost
