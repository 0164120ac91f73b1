"""Keras by itself, for comparison, in a process of its own: a process has one backend for its life."""

from __future__ import annotations

import copy
import json
import os
import warnings
from typing import Any

import numpy as np

Arrays = list[tuple[str, np.ndarray]]
Model = tuple[dict[str, Any], list[np.ndarray]]
"""A program as it stands in a request, and weights to begin with."""


def choose(backend: str) -> None:
    """Fix this process's backend, on the CPU; called before all else."""
    os.environ.update(KERAS_BACKEND=backend, TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="-1")


def fit(model: Model, parts: list[Arrays], batch_size: int, epochs: int) -> tuple[float, list[np.ndarray]]:
    """Mean loss over all rows, and weights, after `Model.fit` over buffer by buffer in the order of their rows."""
    built = _compiled(model)
    losses, rows = [], []
    for _ in range(epochs):
        for arrays in parts:
            x = [array for role, array in arrays if role == "x"]
            y = [array.astype(np.float32) for role, array in arrays if role == "y"]
            history = built.fit(_alone(x), _alone(y), batch_size, shuffle=False, verbose=0)
            losses.append(history.history["loss"][0])
            rows.append(len(x[0]))
    return float(np.average(losses, weights=rows)), built.get_weights()


def _alone(arrays: list[np.ndarray]) -> Any:
    return arrays[0] if len(arrays) == 1 else arrays


def _compiled(model: Model) -> Any:
    import keras

    program, weights = model
    built = keras.models.model_from_json(json.dumps(program["architecture"]))
    built.set_weights(weights)
    options = program["compile"]
    optimizer = keras.optimizers.get(copy.deepcopy(options["optimizer"]))  # Keras takes configs apart
    built.compile(optimizer, loss=options["loss"], metrics=options["metrics"], loss_weights=options["loss_weights"])
    return built


def predictions_twice(text: str, inputs: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """What a model with large weights predicts of rows, and what the model of its own JSON does with these weights."""
    import keras

    random = np.random.default_rng(0)
    first = keras.models.model_from_json(text)
    drawn = [random.normal(scale=3.0, size=weight.shape) for weight in first.get_weights()]
    found = []
    for model in (first, keras.models.model_from_json(first.to_json())):
        model.set_weights(drawn)
        with warnings.catch_warnings(action="error"):
            found.append(np.asarray(model(_alone(inputs))))
    return found[0], found[1]


def predictions(text: str, weights: list[np.ndarray], inputs: list[np.ndarray]) -> np.ndarray:
    """What a model of this JSON predicts of rows with these weights."""
    import keras

    model = keras.models.model_from_json(text)
    model.set_weights(weights)
    return np.asarray(model(_alone(inputs)))
