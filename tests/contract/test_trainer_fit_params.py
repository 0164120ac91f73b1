"""Fit parameters beside batch size and passes: class weights in the training loss, and passes of
some steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_trainer_execution_modes import use
from test_trainer_keras import TOLERANCE, keras, rebuilt
from test_trainer_training import NEW
from trainer_peer import Peer, TrainerFailed, fit, place
from trainer_programs import (
    FORMS,
    Json,
    buffers,
    content,
    dense,
    examples,
    program,
    sequential,
    weights,
)

__all__ = ["keras"]
WEIGHTS = [1.0, 5.0, 0.25]

Case = tuple[Json, np.ndarray, np.ndarray]


def one_hot() -> Case:
    _, y = examples(53)
    return program(), y, y.astype(np.float32)


def indices() -> Case:
    _, y = examples(53)
    labels = y.argmax(axis=1).astype(np.float32)
    return (
        program(loss="sparse_categorical_crossentropy", targets=[{"kind": "float"}]),
        labels,
        labels[:, np.newaxis],
    )


def sigmoid(target: str) -> Case:
    x, _ = examples(53)
    second = (x[:, 0] > 0).astype(np.int16)
    how = {"kind": "onehot", "classes": 2} if target == "one-hot" else {"kind": "float"}
    chosen = program(
        sequential([4], dense(1, "out", "sigmoid")), loss="binary_crossentropy", targets=[how]
    )
    given = (
        np.stack([1 - second, second], axis=1) if target == "one-hot" else second.astype(np.float32)
    )
    return chosen, given, second[:, np.newaxis].astype(np.float32)


CASES = {
    "one-hot": one_hot(),
    "indices": indices(),
    "two classes on one unit": sigmoid("one-hot"),
    "zeros and ones": sigmoid("float"),
}


@pytest.mark.long_for(position=(1, 2, 3))
@pytest.mark.long_for(case="zeros and ones")
@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.one_framework(case=tuple(CASES)[1:])
@pytest.mark.one_framework(framework="jax", position=(1, 2, 3))
@pytest.mark.parametrize(
    ("case", "position"),
    [("one-hot", position) for position in range(4)] + [(case, 0) for case in CASES][1:],
)
def test_class_weights_are_those_of_keras(
    trainer: Peer, keras: Any, framework: str, case: str, position: int
) -> None:
    forms = (*FORMS[framework], "keras_fit")
    form = forms[min(position, len(forms) - 1)]
    chosen, given, as_keras = CASES[case]
    x, _ = examples(53)
    trainer.load("d", [[("x", x), ("y", given)]])
    model = rebuilt(keras, chosen, trainer.initial(chosen, 3))
    result, state = trainer.train(
        chosen, NEW, shuffle=False, epochs=2, class_weight=WEIGHTS, forms=use(form)
    )
    history = model.fit(
        x,
        as_keras,
        batch_size=8,
        epochs=2,
        shuffle=False,
        verbose=0,
        class_weight=dict(enumerate(WEIGHTS)),
    )
    assert result["loss"] == pytest.approx(np.mean(history.history["loss"]), rel=1e-4)
    for expected, found in zip(model.get_weights(), weights(state), strict=True):
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE["rtol"], atol=TOLERANCE["atol"])


@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.long_for(form=(1, 2))
@pytest.mark.one_framework(classes=None)
@pytest.mark.parametrize("classes", [None, WEIGHTS])
def test_weights_of_rows_are_those_of_keras(
    trainer: Peer, keras: Any, form: str, classes: list[float] | None
) -> None:
    """Times those of classes, which Keras itself does not take together with them."""
    x, y = examples(53)
    chosen, own = program(), np.linspace(0, 3, 53, dtype=np.float32)
    trainer.load("d", [[("x", x), ("y", y), ("w", own[:, np.newaxis])]])
    model = rebuilt(keras, chosen, trainer.initial(chosen, 3))
    result, state = trainer.train(
        chosen, NEW, shuffle=False, epochs=2, class_weight=classes, forms=use(form)
    )
    both = own * np.array(classes or [1, 1, 1], np.float32)[y.argmax(axis=1)]
    history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0, sample_weight=both)
    assert result["loss"] == pytest.approx(np.mean(history.history["loss"]), rel=1e-4)
    for expected, found in zip(model.get_weights(), weights(state), strict=True):
        np.testing.assert_allclose(found, expected, rtol=TOLERANCE["rtol"], atol=TOLERANCE["atol"])


@pytest.mark.long_for(framework=("jax", "torch"))
def test_evaluation_knows_no_weights_of_rows(trainer: Peer) -> None:
    x, y = examples(20)
    trainer.load("d", [[("x", x), ("y", y)]])
    _, state = trainer.train(program(), NEW)
    plain = trainer.evaluate(program(), state)
    trainer.load("d", [[("x", x), ("y", y), ("w", np.arange(20, dtype=np.float32))]])
    assert trainer.evaluate(program(), state) == plain


@pytest.mark.one_framework
@pytest.mark.parametrize(
    ("arrays", "words"), [([("w", np.ones(5, np.float32))] * 2, "one weight each"),
                          ([("w", np.ones((5, 2), np.float32))], "came with weights"),
                          ([("w", np.ones(5, np.int16))], "came with weights")],
)  # fmt: skip
def test_what_is_no_weight_of_each_row_is_refused(
    trainer: Peer, arrays: list[Any], words: str
) -> None:
    x, y = examples(5)
    with pytest.raises(TrainerFailed, match=words):
        trainer.load("d", [[("x", x), ("y", y), *arrays]])


@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.long_for(form=(1, 2))
@pytest.mark.one_framework(form=(1, 2))
def test_weights_of_one_change_nothing(trainer: Peer, form: str) -> None:
    """Within the rounding of sums: XLA fuses the multiplication by one with what is around it."""
    trainer.load("d", buffers(20))
    result, plain = trainer.train(program(), NEW, epochs=2, forms=use(form))
    weighted, state = trainer.train(
        program(), NEW, epochs=2, class_weight=[1.0, 1.0], forms=use(form)
    )
    assert weighted["loss"] == pytest.approx(result["loss"], rel=1e-6)
    for expected, found in zip(weights(plain), weights(state), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.long_for(framework=("jax", "torch"))
def test_weights_of_a_config_do_not_stay_in_its_program(trainer: Peer) -> None:
    trainer.load("d", buffers(16))
    _, plain = trainer.train(program(), NEW)
    trainer.train(program(), NEW, class_weight=WEIGHTS)
    assert content(trainer.train(program(), NEW)[1]) == content(plain)


@pytest.mark.long_for(framework=("jax", "torch"))
def test_evaluation_knows_no_class_weights(trainer: Peer) -> None:
    trainer.load("d", buffers(16))
    _, state = trainer.train(program(), NEW, class_weight=WEIGHTS)
    before = trainer.evaluate(program(), state)
    trainer.train(program(), state, class_weight=WEIGHTS)
    assert trainer.evaluate(program(), state) == before


@pytest.mark.one_framework
def test_a_weight_of_zero_leaves_a_class_out(trainer: Peer) -> None:
    x, y = examples(40)
    chosen = y.argmax(axis=1) != 1
    trainer.load("d", [[("x", x), ("y", y)]])
    all_rows, _ = trainer.train(
        program(optimizer="SGD"), NEW, batch_size=40, class_weight=[1.0, 0.0, 1.0]
    )
    trainer.load("d", [[("x", x[chosen]), ("y", y[chosen])]])
    some, _ = trainer.train(program(optimizer="SGD"), NEW, batch_size=40)
    # The mean is over all rows of a batch, as in Keras.
    assert all_rows["loss"] == pytest.approx(some["loss"] * chosen.sum() / 40, rel=1e-5)


@pytest.mark.one_framework
def test_rows_of_several_classes_have_no_weight(trainer: Peer) -> None:
    several = program(
        sequential([5, 4], dense(3, "out", "softmax")),
        loss="categorical_crossentropy",
        targets=[{"kind": "float"}],
    )
    x = np.zeros((6, 5, 4), np.float32)
    trainer.load("d", [[("x", x), ("y", x[..., :3])]])
    with pytest.raises(TrainerFailed, match="needs one class per row") as failed:
        trainer.train(several, NEW, class_weight=WEIGHTS)
    assert failed.value.error["kind"] == "config"


@pytest.mark.long_for(framework=("jax", "torch"))
def test_a_pass_takes_its_steps_and_the_next_goes_on(trainer: Peer, form: str) -> None:
    """Three passes of two steps over six batches are one pass over all."""
    trainer.load("d", buffers(21, 13, 8))
    result, expected = trainer.train(program(), NEW, shuffle=False, epoch=1, forms=use(form))
    assert result["batches"] == 6
    found, state = trainer.train(
        program(), NEW, shuffle=False, epoch=1, epochs=3, steps_per_epoch=2, forms=use(form)
    )
    assert (found["rows"], found["batches"]) == (42, 6)
    assert found["loss"] == pytest.approx(result["loss"], rel=1e-6)
    for left, right in zip(weights(expected), weights(state), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-6)


@pytest.mark.long_for(framework=("jax", "torch"))
def test_more_steps_than_batches_take_what_is_there(trainer: Peer) -> None:
    trainer.load("d", buffers(21, 13))
    _, expected = trainer.train(program(), NEW, epochs=2)
    result, state = trainer.train(program(), NEW, epochs=2, steps_per_epoch=1000)
    assert result["batches"] == 2 * (3 + 2)
    assert content(state) == content(expected)


@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.one_framework(steps=(1, 4))
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_steps_are_the_same_streamed_and_cached(trainer: Peer, steps: int) -> None:
    parts = buffers(21, 13, 8)
    trainer.load("d", parts)
    how: dict[str, Any] = {"epochs": 2, "steps_per_epoch": steps, "class_weight": WEIGHTS}
    _, cached = trainer.train(program(), NEW, **how)
    trainer.load("d", parts, cache_bytes=0)
    trainer.begin("train", program(), NEW, fit=fit(**how), order=place())
    for pass_no in range(2):
        for position, arrays in enumerate(parts):
            trainer.send_buffer("d", position, arrays, **{"pass": pass_no})
    result = trainer.ask({"do": "finish"})
    assert result["batches"] == 2 * steps
    assert content(trainer.state()) == content(cached)
