"""The same head on what several layers of a network give: architectures that say which of its
layers is worth most.

All in front of the head is frozen. What is dropped at random while a network trains is not, where
it is only looked at.
"""

from __future__ import annotations

import json
import random
from array import array
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple

from cerebro_plpy.configs.architecture.allowlist import MODELS
from cerebro_plpy.configs.architecture.model_shapes import input_shapes, layers
from cerebro_plpy.limits import HEAD_WEIGHTS, Poll, check, never, polled

RANDOM = {"Dropout": "rate", "GaussianNoise": "stddev"}
"""What the names of layers hold that do nothing but drop or add at random, and what these call how
much.
"""
DROPPED = "drop"
"""What the names of such shares hold in other layers, such as attention, recurrent ones and
backbones.
"""
INNER = ("layer", "forward_layer", "backward_layer", "cell")
POOLS = {2: "GlobalAveragePooling1D", 3: "GlobalAveragePooling2D", 4: "GlobalAveragePooling3D"}
"""By the dimensions of what a layer gives for a row: its mean over all but the last one is what a
head sees.
"""
Node = Mapping[str, Any]
DRAWN = 1 << 16
"""Weights between two looks for a cancel: some hundredths of a second."""


class Head(NamedTuple):
    """Layers of so many hidden units, and then the outputs with their activation."""

    hidden: tuple[int, ...]
    outputs: int
    activation: str


def frozen(node: Node) -> dict[str, Any]:
    """A network, or a layer of one, in which nothing is trained or random."""
    if node.get("class_name") in MODELS:
        about = node["config"] if isinstance(node["config"], dict) else {}
        return {**node, "config": {**about, "layers": [frozen(layer) for layer in layers(node)]}}
    config = node.get("config")
    if (
        not isinstance(config, dict)
        or node.get("class_name") == "InputLayer"
        or _is_operation(node)
    ):
        return dict(node)
    inner = {key: frozen(config[key]) for key in INNER if isinstance(config.get(key), dict)}
    still = {
        key: 0.0
        for key, value in config.items()
        if type(value) in (int, float) and _is_random(node, key)
    }
    return {**node, "config": {**config, **inner, **still, "trainable": False}}


def _is_operation(node: Node) -> bool:
    return ".ops" in str(node.get("module", ""))


def _is_random(node: Node, key: str) -> bool:
    """Whether a setting of a layer says how much it drops or adds at random."""
    name = str(node.get("class_name"))
    return DROPPED in key or any(part in name and key == share for part, share in RANDOM.items())


def network(front: Node, name: str, shape: Sequence[int], head: Head) -> dict[str, Any]:
    """A head on a network, then of that name, that gives this shape for a row; it has one input."""
    (given,) = input_shapes(front)
    within = {**front, "config": {**front["config"], "name": name}}
    first = _layer("InputLayer", "explored", batch_shape=[None, *given], dtype="float32")
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


def weights(width: int, head: Head, seed: int, poll: Poll = never) -> bytes:
    """Fresh weights of a head on so many numbers, as flat float32: drawn as Keras does, by Glorot
    and Bengio.

    Raises InvalidParameter if they are too many.
    """
    count = sum(
        before * after for before, after in zip((width, *head.hidden), (*head.hidden, head.outputs))
    )
    check("the number of weights of the head", count, HEAD_WEIGHTS)
    draw, parts = random.Random(seed), []
    for units in (*head.hidden, head.outputs):
        limit = sqrt(6 / (width + units))
        parts.append(
            array(
                "f",
                (draw.uniform(-limit, limit) for _ in polled(range(width * units), poll, DRAWN)),
            ).tobytes()
        )
        parts.append(bytes(4 * units))
        width = units
    return b"".join(parts)


def pick(flat: bytes, places: Sequence[Sequence[int]]) -> bytes:
    """Numbers of flat float32 weights, by where runs of them begin and how long these are.

    >>> pick(array("f", [1, 2, 3, 4]).tobytes(), [[3, 1], [0, 2]]) == array("f",
    ...     [4, 1, 2]).tobytes()
    True
    """
    return b"".join(flat[4 * begin : 4 * (begin + count)] for begin, count in places)


def text(architecture: Node) -> str:
    """The JSON of an architecture."""
    return json.dumps(architecture, separators=(",", ":"))
