"""What the demo trains: handwritten digits, two small architectures, sixteen configurations.

The architectures are Keras 3 JSON written out here, so that the client needs no framework. The
images are those that scikit-learn ships (1,797 scans of 8 x 8 pixels with 17 grey levels, from the
UCI repository).
"""

from __future__ import annotations

from typing import Any

from sklearn.datasets import load_digits

PIXELS = 64
GREY_LEVELS = 16
CLASSES = 10

COMPILE_GRID: dict[str, Any] = {
    "loss": ["categorical_crossentropy"],
    "metrics": [["accuracy"]],
    "optimizer_params_list": [
        {"optimizer": ["Adam"], "lr": [0.003, 0.01]},
        {"optimizer": ["SGD"], "lr": [0.03, 0.1], "momentum": [0.9]},
    ],
}
FIT_GRID: dict[str, Any] = {"batch_size": [16, 32], "epochs": [1]}


def rows() -> list[tuple[int, list[int], int]]:
    """(id, the 64 pixels row by row from 0 to 16, digit) of every image, in the order of the data
    set.
    """
    images, digits = load_digits(return_X_y=True)
    return [
        (number, pixels.astype(int).tolist(), int(digit))
        for number, (pixels, digit) in enumerate(zip(images, digits, strict=True))
    ]


def is_held_out(number: int) -> bool:
    """Every sixth image is kept from training: 300 of them."""
    return number % 6 == 0


def architectures() -> dict[str, dict[str, Any]]:
    """By name: a network of two dense layers, and a convolutional one over the image that the
    pixels form.
    """
    dense = [
        _layer("Dense", units=64, activation="relu"),
        _layer("Dense", units=CLASSES, activation="softmax"),
    ]
    convolution = [
        _layer("Reshape", target_shape=[8, 8, 1]),
        _layer("Conv2D", filters=16, kernel_size=[3, 3], padding="same", activation="relu"),
        _layer("MaxPooling2D", pool_size=[2, 2]),
        _layer("Flatten"),
        *dense,
    ]
    return {"mlp": _sequential("mlp", dense), "cnn": _sequential("cnn", convolution)}


def _sequential(name: str, layers: list[dict[str, Any]]) -> dict[str, Any]:
    pixels = _layer("InputLayer", batch_shape=[None, PIXELS], dtype="float32")
    return {
        "module": "keras",
        "class_name": "Sequential",
        "config": {"name": name, "layers": [pixels, *layers]},
        "registered_name": None,
    }


def _layer(class_name: str, **config: Any) -> dict[str, Any]:
    return {
        "module": "keras.layers",
        "class_name": class_name,
        "config": config,
        "registered_name": None,
    }
