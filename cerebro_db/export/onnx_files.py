"""Export a model as an ONNX graph that takes raw numbers and category codes.

Keras exports the graph of the network. Nodes before it scale raw numbers in the steps and the
precision of the database. A Keras model would lose that precision: it casts its inputs to its own
type.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from cerebro_db.errors import FeatureNotSupported
from cerebro_db.export.model_files import check_paths, format_description
from cerebro_db.export.networks import build_network
from cerebro_db.export.paths import stage_files
from cerebro_db.export.recipe.rows import CODES, RAW, RawRows
from cerebro_db.export.recipe.scales import RawInput
from cerebro_db.export.stored_models import StoredModel
from cerebro_db.optional_imports import MODEL_EXTRAS, import_library

ONNX = ".onnx"
OPSET = 17


def write_onnx(stored: StoredModel, path: Path, force: bool) -> list[Path]:
    """Write an .onnx file, and the recipe to an .onnx.json file beside it; return both paths."""
    recipe_path = check_paths(path, ONNX, force)
    make_raw_rows(stored)  # refuses a model without a recipe
    import_library("tf2onnx", MODEL_EXTRAS)
    model = build_network(stored)
    description = json.loads(format_description(stored, model))
    rows = RawRows(description)
    # Keras does not export a model that was never called.
    zeros = [np.zeros((1, *tensor.shape[1:]), tensor.dtype) for tensor in model.inputs]
    model(zeros if len(zeros) > 1 else zeros[0])
    with stage_files(path.parent) as staging:
        model.export(staging / path.name, format="onnx", verbose=False, opset_version=OPSET)
        _insert_scales(staging / path.name, rows)
        description["onnx_inputs"] = [_describe_input(name, rows) for name in rows.network_names]
        text = json.dumps(description, indent=1, ensure_ascii=False) + "\n"
        (staging / recipe_path.name).write_text(text)
    return [path, recipe_path]


def make_raw_rows(stored: StoredModel) -> RawRows:
    """Return the conversion of raw rows to inputs of the model.

    Raises:
        FeatureNotSupported: the model has no recipe.
    """
    if "features" not in stored.description:
        raise FeatureNotSupported(
            f"the model of table {stored.description['table']} has no recipe: it takes packed "
            "arrays, not raw columns",
            hint="Export it as Keras or safetensors; cerebro.register gives it a name and a "
            "recipe.",
        )
    return RawRows(stored.description)


def _insert_scales(path: Path, rows: RawRows) -> None:
    """Insert nodes that scale raw numbers before the graph in a file."""
    onnx = import_library("onnx", "export")
    model = onnx.load(path)
    for position, name in enumerate(rows.network_names):
        if name in rows.scaled_inputs:
            _replace_input(model.graph, position, rows.scaled_inputs[name])
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


class ScaleNodes:
    """The nodes that compute an input of the network from raw numbers, and their constants.

    Their names begin with the name of the input.
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
        result = self._add_cast(scaled)
        if raw.missing_groups:
            missing = self._add_cast(unknown)
            groups = [
                self._add("Gather", missing, self._add_constant(np.array(positions)), axis=1)
                for positions in raw.missing_groups
            ]
            marks = [self._add("ReduceMin", group, axes=[1], keepdims=1) for group in groups]
            result = self._add("Concat", result, *marks, axis=1)
        self.nodes.append(self._onnx.helper.make_node("Identity", [result], [self.name]))

    def _add_cast(self, tensor: str) -> str:
        return self._add("Cast", tensor, to=self._onnx.TensorProto.FLOAT)

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


def _describe_input(name: str, rows: RawRows) -> dict[str, Any]:
    """Return the name and the contents of an input of the graph, for the description."""
    raw = rows.scaled_inputs.get(name)
    if raw is not None:
        numbers = [[number.column, number.part] for number in raw.numbers]
        return {"name": RAW + name, "numbers": numbers}
    features = rows.categories if name == CODES else [rows.wide_features[name]]
    columns = [feature["column"] for feature in features]
    return {"name": rows.network_names[name], "columns": columns}
