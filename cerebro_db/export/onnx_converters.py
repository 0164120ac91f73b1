"""Convert the network of a model to ONNX, with the libraries that are installed.

Keras has one backend in a process, which the caller may have chosen already. The conversion
therefore runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cerebro_db.errors import FeatureNotSupported, MissingLibrary, find_error_class
from cerebro_db.export.stored_models import StoredModel
from cerebro_db.optional_imports import BACKEND_VARIABLE

GRAPH = "graph.onnx"
ARCHITECTURE = "architecture.json"
WEIGHTS = "weights.npz"
RESULT = "result.json"


class Converter(NamedTuple):
    """A way to convert a Keras model to ONNX."""

    backend: str  # of Keras, as in KERAS_BACKEND
    libraries: tuple[str, ...]  # modules that it imports
    extras: str  # extras of the package that install these modules


CONVERTERS = (
    Converter("torch", ("keras", "onnx", "onnxscript", "torch"), "export,torch"),
    Converter(
        "tensorflow", ("keras", "onnx", "tensorflow", "tf2onnx"), "export,tensorflow,tf2onnx"
    ),
)
"""The preferred one comes first."""


class Conversion(NamedTuple):
    """The results of a conversion beside the graph."""

    inputs: list[dict[str, Any]]  # name, shape of a row and type of each input of the network
    converter: str  # the library with its version


def choose_converter() -> Converter:
    """Return a converter whose libraries are installed; KERAS_BACKEND can name the preferred one.

    Raises:
        MissingLibrary: each converter lacks a library.
    """
    backend = os.environ.get(BACKEND_VARIABLE)
    missing = {}
    for converter in sorted(CONVERTERS, key=lambda converter: converter.backend != backend):
        missing[converter] = [name for name in converter.libraries if find_spec(name) is None]
        if not missing[converter]:
            return converter
    needs = "; ".join(
        f"with {converter.backend}: {', '.join(names)}" for converter, names in missing.items()
    )
    commands = " or ".join(f"pip install '.[{converter.extras}]'" for converter in missing)
    raise MissingLibrary(
        f"libraries that an export to ONNX needs are not installed ({needs})",
        hint=f"In a clone of cerebro_db: {commands}",
        name=next(iter(missing.values()))[0],
    )


def convert(stored: StoredModel, folder: Path) -> Conversion:
    """Write the graph of a network into a folder, as the file `GRAPH`.

    Raises:
        MissingLibrary: no converter is installed.
        FeatureNotSupported: the converter has no ONNX for an operation of the network.
        CerebroError: the architecture or the weights are refused, as by `build_network`.
    """
    converter = choose_converter()
    (folder / ARCHITECTURE).write_text(stored.architecture)
    np.savez(folder / WEIGHTS, *stored.weights, allow_pickle=False)
    command = [sys.executable, "-P", "-m", "cerebro_db.export.onnx_process", str(folder)]
    if stored.is_flat:
        command.append("--flat")
    environment = {**os.environ, BACKEND_VARIABLE: converter.backend}
    process = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    result = folder / RESULT
    if not result.exists():
        lines = process.stderr.strip().splitlines() or ["no message"]
        raise FeatureNotSupported(
            f"the conversion to ONNX with {converter.backend} ended with status "
            f"{process.returncode}: {lines[-1]:.300}",
            hint="Export the model as Keras or safetensors.",
        )
    return _read_result(json.loads(result.read_text()))


def _read_result(result: Mapping[str, Any]) -> Conversion:
    if "error" in result:
        error = result["error"]
        raise find_error_class(error["sqlstate"])(error["message"], hint=error["hint"])
    return Conversion(result["inputs"], result["converter"])
