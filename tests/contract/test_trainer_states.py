"""A config may hop anywhere: carried as bytes, it trains on as if it had never moved."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from trainer_peer import Peer, TrainerFailed, fit, place
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


@pytest.mark.long_for(name=("rmsprop", "schedule"))
@pytest.mark.long_for(framework="jax")
@pytest.mark.long_for(framework="torch", name="accumulating")
@pytest.mark.one_framework(name=("rmsprop", "schedule"))
@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name != "adam"])
def test_hopping_to_another_process_changes_no_bit(
    trainer: Peer, second_trainer: Peer, name: str
) -> None:
    """Nor does the way through bytes by itself."""
    chosen = OPTIMIZERS[name]
    trainer.train(chosen, NEW, epoch=0)
    moving = trainer.state()
    loss, stayed = trainer.train(chosen, KEPT, epoch=1)

    second_trainer.begin("predict", chosen, moving, ())
    assert content(second_trainer.state()) == content(moving)
    moved_loss, moved = second_trainer.train(chosen, moving, epoch=1)
    assert content(moved) == content(stayed)
    assert moved_loss["loss"] == loss["loss"]


@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.one_framework(name="adam")
@pytest.mark.parametrize("name", ["adam", "noisy"])
def test_a_state_that_was_replaced_is_sent_while_the_next_job_is_done(
    trainer: Peer, name: str
) -> None:
    """Of the same program, whose variables are those of the next job by then, or of another one."""
    _, before = trainer.train(OPTIMIZERS["adam"], NEW)
    long: dict[str, Any] = {"fit": fit(epochs=100), "order": place(), "result_key": "next"}
    trainer.begin("train", OPTIMIZERS[name], {**NEW, "seed": 4}, unstored=["result"], **long)
    trainer.tell({"do": "finish"})
    for number in (7, 8):
        trainer.tell({"do": "state_get", "key": "result", "chunk_bytes": 1000, "aside": number})
        answer, state = trainer.reply()
        assert (answer.keys(), content(state)) == ({"bytes", "chunks"}, content(before))
    trainer.tell({"do": "state_get", "key": "next", "chunk_bytes": 1000, "aside": 9})
    with pytest.raises(TrainerFailed, match="is not held"):
        trainer.reply()
    assert trainer.reply()[0]["rows"] == 100 * 34
    assert trainer.state(key="next") != before and content(trainer.state(key="result")) == content(
        before
    )
    trainer.begin("predict", OPTIMIZERS["adam"], NEW, ())
    with pytest.raises(TrainerFailed, match="is not held"):
        trainer.state(key="next")


def test_states_are_there_as_long_as_they_are_to_be_stored(trainer: Peer) -> None:
    """Those of several jobs, of which each goes on from the one before it; and no longer than a job
    names them.
    """
    _, before = trainer.train(OPTIMIZERS["adam"], NEW)
    states = {"result": before}
    for key, unstored in (
        ("second", ["result"]),
        ("third", ["result", "second"]),
        ("fourth", ["second"]),
    ):
        last = next(reversed(states))
        told: dict[str, Any] = {
            "fit": fit(),
            "order": place(),
            "result_key": key,
            "unstored": unstored,
        }
        trainer.begin("train", OPTIMIZERS["adam"], {"source": "kept", "key": last}, **told)
        trainer.ask({"do": "finish"})
        states[key] = trainer.state(key=key)
        for name in unstored:
            assert content(trainer.state(key=name)) == content(states[name])
    assert len({content(state)[1] for state in states.values()}) == 4
    for key in ("result", "third"):
        with pytest.raises(TrainerFailed, match="is not held"):
            trainer.state(key=key)


def test_what_replaced_a_state_is_forgotten_with_it(trainer: Peer) -> None:
    trainer.train(OPTIMIZERS["adam"], NEW)
    told: dict[str, Any] = {
        "fit": fit(),
        "order": place(),
        "result_key": "next",
        "unstored": ["result"],
    }
    trainer.begin("train", OPTIMIZERS["adam"], NEW, **told)
    trainer.tell({"do": "reset"})
    for key in ("result", "next"):
        with pytest.raises(TrainerFailed, match="is not held, but no state"):
            trainer.state(key=key)
    trainer.load("d", buffers(21, 13))


@pytest.mark.long_for(framework=("jax", "torch"))
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
        _, interleaved[key] = trainer.train(
            chosen, interleaved[key], mst_key=key, epoch=1, batch_size=5
        )
    for key in alone:
        assert content(interleaved[key]) == content(alone[key])
    assert content(alone[0]) != content(alone[1])


@pytest.mark.long_for(framework=("jax", "torch"))
def test_seed_alone_decides_the_initial_state(trainer: Peer, second_trainer: Peer) -> None:
    first = trainer.initial(program(NOISY), 7)
    trainer.train(program(NOISY), first)
    again, elsewhere = trainer.initial(program(NOISY), 7), second_trainer.initial(program(NOISY), 7)
    assert content(again) == content(first) == content(elsewhere)
    assert content(trainer.initial(program(NOISY), 8)) != content(first)


def test_a_seed_that_comes_again_and_again_gives_the_same_state(trainer: Peer) -> None:
    """Training changes nothing of what the trainer has kept for the next one."""
    ends = [
        content(trainer.train(program(NOISY), {"source": "new", "seed": 7})[1]) for _ in range(4)
    ]
    assert ends == ends[:1] * 4


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
    # Kernel and bias of two Dense layers, and gamma, beta, mean, variance; not the generator's
    # state.
    assert [weight.shape for weight in weights(state)] == [
        (4, 8),
        (8,),
        (8,),
        (8,),
        (8,),
        (8,),
        (8, 3),
        (3,),
    ]
    assert len(tensors(state)) > len(weights(state))


@pytest.mark.one_framework
def test_weights_alone_start_a_fresh_optimizer(trainer: Peer) -> None:
    _, trained = trainer.train(program(NOISY), NEW)
    flat = b"".join(weight.astype("<f4").tobytes() for weight in weights(trained))
    trainer.begin("predict", program(NOISY), {"source": "weights", "seed": 1}, ())
    trainer.send_state(flat, 100)
    warm = trainer.state()
    assert metadata(warm)["step"] == "0"
    for expected, found in zip(weights(trained), weights(warm), strict=True):
        assert np.array_equal(expected, found)


@pytest.mark.one_framework
def test_weights_of_a_state_start_another_optimizer(trainer: Peer) -> None:
    _, trained = trainer.train(program(NOISY), NEW)
    trainer.begin(
        "predict", program(NOISY, optimizer="SGD"), {"source": "weights_of_chunks", "seed": 1}, ()
    )
    trainer.send_state(trained)
    warm = trainer.state()
    assert (metadata(warm)["optimizer"], metadata(warm)["step"]) == ("SGD", "0")
    for expected, found in zip(weights(trained), weights(warm), strict=True):
        assert np.array_equal(expected, found)


@pytest.mark.one_framework
def test_a_state_waits_for_the_job_that_asked_for_it(trainer: Peer) -> None:
    state = trainer.initial(program())
    trainer.send_state(state)
    with pytest.raises(TrainerFailed, match="no job waits for a state"):
        trainer.begin("predict", program(), NEW, ())


@pytest.mark.one_framework
@pytest.mark.parametrize("chunk_bytes", [1, 7, 1000, 1 << 20])
def test_the_size_of_chunks_does_not_matter(trainer: Peer, chunk_bytes: int) -> None:
    _, state = trainer.train(program(NOISY), NEW)
    trainer.begin("predict", program(NOISY), {"source": "chunks"}, ())
    trainer.send_state(state, chunk_bytes)
    assert trainer.state(chunk_bytes) == state


@pytest.mark.one_framework
@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (program(sequential([4], dense(9, "hidden"), dense(3, "out", "softmax"))), "architecture"),
        (program(optimizer="SGD"), "optimizer"),
        (program(gradient_accumulation_steps=2), "tensors"),
    ],
)
def test_states_of_other_programs_are_refused(
    trainer: Peer, chosen: dict[str, object], words: str
) -> None:
    state = trainer.initial(program(MLP))
    trainer.begin("predict", chosen, state, ())
    with pytest.raises(TrainerFailed, match=words) as failed:
        trainer.state()
    assert failed.value.error["kind"] == "config"


def reheaded(state: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """The state with another header."""
    header, rest = content(state)
    change(header)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + rest


@pytest.mark.one_framework
@pytest.mark.parametrize(
    "damage",
    [
        lambda state: b"",
        lambda state: state[:-1],
        lambda state: state + b"x",
        lambda state: b"x" * 100,
        lambda state: reheaded(state, lambda header: header["00000"].update(data_offsets=[4, 132])),
        lambda state: reheaded(state, lambda header: header["00000"].pop("shape")),
        lambda state: reheaded(state, lambda header: header.update(other=header.pop("00000"))),
    ],
)
def test_damaged_states_are_refused(trainer: Peer, damage: Callable[[bytes], bytes]) -> None:
    trainer.begin("predict", program(), damage(trainer.initial(program())), ())
    with pytest.raises(TrainerFailed, match="damaged") as failed:
        trainer.state()
    assert failed.value.error["kind"] == "request"


@pytest.mark.one_framework
@pytest.mark.parametrize("size", [0, 8, 272])
def test_weights_of_another_size_are_refused(trainer: Peer, size: int) -> None:
    trainer.begin("predict", program(), {"source": "weights", "seed": 1}, ())
    trainer.send_state(bytes(size))
    with pytest.raises(
        TrainerFailed, match=rf"doesn't match model\(67\): received {size} bytes, expected 268"
    ):
        trainer.state()
