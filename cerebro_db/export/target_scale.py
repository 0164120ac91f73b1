"""The end of an exported network: it turns outputs near 0 into numbers of the target.

The steps are those of the database, in double precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

KEY = "target_scale"
"""Key of the scale in a recipe; networks of earlier versions compute numbers by themselves."""
NAME = "in_units"
STEPS = (
    ("Multiply", "deviation"),
    ("Add", "offset"),
    ("Add", "low"),
    ("Maximum", "low"),
    ("Minimum", "high"),
)
"""The operation of each step, and its constant."""
MODULES = {"Softmax": "keras.src.ops.nn"}
"""Modules of operations that are not among those of arrays."""


def add_scale(architecture: dict[str, Any], scale: Mapping[str, float]) -> dict[str, Any]:
    """Return a rewritten architecture whose only output is in the units of the target."""
    operations = [(operation, scale[constant]) for operation, constant in STEPS]
    return append_operations(architecture, NAME, operations)


def append_operations(
    architecture: dict[str, Any], name: str, operations: Sequence[tuple[str, float | None]]
) -> dict[str, Any]:
    """Return a rewritten architecture with operations of Keras behind its only output.

    Args:
        name: the beginning of the names of the operations.
        operations: classes of Keras, each with its constant if it has one.
    """
    config = architecture["config"]
    layers = list(config["layers"])
    output = config["output_layers"]
    if isinstance(output[0], list):
        (output,) = output
    source = output[0]
    dtype = "float32"
    for number, (operation, constant) in enumerate(operations, 1):
        inputs = [_describe_output(source, dtype)]
        if constant is not None:
            inputs.append(_describe_constant(constant))
            dtype = "float64"
        source = f"{name}_{number}"
        layers.append(
            {
                "module": MODULES.get(operation, "keras.src.ops.numpy"),
                "class_name": operation,
                "config": {"name": source},
                "registered_name": None,
                "name": source,
                "inbound_nodes": [{"args": inputs, "kwargs": {}}],
            }
        )
    return {**architecture, "config": {**config, "layers": layers, "output_layers": [source, 0, 0]}}


def _describe_output(name: str, dtype: str) -> dict[str, Any]:
    config = {"shape": [None, 1], "dtype": dtype, "keras_history": [name, 0, 0]}
    return {"class_name": "__keras_tensor__", "config": config}


def _describe_constant(value: float) -> dict[str, Any]:
    return {"class_name": "__numpy__", "config": {"value": [value], "dtype": "float64"}}
