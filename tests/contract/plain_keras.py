"""Keras by itself, for comparison, in a process of its own: a process has one backend for its
life.
"""

from __future__ import annotations

import copy
import json
import os
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

Arrays = list[tuple[str, np.ndarray]]
Model = tuple[dict[str, Any], list[np.ndarray]]
"""A program as it stands in a request, and weights to begin with."""


def choose(backend: str) -> None:
    """Fix this process's backend, on the CPU; called before all else.

    Trainers have a bare environment. What chooses other kernels of OpenBLAS, with other bits, is no
    part of it.
    """
    for name in [name for name in os.environ if name.startswith("OPENBLAS_")]:
        del os.environ[name]
    os.environ.update(KERAS_BACKEND=backend, TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="-1")
    os.environ.update(OMP_WAIT_POLICY="PASSIVE", TORCHINDUCTOR_CACHE_DIR=tempfile.gettempdir())


def fit(
    model: Model, parts: list[Arrays], batch_size: int, epochs: int
) -> tuple[float, list[np.ndarray]]:
    """Mean loss over all rows, and weights, after `Model.fit` over buffer by buffer in the order of
    their rows.
    """
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


def _array(tensor: Any) -> np.ndarray:
    import keras

    return np.asarray(keras.ops.convert_to_numpy(tensor))


def _alone(arrays: list[np.ndarray]) -> Any:
    return arrays[0] if len(arrays) == 1 else arrays


def _compiled(model: Model) -> Any:
    import keras

    program, weights = model
    built = keras.models.model_from_json(json.dumps(program["architecture"]))
    built.set_weights(weights)
    options = program["compile"]
    optimizer = keras.optimizers.get(
        copy.deepcopy(options["optimizer"])
    )  # Keras takes configs apart
    built.compile(
        optimizer,
        loss=options["loss"],
        metrics=options["metrics"],
        loss_weights=options["loss_weights"],
        run_eagerly=_eagerly(),
    )
    return built


def _eagerly() -> bool:
    """Return whether models of the backend take a few steps faster without compiling a graph."""
    import keras

    return bool(keras.backend.backend() == "tensorflow")


def seeded(architecture: dict[str, Any], seed: int) -> list[np.ndarray]:
    """The weights that a model has at first, where Keras is given this seed in its own way."""
    import keras

    keras.utils.set_random_seed(seed)
    return list(keras.models.model_from_json(json.dumps(architecture)).get_weights())


def predictions_alike(
    texts: list[str], inputs: list[np.ndarray]
) -> list[tuple[np.ndarray, list[tuple[int, ...]]]]:
    """What models with the same weights predict of rows, and the shapes of all variables that each
    has.
    """
    import keras

    models = [keras.models.model_from_json(text) for text in texts]
    for model in models:
        model.set_weights(models[0].get_weights())
    return [
        (_array(model(_alone(inputs))), [tuple(each.shape) for each in model.variables])
        for model in models
    ]


