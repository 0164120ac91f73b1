"""A Normalization whose statistics are loaded with the weights of its network."""

from __future__ import annotations

import json

import keras
import numpy as np
import pytest
import safetensors.numpy
from test_trainer_execution_modes import use
from test_trainer_outputs import lines
from trainer_peer import Peer
from trainer_programs import Json, dense, layer, metadata, program, sequential, weights

from cerebro_trainer.models.allowlist import LAYERS

MEAN = np.array([10.0, -20.0], np.float32)
VARIANCE = np.array([4.0, 25.0], np.float32)
STATISTICS = (MEAN, VARIANCE, np.array(7))
"""Mean, variance and count, as the weights of the layer."""
RATE = 0.125


def make_spec(invert: bool = False) -> Json:
    """Two numbers, normalized and weighed."""
    normal = layer("Normalization", "normal", axis=[-1], invert=invert)
    made: Json = program(
        sequential([2], normal, dense(1, "out", None)), "SGD", "mse", metrics=[], learning_rate=RATE
    )
    return {**made, "targets": [{"kind": "float"}]}


def make_state(peer: Peer, spec: Json) -> bytes:
    """A new state with these statistics instead of those of a new layer."""
    state = peer.initial(spec)
    arrays = safetensors.numpy.load(state)
    names = json.loads(metadata(state)["weights"])
    for name, value in zip(names, STATISTICS, strict=False):
        arrays[name] = np.full_like(arrays[name], value)
    return safetensors.numpy.save(arrays, metadata(state))


def normalize(x: np.ndarray, invert: bool = False) -> np.ndarray:
    if invert:
        return x * np.sqrt(VARIANCE) + MEAN
    return (x - MEAN) / np.sqrt(VARIANCE)


def load_rows(peer: Peer) -> tuple[np.ndarray, np.ndarray]:
    """Rows that have about these statistics, with their targets."""
    z = np.random.default_rng(1).normal(size=(24, 2)).astype(np.float32)
    x = normalize(z, invert=True)
    y = z[:, :1] - 2 * z[:, 1:] + 3
    peer.load("d", [[("x", x), ("y", y)]])
    return x, y


def compute_outputs(peer: Peer, spec: Json, state: bytes) -> np.ndarray:
    peer.begin("outputs", spec, state)
    peer.ask({"do": "finish"})
    return lines(peer, 1)[:, 1:]


@pytest.mark.parametrize("invert", [False, True])
def test_a_prediction_uses_the_loaded_statistics(trainer: Peer, invert: bool) -> None:
    x, _ = load_rows(trainer)
    spec = make_spec(invert)
    state = make_state(trainer, spec)
    kernel, bias = weights(state)[3:]
    expected = normalize(x, invert) @ kernel + bias
    np.testing.assert_allclose(compute_outputs(trainer, spec, state), expected, rtol=1e-5)


def test_a_program_serves_one_state_after_another(trainer: Peer) -> None:
    load_rows(trainer)
    spec = make_spec()
    adapted = make_state(trainer, spec)
    new = trainer.initial(spec)
    first = [compute_outputs(trainer, spec, state) for state in (new, adapted)]
    again = [compute_outputs(trainer, spec, state) for state in (adapted, new)]
    assert np.array_equal(first, again[::-1])
    assert not np.allclose(first[0], first[1])


def test_training_uses_the_loaded_statistics_and_keeps_them(trainer: Peer, form: str) -> None:
    """A step over all rows is one of a linear regression on normalized numbers."""
    x, y = load_rows(trainer)
    spec = make_spec()
    state = make_state(trainer, spec)
    _, trained = trainer.train(spec, state, batch_size=len(x), forms=use(form))
    kernel, bias = weights(state)[3:]
    z = normalize(x)
    slope = 2 * (z @ kernel + bias - y) / len(x)
    expected = (kernel - RATE * z.T @ slope, bias - RATE * slope.sum(axis=0))
    *statistics, trained_kernel, trained_bias = weights(trained)
    for found, loaded in zip(statistics, STATISTICS, strict=True):
        assert np.array_equal(found, loaded)
    np.testing.assert_allclose(trained_kernel, expected[0], rtol=1e-4)
    np.testing.assert_allclose(trained_bias, expected[1], rtol=1e-4)


def test_no_other_layer_derives_something_of_its_weights() -> None:
    """Discretization has `finalize_state`, too, but its boundaries are in its config."""
    names = [name for name in LAYERS if hasattr(getattr(keras.layers, name), "finalize_state")]
    assert set(names) == {"Normalization", "Discretization"}
    boundaries = keras.layers.Discretization(bin_boundaries=[0.0, 1.0])
    boundaries.build((None, 2))
    assert boundaries.weights == []
