"""Against Keras itself, run here in the test: the same weights, the same batches, the same
numbers.
"""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from trainer_peer import Peer, TrainerFailed
from trainer_programs import (
    MLP,
    REGULARISED,
    buffers,
    dense,
    examples,
    layer,
    program,
    sequential,
    weights,
)

NEW = {"source": "new", "seed": 3}
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}
"""Float32 sums in another order, over some tens of steps."""

CONVOLUTION = sequential(
    [6, 6, 1],
    layer("Conv2D", "conv", filters=4, kernel_size=[3, 3], activation="relu"),
    layer("BatchNormalization", "norm"),
    layer("Flatten", "flat"),
    dense(3, "out", "softmax"),
)


@pytest.fixture(scope="module")
def keras() -> Any:
    """Keras in this process, on TensorFlow's CPU device."""
    os.environ.update(
        KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="-1"
    )
    return pytest.importorskip("keras")


def rebuilt(keras: Any, chosen: dict[str, Any], state: bytes) -> Any:
    """Return the program as a plain Keras model with the state's weights.

    The model runs eagerly: compiling a graph would take longer than the few steps of a test.
    """
    model = keras.models.model_from_json(json.dumps(chosen["architecture"]))
    model.set_weights(weights(state))
    options = chosen["compile"]
    optimizer = keras.optimizers.get(
        copy.deepcopy(options["optimizer"])
    )  # Keras takes configs apart
    model.compile(optimizer, loss=options["loss"], metrics=options["metrics"], run_eagerly=True)
    return model


def halved(config: dict[str, Any]) -> dict[str, Any]:
    """Other numbers in the same program; those that change the program stay."""
    rate = config.get("learning_rate")
    if isinstance(rate, dict):
        first = rate["config"]["initial_learning_rate"] / 2
        return {
            "learning_rate": {**rate, "config": {**rate["config"], "initial_learning_rate": first}}
        }
    return {
        name: value / 2
        if isinstance(value, float) and name not in ("momentum", "clipnorm")
        else value
        for name, value in config.items()
    }


def scheduled(class_name: str, **config: float) -> dict[str, Any]:
    """An optimizer's argument."""
    found = {"initial_learning_rate": 0.1, **config}
    return {
        "learning_rate": {
            "module": "keras.optimizers.schedules",
            "class_name": class_name,
            "config": found,
        }
    }


RARE = "Adadelta", "Adagrad", "Adamax", "Nadam", "Lion", "RMSprop"
"""That frameworks take the same steps with these, test_trainer_crossing.py tells."""
MOMENTUM = {"momentum": 0.9, "clipnorm": 0.5}
RESTARTS = scheduled("CosineDecayRestarts", first_decay_steps=3, t_mul=2.0, m_mul=1.0)
NESTEROV = {"weight_decay": 0.1, "nesterov": True, "momentum": 0.5}
INVERSE_TIME = scheduled("InverseTimeDecay", decay_steps=1, decay_rate=0.01)
POLYNOMIAL = scheduled("PolynomialDecay", decay_steps=5, end_learning_rate=0.01)


