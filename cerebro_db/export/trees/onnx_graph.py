"""Boosted trees in an ONNX graph of packed inputs, beside the network of a version or alone.

The operator `TreeEnsemble` compares in double precision and has sets of codes, so every row gets to
the leaves that it gets to in the database. Runtimes add the leaves in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cerebro_db.export.recipe.rows import CODES, NUMBERS, RawRows
from cerebro_db.export.recipe.scales import Json
from cerebro_db.export.recipe.tree_columns import MIN_MAGNITUDE
from cerebro_db.export.trees.model.spec import PackedInputs, TreesSpec
from cerebro_db.export.trees.stored_trees import TreesMember
from cerebro_db.export.trees.tree_ensemble import Ensemble
from cerebro_db.optional_imports import import_library

OPSET = 18
TREES_DOMAIN = "ai.onnx.ml"
TREES_OPSET = 5
"""The first version of ONNX' operators for trees that has `TreeEnsemble`."""
IR_VERSION = 9


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


def add_trees(path: Path, members: Sequence[TreesMember], inputs: Sequence[Json]) -> None:
    """Add boosted trees to the graph of a network, or write a graph of trees alone.

    Args:
        path: the file; it exists if there is a network.
        inputs: the packed inputs of the network, or those of the trees.
    """
    onnx = import_library("onnx", "export")
    names = [entry["name"] for entry in inputs]
    if path.exists():
        model = onnx.load(path)
        total = model.graph.output[0].name
    else:
        model = _make_model(inputs)
        total = ""
    nodes = GraphNodes("trees")
    if total:
        total = nodes.add("Cast", total, to=onnx.TensorProto.DOUBLE)
    for member in members:
        output = TreeNodes(nodes, member).add_all(names)
        if member.share != 1:
            output = nodes.add("Mul", output, nodes.add_constant(np.array([member.share])))
        if total:
            output = nodes.add("Add", total, output)
        total = output
    result = nodes.add("Cast", total, to=onnx.TensorProto.FLOAT)
    units = members[0].spec.units
    info = onnx.helper.make_tensor_value_info(result, onnx.TensorProto.FLOAT, ["rows", units])
    del model.graph.output[:]
    model.graph.output.append(info)
    model.graph.node.extend(nodes.nodes)
    model.graph.initializer.extend(nodes.constants)
    other_opsets = [opset for opset in model.opset_import if opset.domain != TREES_DOMAIN]
    del model.opset_import[:]  # a converter may have named an older version of the domain
    model.opset_import.extend([*other_opsets, onnx.helper.make_opsetid(TREES_DOMAIN, TREES_OPSET)])
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _make_model(inputs: Sequence[Json]) -> Any:
    """Return a model with inputs only."""
    onnx = import_library("onnx", "export")
    types = {"float32": onnx.TensorProto.FLOAT, "int32": onnx.TensorProto.INT32}
    infos = [
        onnx.helper.make_tensor_value_info(
            entry["name"], types[entry["dtype"]], ["rows", *entry["shape"]]
        )
        for entry in inputs
    ]
    graph = onnx.helper.make_graph([], "trees", infos, [])
    opsets = [onnx.helper.make_opsetid("", OPSET)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


class GraphNodes:
    """Nodes and constants that are added to a graph; their names begin with a prefix."""

    def __init__(self, prefix: str) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._prefix = prefix
        self._onnx = import_library("onnx", "export")

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        output = f"{self._prefix}/{len(self.nodes)}"
        self.nodes.append(
            self._onnx.helper.make_node(operator, list(inputs), [output], **attributes)
        )
        return output

    def add_constant(self, value: Any) -> str:
        """Add a constant; return its name."""
        name = f"{self._prefix}/constant_{len(self.constants)}"
        self.constants.append(self._onnx.numpy_helper.from_array(value, name))
        return name


class TreeNodes:
    """The nodes of boosted trees, from packed inputs to outputs in double precision."""

    def __init__(self, nodes: GraphNodes, member: TreesMember) -> None:
        self._nodes = nodes
        self._spec = member.spec
        self._forest = member.forest
        self._onnx = import_library("onnx", "export")

    def add_all(self, names: Sequence[str]) -> str:
        """Add all nodes for inputs of these names; return the name of the output."""
        columns = self._add_columns(list(names))
        return self._add_outputs(self._add_trees(columns))

    def _add_columns(self, names: list[str]) -> str:
        """Add the matrix of the trees' columns; see `recipe.tree_columns`."""
        inputs = self._spec.inputs
        parts = []
        if inputs.width:
            parts.append(self._add_numbers(names.pop(0), inputs))
        if inputs.cardinalities:
            codes = self._nodes.add("Cast", names.pop(0), to=self._onnx.TensorProto.FLOAT)
            parts.append(self._mark(codes, self._nodes.add("Equal", codes, self._add_float(0.0))))
        flat = self._nodes.add_constant(np.array([0, -1]))
        for array, (name, size) in enumerate(zip(names, inputs.vectors, strict=True)):
            words = inputs.find_words(array)
            if words:
                parts += self._count_words(name, words)
            elif size:
                parts.append(self._nodes.add("Reshape", name, flat))
        matrix = self._nodes.add("Concat", *parts, axis=1)
        magnitude = self._nodes.add("Abs", matrix)
        is_tiny = self._nodes.add("Less", magnitude, self._add_float(MIN_MAGNITUDE))
        flushed = self._nodes.add("Where", is_tiny, self._add_float(0.0), matrix)
        return self._nodes.add("Cast", flushed, to=self._onnx.TensorProto.DOUBLE)

    def _count_words(self, name: str, words: Sequence[int]) -> list[str]:
        """Add the counts of some words in each row, and of all words."""
        last = self._nodes.add_constant(np.array([-1]))
        middle = self._nodes.add_constant(np.array([1]))
        numbers = self._nodes.add("Cast", name, to=self._onnx.TensorProto.INT64)
        rows = self._nodes.add("Unsqueeze", numbers, middle)
        counted = self._nodes.add_constant(np.array(words, np.int64)[np.newaxis, :, np.newaxis])
        zero = self._nodes.add_constant(np.array([0]))
        matches = self._nodes.add("Equal", rows, counted)
        is_word = self._nodes.add("Not", self._nodes.add("Equal", numbers, zero))
        counts = self._nodes.add("ReduceSum", self._cast(matches), last, keepdims=0)
        return [counts, self._nodes.add("ReduceSum", self._cast(is_word), last, keepdims=1)]

    def _cast(self, flags: str) -> str:
        return self._nodes.add("Cast", flags, to=self._onnx.TensorProto.FLOAT)

    def _add_numbers(self, name: str, inputs: PackedInputs) -> str:
        """Add the first array without its missing indicators, and with NaN for what is missing."""
        indicators = dict(inputs.missing)
        positions = [indicators.get(column, column) for column in inputs.first_columns]
        may_be_missing = [column in indicators for column in inputs.first_columns]
        numbers = self._nodes.add(
            "Gather",
            name,
            self._nodes.add_constant(np.array(inputs.first_columns, np.int64)),
            axis=1,
        )
        flags = self._nodes.add(
            "Gather", name, self._nodes.add_constant(np.array(positions, np.int64)), axis=1
        )
        is_set = self._nodes.add("Equal", flags, self._add_float(1.0))
        mask = self._nodes.add_constant(np.array(may_be_missing)[np.newaxis])
        return self._mark(numbers, self._nodes.add("And", is_set, mask))

    def _gather(self, name: str, columns: Sequence[int]) -> str:
        positions = self._nodes.add_constant(np.array(columns, np.int64))
        return self._nodes.add("Gather", name, positions, axis=1)

    def _mark(self, numbers: str, is_missing: str) -> str:
        return self._nodes.add("Where", is_missing, self._add_float(np.nan), numbers)

    def _add_trees(self, columns: str) -> str:
        """Add the sum of the trees and the base."""
        ensemble = Ensemble(self._forest)
        for position in range(self._forest.size):
            ensemble.add_tree(position)
        attributes = ensemble.list_attributes(self._onnx)
        scores = self._nodes.add("TreeEnsemble", columns, domain=TREES_DOMAIN, **attributes)
        base = self._nodes.add_constant(self._forest.base[np.newaxis])
        return self._nodes.add("Add", scores, base)

    def _add_outputs(self, scores: str) -> str:
        spec = self._spec
        if spec.outputs > 1:
            return self._nodes.add("Softmax", scores, axis=1)
        if spec.units > 1:
            second = self._nodes.add("Sigmoid", scores)
            first = self._nodes.add("Sub", self._nodes.add_constant(np.ones((1, 1))), second)
            return self._nodes.add("Concat", first, second, axis=1)
        if spec.has_logarithms:
            scores = self._add_exponential(scores)
        for operator, bound in (("Max", spec.low), ("Min", spec.high)):
            if bound is not None:
                scores = self._nodes.add(
                    operator, scores, self._nodes.add_constant(np.array([bound]))
                )
        return scores

    def _add_exponential(self, scores: str) -> str:
        """Add low + exp(score), of scores that are limited as in the trainer."""
        low = float(self._spec.low or 0.0)
        span = float(self._spec.high or 0.0) - low
        ceiling = self._nodes.add_constant(np.array([np.log(span)]))
        ratios = self._nodes.add("Exp", self._nodes.add("Min", scores, ceiling))
        return self._nodes.add("Add", ratios, self._nodes.add_constant(np.array([low])))

    def _add_float(self, value: float) -> str:
        return self._nodes.add_constant(np.array([value], np.float32))
