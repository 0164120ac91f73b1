"""A config may hop anywhere: carried as bytes, it trains on as if it had never moved."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from trainer_peer import Peer, TrainerFailed
from trainer_programs import (
    MLP,
    NOISY,
    buffers,
    content,
    dense,
    metadata,
    program,
    sequential,
    tensors,
    weights,
)

NEW = {"source": "new", "seed": 3}
KEPT = {"source": "kept", "key": "result"}
OPTIMIZERS = {
    "adam": program(),
    "momentum": program(optimizer="SGD", momentum=0.9, nesterov=True),
    "rmsprop": program(optimizer="RMSprop", centered=True),
    "noisy": program(NOISY),
    "schedule": program(
        NOISY,
        learning_rate={
            "class_name": "InverseTimeDecay",
            "config": {"initial_learning_rate": 0.01, "decay_steps": 1, "decay_rate": 0.1},
        },
    ),
    "accumulating": program(gradient_accumulation_steps=3, clipnorm=0.5),
}


@pytest.fixture(autouse=True)
def data(trainer: Peer, second_trainer: Peer) -> None:
    """The same two buffers in both processes."""
    for peer in (trainer, second_trainer):
        peer.load("d", buffers(21, 13))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_state_goes_through_bytes_unchanged(trainer: Peer, name: str) -> None:
    _, state = trainer.train(OPTIMIZERS[name], NEW)
    trainer.begin("predict", OPTIMIZERS[name], state, ())
    assert content(trainer.state()) == content(state)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_hopping_to_another_process_changes_no_bit(
    trainer: Peer, second_trainer: Peer, name: str, shuffle: bool
) -> None:
    chosen = OPTIMIZERS[name]
    trainer.train(chosen, NEW, epoch=0, shuffle=shuffle)
    loss, stayed = trainer.train(chosen, KEPT, epoch=1, shuffle=shuffle)

    _, moving = trainer.train(chosen, NEW, epoch=0, shuffle=shuffle)
    moved_loss, moved = second_trainer.train(chosen, moving, epoch=1, shuffle=shuffle)
    assert content(moved) == content(stayed)
    assert moved_loss["loss"] == loss["loss"]


def test_configs_that_share_a_program_do_not_touch_each_other(trainer: Peer) -> None:
    slow, fast = program(NOISY), program(NOISY, learning_rate=0.05)
    alone = {}
    for key, chosen in enumerate((slow, fast)):
        _, state = trainer.train(chosen, {"source": "new", "seed": key}, mst_key=key, epoch=0)
        _, alone[key] = trainer.train(chosen, state, mst_key=key, epoch=1, batch_size=5)
    interleaved = {
        key: trainer.train(chosen, {"source": "new", "seed": key}, mst_key=key, epoch=0)[1]
        for key, chosen in enumerate((slow, fast))
    }
    for key, chosen in enumerate((slow, fast)):
        _, interleaved[key] = trainer.train(chosen, interleaved[key], mst_key=key, epoch=1, batch_size=5)
    for key in alone:
        assert content(interleaved[key]) == content(alone[key])
    assert content(alone[0]) != content(alone[1])


def test_seed_alone_decides_the_initial_state(trainer: Peer, second_trainer: Peer) -> None:
    first = trainer.initial(program(NOISY), 7)
    trainer.train(program(NOISY), first)
    again, elsewhere = trainer.initial(program(NOISY), 7), second_trainer.initial(program(NOISY), 7)
    assert content(again) == content(first) == content(elsewhere)
    assert content(trainer.initial(program(NOISY), 8)) != content(first)


def test_learning_rate_comes_from_the_config_and_not_from_the_state(trainer: Peer) -> None:
    state = trainer.initial(program())
    _, still = trainer.train(program(learning_rate=0.0), state)
    for before, after in zip(weights(state), weights(still), strict=True):
        assert np.array_equal(before, after)


def test_header_says_what_the_state_is(trainer: Peer) -> None:
    _, state = trainer.train(program(NOISY), NEW, epochs=2)
    found = metadata(state)
    canonical = json.dumps(NOISY, sort_keys=True, separators=(",", ":"))
    assert found["format"] == "cerebro_db.state/1"
    assert found["architecture"] == hashlib.sha256(canonical.encode()).hexdigest()
    assert found["optimizer"] == "Adam"
    assert found["step"] == str(2 * (3 + 2))
    # Kernel and bias of two Dense layers, and gamma, beta, mean, variance; not the generator's state.
    assert [weight.shape for weight in weights(state)] == [(4, 8), (8,), (8,), (8,), (8,), (8,), (8, 3), (3,)]
    assert len(tensors(state)) > len(weights(state))


def test_weights_alone_start_a_fresh_optimizer(trainer: Peer) -> None:
    _, trained = trainer.train(program(NOISY), NEW)
    flat = b"".join(weight.astype("<f4").tobytes() for weight in weights(trained))
    for start in range(0, len(flat), 100):
        trainer.tell({"do": "state"}, flat[start : start + 100])
    trainer.begin("predict", program(NOISY), {"source": "weights", "seed": 1}, ())
    warm = trainer.state()
    assert metadata(warm)["step"] == "0"
    for expected, found in zip(weights(trained), weights(warm), strict=True):
        assert np.array_equal(expected, found)


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (program(sequential([4], dense(9, "hidden"), dense(3, "out", "softmax"))), "architecture"),
        (program(optimizer="SGD"), "optimizer"),
        (program(gradient_accumulation_steps=2), "tensors"),
    ],
)
def test_states_of_other_programs_are_refused(trainer: Peer, chosen: dict[str, object], words: str) -> None:
    state = trainer.initial(program(MLP))
    with pytest.raises(TrainerFailed, match=words) as failed:
        trainer.begin("train", chosen, state)
    assert failed.value.error["kind"] == "config"


@pytest.mark.parametrize("damage", [lambda state: b"", lambda state: state[:-1], lambda state: b"x" * 100])
def test_damaged_states_are_refused(trainer: Peer, damage: object) -> None:
    state = trainer.initial(program())
    with pytest.raises(TrainerFailed, match="damaged") as failed:
        trainer.begin("predict", program(), damage(state), ())  # type: ignore[operator]
    assert failed.value.error["kind"] == "request"


def test_weights_of_another_size_are_refused(trainer: Peer) -> None:
    trainer.tell({"do": "state"}, bytes(8))
    with pytest.raises(TrainerFailed, match=r"doesn't match model\(67\): received 8 bytes, expected 268"):
        trainer.begin("predict", program(), {"source": "weights", "seed": 1}, ())
