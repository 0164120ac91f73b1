"""A config may go on with another framework: with its weights always, with its optimizer where that
has a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from trainer_peer import Peer, TrainerFailed
from trainer_programs import (
    FORMS,
    NOISY,
    Json,
    buffers,
    content,
    dense,
    layer,
    metadata,
    program,
    sequential,
    tensors,
    weights,
)

from cerebro_plpy.configs.params.keras_names import OPTIMIZERS
from cerebro_trainer.state.conversion import PORTABLE_OPTIMIZERS

NEW = {"source": "new", "seed": 3}
ROWS = 24
ROUNDING = 1e-4
"""Of the largest change of a tensor, beside what float32 leaves of its values: sums are in another
order, and rules divide them by small numbers."""
FLOAT32 = 4 * np.finfo(np.float32).eps
NETWORK = sequential(
    [4],
    layer("Normalization", "scaled", axis=-1),
    dense(8, "hidden", "tanh"),
    layer("BatchNormalization", "norm"),
    dense(3, "out", "softmax"),
)
"""It counts and has moving means, which are weights; and nothing in it is drawn."""
SETTINGS: dict[str, dict[str, Any]] = {
    "Adam": {"amsgrad": True, "weight_decay": 0.01},
    "Ftrl": {"learning_rate": 0.1},  # its rule divides a difference of nearly equal numbers by it
    "RMSprop": {"momentum": 0.9, "centered": True},
    "SGD": {"momentum": 0.9, "nesterov": True},
}
CHOSEN = {
    name: program(NETWORK, name, **SETTINGS.get(name, {})) for name in sorted(PORTABLE_OPTIMIZERS)
} | {
    "accumulating": program(NETWORK, gradient_accumulation_steps=2, clipnorm=0.5),
    "averaging": program(NETWORK, "SGD", use_ema=True, ema_overwrite_frequency=4),
    "scheduled": program(
        NETWORK,
        learning_rate={
            "class_name": "InverseTimeDecay",
            "config": {"initial_learning_rate": 0.01, "decay_steps": 1, "decay_rate": 0.1},
        },
    ),
}
SCALING = {**program(NETWORK), "dtype_policy": "mixed_float16"}
INSTALLED = tuple(name for name in FORMS if find_spec(name))
TWO = INSTALLED[0], INSTALLED[-1]
"""Of these, JAX would compile."""
of_two_and_of_all = pytest.mark.parametrize(
    "peers",
    [pytest.param(TWO, id="two"), pytest.param(INSTALLED, id="all", marks=pytest.mark.long)],
    indirect=True,
    scope="module",
)

of_all = pytest.mark.parametrize(
    "peers",
    [pytest.param(INSTALLED, id="all", marks=pytest.mark.long)],
    indirect=True,
    scope="module",
)


@pytest.fixture(scope="module")
def peers(request: pytest.FixtureRequest) -> Iterator[dict[str, Peer]]:
    """A trainer of each of some frameworks."""
    with ExitStack() as stack:
        made = {name: stack.enter_context(Peer(name)) for name in request.param}
        for peer in made.values():
            peer.load("d", buffers(ROWS))
        yield made


def test_the_table_has_every_optimizer_that_trainers_offer() -> None:
    assert OPTIMIZERS.keys() ^ PORTABLE_OPTIMIZERS == {"ScheduleFreeAdamW"}


def crossings(peers: Iterable[str]) -> list[tuple[str, str]]:
    """From each framework to one other, and from one other to each."""
    names = [*peers]
    return [*zip(names, names[1:] + names[:1], strict=True)]


@pytest.mark.parametrize(
    ("peers", "name"),
    [
        pytest.param(TWO, "Adam", id="Adam of two"),
        *(pytest.param(INSTALLED, name, id=name, marks=pytest.mark.long) for name in CHOSEN),
    ],
    indirect=["peers"],
    scope="module",
)
def test_the_next_steps_are_the_same(peers: dict[str, Peer], name: str) -> None:
    """After some steps of one framework, those of another; were its optimizer to begin anew, they
    would be others.
    """
    left = {each: peer.train(CHOSEN[name], NEW)[1] for each, peer in peers.items()}
    expected = {
        each: peer.train(CHOSEN[name], left[each], epoch=1)[1] for each, peer in peers.items()
    }
    for source, target in crossings(peers):
        found = peers[target].train(CHOSEN[name], left[source], epoch=1)[1]
        assert metadata(found)["step"] == metadata(expected[source])["step"]
        assert apart(left[source], expected[source], found) < ROUNDING, (source, target)
        anew = begun(peers[target], CHOSEN[name], left[source], "weights_of_chunks")
        other = peers[target].train(CHOSEN[name], anew, epoch=1)[1]
        assert apart(left[source], expected[source], other) > 10 * ROUNDING, (source, target)


def apart(before: bytes, expected: bytes, found: bytes) -> float:
    """How much two states differ, as a share of what has changed in a tensor since the one before
    both.
    """
    shares = [0.0]
    for first, one, other in zip(tensors(before), tensors(expected), tensors(found), strict=True):
        assert (one.shape, one.dtype.kind == "f") == (other.shape, other.dtype.kind == "f")
        first, one, other = (each.astype(np.float64) for each in (first, one, other))
        beyond = np.abs(one - other) - FLOAT32 * np.abs(one)
        shares.append(beyond.max(initial=0) / max(1e-6, np.abs(one - first).max(initial=0)))
    return max(shares)


def begun(peer: Peer, chosen: Json, state: bytes, source: str) -> bytes:
    """What a program begins with that takes of a state what the source says."""
    peer.begin("predict", chosen, {"source": source, "seed": 1}, ())
    peer.send_state(state)
    return peer.state()


@of_all
def test_generators_go_over_by_their_numbers(peers: dict[str, Peer]) -> None:
    """They hold them in other types; what they draw then is the framework's own."""
    for source, target in crossings(peers):
        _, state = peers[source].train(program(NOISY), NEW)
        found = begun(peers[target], program(NOISY), state, "chunks")
        for before, after in zip(tensors(state), tensors(found), strict=True):
            assert np.array_equal(before, after)


