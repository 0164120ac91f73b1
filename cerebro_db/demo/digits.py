"""The training of the demo: handwritten digits, two architectures and sixteen configurations.

The architectures are JSON of Keras 3, so that the client needs no framework. The images are those
of scikit-learn: 1,797 scans of 8 x 8 pixels with 17 grey levels, from the UCI repository.
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


def read_rows() -> list[tuple[int, list[int], int]]:
    """Return the id, the pixels and the digit of every image, in the order of the data set.

    The 64 pixels are in order of rows, with values from 0 to 16.
    """
    images, digits = load_digits(return_X_y=True)
    return [
        (number, pixels.astype(int).tolist(), int(digit))
        for number, (pixels, digit) in enumerate(zip(images, digits, strict=True))
    ]


def is_held_out(number: int) -> bool:
    """Return whether an image is held out from training: every sixth one, 300 in total."""
    return number % 6 == 0


def make_architectures() -> dict[str, dict[str, Any]]:
    """Return an MLP with two dense layers and a CNN on the 8 x 8 image, by name."""
    dense_layers = [
        _make_layer("Dense", units=64, activation="relu"),
        _make_layer("Dense", units=CLASSES, activation="softmax"),
    ]
    convolution_layers = [
        _make_layer("Reshape", target_shape=[8, 8, 1]),
        _make_layer("Conv2D", filters=16, kernel_size=[3, 3], padding="same", activation="relu"),
        _make_layer("MaxPooling2D", pool_size=[2, 2]),
        _make_layer("Flatten"),
        *dense_layers,
    ]
    return {
        "mlp": _make_sequential("mlp", dense_layers),
        "cnn": _make_sequential("cnn", convolution_layers),
    }


def _make_sequential(name: str, layers: list[dict[str, Any]]) -> dict[str, Any]:
    pixels = _make_layer("InputLayer", batch_shape=[None, PIXELS], dtype="float32")
    return {
        "module": "keras",
        "class_name": "Sequential",
        "config": {"name": name, "layers": [pixels, *layers]},
        "registered_name": None,
    }


def _make_layer(class_name: str, **config: Any) -> dict[str, Any]:
    return {
        "module": "keras.layers",
        "class_name": class_name,
        "config": config,
        "registered_name": None,
    }
