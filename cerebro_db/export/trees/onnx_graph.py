"""Boosted trees as an ONNX graph of packed inputs, in the place of a converted network.

The operator `TreeEnsemble` compares in double precision and has sets of codes, so every row gets to
the leaves that it gets to in the database. Runtimes add the leaves in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cerebro_db.export.recipe.rows import CODES, NUMBERS, RawRows
from cerebro_db.export.recipe.tree_columns import MIN_MAGNITUDE
from cerebro_db.export.trees.model.forest import CATEGORY, Forest, Tree
from cerebro_db.export.trees.model.spec import WORD_BITS, PackedInputs, TreesSpec
from cerebro_db.export.trees.stored_trees import StoredTrees
from cerebro_db.optional_imports import import_library

OPSET = 18
TREES_OPSET = 5
"""The first version of ONNX' operators for trees that has `TreeEnsemble`."""
IR_VERSION = 9
AT_MOST = 0
IN_SET = 6
"""Modes of a node: a number is at most the split, or in a set."""
SUM = 1
OUTPUT = "prediction"


def describe_inputs(rows: RawRows, spec: TreesSpec) -> list[dict[str, Any]]:
    """Return the packed inputs in their order: name, shape of a row, type."""
    sizes: list[int | None] = []
    if NUMBERS in rows.network_names:
        sizes.append(spec.inputs.width)
    if CODES in rows.network_names:
        sizes.append(len(rows.categories))
    sizes += [size or None for size in spec.inputs.vectors]
    return [
        {"name": name, "shape": [size], "dtype": _find_dtype(rows, name)}
        for name, size in zip(rows.network_names, sizes, strict=True)
    ]


def _find_dtype(rows: RawRows, name: str) -> str:
    if name == CODES or rows.wide_features.get(name, {}).get("kind") == "text":
        return "int32"
    return "float32"


def write_graph(trees: StoredTrees, rows: RawRows, path: Path) -> list[dict[str, Any]]:
    """Write the graph; return the descriptions of its inputs."""
    onnx = import_library("onnx", "export")
    inputs = describe_inputs(rows, trees.spec)
    types = {"float32": onnx.TensorProto.FLOAT, "int32": onnx.TensorProto.INT32}
    infos = [
        onnx.helper.make_tensor_value_info(
            entry["name"], types[entry["dtype"]], ["rows", *entry["shape"]]
        )
        for entry in inputs
    ]
    output = onnx.helper.make_tensor_value_info(
        OUTPUT, onnx.TensorProto.FLOAT, ["rows", trees.spec.units]
    )
    nodes = TreeNodes(trees)
    nodes.add_all([entry["name"] for entry in inputs])
    graph = onnx.helper.make_graph(nodes.nodes, "trees", infos, [output], nodes.constants)
    opsets = [
        onnx.helper.make_opsetid("", OPSET),
        onnx.helper.make_opsetid("ai.onnx.ml", TREES_OPSET),
    ]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return inputs


class TreeNodes:
    """The nodes from packed inputs to predictions, and their constants."""

    def __init__(self, trees: StoredTrees) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._spec = trees.spec
        self._forest = trees.forest
        self._onnx = import_library("onnx", "export")

    def add_all(self, names: Sequence[str]) -> None:
        """Add all nodes for inputs of these names."""
        columns = self._add_columns(list(names))
        scores = self._add_trees(columns)
        result = self._add_outputs(scores)
        self.nodes.append(
            self._onnx.helper.make_node("Cast", [result], [OUTPUT], to=self._onnx.TensorProto.FLOAT)
        )

    def _add_columns(self, names: list[str]) -> str:
        """Add the matrix of the trees' columns; see `recipe.tree_columns`."""
        inputs = self._spec.inputs
        parts = []
        if inputs.width:
            parts.append(self._add_numbers(names.pop(0), inputs))
        if inputs.cardinalities:
            codes = self._add("Cast", names.pop(0), to=self._onnx.TensorProto.FLOAT)
            parts.append(self._mark(codes, self._add("Equal", codes, self._add_float(0.0))))
        parts += [name for name, size in zip(names, inputs.vectors, strict=True) if size]
        matrix = self._add("Concat", *parts, axis=1)
        size = self._add("Abs", matrix)
        is_tiny = self._add("Less", size, self._add_float(MIN_MAGNITUDE))
        flushed = self._add("Where", is_tiny, self._add_float(0.0), matrix)
        return self._add("Cast", flushed, to=self._onnx.TensorProto.DOUBLE)

    def _add_numbers(self, name: str, inputs: PackedInputs) -> str:
        """Add the first array without its missing indicators, and with NaN for what is missing."""
        indicators = dict(inputs.missing)
        positions = [indicators.get(column, column) for column in inputs.first_columns]
        may_be_missing = [column in indicators for column in inputs.first_columns]
        numbers = self._add(
            "Gather", name, self._add_constant(np.array(inputs.first_columns, np.int64)), axis=1
        )
        flags = self._add("Gather", name, self._add_constant(np.array(positions, np.int64)), axis=1)
        is_set = self._add("Equal", flags, self._add_float(1.0))
        mask = self._add_constant(np.array(may_be_missing)[np.newaxis])
        return self._mark(numbers, self._add("And", is_set, mask))

    def _mark(self, numbers: str, is_missing: str) -> str:
        return self._add("Where", is_missing, self._add_float(np.nan), numbers)

    def _add_trees(self, columns: str) -> str:
        """Add the sum of the trees and the base."""
        ensemble = Ensemble(self._spec, self._forest)
        for position in range(self._forest.size):
            ensemble.add_tree(position)
        attributes = ensemble.list_attributes(self._onnx)
        scores = self._add("TreeEnsemble", columns, domain="ai.onnx.ml", **attributes)
        base = self._add_constant(self._forest.base[np.newaxis])
        return self._add("Add", scores, base)

    def _add_outputs(self, scores: str) -> str:
        spec = self._spec
        if spec.outputs > 1:
            return self._add("Softmax", scores, axis=1)
        if spec.units > 1:
            second = self._add("Sigmoid", scores)
            first = self._add("Sub", self._add_constant(np.ones((1, 1))), second)
            return self._add("Concat", first, second, axis=1)
        for operator, bound in (("Max", spec.low), ("Min", spec.high)):
            if bound is not None:
                scores = self._add(operator, scores, self._add_constant(np.array([bound])))
        return scores

    def _add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        output = f"trees/{len(self.nodes)}"
        self.nodes.append(
            self._onnx.helper.make_node(operator, list(inputs), [output], **attributes)
        )
        return output

    def _add_float(self, value: float) -> str:
        return self._add_constant(np.array([value], np.float32))

    def _add_constant(self, value: Any) -> str:
        """Add a constant; return its name."""
        name = f"trees/constant_{len(self.constants)}"
        self.constants.append(self._onnx.numpy_helper.from_array(value, name))
        return name


class Ensemble:
    """The attributes of a `TreeEnsemble`, tree by tree."""

    def __init__(self, spec: TreesSpec, forest: Forest) -> None:
        self._spec = spec
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

    def _add_children(self, begins: tuple[int, int], *children: int) -> None:
        """Add the children of a node.

        Args:
            begins: positions of the first node and the first leaf of the tree.
        """
        first_node, first_leaf = begins
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
