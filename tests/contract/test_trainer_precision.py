"""Mixed precision: short numbers where Keras computes, float32 in weights, outputs and losses."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest
from test_trainer_execution_modes import SIZES, use
from test_trainer_inputs import embedding, texts
from test_trainer_keras import CONVOLUTION, keras
from test_trainer_training import NEW
from trainer_peer import Peer, TrainerFailed
from trainer_programs import (
    FORMS,
    MLP,
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

__all__ = ["keras"]
MIXED = ("mixed_bfloat16", "mixed_float16")
SHORT = {"mixed_bfloat16": 2.0**-8, "mixed_float16": 2.0**-11}
"""Half the distance of two numbers next to one."""


def mixed(
    policy: str | None, architecture: Json = MLP, optimizer: str = "SGD", **more: Any
) -> Json:
    return {**program(architecture, optimizer, **more), "dtype_policy": policy}


def by_keras(keras: Any, architecture: Json, policy: str, state: bytes) -> Any:
    """The model with its policies set by hand: the last layer in float32."""
    written = copy.deepcopy(architecture)
    *hidden, last = written["config"]["layers"][1:]
    for entry in hidden:
        entry["config"]["dtype"] = policy
    last["config"]["dtype"] = "float32"
    model = keras.models.model_from_json(json.dumps(written))
    model.set_weights(weights(state))
    optimizer = keras.optimizers.SGD(0.01)
    if policy == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    model.compile(optimizer, loss="categorical_crossentropy", run_eagerly=True)
    return model


@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.one_framework(framework="jax", policy="mixed_float16")
@pytest.mark.one_framework(framework="torch", policy="mixed_bfloat16")
@pytest.mark.parametrize(
    ("policy", "architecture"),
    [("mixed_float16", MLP), ("mixed_bfloat16", CONVOLUTION)],
    ids=["mixed_float16-MLP", "mixed_bfloat16-convolution"],
)
def test_training_is_that_of_keras_under_the_policy(
    trainer: Peer, keras: Any, policy: str, architecture: Json
) -> None:
    shape = architecture["config"]["layers"][0]["config"]["batch_shape"][1:]
    x = np.random.default_rng(0).normal(size=(40, *shape)).astype(np.float32)
    y = np.eye(3, dtype=np.int16)[np.arange(40) % 3]
    trainer.load("d", [[("x", x), ("y", y)]])
    model = by_keras(keras, architecture, policy, trainer.initial(mixed(policy, architecture), 3))
    result, state = trainer.train(mixed(policy, architecture), NEW, shuffle=False)
    losses = [
        model.train_on_batch(x[i : i + 8], y[i : i + 8].astype(np.float32)) for i in range(0, 40, 8)
    ]
    # Sums are rounded in another order: by some units in the last place of a short number.
    assert result["loss"] == pytest.approx(np.mean(losses), rel=4 * SHORT[policy])
    for expected, found in zip(model.get_weights(), weights(state), strict=True):
        np.testing.assert_allclose(found, expected, atol=SHORT[policy] / 4)
    plain, _ = trainer.train(mixed(None, architecture), NEW, shuffle=False)
    assert result["loss"] != plain["loss"], "it was computed in short numbers"


@pytest.mark.one_framework
def test_what_a_layer_adds_to_the_loss_is_added_in_float32(trainer: Peer) -> None:
    architecture = copy.deepcopy(MLP)
    first = next(
        entry for entry in architecture["config"]["layers"] if entry["class_name"] == "Dense"
    )
    l2 = {
        "module": "keras.regularizers",
        "class_name": "L2",
        "config": {"l2": 0.01},
        "registered_name": None,
    }
    first["config"]["activity_regularizer"] = l2
    trainer.load("d", buffers(24))
    whole, _ = trainer.train(mixed(None, architecture), NEW, shuffle=False)
    for policy in MIXED:
        result, _ = trainer.train(mixed(policy, architecture), NEW, shuffle=False)
        plain, _ = trainer.train(mixed(policy), NEW, shuffle=False)
        assert (
            result["loss"] == pytest.approx(whole["loss"], rel=0.05)
            and result["loss"] > plain["loss"]
        )


@pytest.mark.long
@pytest.mark.one_framework(framework="jax", policy="mixed_bfloat16")
@pytest.mark.parametrize("policy", MIXED)
def test_all_forms_train_under_a_policy(trainer: Peer, framework: str, policy: str) -> None:
    trainer.load("d", buffers(*SIZES))
    # A scaled loss is looked at in each step, so PyTorch traces none.
    forms = ("eager",) if (framework, policy) == ("torch", "mixed_float16") else FORMS[framework]
    results = [
        trainer.train(mixed(policy), NEW, epochs=2, forms=use(form))
        for form in (*forms, "keras_fit")
    ]
    (expected, first), *others = results
    for result, state in others:
        assert result["loss"] == pytest.approx(expected["loss"], rel=4 * SHORT[policy])
        for left, right in zip(weights(first), weights(state), strict=True):
            np.testing.assert_allclose(left, right, atol=SHORT[policy])


@pytest.mark.long
@pytest.mark.one_framework
def test_a_state_goes_on_from_one_visit_to_the_next(trainer: Peer, second_trainer: Peer) -> None:
    """With the scale of its losses; under the other policy a state has no more than in float32."""
    parts = buffers(24)
    for peer in (trainer, second_trainer):
        peer.load("d", parts)
    chosen = mixed("mixed_float16", optimizer="Adam")
    _, once = trainer.train(chosen, NEW, shuffle=False)
    _, twice = second_trainer.train(chosen, once, shuffle=False)
    _, both = trainer.train(chosen, NEW, shuffle=False, epochs=2)
    assert content(twice) == content(both)
    assert metadata(twice)["step"] == "6"
    assert {tensor.dtype.name for tensor in tensors(twice)} <= {"float32", "int32", "int64"}


@pytest.mark.long_for(framework=("jax", "torch"))
def test_states_fit_both_float32_and_bfloat16(trainer: Peer) -> None:
    trainer.load("d", buffers(24))
    _, state = trainer.train(mixed("mixed_bfloat16"), NEW)
    trainer.train(mixed(None), state)
    trainer.train(mixed("float32"), state)
    with pytest.raises(TrainerFailed, match="its optimizer is SGD, expected LossScaleOptimizer"):
        trainer.train(mixed("mixed_float16"), state)


@pytest.mark.long_for(framework=("jax", "torch"))
def test_float32_is_what_an_architecture_without_policies_has(trainer: Peer) -> None:
    trainer.load("d", buffers(24))
    assert content(trainer.train(mixed("float32"), NEW)[1]) == content(
        trainer.train(mixed(None), NEW)[1]
    )


@pytest.mark.one_framework
def test_an_architecture_may_say_it_by_itself(trainer: Peer) -> None:
    written = copy.deepcopy(MLP)
    written["config"]["layers"][1]["config"]["dtype"] = "mixed_float16"
    trainer.load("d", buffers(24))
    own, state = trainer.train(mixed(None, written), NEW)
    given, expected = trainer.train(mixed("mixed_float16"), NEW)
    assert own["loss"] == given["loss"]
    assert [t.tobytes() for t in tensors(state)] == [t.tobytes() for t in tensors(expected)]
    assert metadata(state)["optimizer"] == "LossScaleOptimizer"


@pytest.mark.long
def test_gradients_too_small_for_float16_still_count(trainer: Peer) -> None:
    """A ten-millionth of a loss: its gradients are zero in float16 unless they are scaled."""
    small = mixed("mixed_float16", learning_rate=1e4)
    small["compile"] = {**small["compile"], "loss_weights": [1e-7]}
    trainer.load("d", buffers(8))
    before = trainer.initial(small)
    _, after = trainer.train(small, {"source": "new", "seed": 1})
    kernel = next(i for i, array in enumerate(weights(before)) if array.shape == (4, 8))
    assert (weights(before)[kernel] != weights(after)[kernel]).any()


@pytest.mark.long_for(framework=("jax", "torch"))
def test_a_step_that_overflows_is_left_out_and_the_scale_halved(trainer: Peer) -> None:
    steep = mixed("mixed_float16")
    steep["compile"] = {**steep["compile"], "loss_weights": [1000.0]}
    trainer.load("d", buffers(8))
    before = trainer.initial(steep, 3)
    result, after = trainer.train(steep, NEW)
    assert np.isfinite(result["loss"])
    assert metadata(after)["step"] == "0"
    for left, right in zip(weights(before), weights(after), strict=True):
        np.testing.assert_array_equal(left, right)
    scales = [
        float(t) for state in (before, after) for t in tensors(state) if t.shape == () and t > 1000
    ]
    assert scales == [2.0**15, 2.0**14]


@pytest.mark.long_for(framework=("jax", "torch"))
@pytest.mark.long_for(policy="mixed_float16")
@pytest.mark.one_framework(policy="mixed_float16")
@pytest.mark.parametrize("policy", MIXED)
def test_tokens_are_not_shortened_on_their_way(trainer: Peer, policy: str) -> None:
    """513 tokens, reshaped first; bfloat16 holds whole numbers to 256, float16 to 2048."""

    def model(size: int) -> Json:
        return sequential(
            [1, 1],
            layer("Reshape", "flat", target_shape=[1]),
            layer("Embedding", "tokens", input_dim=size, output_dim=1),
            layer("Flatten", "one"),
        )

    size = 5001
    chosen = {
        **program(model(size), "SGD", loss="mse", metrics=[], targets=[{"kind": "float"}]),
        "dtype_policy": policy,
    }
    trainer.begin("predict", chosen, NEW, ())
    header = {
        "do": "rows",
        "rows": size,
        "arrays": [{"kind": "int32"}],
        "want": {"kind": "prob"},
        "classes": [0],
    }
    # As PostgreSQL holds them: dimensions, no NULLs, type, sizes, lower bounds, value.
    rows = np.array([(2, 0, 23, 1, 1, 1, 1, token) for token in range(size)], "i4")
    found = trainer.ask(header, rows.tobytes())["value"].strip("{}").split(",")
    table = weights(trainer.state(1 << 20))[0][:, 0]
    np.testing.assert_allclose(np.array(found, float), table, rtol=2 * SHORT[policy], atol=1e-7)


@pytest.mark.long
@pytest.mark.one_framework
def test_tokens_train_under_a_policy(trainer: Peer) -> None:
    tokens, y = texts(40)
    trainer.load("d", [[("x", tokens), ("y", y)]])
    losses = [trainer.train(mixed(p, embedding(), "Adam"), NEW)[0]["loss"] for p in (None, *MIXED)]
    assert losses[1:] == pytest.approx([losses[0]] * 2, rel=0.02)


@pytest.mark.long_for(framework=("jax", "torch"))
def test_evaluation_and_prediction_follow_the_policy(trainer: Peer) -> None:
    trainer.load("d", buffers(200))
    state = trainer.initial(mixed("mixed_bfloat16"))
    plain, short = (
        trainer.evaluate(mixed(policy), state)["d"]["sums"][0][0]
        for policy in (None, "mixed_bfloat16")
    )
    assert short != plain and short == pytest.approx(plain, rel=0.02)


@pytest.mark.one_framework
def test_an_unknown_policy_fails_the_config(trainer: Peer) -> None:
    with pytest.raises(
        TrainerFailed, match="dtype_policy 'float8' is unknown; expected one of float32, mixed_bf"
    ):
        trainer.initial(mixed("float8"))


INNER = sequential([4], dense(5, "inner_hidden"), dense(2, "inner_out"))


def test_every_layer_has_the_policy_but_those_of_the_outputs(keras: Any) -> None:
    """Nested models, wrapped layers, cells, activations that are layers, and operations."""
    from cerebro_trainer.models import keras_model

    x = keras.Input((6, 4), name="x")
    shared = keras.Sequential(
        [keras.layers.Dense(5, name="in_nested"), keras.layers.Dense(4, name="nested_last")]
    )
    a = keras.layers.Bidirectional(keras.layers.LSTM(3), name="both")(shared(x))
    b = keras.layers.RNN(
        keras.layers.StackedRNNCells([keras.layers.GRUCell(3), keras.layers.LSTMCell(2)])
    )(x)
    c = keras.layers.Dense(8, activation=keras.layers.LeakyReLU(), name="leaky")(a) * 2.0
    first = keras.layers.Dense(3, name="first")(keras.layers.Concatenate()([c, b]))
    second = keras.layers.Activation("sigmoid", name="second")(
        keras.layers.Dense(1, name="logit")(c)
    )
    architecture = json.loads(keras.Model(x, [first, second]).to_json())
    made = keras_model.build(keras_model.prepare(architecture, "mixed_bfloat16"))
    inner = [
        entry
        for entry in made._flatten_layers()
        if entry.weights and not isinstance(entry, keras.Model)
    ]
    assert {entry.name for entry in inner if entry.compute_dtype == "float32"} == {"first"}
    assert made.get_layer("logit").compute_dtype == "bfloat16"
    assert made.get_layer("second").compute_dtype == "float32"
    assert made.get_layer("both").forward_layer.cell.compute_dtype == "bfloat16"
    assert {output.dtype for output in made.outputs} == {"float32"}
    assert {variable.dtype for variable in made.trainable_variables} == {"float32"}
    again = keras_model.build(keras_model.prepare(json.loads(made.to_json()), "float32"))
    assert {entry.compute_dtype for entry in again._flatten_layers()} == {"float32"}
