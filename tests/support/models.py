"""Small architectures as JSON, so that a test need not import Keras."""

from __future__ import annotations

import json
from collections.abc import Sequence
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


def tensor(name: str) -> Json:
    """What a layer gives, as an argument of the next one; Keras wants a shape, and finds out the
    true one itself.
    """
    config = {"shape": [None, 1], "dtype": "float32", "keras_history": [name, 0, 0]}
    return {"class_name": "__keras_tensor__", "config": config}


def joined(inputs: dict[str, list[int]], outputs: Sequence[Json], hidden: int = 8) -> Json:
    """A model with several inputs, which meet in a hidden layer, and several outputs, each a layer
    after it.
    """

    def node(inner: Json, *before: str) -> Json:
        given = [tensor(name) for name in before]
        calls = [{"args": [given if len(given) > 1 else given[0]], "kwargs": {}}] if given else []
        return {**inner, "name": inner["config"]["name"], "inbound_nodes": calls}

    names = [output["config"]["name"] for output in outputs]
    entries = [
        layer("InputLayer", name, batch_shape=[None, *shape], dtype="float32")
        for name, shape in inputs.items()
    ]
    layers = [
        *(node(entry) for entry in entries),
        node(layer("Concatenate", "both"), *inputs),
        node(dense(hidden, "hidden"), "both"),
        *(node(output, "hidden") for output in outputs),
    ]
    config = {
        "name": "joined", "trainable": True, "layers": layers,
        "input_layers": [[name, 0, 0] for name in inputs], "output_layers": [[name, 0,
        0] for name in names],
    }  # fmt: skip
    return {
        "module": "keras.src.models.functional",
        "class_name": "Functional",
        "registered_name": "Functional",
        "config": config,
    }


TWO_BY_TWO = joined(
    {"left": [4], "right": [2]}, [dense(3, "kind", "softmax"), dense(1, "size", "linear")]
)
"""Takes the points' x and pair; tells their label, and their amount."""
