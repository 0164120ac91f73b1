"""Architectures of old and new Keras build the same models; what could run code or eat the machine
does not.

`keras2_architectures.json` was written by tf_keras 2.21 (Keras 2's last line) with
`model.to_json()`, `keras2_versions.json` by the versions that are named in it.
"""

from __future__ import annotations

import copy
import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import traces
from trainer_peer import Peer, TrainerFailed
from trainer_programs import (
    Json,
    buffers,
    content,
    dense,
    layer,
    program,
    sequential,
    tensors,
    weights,
)

from cerebro_plpy.configs.architecture.architecture import check_architecture

KERAS_2 = json.loads((Path(__file__).parent / "keras2_architectures.json").read_text())
BY_VERSION = json.loads((Path(__file__).parent / "keras2_versions.json").read_text())
VERSIONS = [(version, name) for version, models in BY_VERSION.items() for name in models]
SHAPES_BY_VERSION = {
    "seq": [(4, 10), (10,), (10,), (10,), (10,), (10,), (10, 3), (3,)],
    "cnn": [(3, 3, 1, 4), (4,), (36, 3), (3,)],
    "rnn": [(50, 8), (8, 16), (4, 16), (16,), (4, 3), (3,)],
    "func": [(4, 3), (3,), (4, 3), (3,), (6, 2), (2,)],
}
SHAPES = {
    "seq": [(4, 10), (10,), (10,), (10,), (10,), (10,), (10, 3), (3,)],
    "cnn": [(3, 3, 1, 4), (4,), (2, 2, 4, 1), (1, 1, 4, 4), (4,), (16, 3), (3,)],
    "rnn": [
        (50, 8),
        (8, 16),
        (4, 16),
        (16,),
        (8, 16),
        (4, 16),
        (16,),
        (8, 9),
        (3, 9),
        (2, 9),
        (3, 1),
        (1,),
    ],
    "func": [(4, 3), (3,), (3, 2), (2,), (5, 2), (2,), (5, 1), (1,)],
    "built": [(5, 4), (4,), (4, 2), (2,)],
    "nested": [(5, 4), (4,), (4, 3), (3,), (3, 2), (2,)],
}
NEW = {"source": "new", "seed": 3}

LIST_STYLE = {
    "class_name": "Sequential",
    "keras_version": "2.1.6",
    "backend": "tensorflow",
    "config": [
        {
            "class_name": "Dense",
            "config": {
                "kernel_initializer": {
                    "class_name": "VarianceScaling",
                    "config": {
                        "distribution": "uniform",
                        "scale": 1.0,
                        "seed": None,
                        "mode": "fan_avg",
                    },
                },
                "name": "hidden",
                "kernel_constraint": None,
                "bias_regularizer": None,
                "bias_constraint": None,
                "dtype": "float32",
                "activation": "relu",
                "trainable": True,
                "kernel_regularizer": None,
                "bias_initializer": {"class_name": "Zeros", "config": {}},
                "units": 8,
                "batch_input_shape": [None, 4],
                "use_bias": True,
                "activity_regularizer": None,
            },
        },
        {
            "class_name": "Dense",
            "config": {"name": "out", "units": 3, "activation": "softmax", "use_bias": True},
        },
    ],
}


def refusal(trainer: Peer, architecture: Any) -> dict[str, Any]:
    """The error with which an architecture is refused."""
    with pytest.raises(TrainerFailed) as failed:
        trainer.begin("predict", program(architecture, metrics=None), NEW, ())
    assert failed.value.error["kind"] == "config"
    return failed.value.error


@pytest.mark.one_framework
@pytest.mark.parametrize("name", KERAS_2)
def test_keras_2_models_build(trainer: Peer, name: str) -> None:
    targets = {"rnn": [2], "func": [2, 0], "built": [2], "nested": [2]}.get(name, [3])
    chosen = program(
        KERAS_2[name],
        loss="mse",
        metrics=None,
        targets=[
            {"kind": "onehot", "classes": count} if count else {"kind": "float"}
            for count in targets
        ],
    )
    assert [weight.shape for weight in weights(trainer.initial(chosen))] == SHAPES[name]