@of_all
def test_frozen_weights_of_other_types_are_another_base(peers: dict[str, Peer]) -> None:
    """As those that the framework has by itself, and not what the state was left with: its bytes
    are others.
    """
    frozen = (
        layer("Normalization", "scaled", axis=-1, trainable=False),
        dense(65536, "wide", trainable=False),
    )
    chosen = program(
        sequential([4], *frozen, dense(1, "narrow"), dense(3, "out", "softmax")), "SGD"
    )
    for source, target in crossings(peers):
        state = peers[source].initial(chosen)
        found = begun(peers[target], chosen, state, "chunks")
        own = begun(peers[target], chosen, state, "weights_of_chunks")
        assert metadata(found)["base"] == metadata(own)["base"]
        assert (metadata(found)["base"] == metadata(state)["base"]) == (
            "tensorflow" not in (source, target)
        )


@of_two_and_of_all
def test_what_scales_losses_does_not_go_over(peers: dict[str, Peer]) -> None:
    """Its weights do, and a state that is asked for as a whole is refused by what is wrong with
    it.
    """
    for source, target in crossings(peers):
        _, state = peers[source].train(SCALING, NEW)
        with pytest.raises(
            TrainerFailed, match=f"{source} has left it, and what .* does not go over to {target}"
        ) as no:
            begun(peers[target], SCALING, state, "chunks")
        assert (no.value.error["kind"], "begins anew" in no.value.error["hint"]) == ("config", True)
        warm = begun(peers[target], SCALING, state, "warm")
        assert metadata(warm)["step"] == "0" != metadata(state)["step"]
        for before, after in zip(weights(state), weights(warm), strict=True):
            assert np.array_equal(before, after)


@of_two_and_of_all
def test_a_count_that_another_type_does_not_hold_is_refused(peers: dict[str, Peer]) -> None:
    chosen = program(NETWORK)
    _, state = peers["tensorflow"].train(chosen, NEW)
    steps = int(metadata(state)["step"]).to_bytes(8, "little")
    length = 8 + int.from_bytes(state[:8], "little")
    place = next(at for at in range(length, len(state), 8) if state[at : at + 8] == steps)
    wrong = state[:place] + (2**40).to_bytes(8, "little") + state[place + 8 :]
    assert content(begun(peers["tensorflow"], chosen, wrong, "chunks"))[1] == content(wrong)[1]
    for name in peers.keys() - {"tensorflow"}:
        with pytest.raises(
            TrainerFailed, match="has 1099511627776, which int32 does not hold"
        ) as no:
            begun(peers[name], chosen, wrong, "chunks")
        assert no.value.error["kind"] == "config"
