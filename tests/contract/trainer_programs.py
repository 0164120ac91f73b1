"""Small architectures and data that the trainer's tests share."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import safetensors.numpy
from models import Json, dense, layer
from models import model as sequential

__all__ = ["Json", "dense", "layer", "sequential"]

FORMS = {
    "tensorflow": ("graph_loop", "xla_step", "xla_loop"),
    "jax": ("scan", "jit_step", "scan_block"),
    "torch": ("graph", "eager"),
}
"""The ways in which each framework trains, in the order in which they are tried."""

MLP = sequential([4], dense(8, "hidden"), dense(3, "out", "softmax"))
L2 = {
    "module": "keras.regularizers",
    "class_name": "L2",
    "config": {"l2": 0.05},
    "registered_name": None,
}
REGULARISED = sequential([4], dense(8, "hidden", kernel_regularizer=L2), dense(3, "out", "softmax"))
NOISY = sequential(
    [4],
    dense(8, "hidden"),
    layer("BatchNormalization", "norm"),
    layer("Dropout", "drop", rate=0.3),
    dense(3, "out", "softmax"),
)


def program(
    architecture: Json = MLP,
    optimizer: str = "Adam",
    loss: Any = "categorical_crossentropy",
    metrics: Any = ("accuracy",),
    targets: list[Json] | None = None,
    loss_weights: Any = None,
    **config: object,
) -> Json:
    """A program as it stands in a request."""
    return {
        "architecture": architecture,
        "compile": {
            "optimizer": {"class_name": optimizer, "config": {"learning_rate": 0.01, **config}},
            "loss": loss,
            "metrics": metrics if metrics is None else list(metrics),
            "loss_weights": loss_weights,
            "weighted_metrics": None,
        },
        "targets": targets or [{"kind": "onehot", "classes": 3}],
    }


def examples(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of shape (rows, 4), and the index of the largest of the first three as one-hot
    int16.
    """
    x = np.random.default_rng(seed).normal(size=(rows, 4)).astype(np.float32)
    return x, np.eye(3, dtype=np.int16)[x[:, :3].argmax(axis=1)]


def buffers(*sizes: int) -> list[list[tuple[str, np.ndarray]]]:
    """One buffer per size."""
    parts = [examples(size, seed) for seed, size in enumerate(sizes)]
    return [[("x", x), ("y", y)] for x, y in parts]


def tensors(state: bytes) -> list[np.ndarray]:
    """All tensors of a state, by position."""
    by_name = safetensors.numpy.load(state)
    return [by_name[name] for name in sorted(by_name)]


def content(state: bytes) -> tuple[Json, bytes]:
    """What a state says, for comparing: safetensors writes its header in any order."""
    length = int.from_bytes(state[:8], "little")
    return json.loads(state[8 : 8 + length]), state[8 + length :]


def metadata(state: bytes) -> dict[str, str]:
    """The free part of a state's header."""
    found: dict[str, str] = content(state)[0]["__metadata__"]
    return found


def weights(state: bytes) -> list[np.ndarray]:
    """What get_weights() gives, read from a state."""
    by_name = safetensors.numpy.load(state)
    return [by_name[name] for name in json.loads(metadata(state)["weights"])]
