"""Small architectures as JSON, so that a test need not import Keras."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]


def layer(class_name: str, name: str, **config: object) -> Json:
    """One layer as Keras 3 writes it, without what has its default value."""
    return {
        "module": "keras.layers",
        "class_name": class_name,
        "config": {"name": name, **config},
        "registered_name": None,
    }


def dense(units: int, name: str, activation: object = "relu", **config: object) -> Json:
    """A Dense layer."""
    return layer("Dense", name, units=units, activation=activation, **config)


def model(shape: list[int], *layers: Json) -> Json:
    """A Sequential model on inputs of this shape."""
    first = layer("InputLayer", "input", batch_shape=[None, *shape], dtype="float32")
    return {
        "module": "keras",
        "class_name": "Sequential",
        "registered_name": "Sequential",
        "config": {"name": "model", "layers": [first, *layers]},
    }


def sequential(shape: list[int], *layers: Json) -> str:
    """The same as text."""
    return json.dumps(model(shape, *layers))


def perceptron(outputs: int, activation: str) -> str:
    """Four inputs, eight hidden units: 5 * 8 + 9 * outputs weights."""
    return sequential([4], dense(8, "hidden"), dense(outputs, "output", activation))


CLASSES = perceptron(3, "softmax")
NOISY = sequential(
    [4],
    dense(8, "hidden"),
    layer("BatchNormalization", "normal"),
    layer("Dropout", "drop", rate=0.3),
    dense(3, "output", "softmax"),
)
PICTURES = sequential(
    [8, 8, 1],
    layer("Conv2D", "convolution", filters=4, kernel_size=[3, 3], activation="relu"),
    layer("MaxPooling2D", "pool"),
    layer("Flatten", "flat"),
    dense(3, "output", "softmax"),
)
