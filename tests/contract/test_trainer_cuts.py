"""Where a network can be cut: what lies in front of it, once, and what lies behind are the whole
network.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from models import tensor
from trainer_peer import Peer, TrainerFailed
from trainer_programs import Json, buffers, dense, layer, program, sequential, tensors, weights

FROZEN = {"trainable": False}
NEW = {"source": "new", "seed": 3}
FRONT = (
    dense(8, "first", **FROZEN),
    layer("BatchNormalization", "normal", **FROZEN),
    layer("ReLU", "positive"),
    dense(5, "second", "tanh", **FROZEN),
)
HEAD = (
    layer("BatchNormalization", "trained_normal"),
    layer("Dropout", "drop", rate=0.3),
    dense(6, "hidden"),
    dense(3, "out", "softmax"),
)
WHOLE = sequential([4], *FRONT, *HEAD)
LAYERS = ["first", "normal", "positive", "second"]
SIZES = (21, 13, 8)


def cuts(
    trainer: Peer, architecture: Json, state: dict[str, Any] | bytes = NEW
) -> list[dict[str, Any]]:
    trainer.begin("cuts", program(architecture, "SGD", metrics=None), state, ())
    return list(trainer.ask({"do": "finish"})["cuts"])


def features(trainer: Peer, name: str, x: np.ndarray) -> np.ndarray:
    """What a layer gives, in an open job."""
    arrays = [{"role": "x", "dtype": "float32", "shape": x.shape}]
    trainer.tell({"do": "features", "layer": name, "buffer_id": 0, "arrays": arrays}, x.tobytes())
    told, data = trainer.reply()
    return np.frombuffer(data, np.float32).reshape(told["shape"])


def stored(
    trainer: Peer, architecture: Json, name: str, state: bytes, sizes: tuple[int, ...] = SIZES
) -> list[list[tuple[str, np.ndarray]]]:
    """The buffers, with what a layer gives instead of their inputs."""
    trainer.begin("predict", program(architecture), state, ())
    return [[("x", features(trainer, name, x)), ("y", y)] for (_, x), (_, y) in buffers(*sizes)]


@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.long_for(name="first")
@pytest.mark.one_framework(name="first")
@pytest.mark.parametrize("name", ["first", "second"])
def test_what_lies_behind_a_cut_is_trained_as_in_the_whole(trainer: Peer, name: str) -> None:
    initial, behind = trainer.initial(program(WHOLE)), {**program(WHOLE), "cut": name}
    trainer.load("d", buffers(*SIZES))
    plain, after = trainer.train(program(WHOLE), initial, epochs=3)
    sums = trainer.evaluate(program(WHOLE), after)["d"]

    trainer.load("d", stored(trainer, WHOLE, name, initial))
    result, state = trainer.train(behind, initial, epochs=3)
    assert result["rows"] == plain["rows"] and result["batches"] == plain["batches"]
    assert result["loss"] == pytest.approx(plain["loss"], rel=1e-5)
    for found, expected in zip(tensors(state), tensors(after), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    for one, other in zip(trainer.evaluate(behind, state)["d"]["sums"], sums["sums"], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4)


@pytest.mark.one_framework(framework="jax")
@pytest.mark.long_for(framework="torch")
def test_states_are_those_of_the_whole_network(trainer: Peer) -> None:
    """One goes on from what the other has left; what is frozen stays to the bit.

    All batches have one size, for which a framework compiles each part once.
    """
    initial = trainer.initial(program(WHOLE))
    trainer.load("d", stored(trainer, WHOLE, "second", initial, (16,)))
    _, state = trainer.train({**program(WHOLE), "cut": "second"}, initial)
    trainer.load("d", buffers(16))
    _, after = trainer.train(program(WHOLE), state)
    count = 2 + 4 + 2
    for found, expected in zip(tensors(after)[:count], tensors(initial)[:count], strict=True):
        assert found.tobytes() == expected.tobytes()


@pytest.mark.one_framework
def test_a_cut_is_the_same_under_other_names_and_heads(trainer: Peer) -> None:
    renamed = [
        {**each, "config": {**each["config"], "name": f"my_{each['config']['name']}"}}
        for each in FRONT
    ]
    other = sequential([4], *renamed, dense(3, "out", "softmax"))
    ones, others = cuts(trainer, WHOLE), cuts(trainer, other)
    assert [cut["layer"] for cut in ones] == LAYERS and [cut["layer"] for cut in others] == [
        f"my_{n}" for n in LAYERS
    ]
    assert [cut["shape"] for cut in ones] == [[8], [8], [8], [5]]
    assert sorted({cut["flops"] for cut in ones}) == [cut["flops"] for cut in ones]
    assert [cut["digest"] for cut in ones] == [cut["digest"] for cut in others]
    assert not {cut["digest"] for cut in ones} & {
        cut["digest"] for cut in cuts(trainer, WHOLE, {**NEW, "seed": 4})
    }


@pytest.mark.one_framework
@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"activation": "tanh"}, marks=pytest.mark.long),
        {
            "activation": {
                "module": "keras.layers",
                "class_name": "ReLU",
                "config": {"negative_slope": 0.5},
            }
        },
        {"dtype": "mixed_bfloat16"},
        {
            "dtype": {
                "module": "keras",
                "class_name": "DTypePolicy",
                "config": {"name": "mixed_bfloat16"},
            }
        },
    ],
    ids=str,
)
def test_what_gives_something_else_is_told_apart(trainer: Peer, changed: Json) -> None:
    """With the same weights: another function, or another precision."""
    drawn = (
        {"bias_initializer": "zeros"},
        {"bias_initializer": {"class_name": "Zeros", "config": {}}},
    )
    digests = [
        cuts(
            trainer,
            sequential([4], dense(8, "first", **FROZEN, **given), dense(3, "out", "softmax")),
        )[0]["digest"]
        for given in (*drawn, changed)
    ]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.long_for(framework=("jax", "torch"))
def test_what_leads_to_a_layer_is_a_network_of_its_own(trainer: Peer) -> None:
    """With its part of the weights it gives what the layers give."""
    frozen = sequential([4], *FRONT, dense(3, "out", "softmax", **FROZEN))
    state = trainer.initial(program(frozen))
    trainer.begin("fronts", program(frozen), state, (), layers=["positive", "second"])
    found = trainer.ask({"do": "finish"})["fronts"]
    assert [(front["layer"], front["shape"]) for front in found] == [
        ("positive", [8]),
        ("second", [5]),
    ]
    flat = np.concatenate([array.reshape(-1) for array in weights(state)])
    (_, x), _ = buffers(9)[0]
    for front, before in zip(found, ("normal", "positive"), strict=True):
        part = np.concatenate([flat[begin : begin + count] for begin, count in front["weights"]])
        alone = program(
            front["architecture"], targets=[{"kind": "float"}], loss="mse", metrics=None
        )
        trainer.begin("predict", alone, {"source": "weights", "seed": 1}, ())
        trainer.send_state(part.tobytes())
        given = features(trainer, before, x)
        trainer.begin("predict", program(frozen), state, ())
        assert given.tobytes() == features(trainer, before, x).tobytes()


def called(inner: Json, *before: str) -> Json:
    """A layer of a functional network, on what others give."""
    given = [tensor(name) for name in before]
    calls = [{"args": [given if len(given) > 1 else given[0]], "kwargs": {}}] if given else []
    return {**inner, "name": inner["config"]["name"], "inbound_nodes": calls}


def functional(*layers: Json, output: str = "out") -> Json:
    first = called(layer("InputLayer", "input", batch_shape=[None, 4], dtype="float32"))
    config = {
        "name": "graph", "trainable": True, "layers": [first, *layers],
        "input_layers": [["input", 0, 0]], "output_layers": [[output, 0, 0]],
    }  # fmt: skip
    return {
        "module": "keras",
        "class_name": "Functional",
        "registered_name": "Functional",
        "config": config,
    }


OUT = dense(3, "out", "softmax")
BASE = sequential([4], dense(4, "inner", **FROZEN))
ENDS: dict[str, tuple[Json, list[str]]] = {
    "nothing is frozen": (sequential([4], dense(4, "a"), OUT), []),
    "a trained layer": (sequential([4], dense(4, "a", **FROZEN), dense(4, "b"), dense(4, "c",
    **FROZEN), OUT), ["a"]),
    "dropout": (
        sequential([4], dense(4, "a", **FROZEN), layer("Dropout", "b", rate=0.1), dense(4, "c",
        **FROZEN), OUT),
        ["a"],
    ),
    "dropout of nothing": (sequential([4], dense(4, "a", **FROZEN), layer("Dropout", "b", rate=0.0),
    OUT), ["a", "b"]),
    "noise": (sequential([4], layer("GaussianNoise", "a", stddev=0.1), OUT), []),
    "a normalization that learns": (sequential([4], layer("BatchNormalization", "a"), OUT), []),
    "a loss of its own": (sequential([4], dense(4, "a", activity_regularizer="l2", **FROZEN), OUT),
    []),
    "a spectral normalization": (
        sequential([4], layer("SpectralNormalization", "a", layer=dense(4, "b", **FROZEN),
        **FROZEN), OUT),
        [],
    ),
    "tokens that are masked": (
        sequential([4], layer("Embedding", "a", input_dim=9, output_dim=2, mask_zero=True,
        **FROZEN),
                   layer("Flatten", "b"), OUT),
        [],
    ),
    "tokens": (
        sequential([4], layer("Embedding", "a", input_dim=9, output_dim=2, **FROZEN),
        layer("Flatten", "b"), OUT),
        ["a", "b"],
    ),
    "two ways that meet": (
        functional(
            called(dense(4, "a", **FROZEN), "input"), called(dense(4, "b", **FROZEN), "a"),
            called(layer("Add", "c"), "a", "b"), called(OUT, "c"),
        ),
        ["a", "c"],
    ),
    "a way around": (
        functional(
            called(dense(4, "a", **FROZEN), "input"), called(layer("Add", "b"), "a", "input"),
            called(OUT, "b"),
        ),
        ["b"],
    ),
    "a layer that is called twice": (
        functional(
            called(dense(4, "a", **FROZEN), "input"),
            {**called(dense(4, "b", **FROZEN), "a"), "inbound_nodes": [[["a", 0, 0, {}]], [["b", 0,
            0, {}]]]},
            {**called(OUT, "b"), "inbound_nodes": [[["b", 1, 0, {}]]]},
        ),
        ["a"],
    ),
    "a network within": (sequential([4], BASE, OUT), ["model"]),
}  # fmt: skip


@pytest.mark.one_framework
@pytest.mark.parametrize("why", ENDS)
def test_what_ends_a_front(trainer: Peer, why: str) -> None:
    architecture, expected = ENDS[why]
    assert [cut["layer"] for cut in cuts(trainer, architecture)] == expected


@pytest.mark.one_framework
def test_a_network_is_cut_nowhere_else(trainer: Peer) -> None:
    trainer.load("d", buffers(*SIZES))
    with pytest.raises(TrainerFailed, match="cannot be cut at 'hidden'") as caught:
        trainer.begin("evaluate", {**program(WHOLE), "cut": "hidden"}, NEW)
    assert caught.value.error["kind"] == "config"
    trainer.begin("predict", program(WHOLE), NEW, ())
    with pytest.raises(TrainerFailed, match="cannot be cut at 'none'"):
        features(trainer, "none", np.zeros((2, 4), np.float32))


@pytest.mark.one_framework
def test_a_sealed_job_tells_nothing_of_its_layers(trainer: Peer) -> None:
    trainer.begin("predict", program(WHOLE), NEW, (), sealed=True)
    with pytest.raises(TrainerFailed, match="sealed") as caught:
        features(trainer, "first", np.zeros((2, 4), np.float32))
    assert caught.value.error["sqlstate"] == "42501"
