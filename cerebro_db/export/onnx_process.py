"""The process that converts the network of a model to ONNX.

`onnx_converters` starts it with a folder that has the architecture and the weights. The backend of
Keras, which KERAS_BACKEND names, decides how the network is converted.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cerebro_db.errors import CerebroError, FeatureNotSupported
from cerebro_db.export.model_files import describe_inputs
from cerebro_db.export.networks import build_network
from cerebro_db.export.onnx_converters import ARCHITECTURE, GRAPH, RESULT, WEIGHTS
from cerebro_db.export.stored_models import StoredModel
from cerebro_db.optional_imports import import_keras, import_library

OPSET = 18
"""The version of ONNX' operators: the oldest that PyTorch writes, the newest that tf2onnx does."""
SAMPLE_ROWS = 3
"""Rows of the inputs with which a network is traced; PyTorch would take 1 for a fixed number."""
MISSING_OPERATION = re.compile(r"No ONNX function found for <OpOverload\(op='([^']+)'")
NAMES = {"torch": "PyTorch", "tensorflow": "TensorFlow"}


def main() -> None:
    """Convert the network in a folder; write the graph and the result into the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--flat", action="store_true")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    try:
        result = _convert(_read_network(args.folder, args.flat), args.folder / GRAPH)
    except CerebroError as error:
        fields = ("sqlstate", "message", "hint")
        result = {"error": {name: getattr(error, name) for name in fields}}
    (args.folder / RESULT).write_text(json.dumps(result))


def _read_network(folder: Path, is_flat: bool) -> StoredModel:
    """Return the network; without a description it has no scale of the target at its end."""
    with np.load(folder / WEIGHTS, allow_pickle=False) as file:
        weights = [file[f"arr_{number}"] for number in range(len(file.files))]
    return StoredModel((folder / ARCHITECTURE).read_text(), {}, weights, is_flat)


def _convert(stored: StoredModel, path: Path) -> dict[str, Any]:
    keras = import_keras()
    backend = keras.backend.backend()
    model = build_network(stored)
    for layer in model._flatten_layers():
        # Penalties of training are no part of predictions, and cannot be traced for any number of
        # rows.
        layer.activity_regularizer = None
    version = import_library(backend, "export").__version__
    converter = f"{NAMES[backend]} {version}"
    try:
        if backend == "torch":
            _convert_with_torch(model, path)
        else:
            _convert_with_tensorflow(model, path)
    except Exception as error:
        raise FeatureNotSupported(
            f"Keras {keras.__version__} with {converter} cannot convert the model to ONNX: "
            f"{find_reason(error)}",
            hint="Export it as Keras or safetensors, or name another converter that is installed: "
            "KERAS_BACKEND=torch or KERAS_BACKEND=tensorflow.",
        ) from error
    return {"inputs": describe_inputs(model), "converter": converter}


def find_reason(error: BaseException) -> str:
    """Return the operation that has no ONNX, or the first line of the message."""
    causes = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    for cause in causes:
        if match := MISSING_OPERATION.search(str(cause)):
            return f"the operation {match[1]} has no ONNX"
    line = next(iter(str(causes[-1]).strip().splitlines()), "")
    return f"{line:.300}" or type(error).__name__


def _pack_inputs(inputs: Sequence[Any]) -> Any:
    """Return the argument of a model: a list if it has several inputs."""
    if len(inputs) == 1:
        return inputs[0]
    return list(inputs)


def _convert_with_torch(model: Any, path: Path) -> None:
    """Write the graph by PyTorch's exporter.

    Keras would write one for a single row, or by the older exporter, which lacks operations.
    """
    torch = import_library("torch", "export,torch")
    operators = import_library("onnxscript", "export,torch").opset18
    for variable in model.variables:
        variable.value.requires_grad_(False)

    class Network(torch.nn.Module):  # type: ignore[misc, name-defined]
        """The model as a function of its inputs in their order."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: Any) -> Any:
            return self.model(_pack_inputs(inputs), training=False)

    def copy(tensor: Any) -> Any:
        return operators.Identity(tensor)

    samples = tuple(
        torch.zeros((SAMPLE_ROWS, *tensor.shape[1:]), dtype=getattr(torch, tensor.dtype))
        for tensor in model.inputs
    )
    rows = torch.export.Dim("rows")
    program = torch.export.export(
        Network().eval(),
        samples,
        dynamic_shapes=(tuple({0: rows} for _ in samples),),
        strict=False,
    )
    # Names such as `multiply` become `mul`, for which the exporter promotes types.
    program = program.run_decompositions()
    onnx_program = torch.onnx.export(
        program,
        input_names=[tensor.name for tensor in model.inputs],
        opset_version=OPSET,
        custom_translation_table={torch.ops.prims.view_of.default: copy},
        # Runtimes optimize graphs when they load them. PyTorch's optimizer puts limits of numbers
        # behind the nodes that use them if a graph is large.
        optimize=False,
        verbose=False,
        dynamo=True,
    )
    onnx_program.save(path)


def _convert_with_tensorflow(model: Any, path: Path) -> None:
    """Write the graph by tf2onnx, which Keras calls."""
    # Keras does not export a model that was never called.
    zeros = [np.zeros((1, *tensor.shape[1:]), tensor.dtype) for tensor in model.inputs]
    model(_pack_inputs(zeros))
    model.export(path, format="onnx", verbose=False, opset_version=OPSET)


if __name__ == "__main__":
    main()
