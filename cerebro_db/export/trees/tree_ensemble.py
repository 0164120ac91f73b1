"""The attributes of ONNX' operator `TreeEnsemble`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cerebro_db.export.trees.model.forest import CATEGORY, Forest, Tree
from cerebro_db.export.trees.model.spec import WORD_BITS

AT_MOST = 0
IN_SET = 6
"""Modes of a node: a number is at most the split, or in a set."""
SUM = 1


class Ensemble:
    """The attributes of a `TreeEnsemble`, tree by tree."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest
        self._roots: list[int] = []
        self._features: list[int] = []
        self._modes: list[int] = []
        self._splits: list[float] = []
        self._members: list[float] = []
        self._missing_true: list[int] = []
        self._children: tuple[list[int], list[int]] = ([], [])
        self._are_leaves: tuple[list[int], list[int]] = ([], [])
        self._targets: list[int] = []
        self._weights: list[float] = []

    def add_tree(self, position: int) -> None:
        """Add the nodes and leaves of a tree; a tree of one leaf has a node without effect."""
        tree = self._forest.get_tree(position)
        begin = len(self._features)
        first_leaf = len(self._weights)
        self._roots.append(begin)
        if tree.leaves == 1:
            self._add_node(0, AT_MOST, 0.0, is_missing_true=False)
            self._add_children((begin, first_leaf), ~0, ~0)
        for node in range(tree.leaves - 1):
            self._add_split(tree, node, bool(self._forest.missing_left[position, node]))
            self._add_children((begin, first_leaf), int(tree.left[node]), int(tree.right[node]))
        self._targets += [position % self._forest.outputs] * tree.leaves
        self._weights += tree.values.tolist()

    def _add_split(self, tree: Tree, node: int, is_missing_true: bool) -> None:
        feature = int(tree.features[node])
        if not tree.decisions[node] & CATEGORY:
            self._add_node(feature, AT_MOST, float(tree.thresholds[node]), is_missing_true)
            return
        members = list(map(float, list_members(tree, node)))
        if members:
            self._add_node(feature, IN_SET, 0.0, is_missing_true=False)
            self._members += [*members, np.nan]
        else:  # codes are at least 1
            self._add_node(feature, AT_MOST, 0.0, is_missing_true=False)

    def _add_node(self, feature: int, mode: int, split: float, is_missing_true: bool) -> None:
        self._features.append(feature)
        self._modes.append(mode)
        self._splits.append(split)
        self._missing_true.append(int(is_missing_true))

    def _add_children(self, first_positions: tuple[int, int], *children: int) -> None:
        """Add the children of a node.

        Args:
            first_positions: positions of the first node and the first leaf of the tree.
        """
        first_node, first_leaf = first_positions
        for side, child in enumerate(children):
            position = first_node + child
            if child < 0:
                position = first_leaf + ~child
            self._are_leaves[side].append(int(child < 0))
            self._children[side].append(position)

    def list_attributes(self, onnx: Any) -> dict[str, Any]:
        """Return the attributes of the operator."""
        if not self._roots:  # ONNX has no sum of no trees
            self._roots.append(0)
            self._add_node(0, AT_MOST, 0.0, is_missing_true=False)
            self._add_children((0, 0), ~0, ~0)
            self._targets.append(0)
            self._weights.append(0.0)

        def make_tensor(name: str, values: Sequence[float], kind: int) -> Any:
            return onnx.helper.make_tensor(name, kind, [len(values)], values)

        double = onnx.TensorProto.DOUBLE
        attributes = {
            "n_targets": self._forest.outputs,
            "aggregate_function": SUM,
            "post_transform": 0,
            "tree_roots": self._roots,
            "nodes_featureids": self._features,
            "nodes_modes": make_tensor("modes", self._modes, onnx.TensorProto.UINT8),
            "nodes_splits": make_tensor("splits", self._splits, double),
            "nodes_truenodeids": self._children[0],
            "nodes_trueleafs": self._are_leaves[0],
            "nodes_falsenodeids": self._children[1],
            "nodes_falseleafs": self._are_leaves[1],
            "nodes_missing_value_tracks_true": self._missing_true,
            "leaf_targetids": self._targets,
            "leaf_weights": make_tensor("weights", self._weights, double),
        }
        if self._members:
            attributes["membership_values"] = make_tensor("members", self._members, double)
        return attributes


def list_members(tree: Tree, node: int) -> Iterator[int]:
    """Yield the codes in the set of a node; code 0 is never compared."""
    for word, bits in enumerate(tree.sets[node].tolist()):
        for bit in range(WORD_BITS):
            code = word * WORD_BITS + bit
            if code and bits >> bit & 1:
                yield code
