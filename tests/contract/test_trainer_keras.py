"""Against Keras itself on the same backend: the same weights, the same batches, the same numbers."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import plain_keras
import pytest
from test_trainer_evaluation import predict
from trainer_peer import Peer
from trainer_programs import FORMS, MLP, REGULARISED, buffers, dense, examples, layer, program, sequential, weights

NEW = {"source": "new", "seed": 3}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}
"""Float32 sums in another order, over some tens of steps."""
LOSS_TOLERANCE = 1e-5
"""The same; a mean over all batches gathers less of it than a weight."""

CONVOLUTION = sequential(
    [6, 6, 1],
    layer("Conv2D", "conv", filters=4, kernel_size=[3, 3], activation="relu"),
    layer("BatchNormalization", "norm"),
    layer("Flatten", "flat"),
    dense(3, "out", "softmax"),
)
RECURRENT = sequential(
    [6, 2],
    layer("Conv1D", "conv", filters=4, kernel_size=[3], activation="relu"),
    layer("LSTM", "cells", units=4),
    dense(3, "out", "softmax"),
)


def halved(config: dict[str, Any]) -> dict[str, Any]:
    """Other numbers in the same program; those that change the program stay."""
    return {
        name: value / 2 if isinstance(value, float) and name not in ("momentum", "clipnorm") else value
        for name, value in config.items()
    }


@pytest.mark.parametrize(
    ("optimizer", "config"),
    [
        ("Adam", {}),
        ("SGD", {"momentum": 0.9, "clipnorm": 0.5}),
        ("RMSprop", {}),
        ("Adam", {"beta_1": 0.7, "beta_2": 0.9, "epsilon": 1e-3, "weight_decay": 0.02, "amsgrad": True}),
        ("AdamW", {"weight_decay": 0.01}),
        ("Adamax", {"beta_1": 0.7, "beta_2": 0.9}),
        ("Nadam", {"beta_1": 0.7, "beta_2": 0.9, "epsilon": 1e-3}),
        ("Lion", {"beta_1": 0.7, "beta_2": 0.9}),
        ("RMSprop", {"rho": 0.5, "epsilon": 1e-3, "centered": True}),
        ("Adadelta", {"learning_rate": 1.0, "rho": 0.5, "epsilon": 1e-3}),
        ("Adagrad", {"epsilon": 1e-3}),
        ("SGD", {"weight_decay": 0.1, "nesterov": True, "momentum": 0.5}),
        (
            "SGD",
            {
                "learning_rate": {
                    "module": "keras.optimizers.schedules",
                    "class_name": "InverseTimeDecay",
                    "config": {"initial_learning_rate": 0.1, "decay_steps": 1, "decay_rate": 0.01},
                }
            },
        ),
    ],
)
def test_training_equals_fit(trainer: Peer, keras: ProcessPoolExecutor, optimizer: str, config: dict[str, Any]) -> None:
    trainer.load("d", buffers(21, 13))
    trainer.train(program(REGULARISED, optimizer, **halved(config)), NEW)
    agrees_with_fit(trainer, keras, program(REGULARISED, optimizer, **config), buffers(21, 13))


@pytest.mark.parametrize(("architecture", "shape"), [(CONVOLUTION, (6, 6, 1)), (RECURRENT, (6, 2))])
@pytest.mark.parametrize("position", range(3))
def test_every_form_equals_fit(
    trainer: Peer, keras: ProcessPoolExecutor, framework: str, architecture: Any, shape: tuple[int, ...], position: int
) -> None:
    x = np.random.default_rng(0).normal(size=(140, *shape)).astype(np.float32)
    y = np.eye(3, dtype=np.int16)[np.arange(140) % 3]
    agrees_with_fit(trainer, keras, program(architecture, "SGD"), [[("x", x), ("y", y)]], FORMS[framework][position])


def agrees_with_fit(
    trainer: Peer, keras: ProcessPoolExecutor, chosen: Any, parts: Any, form: str | None = None
) -> None:
    """Whether a visit of two passes gives the loss and the weights that Keras gives."""
    trainer.load("d", parts)
    initial = weights(trainer.initial(chosen, 3))
    result, state = trainer.train(
        chosen, NEW, shuffle=False, epochs=2, forms={"use": form, "remaining_rows": 0, "known": {}}
    )
    loss, expected = keras.submit(plain_keras.fit, (chosen, initial), parts, 8, 2).result()
    assert result["loss"] == pytest.approx(loss, rel=LOSS_TOLERANCE)
    for left, right in zip(expected, weights(state), strict=True):
        np.testing.assert_allclose(right, left, rtol=TOLERANCE["rtol"], atol=TOLERANCE["atol"])


@pytest.mark.parametrize("metrics", [["accuracy", "AUC", "Recall"], ["acc", "mse", "R2Score", "cosine_similarity"]])
def test_evaluation_equals_keras_evaluate(trainer: Peer, keras: ProcessPoolExecutor, metrics: list[str]) -> None:
    chosen = program(REGULARISED, metrics=metrics)
    parts = buffers(700, 50)
    trainer.load("d", parts)
    _, state = trainer.train(chosen, NEW)
    sums = trainer.evaluate(chosen, state)["d"]
    found = trainer.ask({"do": "results", "program": chosen, "sums": {"d": sums["sums"]}, "rows": {"d": 750}})["d"]
    x, y = (np.concatenate([part[i][1] for part in parts]) for i in (0, 1))
    expected = keras.submit(plain_keras.evaluate, (chosen, weights(state)), x, y).result()
    assert [found["loss"], *found["metrics"]] == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_binary_accuracy_is_keras_choice_for_one_unit(trainer: Peer, keras: ProcessPoolExecutor) -> None:
    x, _ = examples(100)
    second = (x[:, 0] > 0.3).astype(np.int16)
    chosen = program(
        sequential([4], dense(1, "out", "sigmoid")),
        loss="binary_crossentropy",
        targets=[{"kind": "onehot", "classes": 2}],
    )
    trainer.load("d", [[("x", x), ("y", np.stack([1 - second, second], axis=1))]])
    sums = trainer.evaluate(chosen, NEW)["d"]["sums"]
    found = trainer.ask({"do": "results", "program": chosen, "sums": {"d": sums}, "rows": {"d": 100}})["d"]
    model = (chosen, weights(trainer.state()))
    expected = keras.submit(plain_keras.evaluate, model, x, second[:, np.newaxis]).result()
    assert [found["loss"], *found["metrics"]] == pytest.approx(expected, rel=1e-5)


def test_prediction_equals_keras_predict(trainer: Peer, keras: ProcessPoolExecutor) -> None:
    x, _ = examples(300)
    trainer.begin("predict", program(MLP), NEW, ())
    found = predict(trainer, x, {"kind": "prob"})
    expected = keras.submit(plain_keras.predict, (program(MLP), weights(trainer.state())), x).result()
    probabilities = np.zeros((300, 3))
    probabilities[np.array(found["row"]) - 1, np.array(found["class"], dtype=int)] = found["value"]
    np.testing.assert_allclose(probabilities, expected, rtol=1e-5, atol=1e-6)
