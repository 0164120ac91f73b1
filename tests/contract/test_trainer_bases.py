"""Frozen weights may stand apart from a state: it is cut in two, and comes without them where the
trainer has them.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from trainer_peer import Peer, TrainerFailed, fit, place
from trainer_programs import buffers, content, dense, metadata, program, sequential, tensors

NEW = {"source": "new", "seed": 3}
FROZEN = {"trainable": False}
MIDDLE = (dense(700, "wide", **FROZEN), dense(500, "narrow", **FROZEN))
HEAD = program(sequential([4], dense(6, "first"), *MIDDLE, dense(3, "output", "softmax")))
OTHER = program(
    sequential([4], dense(6, "first"), *MIDDLE, dense(5, "more"), dense(3, "output", "softmax"))
)
UNFROZEN = program(
    sequential(
        [4],
        dense(6, "first"),
        dense(700, "wide"),
        dense(500, "narrow"),
        dense(3, "output", "softmax"),
    )
)
FROZEN_BYTES = 4 * (7 * 700 + 701 * 500)


@pytest.fixture(autouse=True)
def data(trainer: Peer, second_trainer: Peer) -> None:
    for peer in (trainer, second_trainer):
        peer.load("d", buffers(21, 13))


def part(peer: Peer, name: str, key: str = "result") -> bytes:
    """A part of a state that a trainer holds."""
    peer.tell({"do": "state_get", "key": key, "chunk_bytes": 1 << 16, "part": name})
    return peer.reply()[1]


def trained(
    peer: Peer, chosen: dict[str, Any], state: dict[str, Any], chunks: bytes = b"", epoch: int = 0
) -> Any:
    """Train; what the answer says."""
    peer.begin("train", chosen, state, fit=fit(), order=place(epoch))
    if chunks:
        peer.send_state(chunks, 1 << 16)
    return peer.ask({"do": "finish"})


@pytest.mark.one_framework
def test_both_parts_are_the_whole(trainer: Peer) -> None:
    told = trained(trainer, HEAD, NEW)
    whole, own, base = trainer.state(), part(trainer, "own"), part(trainer, "base")
    assert own + base == whole and len(base) == FROZEN_BYTES
    assert (
        metadata(whole)["format"] == "cerebro_db.state/2"
        and metadata(whole)["base"] == told["base"]
    )
    assert told["lent_base"] == told["base"]
    assert len(tensors(whole)) == len(json.loads(metadata(whole)["weights"])) + 2 + 2 * 4, (
        "Adam, of four variables"
    )


@pytest.mark.one_framework
def test_what_is_trained_or_small_stays_in_the_state(trainer: Peer) -> None:
    for chosen in (
        UNFROZEN,
        program(sequential([4], dense(5, "small", **FROZEN), dense(3, "output", "softmax"))),
    ):
        told = trained(trainer, chosen, NEW)
        assert told["base"] is None
        assert (
            metadata(trainer.state())["format"] == "cerebro_db.state/1"
            and part(trainer, "base") == b""
        )


@pytest.mark.long_for(framework=("jax", "torch"))
def test_a_state_goes_on_without_its_base(trainer: Peer, second_trainer: Peer) -> None:
    """In the program that has it, in another one, and after states of others."""
    first = trained(trainer, HEAD, NEW)
    own, whole = part(trainer, "own"), trainer.state()
    trained(second_trainer, HEAD, {"source": "chunks"}, whole, epoch=1)
    expected = second_trainer.state()
    lent = {"source": "chunks", "base": first["base"]}
    assert trained(trainer, HEAD, lent, own, epoch=1)["base"] == first["base"]
    assert content(trainer.state()) == content(expected)

    trainer.begin("predict", OTHER, {**NEW, "seed": 4}, ())
    state = trainer.state()
    changed, base = (
        trained(second_trainer, OTHER, {"source": "chunks"}, state),
        part(second_trainer, "base"),
    )
    assert changed["base"] != first["base"] and len(base) == FROZEN_BYTES
    with pytest.raises(TrainerFailed, match="not held"):
        trainer.begin("predict", HEAD, lent, ())
    trained(trainer, HEAD, {"source": "chunks"}, whole, epoch=1)
    mixed = part(second_trainer, "own")
    with pytest.raises(TrainerFailed, match="its base is"):
        trained(trainer, OTHER, lent, mixed)


@pytest.mark.one_framework
def test_another_program_takes_the_base_over(trainer: Peer, second_trainer: Peer) -> None:
    flat = np.random.default_rng(1).normal(size=7 * 700 + 701 * 500).astype("<f4") / 20
    heads = {"first": (HEAD, 5 * 6, 501 * 3), "other": (OTHER, 5 * 6, 501 * 5 + 6 * 3)}
    told, states = {}, {}
    for name, (chosen, before, after) in heads.items():
        weights = np.concatenate(
            [np.full(before, 0.1, "<f4"), flat, np.full(after, 0.2, "<f4")]
        ).tobytes()
        told[name] = trained(second_trainer, chosen, {"source": "weights", "seed": 1}, weights)
        states[name] = part(second_trainer, "own"), second_trainer.state()
    assert told["first"]["base"] == told["other"]["base"], "the same weights, wherever they stand"
    trained(second_trainer, OTHER, {"source": "chunks"}, states["other"][1], epoch=1)
    expected = second_trainer.state()

    trained(trainer, HEAD, {"source": "chunks"}, states["first"][1])
    found = trained(
        trainer,
        OTHER,
        {"source": "chunks", "base": told["first"]["base"]},
        states["other"][0],
        epoch=1,
    )
    assert content(trainer.state()) == content(expected)
    assert found["base"] == told["other"]["base"]


@pytest.mark.one_framework
def test_weights_that_a_step_changes_are_no_base(trainer: Peer) -> None:
    """A moving mean of a layer in training, and what a norm changes of a frozen layer."""
    normal = {
        "class_name": "BatchNormalization",
        "module": "keras.layers",
        "config": {"name": "normal"},
    }
    inner = {**dense(400, "inner", **FROZEN)}
    spectral = {"class_name": "SpectralNormalization", "module": "keras.layers",
                "config": {"name": "spectral", "layer": inner, **FROZEN}}  # fmt: skip
    chosen = program(sequential([4], *MIDDLE, normal, spectral, dense(3, "output", "softmax")))
    trained(trainer, chosen, NEW)
    assert len(part(trainer, "base")) == 4 * (5 * 700 + 701 * 500)
