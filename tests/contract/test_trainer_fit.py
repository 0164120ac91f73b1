"""A visit gives what Keras' `fit` gives on the same backend: the same weights, the same batches,
the same numbers.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import numpy as np
import plain_keras
import pytest
from models import TWO_BY_TWO
from test_trainer_execution_modes import use
from test_trainer_keras import CONVOLUTION
from test_trainer_training import NEW
from trainer_peer import Peer
from trainer_programs import (
    FORMS,
    MLP,
    NOISY,
    REGULARISED,
    Json,
    dense,
    layer,
    program,
    sequential,
    weights,
)

LOSS_TOLERANCE = 1e-5
"""Float32 has 24 bits, and a form rounds the sums of a batch in another order than `fit`."""
WEIGHT_TOLERANCE = 1e-4
"""The same, carried on over 36 steps."""
RECURRENT = sequential(
    [6, 2],
    layer("Conv1D", "conv", filters=4, kernel_size=[3], activation="relu"),
    layer("LSTM", "cells", units=4),
    dense(3, "out", "softmax"),
)
CASES = {
    "regularised": (program(REGULARISED, "AdamW", weight_decay=0.01), (4,)),
    "convolution": (program(CONVOLUTION, "SGD", momentum=0.9), (6, 6, 1)),
    "recurrent": (program(RECURRENT), (6, 2)),
}


@pytest.mark.one_framework
@pytest.mark.parametrize("seed", [7, 2**32 + 7])
def test_initial_weights_are_those_of_keras_by_its_seed(
    trainer: Peer, plain: ProcessPoolExecutor, seed: int
) -> None:
    trainer.initial(program(), 5)  # whatever was drawn before
    for architecture in (MLP, NOISY, CONVOLUTION, RECURRENT):
        expected = plain.submit(plain_keras.seeded, architecture, seed % 2**32).result()
        for left, right in zip(
            expected, weights(trainer.initial(program(architecture), seed)), strict=True
        ):
            assert np.array_equal(left, right)


@pytest.mark.long
@pytest.mark.parametrize(("chosen", "shape"), CASES.values(), ids=CASES)
def test_every_form_equals_fit(
    trainer: Peer, plain: ProcessPoolExecutor, framework: str, chosen: Json, shape: tuple[int, ...]
) -> None:
    x = np.random.default_rng(0).normal(size=(142, *shape)).astype(np.float32)
    y = np.eye(3, dtype=np.int16)[np.arange(142) % 3]
    parts: list[plain_keras.Arrays] = [[("x", x), ("y", y)]]
    trainer.load("d", parts)
    initial = weights(trainer.initial(chosen, 3))
    loss, expected = plain.submit(plain_keras.fit, (chosen, initial), parts, 8, 2).result()
    for form in FORMS[framework]:
        result, state = trainer.train(chosen, NEW, shuffle=False, epochs=2, forms=use(form))
        assert (result["form"], result["loss"]) == (form, pytest.approx(loss, rel=LOSS_TOLERANCE))
        for left, right in zip(expected, weights(state), strict=True):
            np.testing.assert_allclose(
                right, left, rtol=WEIGHT_TOLERANCE, atol=WEIGHT_TOLERANCE / 10
            )


TWO = program(
    TWO_BY_TWO,
    loss={"kind": "categorical_crossentropy", "size": "mse"},
    loss_weights={"kind": 1.0, "size": 0.5},
    metrics=[["accuracy"], ["mae"]],
    targets=[{"kind": "onehot", "classes": 3}, {"kind": "float"}],
)


@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.long_for(form=(1, 2))
@pytest.mark.one_framework(framework="jax", form=(1, 2))
def test_every_form_equals_fit_for_several_inputs_and_outputs(
    trainer: Peer, plain: ProcessPoolExecutor, form: str
) -> None:
    generator = np.random.default_rng(0)
    left, right = (generator.normal(size=(142, width)).astype(np.float32) for width in (4, 2))
    kind = np.eye(3, dtype=np.int16)[np.arange(142) % 3]
    parts: list[plain_keras.Arrays] = [
        [("x", left), ("x", right), ("y", kind), ("y", right[:, :1])]
    ]
    trainer.load("d", parts)
    initial = weights(trainer.initial(TWO, 3))
    result, state = trainer.train(TWO, NEW, shuffle=False, epochs=2, forms=use(form))
    loss, expected = plain.submit(plain_keras.fit, (TWO, initial), parts, 8, 2).result()
    assert result["loss"] == pytest.approx(loss, rel=LOSS_TOLERANCE)
    for mine, other in zip(weights(state), expected, strict=True):
        np.testing.assert_allclose(mine, other, rtol=WEIGHT_TOLERANCE, atol=WEIGHT_TOLERANCE / 10)