@pytest.mark.long_for(
    version=tuple({version for version, _ in VERSIONS} - {VERSIONS[0][0], VERSIONS[-1][0]})
)
@pytest.mark.one_framework
@pytest.mark.parametrize(("version", "name"), VERSIONS)
def test_models_of_each_version_of_keras_2(trainer: Peer, version: str, name: str) -> None:
    """The backend lets them in, and the trainer builds the same model of all of them."""
    architecture = BY_VERSION[version][name]
    shapes = SHAPES_BY_VERSION[name]
    summary = check_architecture(architecture)
    assert summary.input_shapes == ({"cnn": (8, 8, 1), "rnn": (6,)}.get(name, (4,)),)
    assert summary.output_units == (shapes[-1][0],)
    chosen = program(architecture, targets=[{"kind": "onehot", "classes": shapes[-1][0]}])
    assert [weight.shape for weight in weights(trainer.initial(chosen))] == shapes


@pytest.mark.one_framework
def test_list_style_equals_keras_3_json(trainer: Peer) -> None:
    """The same training, bit for bit, but for the architecture's hash."""
    new = sequential(
        [4],
        dense(
            8,
            "hidden",
            kernel_initializer={
                "module": "keras.initializers",
                "class_name": "GlorotUniform",
                "config": {"seed": None},
                "registered_name": None,
            },
        ),
        dense(3, "out", "softmax"),
    )
    trainer.load("d", buffers(30))
    old_state, new_state = (
        trainer.train(program(architecture), NEW, epochs=2)[1] for architecture in (LIST_STYLE, new)
    )
    assert content(old_state)[1] == content(new_state)[1]


@pytest.mark.one_framework
def test_batch_size_in_an_architecture_does_not_bind(trainer: Peer) -> None:
    fixed = copy.deepcopy(LIST_STYLE)
    fixed["config"][0]["config"]["batch_input_shape"] = [32, 4]  # type: ignore[index]
    trainer.load("d", buffers(21))
    assert trainer.train(program(fixed), NEW)[0]["rows"] == 21


@pytest.mark.one_framework
def test_operations_between_layers_are_data_too(trainer: Peer) -> None:
    def tensor(name: str) -> Json:
        return {
            "class_name": "__keras_tensor__",
            "config": {"shape": [None, 4], "dtype": "float32", "keras_history": [name, 0, 0]},
        }

    added = {
        "module": "keras.src.ops.numpy",
        "class_name": "Add",
        "config": {"name": "sum"},
        "registered_name": "Add",
        "name": "sum",
        "inbound_nodes": [{"args": [tensor("a"), tensor("input")], "kwargs": {}}],
    }
    functional = {
        "module": "keras",
        "class_name": "Functional",
        "config": {
            "name": "residual",
            "layers": [
                {
                    **layer("InputLayer", "input", batch_shape=[None, 4]),
                    "name": "input",
                    "inbound_nodes": [],
                },
                {
                    **dense(4, "a"),
                    "name": "a",
                    "inbound_nodes": [{"args": [tensor("input")], "kwargs": {}}],
                },
                added,
                {
                    **dense(3, "out", "softmax"),
                    "name": "out",
                    "inbound_nodes": [{"args": [tensor("sum")], "kwargs": {}}],
                },
            ],
            "input_layers": [["input", 0, 0]],
            "output_layers": [["out", 0, 0]],
        },
    }
    assert [weight.shape for weight in weights(trainer.initial(program(functional)))] == [
        (4, 4),
        (4,),
        (4, 3),
        (3,),
    ]


@pytest.mark.one_framework
@pytest.mark.parametrize(
    "evil",
    [
        layer(
            "Lambda", "evil", function={"class_name": "__lambda__", "config": {"code": "4wEAAAA="}}
        ),
        layer("TFSMLayer", "evil", filepath="/tmp"),
        layer("TextVectorization", "evil", vocabulary="/etc/passwd"),
        layer("StringLookup", "evil", vocabulary="/etc/passwd"),
        {**dense(3, "evil"), "module": "os"},
        {**dense(3, "evil"), "module": "kerasevil"},
        {**dense(3, "evil"), "registered_name": "Package>Dense"},
        {**layer("system", "evil"), "module": "keras.src.ops.numpy"},
        layer("TFOpLambda", "evil", function="math.add"),
        dense(
            3,
            "evil",
            activation={"class_name": "function", "config": "get_file", "module": "keras.utils"},
        ),
        dense(3, "evil", kernel_initializer={"class_name": "Lambda", "config": {}}),
        dense(
            3,
            "evil",
            kernel_regularizer={"class_name": "Constant", "config": {"value": {"class_name": "x"}}},
        ),
        dense(3, "evil", bias={"class_name": "__lambda__", "config": {"value": "x"}}),
        dense(3, "evil", dtype={"class_name": "__typespec__", "config": {"name": "float32x"}}),
        layer("TimeDistributed", "evil", layer=layer("Lambda", "inner")),
        layer("Activation", "evil", activation="evil"),
        layer("LSTM", "evil", units=3, stateful=True),
    ],
)
def test_what_is_not_listed_is_refused(trainer: Peer, evil: Json) -> None:
    refusal(trainer, sequential([4], evil, dense(3, "out", "softmax")))


