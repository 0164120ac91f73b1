"""The end of an exported network: it turns outputs near 0 into numbers of the target.

The steps are those of the database, in double precision.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def add_scale(architecture: dict[str, Any], scale: Mapping[str, float]) -> dict[str, Any]:
    """Return a rewritten architecture whose only output is in the units of the target."""
    config = architecture["config"]
    layers = list(config["layers"])
    output = config["output_layers"]
    if isinstance(output[0], list):
        (output,) = output
    name = output[0]
    dtype = "float32"
    for number, (operation, constant) in enumerate(STEPS, 1):
        inputs = [_describe_output(name, dtype), _describe_constant(scale[constant])]
        name = f"{NAME}_{number}"
        dtype = "float64"
        layers.append(
            {
                "module": "keras.src.ops.numpy",
                "class_name": operation,
                "config": {"name": name},
                "registered_name": None,
                "name": name,
                "inbound_nodes": [{"args": inputs, "kwargs": {}}],
            }
        )
    return {**architecture, "config": {**config, "layers": layers, "output_layers": [name, 0, 0]}}


def _describe_output(name: str, dtype: str) -> dict[str, Any]:
    config = {"shape": [None, 1], "dtype": dtype, "keras_history": [name, 0, 0]}
    return {"class_name": "__keras_tensor__", "config": config}


def _describe_constant(value: float) -> dict[str, Any]:
    return {"class_name": "__numpy__", "config": {"value": [value], "dtype": "float64"}}
