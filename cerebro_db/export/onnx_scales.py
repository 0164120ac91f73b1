"""Add the scales of inputs and of the target to the ONNX graph of a network.

They have the steps and the precision of the database. A Keras model would lose that precision: it
casts its inputs to its own type.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cerebro_db.export import temperature
from cerebro_db.export.recipe.rows import RAW, RawRows
from cerebro_db.export.recipe.scales import RawInput
from cerebro_db.export.target_scale import NAME, STEPS
from cerebro_db.optional_imports import import_library

TargetScale = Mapping[str, float]
OPERATORS = {"Multiply": "Mul", "Add": "Add", "Maximum": "Max", "Minimum": "Min"}
"""Operators of ONNX by the operations of Keras in `target_scale.STEPS`."""


def add_scales(source: Path, path: Path, rows: RawRows, target: TargetScale | None) -> None:
    """Write a graph with scales before the network, and a scale or a temperature after it.

    Args:
        source: the file with the graph of the network.
        target: the constants of the target; None if the network needs no scale at its end.
    """
    heat = rows.description.get(temperature.KEY)
    onnx = import_library("onnx", "export")
    model = onnx.load(source)
    for position, name in enumerate(rows.network_names):
        if name in rows.scaled_inputs:
            _replace_input(model.graph, position, rows.scaled_inputs[name])
    if target is not None:
        _replace_output(model.graph, target)
    if heat is not None:
        _heat_output(model.graph, heat, len(rows.description["classes"]))
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _replace_input(graph: Any, position: int, raw: RawInput) -> None:
    """Replace an input by raw numbers in double precision, and compute it from these."""
    onnx = import_library("onnx", "export")
    dimensions = graph.input[position].type.tensor_type.shape.dim
    shape = [dimension.dim_value for dimension in dimensions][1:]
    if len(shape) == 1:
        shape = [len(raw.numbers)]
    raw_info = onnx.helper.make_tensor_value_info(
        RAW + raw.name, onnx.TensorProto.DOUBLE, ["rows", *shape]
    )
    graph.input[position].CopyFrom(raw_info)
    nodes = ScaleNodes(raw.name)
    nodes.scale(raw, shape)
    network_nodes = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes.nodes, *network_nodes])
    graph.initializer.extend(nodes.constants)


def _replace_output(graph: Any, target: TargetScale) -> None:
    """Replace the output by numbers of the target, in double precision."""
    onnx = import_library("onnx", "export")
    (output,) = graph.output
    nodes = ScaleNodes(NAME)
    result = nodes.scale_target(output.name, target)
    graph.node.extend(nodes.nodes)
    graph.initializer.extend(nodes.constants)
    output.CopyFrom(
        onnx.helper.make_tensor_value_info(result, onnx.TensorProto.DOUBLE, ["rows", 1])
    )


def _heat_output(graph: Any, heat: float, classes: int) -> None:
    """Replace the output by probabilities of a temperature, in double precision."""
    onnx = import_library("onnx", "export")
    (output,) = graph.output
    nodes = ScaleNodes(temperature.NAME)
    result = nodes.heat(output.name, heat)
    graph.node.extend(nodes.nodes)
    graph.initializer.extend(nodes.constants)
    output.CopyFrom(
        onnx.helper.make_tensor_value_info(result, onnx.TensorProto.DOUBLE, ["rows", classes])
    )


class ScaleNodes:
    """The nodes that compute an input from raw numbers, or the output, and their constants.

    Their names begin with the name of the input or output.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._onnx = import_library("onnx", "export")

    def scale(self, raw: RawInput, shape: list[int]) -> None:
        """Add the nodes for the operations of `RawInput.scale`."""
        low, high, center, width, padding = (
            self._add_constant(constants.reshape(1, *shape)) for constants in raw.constants
        )
        zero = self._add_constant(np.zeros(1))
        values = RAW + raw.name
        unknown = self._add("IsNaN", values)
        bounded = self._add("Where", unknown, zero, values)
        bounded = self._add("Max", bounded, low)
        bounded = self._add("Min", bounded, high)
        centered = self._add("Sub", bounded, center)
        padded = self._add("Add", centered, padding)
        padded = self._add("Sub", padded, padding)
        scaled = self._add("Div", padded, width)
        scaled = self._add("Where", unknown, zero, scaled)
        result = self._add_cast(scaled, self._onnx.TensorProto.FLOAT)
        if raw.missing_groups:
            missing = self._add_cast(unknown, self._onnx.TensorProto.FLOAT)
            groups = [
                self._add("Gather", missing, self._add_constant(np.array(positions)), axis=1)
                for positions in raw.missing_groups
            ]
            columns = self._add_constant(np.array([1]))
            marks = [self._add("ReduceMin", group, columns, keepdims=1) for group in groups]
            result = self._add("Concat", result, *marks, axis=1)
        self.nodes.append(self._onnx.helper.make_node("Identity", [result], [self.name]))

    def scale_target(self, output: str, target: TargetScale) -> str:
        """Add the nodes for `target_scale.STEPS`; return the name of their output."""
        result = self._add_cast(output, self._onnx.TensorProto.DOUBLE)
        for operation, constant in STEPS:
            value = self._add_constant(np.array([target[constant]], np.float64))
            result = self._add(OPERATORS[operation], result, value)
        return result

    def heat(self, output: str, heat: float) -> str:
        """Add the nodes for a temperature; return the name of their output."""
        result = self._add_cast(output, self._onnx.TensorProto.DOUBLE)
        smallest = self._add_constant(np.array([temperature.MIN_PROBABILITY]))
        result = self._add("Max", result, smallest)
        result = self._add("Log", result)
        result = self._add("Mul", result, self._add_constant(np.array([1 / heat])))
        return self._add("Softmax", result, axis=-1)

    def _add_cast(self, tensor: str, element_type: int) -> str:
        return self._add("Cast", tensor, to=element_type)

    def _add(self, operator: str, *inputs: str, **attributes: object) -> str:
        """Add a node; return the name of its output."""
        output = f"{self.name}/{len(self.nodes)}"
        node = self._onnx.helper.make_node(operator, list(inputs), [output], **attributes)
        self.nodes.append(node)
        return output

    def _add_constant(self, value: Any) -> str:
        """Add a constant; return its name."""
        name = f"{self.name}/constant_{len(self.constants)}"
        self.constants.append(self._onnx.numpy_helper.from_array(value, name))
        return name
