"""A visit trains as Keras would, whichever way its buffers come."""

from __future__ import annotations

import numpy as np
import pytest
from models import TWO_BY_TWO
from trainer_peer import GPU, NO_GPU, Peer, TrainerFailed, fit, on_a_processor, place
from trainer_programs import (
    FORMS,
    MLP,
    NOISY,
    buffers,
    content,
    dense,
    examples,
    layer,
    program,
    sequential,
    weights,
)

from cerebro_plpy.trainer_client.process import host_resources

NEW = {"source": "new", "seed": 3}


def without_times(result: dict[str, object]) -> dict[str, object]:
    """A train job's result without what another try would measure otherwise."""
    return {
        name: value
        for name, value in result.items()
        if name not in ("seconds", "timings", "ended_at")
    }


@pytest.mark.parametrize("shuffle", [True, False])
def test_streamed_and_cached_give_the_same_bits(trainer: Peer, shuffle: bool) -> None:
    parts = buffers(21, 13, 8)
    trainer.load("d", parts)
    cached_loss, cached = trainer.train(program(NOISY), NEW, epochs=2, shuffle=shuffle)

    assert not trainer.load("d", parts, cache_bytes=0)["cached"]
    trainer.begin("train", program(NOISY), NEW, fit=fit(epochs=2, shuffle=shuffle), order=place())
    for pass_no in range(2):
        for position, arrays in enumerate(parts):
            trainer.send_buffer("d", position, arrays, **{"pass": pass_no})
    streamed_loss = trainer.ask({"do": "finish"})
    assert content(trainer.state()) == content(cached)
    assert without_times(streamed_loss) == without_times(cached_loss)


def test_a_job_over_some_buffers_sees_no_others(trainer: Peer) -> None:
    """Kept or streamed; and what it is evaluated by are those, too."""
    parts = buffers(21, 13, 8, 5)
    trainer.tell({"do": "open", "dataset": "d", "cache_bytes": 1 << 30})
    for number in (1, 3):  # alone, under the same numbers
        trainer.send_buffer("d", number, parts[number])
    trainer.ask({"do": "close", "dataset": "d"})
    loss, state = trainer.train(program(NOISY), NEW, epochs=2)
    found = trainer.evaluate(program(NOISY), state)["d"]
    for cache_bytes in (1 << 30, 0):
        trainer.load("d", parts, cache_bytes=cache_bytes)
        trainer.begin(
            "train", program(NOISY), NEW, fit=fit(epochs=2), order=place(), buffers={"d": [1, 3]}
        )
        for pass_no in range(0 if cache_bytes else 2):
            for position, arrays in enumerate(parts):
                trainer.send_buffer("d", position, arrays, **{"pass": pass_no})
        assert without_times(trainer.ask({"do": "finish"})) == without_times(loss)
        assert content(trainer.state()) == content(state)
    trainer.load("d", parts)
    trainer.begin("evaluate", program(NOISY), state, buffers={"d": [1, 3]})
    assert trainer.ask({"do": "finish"})["datasets"]["d"] == found


@pytest.mark.one_framework
def test_neighbours_that_are_a_block_are_trained_on_as_one_buffer(trainer: Peer) -> None:
    parts = buffers(21, 13, 8, 5)
    joined = [
        [(name, np.concatenate([dict(part)[name] for part in some])) for name in ("x", "y")]
        for some in (parts[:2], parts[2:])
    ]
    trainer.tell({"do": "open", "dataset": "d", "cache_bytes": 1 << 30})
    for number, arrays in zip((0, 2), joined, strict=True):
        trainer.send_buffer("d", number, arrays)
    trainer.ask({"do": "close", "dataset": "d"})
    loss, state = trainer.train(program(NOISY), NEW, epochs=2)
    trainer.load("d", parts)
    found, again = trainer.train(program(NOISY), NEW, epochs=2, block_rows=30)
    assert without_times(found) == without_times(loss) and content(again) == content(state)
    with pytest.raises(TrainerFailed, match="steps_per_epoch"):
        trainer.train(program(NOISY), NEW, steps_per_epoch=1, block_rows=30)


def test_result_says_what_was_done(trainer: Peer, framework: str) -> None:
    trainer.load("d", buffers(21, 13))
    result, _ = trainer.train(program(), NEW, epochs=3, batch_size=8)
    assert result["rows"] == 3 * 34
    assert result["batches"] == 3 * (3 + 2)
    captured = framework == "torch" and GPU != NO_GPU
    assert result["form"] == ("captured" if captured else FORMS[framework][0])
    assert result["threads"] == 2
    assert result["seconds"] > 0
    assert 0 < result["loss"] < 5