@pytest.mark.long_for(optimizer=(*RARE, "AdamW"))
@pytest.mark.long_for(config=(NESTEROV, INVERSE_TIME, POLYNOMIAL))
@pytest.mark.long_for(config=RESTARTS)
@pytest.mark.long_for(framework=("jax", "torch"), config=MOMENTUM)
@pytest.mark.one_framework(optimizer=(*RARE, "AdamW"))
@pytest.mark.one_framework(config=(NESTEROV, INVERSE_TIME, POLYNOMIAL))
@pytest.mark.parametrize(
    ("optimizer", "config"),
    [
        ("SGD", MOMENTUM),
        (
            "Adam",
            {"beta_1": 0.7, "beta_2": 0.9, "epsilon": 1e-3, "weight_decay": 0.02, "amsgrad": True},
        ),
        ("Adamax", {"beta_1": 0.7, "beta_2": 0.9}),
        ("Nadam", {"beta_1": 0.7, "beta_2": 0.9, "epsilon": 1e-3}),
        ("Lion", {"beta_1": 0.7, "beta_2": 0.9}),
        ("RMSprop", {"rho": 0.5, "epsilon": 1e-3, "centered": True}),
        ("Adadelta", {"learning_rate": 1.0, "rho": 0.5, "epsilon": 1e-3}),
        ("Adagrad", {"epsilon": 1e-3}),
        ("SGD", NESTEROV),
        ("SGD", INVERSE_TIME),
        ("Adam", RESTARTS),
        (
            "AdamW",
            {
                "weight_decay": 0.05,
                **scheduled("CosineDecay", decay_steps=5, warmup_target=0.2, warmup_steps=3),
            },
        ),
        ("SGD", POLYNOMIAL),
    ],
)
def test_training_equals_train_on_batch(
    trainer: Peer, keras: Any, optimizer: str, config: dict[str, Any]
) -> None:
    chosen = program(REGULARISED, optimizer, **config)
    parts = buffers(21, 13)
    trainer.load("d", parts)
    model = rebuilt(keras, chosen, trainer.initial(chosen, 3))
    trainer.train(program(REGULARISED, optimizer, **halved(config)), NEW)
    result, state = trainer.train(chosen, NEW, shuffle=False, epochs=2)
    for _ in range(2):
        for (_, x), (_, y) in parts:
            for start in range(0, len(x), 8):
                model.train_on_batch(x[start : start + 8], y[start : start + 8].astype(np.float32))
    for expected, found in zip(model.get_weights(), weights(state), strict=True):
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE["rtol"], atol=TOLERANCE["atol"])
    assert result["rows"] == 68


def cycled(highest: float, ends: Sequence[int], step: int) -> float:
    """The rate at a step of cycles with such ends; those after the last are as long as that."""
    lengths = [*ends]
    while lengths[-1] <= step:
        lengths.append(2 * lengths[-1] - [0, *lengths][-2])
    end = next(each for each in lengths if each > step)
    begin = max(each for each in (0, *lengths) if each <= step)
    part = (step - begin) / (end - begin)
    return highest * (
        part / 0.1 if part < 0.1 else (1 + math.cos(math.pi * (part - 0.1) / 0.9)) / 2
    )


@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.long_for(ends=((7,),))
@pytest.mark.one_framework(ends=((7,),))
@pytest.mark.parametrize(
    ("config", "ends"),
    [
        (
            {
                "warmup_target": 0.2,
                "decay_steps": 12,
                "first_decay_steps": 1,
                "t_mul": 3,
                "cycles": 3,
            },
            (1, 3, 12),
        ),
        ({"warmup_target": 0.1, "decay_steps": 7}, (7,)),
    ],
)
def test_cycles_of_rates_end_where_they_say(
    trainer: Peer, keras: Any, config: dict[str, Any], ends: tuple[int, ...]
) -> None:
    """Of two configurations whose cycles have other lengths and heights, each has its own in the
    program they share.
    """
    longer = {
        name: value * 2 if name.endswith(("steps", "target")) else value
        for name, value in config.items()
    }
    parts = buffers(21, 13)
    trainer.load("d", parts)
    for chosen, factor in ((longer, 2), (config, 1)):
        schedule = {"module": "cerebro_trainer", "class_name": "CosineCycles", "config": chosen}
        asked = program(REGULARISED, "Adam", learning_rate=schedule)
        model = rebuilt(keras, program(REGULARISED, "Adam"), trainer.initial(asked, 3))
        _, state = trainer.train(asked, NEW, shuffle=False, epochs=4)
        batches = [
            (x[at : at + 8], y[at : at + 8])
            for (_, x), (_, y) in parts
            for at in range(0, len(x), 8)
        ] * 4
        for step, (x, y) in enumerate(batches):
            model.optimizer.learning_rate = cycled(
                chosen["warmup_target"], [end * factor for end in ends], step
            )
            model.train_on_batch(x, y.astype(np.float32))
        for expected, found in zip(model.get_weights(), weights(state), strict=True):
            np.testing.assert_allclose(
                found, expected, rtol=TOLERANCE["rtol"], atol=TOLERANCE["atol"]
            )


