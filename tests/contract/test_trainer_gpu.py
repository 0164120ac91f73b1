"""What is special about a trainer with a GPU: CEREBRO_TEST_GPU=0 has all tests of this folder use
the device.
"""

from __future__ import annotations

import numpy as np
import pytest
from test_trainer_execution_modes import SIZES, ahead, use
from test_trainer_training import NEW
from trainer_peer import NO_GPU, Peer, on_a_gpu
from trainer_programs import MLP, NOISY, REGULARISED, Json, buffers, content, program, weights

pytestmark = on_a_gpu
only_torch = pytest.mark.parametrize("framework", ["torch"], indirect=True, scope="session")


@only_torch
@pytest.mark.parametrize("architecture", [MLP, REGULARISED])
@pytest.mark.parametrize("optimizer", ["Adam", "SGD"])
def test_what_is_captured_takes_the_same_steps(
    trainer: Peer, architecture: Json, optimizer: str
) -> None:
    trainer.load("d", buffers(*SIZES))
    chosen = program(architecture, optimizer)
    (one, first), (other, second) = (
        trainer.train(chosen, NEW, epochs=3, forms=use(f)) for f in ("graph", "captured")
    )
    assert (other["form"], other["loss"]) == ("captured", pytest.approx(one["loss"], rel=1e-5))
    for left, right in zip(weights(first), weights(second), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-5)


@only_torch
def test_a_step_that_draws_is_not_captured(trainer: Peer) -> None:
    trainer.load("d", buffers(64))
    result, _ = trainer.train(program(NOISY, "Adagrad"), NEW, forms=ahead(10**9))
    assert result["form"] in ("graph", "eager")
    assert result["timings"]["captured"]["seconds_per_row"] is None
    assert trainer.train(program(), NEW, forms=use("captured"))[0]["form"] == "captured"


def test_the_same_work_has_the_same_bits(trainer: Peer, second_trainer: Peer) -> None:
    made = []
    for peer in (trainer, trainer, second_trainer):
        peer.load("d", buffers(*SIZES))
        made.append(content(peer.train(program(NOISY), NEW, epochs=2)[1]))
    assert made[0] == made[1] == made[2]


def test_a_seed_gives_the_weights_that_it_gives_on_a_processor(
    trainer: Peer, framework: str
) -> None:
    with Peer(framework, gpu=NO_GPU) as plain:
        assert content(plain.initial(program(NOISY), seed=7)) == content(
            trainer.initial(program(NOISY), seed=7)
        )
