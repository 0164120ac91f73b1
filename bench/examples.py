"""Data for the workloads, drawn with a seed: shaped like real data, and learnable."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float32]
Labels: TypeAlias = npt.NDArray[np.int32]
Examples: TypeAlias = tuple[Floats, Labels]


def draw_sparse(rng: np.random.Generator, rows: int) -> Examples:
    """Draw rows of 1,024 zeros and ones, like one-hot encoded categories; two classes.

    A twentieth of the numbers are ones.
    """
    width = 1024
    x = (rng.random((rows, width), dtype=np.float32) < 0.05).astype(np.float32)
    weights = _make_fixed_generator(1).normal(size=(width, 24)) / np.sqrt(width * 0.05)
    score = np.tanh(x @ weights) @ _make_fixed_generator(2).normal(size=24)
    return x, (score + rng.normal(scale=0.3, size=rows) > 0).astype(np.int32)


def draw_numeric(rng: np.random.Generator, rows: int) -> Examples:
    """Draw rows of 20 numbers; three classes with curved borders."""
    x = rng.normal(size=(rows, 20)).astype(np.float32)
    hidden = np.tanh(x @ _make_fixed_generator(3).normal(size=(20, 12)) * 0.6)
    score = hidden @ _make_fixed_generator(4).normal(size=(12, 3)) + rng.normal(
        scale=0.3, size=(rows, 3)
    )
    return x, score.argmax(axis=1).astype(np.int32)


def draw_images(rng: np.random.Generator, rows: int) -> Examples:
    """Draw pictures of 32 x 32 x 3 with values from 0 to 1; ten classes.

    Each class has a pattern, which is shifted and noisy.
    """
    y = rng.integers(0, 10, size=rows)
    patterns = np.kron(_make_fixed_generator(5).random((10, 8, 8, 3)), np.ones((1, 4, 4, 1)))
    shifted = np.roll(patterns, 3, axis=1)
    row_patterns = np.where(rng.random((rows, 1, 1, 1)) < 0.5, patterns[y], shifted[y])
    x = 0.6 * row_patterns + 0.4 * rng.random((rows, 32, 32, 3))
    return x.astype(np.float32), y.astype(np.int32)


def draw_series(rng: np.random.Generator, rows: int) -> Examples:
    """Draw windows of 64 steps of a three-axis sensor; six classes of movement.

    The movements differ in frequency and axis.
    """
    y = rng.integers(0, 6, size=rows)
    steps = np.arange(64)[None, :, None]
    rate = 0.15 + 0.1 * (y % 3)[:, None, None]
    phase = rng.uniform(0, 2 * np.pi, size=(rows, 1, 3))
    strength = np.where((y // 3)[:, None, None] == np.arange(3) % 2, 1.0, 0.4)
    x = strength * np.sin(rate * steps + phase) + rng.normal(scale=0.3, size=(rows, 64, 3))
    return x.astype(np.float32), y.astype(np.int32)


def draw_flowers(rng: np.random.Generator, rows: int) -> Examples:
    """Draw rows of 4 measures; three classes."""
    y = rng.integers(0, 3, size=rows)
    centres = np.array([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]])
    x = centres[y] + rng.normal(scale=0.35, size=(rows, 4))
    return x.astype(np.float32), y.astype(np.int32)


def _make_fixed_generator(seed: int) -> Any:
    """Return a generator whose draws are the same for training and validation rows."""
    return np.random.default_rng(seed)