def predictions_twice(text: str, inputs: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """What a model with large weights predicts of rows, and what the model of its own JSON does
    with these weights.
    """
    import keras

    random = np.random.default_rng(0)
    first = keras.models.model_from_json(text)
    drawn = [random.normal(scale=3.0, size=weight.shape) for weight in first.weights]
    drawn = [
        np.abs(a) if "variance" in weight.path else a
        for a, weight in zip(drawn, first.weights, strict=True)
    ]
    found = []
    for model in (first, keras.models.model_from_json(first.to_json())):
        model.set_weights(drawn)
        with warnings.catch_warnings(action="error"):
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # of Keras' variables to numpy, with PyTorch
            found.append(_array(model(_alone(inputs))))
    return found[0], found[1]


def predictions(text: str, weights: list[np.ndarray], inputs: list[np.ndarray]) -> np.ndarray:
    """What a model of this JSON predicts of rows with these weights."""
    import keras

    model = keras.models.model_from_json(text)
    model.set_weights(weights)
    return _array(model(_alone(inputs)))


def built(texts: list[str]) -> list[tuple[tuple[int | None, ...], list[tuple[int, ...]]]]:
    """Build models; return the shapes of the output and of the weights of each model."""
    import keras

    models = [keras.models.model_from_json(text) for text in texts]
    return [
        (tuple(model.output_shape), [tuple(weight.shape) for weight in model.weights])
        for model in models
    ]


def shapes_apart(text: str) -> list[str]:
    """The names of layers whose results are of other shapes than calls in the JSON say; but for
    those of one row.
    """
    import keras

    found = {
        each.name: tuple(each.output.shape[1:])
        for each in keras.models.model_from_json(text).operations
    }
    config = json.loads(text)["config"]
    told = [each for layer in config["layers"] for each in _tensors(layer["inbound_nodes"])]
    return [
        name
        for name, shape in told
        if found[name] != tuple(shape[1:]) and not name.startswith("getitem")
    ]


def _tensors(node: Any) -> Iterator[tuple[str, list[int | None]]]:
    if isinstance(node, dict) and node.get("class_name") == "__keras_tensor__":
        yield node["config"]["keras_history"][0], node["config"]["shape"]
    elif isinstance(node, (dict, list)):
        for part in node.values() if isinstance(node, dict) else node:
            yield from _tensors(part)


def members_apart(
    text: str, inputs: list[np.ndarray], targets: np.ndarray
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Weights after a step: of a model that is trained as it is, and by the mean of its members'
    losses.
    """
    import keras

    whole, twin = keras.models.model_from_json(text), keras.models.model_from_json(text)
    twin.set_weights(whole.get_weights())
    parts = keras.Model(twin.inputs, twin.get_layer("heads").output)
    classes, shape = targets.shape[1] > 1, parts.output.shape

    def mean_loss(y: Any, members: Any) -> Any:
        # Keras takes away dimensions of 1.
        y, members = (
            keras.ops.reshape(y, (-1, *targets.shape[1:])),
            keras.ops.reshape(members, (-1, *shape[1:])),
        )
        each = keras.ops.broadcast_to(keras.ops.expand_dims(y, 1), keras.ops.shape(members))
        if classes:
            return keras.ops.mean(
                keras.ops.categorical_crossentropy(each, members, from_logits=True), axis=-1
            )
        return keras.ops.mean(keras.ops.square(each - members), axis=[1, 2])

    losses = ("categorical_crossentropy" if classes else "mean_squared_error", mean_loss)
    for model, loss in zip((whole, parts), losses, strict=True):
        model.compile(keras.optimizers.SGD(1.0), loss, run_eagerly=_eagerly())
        model.train_on_batch(_alone(inputs), targets)
    return whole.get_weights(), twin.get_weights()


def smoothed_apart(
    texts: tuple[str, str], inputs: list[np.ndarray], targets: np.ndarray, share: float
) -> tuple[list[np.ndarray], list[np.ndarray], float, float]:
    """Weights after a step of a model that smooths labels itself, and of another by Keras' loss;
    and their losses.
    """
    import keras

    ours, plain = (keras.models.model_from_json(text) for text in texts)
    plain.set_weights(ours.get_weights())
    smooth = keras.losses.CategoricalCrossentropy(label_smoothing=share)
    for model in (ours, plain):
        model.compile(keras.optimizers.SGD(1.0), "categorical_crossentropy", run_eagerly=_eagerly())
    losses = [float(model.evaluate(_alone(inputs), targets, verbose=0)) for model in (ours, plain)]
    plain.compile(keras.optimizers.SGD(1.0), smooth, run_eagerly=_eagerly())
    for model in (ours, plain):
        model.train_on_batch(_alone(inputs), targets)
    return ours.get_weights(), plain.get_weights(), losses[0], losses[1]


def counts_apart(
    text: str, inputs: list[np.ndarray], targets: np.ndarray, measure: tuple[float, float, float]
) -> tuple[list[np.ndarray], list[np.ndarray], list[float]]:
    """Weights after a step of a model that predicts by logarithms, and of its logarithms that are
    trained by Poisson's deviance; and the squared error, as the model says and as it should be.

    Args:
        measure: the lowest number, the mean less that, and the deviation.
    """
    import keras

    low, span, deviation = measure
    whole, twin = keras.models.model_from_json(text), keras.models.model_from_json(text)
    twin.set_weights(whole.get_weights())
    logarithms = keras.Model(twin.inputs, twin.get_layer("out_out").output)

    def deviance(y: Any, z: Any) -> Any:
        return keras.ops.mean(2 / deviation * (span * keras.ops.exp(z) - (y - low) * z), axis=-1)

    for model, loss in ((whole, "mean_squared_error"), (logarithms, deviance)):
        model.compile(keras.optimizers.SGD(0.1), loss, run_eagerly=_eagerly())
    predicted = low + span * np.exp(_array(logarithms(_alone(inputs))))
    losses = [
        float(whole.evaluate(_alone(inputs), targets, verbose=0)),
        float(((predicted - targets) ** 2).mean()),
    ]
    for model in (whole, logarithms):
        model.train_on_batch(_alone(inputs), targets)
    return whole.get_weights(), twin.get_weights(), losses
