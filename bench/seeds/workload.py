"""The selection of the table: sixteen configurations over pictures that ship in a package, made
more by augmentation.

Two architectures, two learning rates, two L2 penalties and two sizes of batches, as in the
experiments that are published, with networks that two cores can train; so many pictures that an
epoch has a thousand batches on average.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from models import dense, layer, sequential

from bench.examples import Examples
from bench.workloads import Workload, grid, penalty

SPLIT_SEED, HELD_OUT = 3, 0.2
TURNED, SCALED, MOVED, NOISE = np.pi / 9, 0.15, 1.0, 0.08
"""Radians, parts of the size, and pixels, by which a picture is changed at most; and the deviation
of a pixel, where values go from 0 to 1."""


def digits() -> Examples:
    """The 1,797 pictures of scikit-learn, (n, 8, 8) float32 from 0 to 1, and which digit each
    shows.
    """
    from sklearn.datasets import load_digits

    found = load_digits()
    return (found.images / 16).astype(np.float32), found.target.astype(np.int32)


def to_train(rng: np.random.Generator, rows: int) -> Examples:
    """So many pictures made of those that are not held out."""
    return _part(rng, rows, held=False)


def to_validate(rng: np.random.Generator, rows: int) -> Examples:
    """So many made of the others."""
    return _part(rng, rows, held=True)


def _part(rng: np.random.Generator, rows: int, *, held: bool) -> Examples:
    pictures, labels = digits()
    part = (np.random.default_rng(SPLIT_SEED).random(len(pictures)) < HELD_OUT) == held
    return augmented(rng, (pictures[part], labels[part]), rows)


def augmented(rng: np.random.Generator, examples: Examples, rows: int) -> Examples:
    """So many pictures (rows, 8, 8, 1), each one of these, turned, scaled, moved, and with
    noise.
    """
    from scipy.ndimage import map_coordinates

    pictures, labels = examples
    chosen = rng.integers(0, len(pictures), size=rows)
    places = np.broadcast_to(chosen[:, None, None].astype(float), (rows, *pictures.shape[1:]))
    moved = map_coordinates(
        pictures, np.stack([places, *_sources(rng, rows, pictures.shape[1])]), order=1
    )
    x = moved + rng.normal(scale=NOISE, size=moved.shape)
    return np.clip(x, 0, 1).astype(np.float32)[..., None], labels[chosen]


def _sources(
    rng: np.random.Generator, rows: int, size: int
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Where in a picture each pixel of the changed one comes from: its lines and columns, (rows,
    size, size).
    """
    angle = rng.uniform(-TURNED, TURNED, size=(rows, 1, 1))
    scale = rng.uniform(1 - SCALED, 1 + SCALED, size=(rows, 1, 1))
    down, right = rng.uniform(-MOVED, MOVED, size=(2, rows, 1, 1))
    middle = (size - 1) / 2
    lines, columns = (grid[None] - middle for grid in np.mgrid[0:size, 0:size])
    return (
        scale * (np.cos(angle) * lines - np.sin(angle) * columns) + middle + down,
        scale * (np.sin(angle) * lines + np.cos(angle) * columns) + middle + right,
    )


def perceptron(l2: float) -> str:
    """51,000 weights in dense layers."""
    return sequential(
        [8, 8, 1],
        layer("Flatten", "flat"),
        dense(256, "hidden_1", **penalty(l2)),
        dense(128, "hidden_2", **penalty(l2)),
        dense(10, "classes", "softmax"),
    )


def convolutional(l2: float) -> str:
    """6,000 weights: two convolutions, each followed by a pooling."""
    same = {"kernel_size": [3, 3], "activation": "relu", "padding": "same", **penalty(l2)}
    return sequential(
        [8, 8, 1],
        layer("Conv2D", "convolution_1", filters=8, **same),
        layer("MaxPooling2D", "pool_1"),
        layer("Conv2D", "convolution_2", filters=16, **same),
        layer("MaxPooling2D", "pool_2"),
        layer("Flatten", "flat"),
        dense(64, "hidden", **penalty(l2)),
        dense(10, "classes", "softmax"),
    )


WORKLOAD = Workload(
    key="T",
    title="pictures of digits, two architectures, learning rates, penalties and sizes of batches",
    draw=to_train,
    draw_held=to_validate,
    rows=25_600,
    validation=2_048,
    classes=10,
    architectures=tuple(make(l2) for make in (perceptron, convolutional) for l2 in (1e-4, 1e-6)),
    configs=grid(4, ["Adam"], [1e-3, 1e-4], [16, 64]),
    epochs=8,
    small_rows=1_280,
    small_epochs=2,
)