@pytest.mark.one_framework
@pytest.mark.parametrize(
    "config",
    [
        {"cycles": 2},
        {"cycles": 0},
        {"cycles": 2.5, "first_decay_steps": 1},
        {"cycles": 3, "first_decay_steps": 4},
        {"decay_steps": 0},
    ],
)
def test_cycles_that_do_not_follow_each_other_are_refused(
    trainer: Peer, config: dict[str, Any]
) -> None:
    chosen = {"warmup_target": 0.1, "decay_steps": 12, **config}
    schedule = {"module": "cerebro_trainer", "class_name": "CosineCycles", "config": chosen}
    with pytest.raises(TrainerFailed, match="CosineCycles"):
        trainer.initial(program(MLP, learning_rate=schedule), 3)


@pytest.mark.long_for(framework=("jax", "torch"))
def test_batch_normalisation_moves_as_in_keras(trainer: Peer, keras: Any) -> None:
    x = np.random.default_rng(0).normal(size=(20, 6, 6, 1)).astype(np.float32)
    y = np.eye(3, dtype=np.int16)[np.arange(20) % 3]
    chosen = program(CONVOLUTION, "SGD")
    trainer.load("d", [[("x", x), ("y", y)]])
    model = rebuilt(keras, chosen, trainer.initial(chosen, 3))
    _, state = trainer.train(chosen, NEW, shuffle=False)
    for start in range(0, 20, 8):
        model.train_on_batch(x[start : start + 8], y[start : start + 8].astype(np.float32))
    for expected, found in zip(model.get_weights(), weights(state), strict=True):
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE["rtol"], atol=TOLERANCE["atol"])


@pytest.mark.long_for(framework=("jax", "torch"))
def test_evaluation_equals_keras_evaluate(trainer: Peer, keras: Any) -> None:
    chosen = program(
        REGULARISED, metrics=["acc", "AUC", "Recall", "mse", "R2Score", "cosine_similarity"]
    )
    parts = buffers(700, 50)
    trainer.load("d", parts)
    _, state = trainer.train(chosen, NEW)
    sums = trainer.evaluate(chosen, state)["d"]
    found = trainer.ask(
        {"do": "results", "program": chosen, "sums": {"d": sums["sums"]}, "rows": {"d": 750}}
    )["d"]
    x, y = (np.concatenate([part[i][1] for part in parts]) for i in (0, 1))
    expected = rebuilt(keras, chosen, state).evaluate(x, y.astype(np.float32), verbose=0)
    assert [found["loss"], *found["metrics"]] == pytest.approx(expected, rel=1e-5)


@pytest.mark.one_framework
def test_binary_accuracy_is_keras_choice_for_one_unit(trainer: Peer, keras: Any) -> None:
    x, _ = examples(100)
    second = (x[:, 0] > 0.3).astype(np.int16)
    chosen = program(
        sequential([4], dense(1, "out", "sigmoid")),
        loss="binary_crossentropy",
        targets=[{"kind": "onehot", "classes": 2}],
    )
    trainer.load("d", [[("x", x), ("y", np.stack([1 - second, second], axis=1))]])
    sums = trainer.evaluate(chosen, NEW)["d"]["sums"]
    found = trainer.ask(
        {"do": "results", "program": chosen, "sums": {"d": sums}, "rows": {"d": 100}}
    )["d"]
    expected = rebuilt(keras, chosen, trainer.state()).evaluate(
        x, second[:, np.newaxis].astype(np.float32), verbose=0
    )
    assert [found["loss"], *found["metrics"]] == pytest.approx(expected, rel=1e-5)


def test_prediction_equals_keras_predict(trainer: Peer, keras: Any) -> None:
    from test_trainer_evaluation import predict

    x, _ = examples(300)
    trainer.begin("predict", program(MLP), NEW, ())
    found = predict(trainer, x, {"kind": "prob"})
    expected = rebuilt(keras, program(MLP), trainer.state()).predict(x, verbose=0)
    probabilities = np.zeros((300, 3))
    probabilities[np.array(found["row"]) - 1, np.array(found["class"], dtype=int)] = found["value"]
    np.testing.assert_allclose(probabilities, expected, rtol=1e-5, atol=1e-6)
