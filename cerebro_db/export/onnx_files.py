"""A model as a graph of ONNX, from raw numbers and codes of categories to what it says: scales are
a part of it.

Keras makes the graph of the network; its numbers are made by nodes before it, in the steps and the
precision of the database, which a Keras model would not keep: it casts its inputs to its own type.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from cerebro_db.errors import FeatureNotSupported
from cerebro_db.export.model_files import beside, readable
from cerebro_db.export.networks import network
from cerebro_db.export.paths import written
from cerebro_db.export.recipe.rows import CODES, RAW, RawRows
from cerebro_db.export.recipe.scales import RawInput
from cerebro_db.export.stored_models import StoredModel
from cerebro_db.optional_imports import import_library

ONNX, OPSET = ".onnx", 17


def write_onnx(stored: StoredModel, path: Path, force: bool) -> list[Path]:
    """Writes `path`, which ends in .onnx, and the recipe beside it, as a .json of the same name."""
    paths = beside(path, ONNX, force)
    raw_rows(stored)
    import_library("tf2onnx", "export")
    model = network(stored)
    told = json.loads(readable(stored, model))
    rows = RawRows(told)
    # Keras exports no model that was never called.
    zeros = [np.zeros((1, *each.shape[1:]), each.dtype) for each in model.inputs]
    model(zeros if len(zeros) > 1 else zeros[0])
    with written(path.parent) as made:
        model.export(made / path.name, format="onnx", verbose=False, opset_version=OPSET)
        _put_scales(made / path.name, rows)
        told["onnx_inputs"] = [_described(name, rows) for name in rows.names]
        (made / paths[1].name).write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    return paths


def raw_rows(stored: StoredModel) -> RawRows:
    """What the model takes of raw rows; FeatureNotSupported where it has no recipe."""
    if "features" not in stored.description:
        raise FeatureNotSupported(
            f"the model of table {stored.description['table']} has no recipe: it takes packed "
            "arrays, not raw columns",
            hint="Export it as Keras or safetensors; cerebro.register gives it a name and a "
            "recipe.",
        )
    return RawRows(stored.description)


def _put_scales(path: Path, rows: RawRows) -> None:
    """Puts scales before the graph in a file."""
    onnx = import_library("onnx", "export")
    model = onnx.load(path)
    for place, name in enumerate(rows.names):
        if name in rows.scaled:
            _put_before(model.graph, place, rows.scaled[name])
    onnx.checker.check_model(model)
    onnx.save(model, path)


def _put_before(graph: Any, place: int, raw: RawInput) -> None:
    """Makes an input of a graph one of raw numbers in double precision, from which its nodes make
    the network's.
    """
    onnx = import_library("onnx", "export")
    sizes = [each.dim_value for each in graph.input[place].type.tensor_type.shape.dim][1:]
    shape = [len(raw.numbers)] if len(sizes) == 1 else sizes
    made = onnx.helper.make_tensor_value_info(
        RAW + raw.name, onnx.TensorProto.DOUBLE, ["rows", *shape]
    )
    graph.input[place].CopyFrom(made)
    nodes = Nodes(raw.name)
    nodes.scale(raw, shape)
    network = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes.made, *network])
    graph.initializer.extend(nodes.constants)


class Nodes:
    """The nodes that make an input of a network of raw numbers, and their constants, named after
    the input.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.made: list[Any] = []
        self.constants: list[Any] = []

    def scale(self, raw: RawInput, shape: list[int]) -> None:
        """The same as `RawInput.scaled`."""
        low, high, center, width, padding = (
            self._constant(each.reshape(1, *shape)) for each in raw.constants
        )
        zero, given = self._constant(np.zeros(1)), RAW + raw.name
        unknown = self._node("IsNaN", given)
        bounded = self._node(
            "Min", self._node("Max", self._node("Where", unknown, zero, given), low), high
        )
        padded = self._node(
            "Sub", self._node("Add", self._node("Sub", bounded, center), padding), padding
        )
        scaled = self._node("Where", unknown, zero, self._node("Div", padded, width))
        last = self._float(scaled)
        if raw.missing:
            mark = self._float(unknown)
            groups = [
                self._node("Gather", mark, self._constant(np.array(each)), axis=1)
                for each in raw.missing
            ]
            marks = [self._node("ReduceMin", each, axes=[1], keepdims=1) for each in groups]
            last = self._node("Concat", last, *marks, axis=1)
        self.made.append(
            import_library("onnx", "export").helper.make_node("Identity", [last], [self.name])
        )

    def _float(self, given: str) -> str:
        return self._node("Cast", given, to=import_library("onnx", "export").TensorProto.FLOAT)

    def _node(self, kind: str, *inputs: str, **attributes: object) -> str:
        output = f"{self.name}/{len(self.made)}"
        self.made.append(
            import_library("onnx", "export").helper.make_node(
                kind, list(inputs), [output], **attributes
            )
        )
        return output

    def _constant(self, value: Any) -> str:
        name = f"{self.name}/constant_{len(self.constants)}"
        self.constants.append(import_library("onnx", "export").numpy_helper.from_array(value, name))
        return name


def _described(name: str, rows: RawRows) -> dict[str, Any]:
    """What stands in an input of the graph, and where."""
    if (raw := rows.scaled.get(name)) is not None:
        return {"name": RAW + name, "numbers": [[each.column, each.part] for each in raw.numbers]}
    of = (
        [each["column"] for each in rows.categories]
        if name == CODES
        else [rows.wide[name]["column"]]
    )
    return {"name": rows.names[name], "columns": of}
