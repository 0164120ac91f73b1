"""The state of boosted trees: arrays of fixed shapes, and the checks of their contents.

Trees are stored in the order of their growth: round by round, and output by output in a round. Node
0 of a tree is its root. A child from 0 is a node, and a child below 0 is the leaf `~child`. A tree
of one leaf has no node. Rows behind the last tree, and entries behind the last leaf, are not read.

A state may come from a stranger, and LightGBM crashes on trees that are none. So every array is
checked before it is used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import TreesError
from .nouns import count_nouns
from .spec import TreesSpec

Array: TypeAlias = npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float64]
Booleans: TypeAlias = npt.NDArray[np.bool_]

CATEGORY = 1
DEFAULT_LEFT = 2
KNOWS_MISSING = 8
"""Bits of a decision: a set of codes, the side of missing values, and whether there were any."""
NUMBER_DECISIONS = (0, DEFAULT_LEFT, KNOWS_MISSING, KNOWS_MISSING | DEFAULT_LEFT)
CATEGORY_DECISIONS = (CATEGORY, CATEGORY | KNOWS_MISSING)
MAX_ROWS = (1 << 31) - 1
"""Rows of all leaves of a tree: LightGBM counts in 32 bits."""


class Variable(NamedTuple):
    """A variable of a state."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class Tree(NamedTuple):
    """One tree, as it was grown."""

    features: Array  # column of each node
    thresholds: Array
    left: Array
    right: Array
    decisions: Array
    sets: Array  # words of each node
    values: Array  # of each leaf
    counts: Array  # rows of each leaf

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return len(self.values)


def list_variables(spec: TreesSpec) -> list[Variable]:
    """Return the variables of a state, in the order of the fields of `Forest`."""
    nodes = (spec.tree_room, spec.leaves - 1)
    leaves = (spec.tree_room, spec.leaves)
    return [
        Variable("progress", "int64", (2,)),
        Variable("base", "float64", (spec.outputs,)),
        Variable("leaves", "uint16", (spec.tree_room,)),
        Variable("features", "uint16", nodes),
        Variable("thresholds", "float64", nodes),
        Variable("left", "int16", nodes),
        Variable("right", "int16", nodes),
        Variable("decisions", "uint8", nodes),
        Variable("sets", "uint32", (*nodes, spec.set_words)),
        Variable("values", "float64", leaves),
        Variable("counts", "int32", leaves),
    ]


@dataclass(frozen=True, eq=False)
class Forest:
    """The arrays of a state, which are never changed."""

    progress: Array  # rounds, and how often trees were grown
    base: Floats  # score before the first round, by output
    leaves: Array  # leaves of each tree
    features: Array
    thresholds: Floats
    left: Array
    right: Array
    decisions: Array
    sets: Array
    values: Floats
    counts: Array

    @classmethod
    def create_empty(cls, spec: TreesSpec) -> Forest:
        """Return a state without trees."""
        return cls(*(np.zeros(shape, dtype) for _, dtype, shape in list_variables(spec)))

    @classmethod
    def from_arrays(cls, spec: TreesSpec, arrays: Sequence[Array]) -> Forest:
        """Return the state of arrays after checking them.

        Raises:
            TreesError: the arrays are not those of trees that such a config can have.
        """
        forest = cls(*arrays)
        check_forest(spec, forest)
        return forest

    def to_arrays(self) -> list[Array]:
        """Return the arrays in the order of a state."""
        return [getattr(self, field.name) for field in fields(self)]

    @property
    def rounds(self) -> int:
        """Rounds that are grown."""
        return int(self.progress[0])

    @property
    def growths(self) -> int:
        """Number of growths, including those without a result."""
        return int(self.progress[1])

    @property
    def outputs(self) -> int:
        """Trees of a round."""
        return len(self.base)

    @property
    def size(self) -> int:
        """Number of trees."""
        return self.rounds * self.outputs

    def get_tree(self, position: int) -> Tree:
        """Return a tree without the entries that are never read."""
        count = int(self.leaves[position])
        nodes = (position, slice(0, count - 1))
        leaves = (position, slice(0, count))
        return Tree(
            features=self.features[nodes],
            thresholds=self.thresholds[nodes],
            left=self.left[nodes],
            right=self.right[nodes],
            decisions=self.decisions[nodes],
            sets=self.sets[nodes],
            values=self.values[leaves],
            counts=self.counts[leaves],
        )

    def append(self, trees: Sequence[Tree], base: Floats) -> Forest:
        """Return the state after a growth.

        Args:
            trees: the trees of whole rounds.
            base: score before the first round.
        """
        arrays = {field.name: getattr(self, field.name).copy() for field in fields(self)}
        for position, tree in enumerate(trees, self.size):
            _store_tree(arrays, position, tree)
        rounds = self.rounds + len(trees) // self.outputs
        arrays["progress"] = np.array([rounds, self.growths + 1], np.int64)
        arrays["base"] = base.astype(np.float64)
        return replace(self, **arrays)

    @cached_property
    def digests(self) -> tuple[bytes, ...]:
        """Digests of the base and all rounds so far, by the number of rounds."""
        digest = hashlib.sha256(self.base.tobytes())
        digests = [digest.digest()]
        for number in range(self.rounds):
            for position in range(number * self.outputs, (number + 1) * self.outputs):
                for array in self.get_tree(position):
                    digest.update(array.tobytes())
            digests.append(digest.digest())
        return tuple(digests)

    @cached_property
    def number_thresholds(self) -> Array:
        """Thresholds in single precision, rounded down.

        A number in single precision is at most a threshold if it is at most the rounded one.
        """
        thresholds = self.thresholds[: self.size]
        with np.errstate(over="ignore"):
            rounded = thresholds.astype(np.float32)
        is_above = rounded > thresholds
        rounded[is_above] = np.nextafter(rounded[is_above], np.float32(-np.inf))
        return rounded

    @cached_property
    def missing_left(self) -> Booleans:
        """True for nodes whose missing values go left.

        A node that knows no missing values takes them for 0, as LightGBM does.
        """
        decisions = self.decisions[: self.size]
        thresholds = self.thresholds[: self.size]
        by_default = (decisions & DEFAULT_LEFT) > 0
        as_zero = thresholds >= 0
        knows_missing = (decisions & KNOWS_MISSING) > 0
        is_category = (decisions & CATEGORY) > 0
        result: Booleans = np.where(knows_missing, by_default, as_zero) & ~is_category
        return result


