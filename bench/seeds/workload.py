"""The workload of the comparison of methods: sixteen configurations over augmented pictures.

The pictures are those of a package. There are two architectures, two learning rates, two L2
penalties and two batch sizes, as in the published experiments. Two cores can train the networks. An
epoch has a thousand batches on average.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from models import dense, layer, sequential

from bench.examples import Examples
from bench.workloads import Workload, make_grid, make_penalty

SPLIT_SEED = 3
HELD_OUT = 0.2
# Largest rotation in radians, scaling and shift in pixels; deviation of pixels from 0 to 1.
MAX_ROTATION = np.pi / 9
MAX_SCALING = 0.15
MAX_SHIFT = 1.0
NOISE = 0.08


def load_pictures() -> Examples:
    """Return the 1,797 pictures of scikit-learn and their digits, (n, 8, 8) from 0 to 1."""
    from sklearn.datasets import load_digits

    dataset = load_digits()
    return (dataset.images / 16).astype(np.float32), dataset.target.astype(np.int32)


def draw_training(rng: np.random.Generator, rows: int) -> Examples:
    """Draw augmented training pictures."""
    return _draw_part(rng, rows, is_held_out=False)


def draw_validation(rng: np.random.Generator, rows: int) -> Examples:
    """Draw augmented pictures of those that are held out."""
    return _draw_part(rng, rows, is_held_out=True)


def _draw_part(rng: np.random.Generator, rows: int, *, is_held_out: bool) -> Examples:
    pictures, labels = load_pictures()
    part = (np.random.default_rng(SPLIT_SEED).random(len(pictures)) < HELD_OUT) == is_held_out
    return augment(rng, (pictures[part], labels[part]), rows)


def augment(rng: np.random.Generator, examples: Examples, rows: int) -> Examples:
    """Draw pictures, rotate, scale and shift them, and add noise; shape (rows, 8, 8, 1)."""
    from scipy.ndimage import map_coordinates

    pictures, labels = examples
    picture_numbers = rng.integers(0, len(pictures), size=rows)
    places = np.broadcast_to(
        picture_numbers[:, None, None].astype(float), (rows, *pictures.shape[1:])
    )
    shifted = map_coordinates(
        pictures, np.stack([places, *_find_sources(rng, rows, pictures.shape[1])]), order=1
    )
    x = shifted + rng.normal(scale=NOISE, size=shifted.shape)
    return np.clip(x, 0, 1).astype(np.float32)[..., None], labels[picture_numbers]


def _find_sources(
    rng: np.random.Generator, rows: int, size: int
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the source lines and columns of each pixel of the changed pictures.

    Both have the shape (rows, size, size).
    """
    angle = rng.uniform(-MAX_ROTATION, MAX_ROTATION, size=(rows, 1, 1))
    scale = rng.uniform(1 - MAX_SCALING, 1 + MAX_SCALING, size=(rows, 1, 1))
    down, right = rng.uniform(-MAX_SHIFT, MAX_SHIFT, size=(2, rows, 1, 1))
    middle = (size - 1) / 2
    lines, columns = (make_grid[None] - middle for make_grid in np.mgrid[0:size, 0:size])
    return (
        scale * (np.cos(angle) * lines - np.sin(angle) * columns) + middle + down,
        scale * (np.sin(angle) * lines + np.cos(angle) * columns) + middle + right,
    )


def make_perceptron(l2: float) -> str:
    """Return a network of 51,000 weights in dense layers."""
    return sequential(
        [8, 8, 1],
        layer("Flatten", "flat"),
        dense(256, "hidden_1", **make_penalty(l2)),
        dense(128, "hidden_2", **make_penalty(l2)),
        dense(10, "classes", "softmax"),
    )


def make_convolutional(l2: float) -> str:
    """Return a network of 6,000 weights: two convolutions, each followed by a pooling."""
    same = {"kernel_size": [3, 3], "activation": "relu", "padding": "same", **make_penalty(l2)}
    return sequential(
        [8, 8, 1],
        layer("Conv2D", "convolution_1", filters=8, **same),
        layer("MaxPooling2D", "pool_1"),
        layer("Conv2D", "convolution_2", filters=16, **same),
        layer("MaxPooling2D", "pool_2"),
        layer("Flatten", "flat"),
        dense(64, "hidden", **make_penalty(l2)),
        dense(10, "classes", "softmax"),
    )


WORKLOAD = Workload(
    key="T",
    title="pictures of digits, two architectures, learning rates, penalties and sizes of batches",
    draw=draw_training,
    draw_held=draw_validation,
    rows=25_600,
    validation=2_048,
    classes=10,
    architectures=tuple(
        make(l2) for make in (make_perceptron, make_convolutional) for l2 in (1e-4, 1e-6)
    ),
    configs=make_grid(4, ["Adam"], [1e-3, 1e-4], [16, 64]),
    epochs=8,
    small_rows=1_280,
    small_epochs=2,
)
