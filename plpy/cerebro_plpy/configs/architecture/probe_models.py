"""Linear probes: the same head on several layers of a network, to find its most useful layer.

All layers before the head are frozen, and dropout and noise are switched off.
"""

from __future__ import annotations

import json
import random
from array import array
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

from cerebro_plpy.configs.architecture.allowlist import MODELS
from cerebro_plpy.configs.architecture.model_shapes import (
    list_input_shapes,
    list_layers,
    read_layer_config,
)
from cerebro_plpy.limits import HEAD_WEIGHTS, Poll, check, no_poll, poll_between

RANDOM = {"Dropout": "rate", "GaussianNoise": "stddev"}
"""Parts of the names of layers that only drop or add at random, and the setting of the amount."""
DROPOUT_NAME = "drop"
"""A part of the names of such settings in other layers, as of attention or recurrent layers."""
INNER = ("layer", "forward_layer", "backward_layer", "cell")
POOLS = {2: "GlobalAveragePooling1D", 3: "GlobalAveragePooling2D", 4: "GlobalAveragePooling3D"}
"""The layer that averages all dimensions but the last one, by the number of dimensions of a row."""
Node = Mapping[str, Any]
POLL_WEIGHTS = 1 << 16
"""Number of weights between two checks for a cancel: some hundredths of a second."""


class Head(NamedTuple):
    """The dense layers of a probe."""

    hidden: tuple[int, ...]  # units of each hidden layer
    outputs: int
    activation: str  # of the outputs


def freeze(node: Node) -> dict[str, Any]:
    """Return a network, or a layer, without trainable weights and without randomness."""
    config = node.get("config")
    if node.get("class_name") in MODELS:
        layers = [freeze(layer) for layer in list_layers(node)]
        return {**node, "config": {**read_layer_config(node), "layers": layers}}
    if not isinstance(config, dict) or node.get("class_name") == "InputLayer":
        return dict(node)
    if _is_operation(node):
        return dict(node)
    inner = {key: freeze(config[key]) for key in INNER if isinstance(config.get(key), dict)}
    amounts = {
        key: 0.0
        for key, value in config.items()
        if type(value) in (int, float) and _is_random(node, key)
    }
    return {**node, "config": {**config, **inner, **amounts, "trainable": False}}


def _is_operation(node: Node) -> bool:
    return ".ops" in str(node.get("module", ""))


def _is_random(node: Node, key: str) -> bool:
    """Return True if a setting of a layer is the amount that it drops or adds at random."""
    if DROPOUT_NAME in key:
        return True
    name = str(node.get("class_name"))
    return any(part in name and key == setting for part, setting in RANDOM.items())


def build_probe(front: Node, name: str, shape: Sequence[int], head: Head) -> dict[str, Any]:
    """Return a network with a head.

    Args:
        front: frozen prefix, with a single input.
        name: new name of the prefix.
        shape: of the prefix's output for a row.
    """
    (input_shape,) = list_input_shapes(front)
    within = {**front, "config": {**front["config"], "name": name}}
    first = _layer("InputLayer", "explored", batch_shape=[None, *input_shape], dtype="float32")
    pool = [_layer(POOLS[len(shape)], "explored_mean")] if len(shape) in POOLS else []
    hidden = [
        _layer("Dense", f"explored_{number}", units=units, activation="relu")
        for number, units in enumerate(head.hidden, 1)
    ]
    last = _layer("Dense", "explored_outputs", units=head.outputs, activation=head.activation)
    config = {"name": "explored_network", "layers": [first, within, *pool, *hidden, last]}
    return {
        "module": "keras",
        "class_name": "Sequential",
        "registered_name": "Sequential",
        "config": config,
    }


def _layer(class_name: str, name: str, **config: Any) -> dict[str, Any]:
    config = {"name": name, **config}
    return {
        "module": "keras.layers",
        "class_name": class_name,
        "config": config,
        "registered_name": None,
    }


def draw_weights(width: int, head: Head, seed: int, poll: Poll = no_poll) -> bytes:
    """Draw initial weights of a head, as flat float32, from Keras' default (Glorot uniform).

    Args:
        width: number of inputs.

    Raises:
        InvalidParameter: the weights are too many.
    """
    widths = (width, *head.hidden, head.outputs)
    count = sum(inputs * units for inputs, units in zip(widths, widths[1:]))
    check("the number of weights of the head", count, HEAD_WEIGHTS)
    draw = random.Random(seed)
    parts = []
    for units in (*head.hidden, head.outputs):
        limit = sqrt(6 / (width + units))
        parts.append(
            array(
                "f",
                (
                    draw.uniform(-limit, limit)
                    for _ in poll_between(range(width * units), poll, POLL_WEIGHTS)
                ),
            ).tobytes()
        )
        parts.append(bytes(4 * units))
        width = units
    return b"".join(parts)


def pick_weights(flat: bytes, places: Sequence[Sequence[int]]) -> bytes:
    """Return slices of flat float32 weights.

    Args:
        places: begin and length of each slice.

    >>> pick_weights(array("f", [1, 2, 3, 4]).tobytes(), [[3, 1], [0, 2]]) == array("f",
    ...     [4, 1, 2]).tobytes()
    True
    """
    return b"".join(flat[4 * begin : 4 * (begin + count)] for begin, count in places)


def to_json(architecture: Node) -> str:
    """Return the JSON of an architecture."""
    return json.dumps(architecture, separators=(",", ":"))