def test_passes_are_one_after_the_other_and_shuffled_differently(trainer: Peer) -> None:
    trainer.load("d", buffers(40))
    _, once = trainer.train(program(), NEW, epochs=1)
    _, twice_over_visits = trainer.train(program(), once, epochs=1)
    _, twice_over_passes = trainer.train(program(), NEW, epochs=2)
    assert content(twice_over_visits) != content(twice_over_passes)
    _, natural = trainer.train(program(), NEW, shuffle=False)
    _, natural_twice = trainer.train(program(), natural, shuffle=False)
    _, natural_passes = trainer.train(program(), NEW, epochs=2, shuffle=False)
    assert content(natural_twice) == content(natural_passes)


def test_a_config_learns(trainer: Peer) -> None:
    trainer.load("d", buffers(200))
    first, state = trainer.train(program(), NEW, epochs=1)
    last, _ = trainer.train(program(), state, epochs=20, epoch=1)
    assert last["loss"] < first["loss"] / 2


def test_an_empty_dataset_trains_nothing(trainer: Peer) -> None:
    trainer.load("d", [])
    state = trainer.initial(program())
    result, after = trainer.train(program(), state)
    assert result["rows"] == 0 and result["loss"] is None
    assert content(after) == content(state)


@pytest.mark.one_framework
def test_losses_on_indices_equal_those_on_one_hot(trainer: Peer) -> None:
    trainer.load("d", buffers(30))
    plain, plain_state = trainer.train(program(), NEW)
    sparse, sparse_state = trainer.train(program(loss="sparse_categorical_crossentropy"), NEW)
    assert sparse["loss"] == pytest.approx(plain["loss"], rel=1e-5)
    for left, right in zip(weights(plain_state), weights(sparse_state), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-5)


@pytest.mark.one_framework
def test_two_classes_on_one_unit_train_on_the_second_class(trainer: Peer) -> None:
    x, _ = examples(60)
    second = (x[:, 0] > 0).astype(np.int16)
    trainer.load("d", [[("x", x), ("y", np.stack([1 - second, second], axis=1))]])
    binary = program(
        sequential([4], dense(1, "out", "sigmoid")),
        loss="binary_crossentropy",
        learning_rate=0.1,
        targets=[{"kind": "onehot", "classes": 2}],
    )
    _, state = trainer.train(binary, NEW, epochs=10)
    kernel = weights(state)[0]
    assert kernel[0, 0] > np.abs(kernel[1:]).max()


@pytest.mark.one_framework
def test_regression_on_float_targets_of_either_shape(trainer: Peer) -> None:
    x, _ = examples(30)
    y = x.sum(axis=1)
    regression = program(
        sequential([4], dense(1, "out", "linear")),
        loss="mse",
        metrics=["mae"],
        targets=[{"kind": "float"}],
    )
    states = []
    for target in (y, y[:, np.newaxis]):
        trainer.load("d", [[("x", x), ("y", target)]])
        states.append(content(trainer.train(regression, NEW, epochs=5)[1]))
    assert states[0] == states[1]


@pytest.mark.long_for(framework=("jax", "torch"))
def test_several_inputs_and_outputs_by_position(trainer: Peer) -> None:
    x, y = examples(40)
    trainer.load("d", [[("x", x), ("x", x[:, :2]), ("y", y), ("y", x[:, 3])]])
    chosen = program(
        TWO_BY_TWO,
        loss={"size": "mse", "kind": "categorical_crossentropy"},
        loss_weights=[1.0, 0.5],
        metrics=[["accuracy"], ["mae"]],
        targets=[{"kind": "onehot", "classes": 3}, {"kind": "float"}],
    )
    first, state = trainer.train(chosen, NEW)
    last, state = trainer.train(chosen, state, epochs=30)
    assert last["loss"] < first["loss"]
    sums = trainer.evaluate(chosen, state)["d"]["sums"]
    assert len(sums) == 3


