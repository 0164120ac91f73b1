"""Odd inputs: batches and buffers of any size, integers, tokens, and targets that do not fit the
outputs.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import plain_keras
import pytest
from test_trainer_execution_modes import use
from test_trainer_keras import TOLERANCE, keras, rebuilt
from test_trainer_training import NEW
from trainer_peer import Peer, TrainerFailed
from trainer_programs import (
    NOISY,
    REGULARISED,
    Json,
    buffers,
    dense,
    examples,
    layer,
    program,
    sequential,
    weights,
)

__all__ = ["keras"]
TOKENS = 20


def embedding(input_dtype: str = "float32") -> Json:
    """Five tokens in, three classes out."""
    made = sequential(
        [5],
        layer("Embedding", "tokens", input_dim=TOKENS, output_dim=4),
        layer("Flatten", "flat"),
        dense(3, "out", "softmax"),
    )
    made["config"]["layers"][0]["config"]["dtype"] = input_dtype
    return made


def texts(rows: int) -> tuple[np.ndarray, np.ndarray]:
    tokens = np.random.default_rng(1).integers(0, TOKENS, (rows, 5)).astype(np.float32)
    return tokens, examples(rows)[1]


def agree(keras_model: Any, state: bytes) -> None:
    for expected, found in zip(keras_model.get_weights(), weights(state), strict=True):
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE["rtol"], atol=TOLERANCE["atol"])


@pytest.mark.long_for(sizes=((1, 9, 1),))
@pytest.mark.long_for(form=(1, 2))
@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.one_framework(sizes=((1, 9, 1),))
@pytest.mark.parametrize("sizes", [(5, 3, 7), (1, 9, 1)], ids=str)
def test_a_batch_ends_with_its_buffer_however_small(
    trainer: Peer, keras: Any, sizes: tuple[int, ...], form: str
) -> None:
    parts = buffers(*sizes)
    trainer.load("d", parts)
    model = rebuilt(keras, program(REGULARISED), trainer.initial(program(REGULARISED), 3))
    result, state = trainer.train(
        program(REGULARISED), NEW, shuffle=False, batch_size=64, forms=use(form)
    )
    for (_, x), (_, y) in parts:
        model.train_on_batch(x, y.astype(np.float32))
    assert (result["rows"], result["batches"]) == (sum(sizes), len(sizes))
    agree(model, state)


@pytest.mark.long_for(framework=("jax", "torch"))
def test_buffers_of_one_row_through_normalisation_and_evaluation(trainer: Peer) -> None:
    trainer.load("d", buffers(1, 1, 1, 1))
    _, state = trainer.train(program(NOISY), NEW, batch_size=2**31 - 1)
    found = trainer.evaluate(program(NOISY), state)["d"]
    assert found["rows"] == 4 and all(np.isfinite(found["sums"][0]))


@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.long_for(dtype="float32")
@pytest.mark.one_framework(dtype="float32")
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_tokens_are_embedded_as_in_keras(
    trainer: Peer, plain: ProcessPoolExecutor, dtype: str
) -> None:
    """On the same backend: TensorFlow's gradients of embeddings are sparse, and Keras' Adam then
    takes other steps.
    """
    chosen, (tokens, y) = program(embedding(dtype)), texts(40)
    trainer.load("d", [[("x", tokens), ("y", y)]])
    initial = weights(trainer.initial(chosen, 3))
    _, state = trainer.train(chosen, NEW, shuffle=False)
    parts: list[plain_keras.Arrays] = [[("x", tokens.astype(dtype)), ("y", y)]]
    _, expected = plain.submit(plain_keras.fit, (chosen, initial), parts, 8, 1).result()
    for left, right in zip(expected, weights(state), strict=True):
        np.testing.assert_allclose(right, left, rtol=TOLERANCE["rtol"], atol=TOLERANCE["atol"])


@pytest.mark.long
def test_the_largest_tokens_that_float32_holds_are_told_apart(trainer: Peer) -> None:
    """An embedding of 2^24 rows and one column, looked up at its last two."""
    large = sequential(
        [1],
        layer("Embedding", "tokens", input_dim=1 << 24, output_dim=1),
        layer("Flatten", "flat"),
    )
    chosen = program(large, "SGD", loss="mse", metrics=[], targets=[{"kind": "float"}])
    trainer.begin("predict", chosen, NEW, ())
    header = {
        "do": "rows",
        "rows": 2,
        "arrays": [{"kind": "int32"}],
        "want": {"kind": "prob"},
        "classes": [0],
    }
    # An array of one integer as PostgreSQL holds it: dimensions, no NULLs, type, size, lower bound,
    # value.
    sent = np.array(
        [(1, 0, 23, 1, 1, token) for token in ((1 << 24) - 1, (1 << 24) - 2)], "i4"
    ).tobytes()
    first, second = trainer.ask(header, sent)["value"].strip("{}").split(",")
    table = weights(trainer.state(1 << 20))[0]
    assert [float(first), float(second)] == [float(table[-1, 0]), float(table[-2, 0])]


@pytest.mark.one_framework
@pytest.mark.parametrize("token", [-1, TOKENS, 0.5])
def test_what_is_no_token_is_told_before_it_trains(trainer: Peer, token: float) -> None:
    tokens, y = texts(10)
    tokens[7, 2] = token
    trainer.load("d", [[("x", tokens), ("y", y)]])
    with pytest.raises(
        TrainerFailed, match=f"has 20 embedded tokens, but {token:g} stands for a token"
    ) as failed:
        trainer.train(program(embedding()), NEW)
    assert failed.value.error["kind"] == "config"


@pytest.mark.one_framework
@pytest.mark.parametrize("label", [-1, 3, 1.5])
def test_what_is_no_class_is_told_before_it_trains(trainer: Peer, label: float) -> None:
    x, y = examples(10)
    labels = y.argmax(axis=1).astype(np.float32)
    labels[7] = label
    trainer.load("d", [[("x", x), ("y", labels)]])
    chosen = program(loss="sparse_categorical_crossentropy", targets=[{"kind": "float"}])
    with pytest.raises(
        TrainerFailed, match=f"has 3 units, but {label:g} stands for a class"
    ) as failed:
        trainer.train(chosen, NEW)
    assert failed.value.error["kind"] == "config"


@pytest.mark.long_for(framework=("jax", "torch"))
def test_a_model_of_channels_takes_images_of_uint8_range(trainer: Peer, keras: Any) -> None:
    """As packed from PNG or JPEG: whole numbers, in an Input of dtype uint8 or with a Rescaling
    layer.
    """
    x = np.random.default_rng(2).integers(0, 256, (12, 6, 6, 3)).astype(np.float32)
    y = np.eye(3, dtype=np.int16)[np.arange(12) % 3]
    made = sequential(
        [6, 6, 3],
        layer("Rescaling", "scale", scale=1 / 255, offset=0.0),
        layer("Conv2D", "conv", filters=4, kernel_size=[3, 3], activation="relu"),
        layer("Flatten", "flat"),
        dense(3, "out", "softmax"),
    )
    made["config"]["layers"][0]["config"]["dtype"] = "uint8"
    trainer.load("d", [[("x", x), ("y", y)]])
    model = rebuilt(keras, program(made), trainer.initial(program(made), 3))
    _, state = trainer.train(program(made), NEW, shuffle=False, batch_size=12)
    model.train_on_batch(x.astype(np.uint8), y.astype(np.float32))
    agree(model, state)
