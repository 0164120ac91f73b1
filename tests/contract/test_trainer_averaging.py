"""The mean of states: what model averaging goes on from after each epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_trainer_states import KEPT, OPTIMIZERS
from trainer_peer import Peer, TrainerFailed
from trainer_programs import buffers, content, program, tensors

SHARES = [30, 10, 1]


@pytest.fixture(autouse=True)
def data(trainer: Peer) -> None:
    trainer.load("d", buffers(21, 13))


def replicas(trainer: Peer, chosen: dict[str, Any], count: int) -> list[bytes]:
    """States after different rows, from the same initial one."""
    first = trainer.initial(chosen)
    return [trainer.train(chosen, first, mst_key=key, epochs=1 + key)[1] for key in range(count)]


def average(
    trainer: Peer, chosen: dict[str, Any], states: bytes, shares: list[int]
) -> dict[str, Any]:
    trainer.begin("average", chosen, {"source": "averaged", "shares": shares}, ())
    trainer.send_state(states)
    return dict(trainer.ask({"do": "finish"}))


@pytest.mark.one_framework
@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name not in ("adam", "schedule")])
def test_every_variable_becomes_its_mean_by_rows(trainer: Peer, name: str) -> None:
    states = replicas(trainer, OPTIMIZERS[name], len(SHARES))
    found = average(trainer, OPTIMIZERS[name], b"".join(states), SHARES)
    assert (found["rows"], found["loss"]) == (sum(SHARES), None)
    for mean, *parts in zip(tensors(trainer.state()), *map(tensors, states), strict=True):
        if mean.dtype.kind == "f":
            wanted = np.average(np.stack(parts).astype(np.float64), axis=0, weights=SHARES)
            np.testing.assert_allclose(mean, wanted, rtol=1e-5, atol=1e-7)
        else:  # counters and seeds
            np.testing.assert_array_equal(mean, parts[0])


@pytest.mark.one_framework
@pytest.mark.parametrize("policy", [None, "mixed_bfloat16"])
def test_the_mean_of_a_state_with_itself_is_that_state(trainer: Peer, policy: str | None) -> None:
    chosen = {**program(), "dtype_policy": policy}
    (state,) = replicas(trainer, chosen, 1)
    average(trainer, chosen, state * 3, [5, 7, 0])
    assert content(trainer.state()) == content(state)


@pytest.mark.long_for(framework=("jax", "torch"))
def test_training_goes_on_from_the_mean(trainer: Peer) -> None:
    chosen = program()
    states = replicas(trainer, chosen, 2)
    average(trainer, chosen, b"".join(states), [1, 1])
    mean = trainer.state()
    _, stayed = trainer.train(chosen, KEPT, epoch=1)
    _, moved = trainer.train(chosen, mean, epoch=1)
    assert content(stayed) == content(moved)


@pytest.mark.one_framework
@pytest.mark.parametrize(("copies", "shares", "words"), [
    (1, [1, 1], "it ends too early"),
    (3, [1, 1], "bytes follow its last tensor"),
    (1, [], "expected numbers of rows"),
    (2, [1, -1], "expected numbers of rows"),
    (2, [0, 0], "expected numbers of rows"),
    (1, ["1"], '"shares" must be int'),
])  # fmt: skip
def test_what_cannot_be_averaged_is_refused(
    trainer: Peer, copies: int, shares: list[int], words: str
) -> None:
    (state,) = replicas(trainer, program(), 1)
    with pytest.raises(TrainerFailed, match=words):
        average(trainer, program(), state * copies, shares)


@pytest.mark.one_framework
def test_an_average_needs_no_data(trainer: Peer) -> None:
    with pytest.raises(TrainerFailed, match="has no datasets"):
        trainer.begin("average", program(), {"source": "averaged", "shares": [1]}, ("d",))
