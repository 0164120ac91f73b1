"""Training in shards: the same bits for any number of them, and those of the plain loop of a
graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest
import sharded_programs
from trainer_peer import Peer, TrainerFailed
from trainer_programs import NOISY, Json, buffers, dense, layer, program, sequential

L2 = {
    "module": "keras.regularizers",
    "class_name": "L2",
    "config": {"l2": 0.05},
    "registered_name": None,
}
DEEP = sequential(
    [4],
    dense(16, "first", trainable=False),
    dense(16, "second", kernel_regularizer=L2),
    layer("BatchNormalization", "normal"),
    layer("Dropout", "drop", rate=0.3),
    dense(12, "third", "tanh"),
    dense(3, "out", "softmax"),
)
SIZES = (20, 13)
USE = {"use": "sharded", "remaining_rows": 0, "known": {}}
NEW = {"source": "new", "seed": 3}


pytestmark = pytest.mark.parametrize("framework", ["tensorflow"], indirect=True, scope="session")


@pytest.fixture(scope="module")
def trainer(framework: str) -> Iterator[Peer]:
    """Return a trainer of these tests alone, because a program that was cut stays cut, and others
    expect it whole.
    """
    with Peer(framework) as peer:
        yield peer


def trained(plain: ProcessPoolExecutor, asked: Json, most: int | None) -> sharded_programs.Trained:
    return plain.submit(sharded_programs.trained, asked, buffers(*SIZES), most).result()


@pytest.mark.long_for(optimizer=("SGD", "AdamW", "Nadam"))
@pytest.mark.parametrize("optimizer", ["Adam", "SGD", "AdamW", "Nadam"])
def test_bits_are_those_of_the_plain_loop_for_every_number_of_shards(
    plain: ProcessPoolExecutor, optimizer: str
) -> None:
    config: dict[str, Any] = {"momentum": 0.9} if optimizer == "SGD" else {"clipnorm": 0.5}
    asked = program(DEEP, optimizer, **config)
    whole = trained(plain, asked, None)
    # Four pieces make four shards or two; how a variable is updated, one cut shows.
    for most in (1, 3) if optimizer == "Adam" else (3,):
        found = trained(plain, asked, most)
        assert found.pieces == 4
        assert found._replace(pieces=1) == whole


def test_a_step_that_is_measured_is_one_like_others(trainer: Peer) -> None:
    """A trainer cuts by what its first step took; here there is room for all."""
    trainer.load("d", buffers(*SIZES))
    plain = program(NOISY)
    expected, state = trainer.train(plain, NEW, forms={**USE, "use": "graph_loop"})
    assert expected["shards"] == []
    found, sharded = trainer.train(plain, NEW, forms=USE)
    assert (found["form"], found["loss"]) == ("sharded", expected["loss"])
    (shard,) = found["shards"]
    assert shard.keys() == {"layers", "state_bytes", "memory_bytes"}
    assert shard["layers"] == ["hidden", "norm", "drop", "out"]
    assert 0 < shard["state_bytes"] <= found["state_bytes"]
    assert shard["memory_bytes"] >= shard["state_bytes"]
    assert sharded == state
    sums = trainer.evaluate(plain, {"source": "kept", "key": "result"})
    again, _ = trainer.train(plain, sharded, forms={**USE, "use": "graph_loop"}, epoch=1)
    after, _ = trainer.train(plain, sharded, forms=USE, epoch=1)
    assert after["loss"] == again["loss"]
    assert sums == trainer.evaluate(plain, sharded)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"global_clipnorm": 1.0}, "global_clipnorm"),
        ({"use_ema": True, "ema_overwrite_frequency": 2}, "use_ema"),
        ({"gradient_accumulation_steps": 2}, "gradient_accumulation_steps"),
    ],
)
def test_optimizers_that_look_across_variables_are_refused(
    trainer: Peer, config: Json, said: str
) -> None:
    trainer.load("d", buffers(*SIZES))
    with pytest.raises(TrainerFailed, match=f"Adam needs all of it at once for {said}") as caught:
        trainer.train(program(DEEP, "Adam", **config), NEW, forms=USE)
    assert (caught.value.error["kind"], caught.value.error["sqlstate"]) == ("config", "53200")


def test_what_needs_all_of_a_model_at_once_is_refused(trainer: Peer) -> None:
    trainer.load("d", buffers(*SIZES))
    _, state = trainer.train(program(DEEP), NEW, forms=USE)
    with pytest.raises(TrainerFailed, match="neither does the mean of several states"):
        trainer.begin("average", program(DEEP), {"source": "averaged", "shares": [1]}, ())
    trainer.begin("predict", program(DEEP), state, ())
    ((_, x), _) = buffers(4)[0]
    arrays = [{"role": "x", "dtype": "float32", "shape": x.shape}]
    trainer.tell(
        {"do": "features", "layer": "first", "buffer_id": 0, "arrays": arrays}, x.tobytes()
    )
    with pytest.raises(
        TrainerFailed, match="larger than its trainer's memory: what its layers give"
    ) as caught:
        trainer.reply()
    assert caught.value.error["sqlstate"] == "0A000"
    trainer.begin("cuts", program(DEEP), state, ())
    assert trainer.ask({"do": "finish"})["cuts"] == []