@pytest.mark.one_framework
@pytest.mark.parametrize(
    "name",
    ["__lambda__", "__bytes__", "__typespec__", "Operation", "vectorize", "Arange", "backend"],
)
def test_what_is_no_listed_operation_is_refused_before_keras_sees_it(
    trainer: Peer, name: str
) -> None:
    evil = {**layer(name, "evil", value="4wEAAAA="), "module": "keras.src.ops.numpy"}
    assert (
        "not allowed"
        in refusal(trainer, sequential([4], evil, dense(3, "out", "softmax")))["message"]
    )


@pytest.mark.one_framework
@pytest.mark.parametrize(
    "architecture",
    [
        {},
        {"class_name": "Sequential"},
        {"class_name": "Sequential", "config": {"layers": []}},
        {"class_name": "Subclassed", "config": {}},
        {"class_name": "Sequential", "config": {"layers": [1]}},
        {"class_name": "Model", "config": {"layers": [], "input_layers": 1}},
        {"class_name": "Sequential", "config": [{"class_name": "Dense", "config": {"units": 3}}]},
        sequential([4], layer("Conv2D", "conv", filters=1, kernel_size=[3, 3])),
        sequential([4], layer("Reshape", "shape", target_shape=[5])),
        sequential([4], layer("Flatten", "nothing to train")),
    ],
)
def test_what_makes_no_model_is_refused(trainer: Peer, architecture: Json) -> None:
    refusal(trainer, architecture)


@pytest.mark.one_framework
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loss": None}, "no loss"),
        ({"loss": "unheard of"}, "unheard of"),
        ({"loss": {"elsewhere": "mse"}}, "elsewhere.*out"),
        ({"loss": ["mse", "mse"]}, "2 entries"),
        ({"optimizer": "unheard of"}, "unheard of.*Adam"),
        ({"optimizer": "ScheduleFreeAdamW"}, "ScheduleFreeAdamW"),
        ({"momentum": 0.9}, "momentum"),
        ({"use_ema": True}, "ema_overwrite_frequency"),
        ({"learning_rate": {"class_name": "Lambda", "config": {}}}, "InverseTimeDecay"),
        ({"beta_1": {"class_name": "Lambda", "config": {}}}, "plain value"),
        ({"loss_weights": ["1"]}, "one number per output"),
        ({"targets": [{"kind": "float"}, {"kind": "float"}]}, "2 dependent columns"),
    ],
)
def test_compile_parameters_that_make_no_sense_are_refused(
    trainer: Peer, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(TrainerFailed, match=words) as failed:
        trainer.begin("predict", program(**changes), NEW, ())
    assert failed.value.error["kind"] == "config"


@pytest.mark.one_framework
def test_models_larger_than_the_machine_are_refused_before_they_are_built(trainer: Peer) -> None:
    error = refusal(
        trainer, sequential([10**6], dense(10**7, "hidden"), dense(3, "out", "softmax"))
    )
    assert error["sqlstate"] == "53200"
    assert "10000040000003 parameters" in error["message"]


@pytest.mark.one_framework
def test_nesting_has_an_end(trainer: Peer) -> None:
    nested = layer("Dense", "core", units=3)
    for level in range(100):
        nested = layer("TimeDistributed", f"level{level}", layer=nested)
    assert "levels deep" in refusal(trainer, sequential([4], nested))["message"]


@pytest.mark.long
def test_one_trace_serves_all_sizes_and_rates(plain: ProcessPoolExecutor, framework: str) -> None:
    """A trace cannot be seen from outside, so the program is made where Keras runs."""
    assert plain.submit(getattr(traces, framework)).result() == traces.EXPECTED[framework]


@pytest.mark.long_for(framework=("jax", "torch"))
def test_a_step_asks_its_schedule_once(plain: ProcessPoolExecutor, framework: str) -> None:
    assert plain.submit(traces.rates, framework).result() == traces.RATES[framework]


@pytest.mark.one_framework
def test_states_of_old_architectures_hold_every_weight_once(trainer: Peer) -> None:
    state = trainer.initial(program(KERAS_2["seq"]))
    assert len(weights(state)) == 8
    assert (
        len(tensors(state)) == 8 + 1 + 2 + 2 * 6
    )  # weights, generator, iterations and rate, Adam's slots