def _store_tree(arrays: dict[str, Array], position: int, tree: Tree) -> None:
    arrays["leaves"][position] = tree.leaves
    for name in Tree._fields:
        part = getattr(tree, name)
        arrays[name][position, : len(part)] = part


def check_forest(spec: TreesSpec, forest: Forest) -> None:
    """Check all arrays of a state.

    Raises:
        TreesError: see the messages.
    """
    pairs = zip(list_variables(spec), forest.to_arrays(), strict=True)
    for (name, dtype, shape), array in pairs:
        require(array.shape == shape and array.dtype == dtype, f"{name} has another shape or type")
    rounds, growths = (int(number) for number in forest.progress)
    limit = count_nouns(spec.trees, "round")
    require(0 <= rounds <= spec.trees, f"the number of rounds is {rounds}, the limit {limit}")
    require(growths >= bool(rounds), f"the number of growths is {growths}")
    require(bool(np.isfinite(forest.base).all()), "its base is not finite")
    if rounds:
        _check_trees(spec, forest)


def _check_trees(spec: TreesSpec, forest: Forest) -> None:
    size = forest.size
    leaves = forest.leaves[:size].astype(np.int64)
    require(bool(((leaves >= 1) & (leaves <= spec.leaves)).all()), "a tree has too many leaves")
    is_leaf = np.arange(spec.leaves) < leaves[:, np.newaxis]
    values = forest.values[:size][is_leaf]
    require(bool(np.isfinite(values).all()), "the value of a leaf is not finite")
    counts = np.where(is_leaf, forest.counts[:size], 0).astype(np.int64)
    require(bool((counts >= 0).all()), "the rows of a leaf are below 0")
    require(bool((counts.sum(axis=1) <= MAX_ROWS).all()), "the leaves of a tree have too many rows")
    is_node = np.arange(spec.leaves - 1) < leaves[:, np.newaxis] - 1
    _check_nodes(spec, forest, is_node)
    _check_children(forest, leaves, is_node)


def _check_nodes(spec: TreesSpec, forest: Forest, is_node: Booleans) -> None:
    size = forest.size
    features = forest.features[:size][is_node]
    require(bool((features < spec.inputs.columns).all()), "a node splits a column that is missing")
    thresholds = forest.thresholds[:size][is_node]
    require(bool(np.isfinite(thresholds).all()), "the threshold of a node is not finite")
    decisions = forest.decisions[:size][is_node]
    is_category = np.isin(features, spec.native_categories)
    expected = np.where(
        is_category,
        np.isin(decisions, CATEGORY_DECISIONS),
        np.isin(decisions, NUMBER_DECISIONS),
    )
    require(bool(expected.all()), "the decision of a node does not fit its column")


def _check_children(forest: Forest, leaves: Array, is_node: Booleans) -> None:
    """Check that each tree is a tree: all nodes and leaves but the root have one parent.

    Children come after their parents, so that there are no circles.
    """
    size = forest.size
    trees, parents = np.nonzero(is_node)
    width = forest.values.shape[1]
    parent_counts = np.zeros(2 * size * width, np.int64)
    for children in (forest.left, forest.right):
        child = children[:size][is_node].astype(np.int64)
        is_inner = child >= 0
        position = np.where(is_inner, child, ~child)
        limit = np.where(is_inner, leaves[trees] - 1, leaves[trees])
        require(bool((position < limit).all()), "the child of a node is missing")
        require(bool((~is_inner | (child > parents)).all()), "a child comes before its parent")
        slots = (trees * 2 + is_inner) * width + position
        parent_counts += np.bincount(slots, minlength=len(parent_counts))
    parent_counts = parent_counts.reshape(size, 2, width)
    expected_leaves = np.arange(width) < leaves[:, np.newaxis]
    expected_leaves &= leaves[:, np.newaxis] > 1
    expected_nodes = np.arange(width) < leaves[:, np.newaxis] - 1
    expected_nodes[:, 0] = False
    expected = np.stack([expected_leaves, expected_nodes], axis=1)
    require(bool((parent_counts == expected).all()), "a node or a leaf has not one parent")


def require(condition: bool, reason: str) -> None:
    """Raise an error if a condition of a state is not met."""
    if not condition:
        raise TreesError(f"in its trees, {reason}", sqlstate="XX001")
