"""Growing of trees by LightGBM over the rows of several datasets.

The rows are binned once and kept. Each growth begins from the scores of its rows, so that nothing
is scored again. The seeds of LightGBM begin anew with each growth, so the division of rounds into
growths is part of a run.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from cerebro_trainer.boosting import library
from cerebro_trainer.boosting.blocks import iterate_blocks
from cerebro_trainer.boosting.model.forest import Tree
from cerebro_trainer.boosting.model.model_text import format_objective, read_trees
from cerebro_trainer.boosting.model.spec import RANDOM, TreesSpec
from cerebro_trainer.boosting.transforms import lowest_number
from cerebro_trainer.data.arrays import Floats
from cerebro_trainer.wire.frames import Array, Float32Array

Parameters: TypeAlias = dict[str, Any]

MIN_HESSIAN = 1e-7
"""Smallest sum of second derivatives in a leaf; `min_rows` limits leaves instead."""
BYTE_BINS = 255
"""Bins of a column whose numbers take a byte."""
MIN_SHARE = 1e-6
"""Smallest share of a class in the base."""
MAX_ONE_HOT = 16
"""Codes of a category up to which a split sets one code apart from all others.

LightGBM's default of 4 shrinks splits by sets so much that it lost a quarter on a table of prices
by categories of 5 to 8 codes. On eleven other tables this made no difference beyond one percent.
"""
VALUES_PER_THREAD = 100_000
"""Numbers for which another thread is worth its wait at the end of each split."""
MIN_MEAN = 1e-30
"""Smallest mean whose logarithm is the base; rows may all have the lowest number."""
SEED_BITS = 31


def make_seed(*key: int) -> int:
    """Return the seed of a growth from the numbers that identify it.

    A hash, because LightGBM draws similar bags from seeds that are close to each other.
    """
    digest = hashlib.sha256(repr(key).encode()).digest()
    return int.from_bytes(digest[:8], "little") & ((1 << SEED_BITS) - 1)


class GrowthPlan(NamedTuple):
    """The rounds of a growth, its seed, and its end."""

    rounds: int
    seed: int
    until: float = math.inf  # by time.time(); no round begins after it, except the first one


class Growth:
    """The trees of some rounds, which LightGBM still has.

    Args:
        trees: without last rounds that have no split.
        booster: the model in LightGBM, perhaps with further trees that have no split.
        cut_rounds: rounds after which the time was over; None if it was not.
    """

    def __init__(self, trees: list[Tree], booster: Any, cut_rounds: int | None = None) -> None:
        self.trees = trees
        self.cut_rounds = cut_rounds
        self._booster = booster

    def add_to(self, scores: Floats, matrix: Float32Array) -> None:
        """Add the values of the trees to the scores of other rows, tree by tree."""
        outputs = scores.shape[1]
        width = max(len(self.trees), matrix.shape[1])
        for block in iterate_blocks(len(matrix), width):
            leaves = self._booster.predict(matrix[block], pred_leaf=True, num_threads=1)
            columns = leaves.reshape(len(leaves), -1).T
            for position, tree in enumerate(self.trees):
                scores[block, position % outputs] += tree.values[columns[position]]


class BinnedRows:
    """Rows in bins, for all growths that have the same columns and bins.

    Args:
        matrix: the columns of trees; it is not kept.
    """

    def __init__(self, spec: TreesSpec, matrix: Float32Array, threads: int) -> None:
        self.rows = len(matrix)
        self._width = int(matrix.shape[1])
        self._max_bins = spec.max_bins
        self._parameters = _list_binning_parameters(spec, threads, matrix.size)
        self._dataset = library.get().Dataset(
            matrix,
            label=np.zeros(self.rows, np.float32),
            categorical_feature=list(spec.native_categories),
            params=self._parameters,
            free_raw_data=True,
        )
        self._dataset.construct()

    @property
    def nbytes(self) -> int:
        """The memory of the rows in LightGBM: a byte or two a number, by column and by row."""
        number_bytes = 2 if self._max_bins > BYTE_BINS else 1
        return 2 * self._width * self.rows * number_bytes

    def grow(
        self,
        spec: TreesSpec,
        targets: Array,
        weights: Float32Array | None,
        scores: Floats,
        plan: GrowthPlan,
    ) -> tuple[Growth, Floats]:
        """Grow the rounds of a plan.

        The rounds are fewer if no split improves the loss any more, or if the time is over.

        Args:
            targets: numbers, or indices of classes.
            scores: current score of each row, shape (rows, outputs).

        Returns:
            The trees, and the score of each row after them.
        """
        if int(self.rows * spec.row_share) < 2 * spec.min_rows:
            # Too few for two leaves; without any row in a bag LightGBM fails.
            return Growth([], None), scores
        numbers = _shift_targets(spec, targets)
        if spec.has_logarithms and not numbers.any():
            # Nothing is above the lowest number; without any such row LightGBM fails.
            return Growth([], None), scores
        self._dataset.set_label(numbers.astype(np.float32))
        # Unlike `set_weight`, this also drops the weights of the growth before.
        self._dataset.set_field("weight", None if _are_equal(weights) else weights)
        self._dataset.set_init_score(scores.reshape(-1, order="F"))
        parameters = {**self._parameters, **_list_growth_parameters(spec, plan.seed)}
        booster = library.get().Booster(parameters, self._dataset)
        cut_rounds = _grow_rounds(booster, plan)
        trees = list(read_trees(booster.model_to_string(num_iteration=-1), spec.set_words))
        trees = _drop_empty_rounds(trees, spec.outputs)
        if trees:  # else there may be no column with two values, without which LightGBM has none
            scores = _read_scores(booster, spec.outputs)
        return Growth(trees, booster, cut_rounds), scores


def _grow_rounds(booster: Any, plan: GrowthPlan) -> int | None:
    """Grow the rounds of a plan; return how many they were if the time was over, else None."""
    for number in range(1, plan.rounds + 1):
        if booster.update():
            return None
        if number < plan.rounds and time.time() >= plan.until:
            return number
    return None


def _read_scores(booster: Any, outputs: int) -> Floats:
    """Return the scores of the rows that a model was grown over, shape (rows, outputs).

    LightGBM has them, and gives them to metrics: as probabilities of its objective, if it has one.
    """
    booster.reset_parameter({"objective": "none"})
    copies: list[Floats] = []

    def copy_scores(scores: Floats, dataset: object) -> tuple[str, float, bool]:
        copies.append(scores.reshape((-1, outputs), order="F").copy())
        return "none", 0.0, False

    booster.eval_train(copy_scores)
    return copies[0]


def _are_equal(weights: Float32Array | None) -> bool:
    """Return whether all rows count once, as rows without weights do."""
    return weights is None or bool((weights == 1).all())


def _list_binning_parameters(spec: TreesSpec, threads: int, values: int) -> Parameters:
    return {
        "max_bin": spec.max_bins,
        "feature_pre_filter": False,  # trees of other configs may have smaller leaves
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": min(threads, max(1, values // VALUES_PER_THREAD)),
        "verbosity": -1,
    }


def _list_growth_parameters(spec: TreesSpec, seed: int) -> Parameters:
    return {
        "objective": format_objective(spec).split()[0],
        "num_class": spec.outputs,
        "metric": "none",
        "boost_from_average": False,
        "num_leaves": spec.leaves,
        "learning_rate": spec.learning_rate,
        "min_data_in_leaf": spec.min_rows,
        "min_sum_hessian_in_leaf": MIN_HESSIAN,
        "lambda_l2": spec.l2,
        "max_cat_to_onehot": MAX_ONE_HOT,
        "bagging_fraction": spec.row_share,
        "bagging_freq": int(spec.row_share < 1),
        "feature_fraction_bynode": spec.column_share,
        "extra_trees": spec.splits == RANDOM,
        "seed": seed,
    }


def _drop_empty_rounds(trees: list[Tree], outputs: int) -> list[Tree]:
    """Return the trees without the last rounds if these have no split."""
    while trees and all(tree.leaves == 1 for tree in trees[-outputs:]):
        del trees[-outputs:]
    return trees


def compute_base(spec: TreesSpec, targets: Array, weights: Float32Array | None) -> Floats:
    """Return the scores before the first round: the mean of numbers, or log odds of classes."""
    shares = np.ones(len(targets))
    if weights is not None:
        shares *= weights
    total = float(shares.sum()) or 1.0
    if spec.units == 1:
        mean = float((shares * _shift_targets(spec, targets)).sum()) / total
        if spec.has_logarithms:
            mean = float(np.log(max(mean, MIN_MEAN)))
        return np.array([mean])
    sums = np.bincount(targets.astype(np.int64), shares, minlength=spec.units)
    probabilities = np.clip(sums / total, MIN_SHARE, 1 - MIN_SHARE)
    if spec.outputs == 1:
        return np.array([np.log(probabilities[1] / probabilities[0])])
    result: Floats = np.log(probabilities)
    return result


def _shift_targets(spec: TreesSpec, targets: Array) -> Array:
    """Return the numbers that trees learn: distances from the lowest one for a logarithm."""
    if not spec.has_logarithms:
        return targets
    return np.maximum(targets.astype(np.float64) - lowest_number(spec), 0.0)


def join_arrays(arrays: Sequence[Array]) -> Array:
    """Return the rows of arrays as one array."""
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays)