@pytest.mark.one_framework
@pytest.mark.parametrize(
    ("chosen", "arrays", "words"),
    [
        (
            program(),
            [("x", np.zeros((5, 7), "f4")), ("y", np.eye(5, 3, dtype="i2"))],
            r"input 1 .*\[4\].*\[7\]",
        ),
        (
            program(),
            [("x", np.zeros((5, 4), "f4")), ("y", np.eye(5, 2, dtype="i2"))],
            r"\[3\].*\[2\]",
        ),
        (
            program(targets=[{"kind": "onehot", "classes": 4}]),
            [("x", np.zeros((5, 4), "f4")), ("y", np.eye(5, 4, dtype="i2"))],
            r"\[3\].*4 classes",
        ),
        (
            program(targets=[{"kind": "float"}], loss="mse"),
            [("x", np.zeros((5, 4), "f4")), ("y", np.zeros((5, 2), "f4"))],
            r"\[3\].*\[2\]",
        ),
        (program(), [("x", np.zeros((5, 4), "f4"))], "dependent columns"),
        (
            program(),
            [("x", np.zeros((5, 4), "f4"))] * 2 + [("y", np.eye(5, 3, dtype="i2"))],
            "independent columns",
        ),
    ],
)
def test_shapes_that_do_not_fit_fail_the_config_only(
    trainer: Peer, chosen: dict[str, object], arrays: list[tuple[str, np.ndarray]], words: str
) -> None:
    trainer.load("d", [arrays])
    with pytest.raises(TrainerFailed, match=words) as failed:
        trainer.train(chosen, NEW)
    assert failed.value.error["kind"] == "config"
    trainer.load("d", buffers(10))
    assert trainer.train(program(), NEW)[0]["rows"] == 10


@pytest.mark.parametrize("streamed", [False, True])
def test_infinite_loss_fails_the_config_and_the_next_one_trains(
    trainer: Peer, streamed: bool
) -> None:
    parts = buffers(24, 24)
    exploding = program(
        sequential([4], dense(3, "out", "linear")), optimizer="SGD", loss="mse", learning_rate=1e9
    )
    trainer.load("d", parts, cache_bytes=0 if streamed else 1 << 30)
    trainer.begin("train", exploding, NEW, fit=fit(), order=place())
    for position, arrays in enumerate(parts if streamed else ()):
        trainer.send_buffer("d", position, arrays)
    with pytest.raises(TrainerFailed, match="loss became") as failed:
        trainer.ask({"do": "finish"})
    assert failed.value.error["kind"] == "config"
    assert failed.value.error["sqlstate"] == "22003"
    trainer.load("d", parts)
    assert trainer.train(program(MLP), NEW)[0]["loss"] < 5


@pytest.mark.long
def test_running_out_of_memory_fails_the_config_only(trainer: Peer) -> None:
    """256 GB for one activation: refused by the allocator, not touched. XLA does without where no
    convolution is.
    """
    huge = sequential(
        [4],
        layer("RepeatVector", "more", n=2 * 10**9),
        layer("Conv1D", "slide", filters=4, kernel_size=[3]),
        layer("GlobalMaxPooling1D", "pool"),
        dense(3, "out", "softmax"),
    )
    trainer.load("d", buffers(10))
    with pytest.raises(
        TrainerFailed, match=r"ran out of memory: (OOM when|Out of memory|you tried to) allocat"
    ) as failed:
        trainer.train(program(huge), NEW)
    assert (failed.value.error["kind"], failed.value.error["sqlstate"]) == ("config", "53200")
    assert trainer.train(program(), NEW)[0]["rows"] == 10


@pytest.mark.one_framework
def test_what_keras_warns_of_is_told_with_each_visit(trainer: Peer) -> None:
    """Though Keras says it once, when it compiles."""
    x = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    trainer.load("d", [[("x", x), ("y", np.ones((20, 1), np.float32))]])
    lone = program(
        sequential([4], dense(1, "out", "softmax")), metrics=None, targets=[{"kind": "float"}]
    )
    first, state = trainer.train(lone, NEW)
    assert any("num_classes > 1" in text for text in first["warnings"])
    second, _ = trainer.train(lone, state)
    assert second["warnings"] == first["warnings"]
    trainer.load("d", buffers(8))
    assert trainer.train(program(), NEW)[0]["warnings"] == []


@on_a_processor
def test_the_backend_knows_by_which_name_a_trainer_calls_this_machine(trainer: Peer) -> None:
    assert trainer.hello["machine"].startswith(
        host_resources.machine_prefix(trainer.hello["framework"])
    )
