"""The forms of a program take the same steps, and choosing one leaves no trace in the state."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import draws
import numpy as np
import pytest
import updates
from test_trainer_training import NEW
from trainer_peer import Peer, TrainerFailed, on_a_processor
from trainer_programs import (
    FORMS,
    NOISY,
    REGULARISED,
    Json,
    buffers,
    content,
    dense,
    layer,
    program,
    sequential,
    weights,
)

from cerebro_trainer.programs.execution_modes import HOPELESS_FACTOR

SIZES = (150, 8, 6)
"""Rows of buffers: batches of 8 fill a block of JAX, there are smaller last ones, and a buffer of
no full batch.
"""


def use(form: str) -> Json:
    """Ask for a form."""
    return {"use": form, "remaining_rows": 0, "known": {}}


def ahead(rows: int, **known: Any) -> Json:
    """Say how much work is ahead, and what is known."""
    return {"use": None, "remaining_rows": rows, "known": known}


@pytest.mark.long
def test_all_forms_take_the_same_steps(trainer: Peer, framework: str) -> None:
    trainer.load("d", buffers(*SIZES))
    results = [
        trainer.train(program(REGULARISED), NEW, epochs=2, forms=use(form))
        for form in (*FORMS[framework], "keras_fit")
    ]
    (expected, first), *others = results
    for result, state in others:
        # The sums of a batch are rounded in another order, and ten steps of Adam carry that on.
        assert result["loss"] == pytest.approx(expected["loss"], rel=1e-5)
        assert (result["rows"], result["batches"]) == (expected["rows"], expected["batches"])
        for left, right in zip(weights(first), weights(state), strict=True):
            np.testing.assert_allclose(left, right, atol=1e-4)


@pytest.mark.long
def test_a_form_gives_the_same_bits_again(
    trainer: Peer, second_trainer: Peer, framework: str
) -> None:
    """In another process, and after the same program trained in other forms, and on buffers of
    other sizes.
    """

    def states(peer: Peer) -> dict[str, Any]:
        peer.load("d", buffers(*SIZES))
        found = {}
        for form in FORMS[framework]:
            result, state = peer.train(program(NOISY), NEW, epochs=2, forms=use(form))
            assert result["form"] == form
            found[form] = content(state)
        return found

    first = states(trainer)
    assert states(second_trainer) == first
    for form in FORMS[framework]:
        trainer.train(program(NOISY), NEW, batch_size=2, forms=use(form))
    trainer.load("d", buffers(94))
    for form in FORMS[framework]:
        trainer.train(program(NOISY), NEW, forms=use(form))
    assert states(trainer) == first


@pytest.mark.long
def test_every_form_is_timed_when_much_work_is_ahead(trainer: Peer, framework: str) -> None:
    trainer.load("d", buffers(130, 65))
    chosen = program(NOISY, "RMSprop")
    result, state = trainer.train(chosen, NEW, forms=ahead(10**9))
    tried = FORMS[framework][: len(result["timings"])]
    assert set(result["timings"]) == set(tried) and len(tried) > 1
    seconds = [result["timings"][form]["seconds_per_row"] for form in tried]
    assert min(seconds) > 0
    assert tried == FORMS[framework] or seconds[-1] > HOPELESS_FACTOR * min(seconds)
    assert content(trainer.train(chosen, NEW, forms=use(result["form"]))[1]) == content(state)
    again, state_again = trainer.train(chosen, NEW, forms=ahead(10**9))
    assert (again["timings"], again["form"]) == ({}, result["form"])
    assert content(state_again) == content(state)


@on_a_processor
@pytest.mark.long_for(framework=("jax", "torch"))
def test_little_work_does_not_pay_for_a_second_form(trainer: Peer, framework: str) -> None:
    trainer.load("d", buffers(64))
    result, _ = trainer.train(program(NOISY, "Adagrad"), NEW, forms=ahead(100))
    assert (result["form"], result["timings"]) == (FORMS[framework][0], {})


SLIDING = layer("Conv1D", "slide", filters=2, kernel_size=[2])
CONVOLUTIONS = {
    "plain": [layer("Reshape", "series", target_shape=[4, 1]), SLIDING],
    "within": [
        layer("Reshape", "more", target_shape=[1, 4, 1]),
        layer("TimeDistributed", "each", layer=SLIDING),
    ],
}


@pytest.mark.parametrize("framework", ["tensorflow"], indirect=True, scope="session")
def test_kernels_of_updates_have_the_bits_of_keras(plain: ProcessPoolExecutor) -> None:
    found = plain.submit(updates.outcomes).result()
    assert found == {name: (True, name not in updates.WITHOUT) for name in updates.CHOSEN}


@pytest.mark.parametrize("framework", ["tensorflow"], indirect=True, scope="session")
def test_a_generator_that_is_named_draws_the_same(plain: ProcessPoolExecutor) -> None:
    same, without_a_key = plain.submit(draws.outcome).result()
    assert same and without_a_key >= draws.DRAWS


@pytest.mark.long
@pytest.mark.parametrize("framework", ["jax"], indirect=True, scope="session")
@pytest.mark.parametrize("parts", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_a_loop_in_xla_comes_first_but_not_for_convolutions(
    trainer: Peer, parts: list[Json]
) -> None:
    trainer.load("d", buffers(64))
    whole = sequential([4], *parts, layer("Flatten", "flat"), dense(3, "out", "softmax"))
    assert trainer.train(program(whole), NEW)[0]["form"] == "jit_step"


@pytest.mark.long
def test_a_remembered_timing_is_believed(trainer: Peer, framework: str) -> None:
    trainer.load("d", buffers(64))
    plain, fast, *broken = FORMS[framework]
    known = {
        plain: {"seconds_per_row": 1e-3, "compile_seconds": 0.1},
        fast: {"seconds_per_row": 1e-9, "compile_seconds": 1.0},
        **{form: {"seconds_per_row": None, "compile_seconds": 0.0} for form in broken},
    }
    result, _ = trainer.train(program(NOISY, "Adamax"), NEW, forms=ahead(10**6, **known))
    assert result["form"] == fast
    # What is remembered as faster still costs its compilation, which a few rows do not pay for.
    result, _ = trainer.train(program(NOISY, "Adamax"), NEW, batch_size=9, forms=ahead(5, **known))
    assert result["form"] == plain


@pytest.mark.long_for(framework=("jax", "torch"))
def test_an_unknown_form_is_refused(trainer: Peer, framework: str) -> None:
    trainer.load("d", buffers(8))
    with pytest.raises(TrainerFailed, match=rf"form 'warp' is unknown; .*{FORMS[framework][0]}"):
        trainer.train(program(), NEW, forms=use("warp"))


def regularised(l1: float, l2: float) -> Json:
    """An architecture with three regularizers, one of which sees outputs and not weights."""

    def regularizer(name: str, value: float) -> Json:
        return {"module": "keras.regularizers", "class_name": name.upper(), "config": {name: value}}

    hidden = dense(
        8,
        "hidden",
        kernel_regularizer=regularizer("l2", l2),
        bias_regularizer=regularizer("l1", l1),
        activity_regularizer=regularizer("l2", 0.01),
    )
    return sequential(
        [4], hidden, dense(3, "out", "softmax", kernel_regularizer=regularizer("l2", 3 * l2))
    )


@pytest.mark.long
def test_configs_that_differ_in_regularization_share_a_program(trainer: Peer, form: str) -> None:
    """And each trains with its own: in a program that others used, and in one that nobody used
    before.
    """
    trainer.load("d", buffers(*SIZES))

    def train(l1: float, l2: float, alone: float) -> tuple[Any, list[np.ndarray]]:
        # A number of the activity regularizer is no variable, so `alone` makes a program of its
        # own.
        architecture = regularised(l1, l2)
        layers = architecture["config"]["layers"]
        hidden = next(entry for entry in layers if entry["config"]["name"] == "hidden")
        hidden["config"]["activity_regularizer"]["config"]["l2"] = alone
        result, state = trainer.train(program(architecture), NEW, epochs=3, forms=use(form))
        return result["loss"], weights(state)

    train(0.5, 0.5, 0.01)
    second, third, alone = (
        train(0.01, 0.02, 0.01),
        train(0.0, 0.0, 0.01),
        train(0.01, 0.02, 0.0100001),
    )
    assert second[0] != pytest.approx(third[0], rel=1e-3)
    assert second[0] == pytest.approx(alone[0], rel=1e-5)
    for left, right in zip(second[1], alone[1], strict=True):
        np.testing.assert_allclose(left, right, atol=1e-4)
