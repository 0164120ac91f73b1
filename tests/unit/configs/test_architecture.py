"""Architectures of every Keras, read without Keras: what they take and give, and which are
refused.
"""

from __future__ import annotations

import copy
import hashlib
import json
from typing import Any

import keras
import networks
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keras import layers
from models import model

from cerebro_plpy import limits
from cerebro_plpy.configs.architecture.architecture import (
    MAX_DEPTH,
    Architecture,
    check_architecture,
    read_architecture,
)
from cerebro_plpy.configs.architecture.size_limits import MAX_ELEMENTS
from cerebro_plpy.errors import CerebroError, FeatureNotSupported, InvalidParameter, InvalidText

Json = Any

# Keras 2.1.6, as in MADlib's manual: a Sequential is a list of layers.
KERAS_2_1: Json = {
    "class_name": "Sequential",
    "keras_version": "2.1.6",
    "backend": "tensorflow",
    "config": [
        {
            "class_name": "Dense",
            "config": {
                "name": "dense_1", "units": 10, "activation": "relu", "dtype": "float32",
                "use_bias": True,
                "batch_input_shape": [None, 4], "trainable": True, "activity_regularizer": None,
                "kernel_initializer": {"class_name": "VarianceScaling", "config": {
                    "distribution": "uniform", "scale": 1.0, "seed": None, "mode": "fan_avg"}},
                "bias_initializer": {"class_name": "Zeros", "config": {}},
                "kernel_regularizer": {"class_name": "L1L2", "config": {"l1": 0.0, "l2": 0.01}},
                "kernel_constraint": None, "bias_regularizer": None, "bias_constraint": None,
            },
        },
        {"class_name": "Dense", "config": {"name": "dense_2", "units": 3, "activation": "softmax"}},
    ],
}  # fmt: skip

# tf.keras 2.4, functional, with two inputs.
TF_KERAS_2_4: Json = {
    "class_name": "Functional",
    "keras_version": "2.4.0",
    "backend": "tensorflow",
    "config": {
        "name": "model",
        "layers": [
            {"class_name": "InputLayer", "name": "a", "inbound_nodes": [],
             "config": {"batch_input_shape": [None, 2], "dtype": "float32", "sparse": False,
             "name": "a"}},
            {"class_name": "InputLayer", "name": "b", "inbound_nodes": [],
             "config": {"batch_input_shape": [None, 5, 5, 1], "dtype": "float32", "name": "b"}},
            {"class_name": "Flatten", "name": "flat", "config": {"name": "flat"},
             "inbound_nodes": [[["b", 0, 0, {}]]]},
            {"class_name": "Concatenate", "name": "both", "config": {"name": "both", "axis": -1},
             "inbound_nodes": [[["a", 0, 0, {}], ["flat", 0, 0, {}]]]},
            {"class_name": "Dense", "name": "out", "config": {"name": "out", "units": 7},
             "inbound_nodes": [[["both", 0, 0, {}]]]},
            {"class_name": "Softmax", "name": "soft", "config": {"name": "soft", "axis": -1},
             "inbound_nodes": [[["out", 0, 0, {"mask": None}]]]},
        ],
        "input_layers": [["b", 0, 0], ["a", 0, 0]],
        "output_layers": [["soft", 0, 0]],
    },
}  # fmt: skip


def saved(model: keras.Model) -> Json:
    return json.loads(model.to_json())


def image_model() -> keras.Model:
    image = keras.Input((8, 8, 3), name="image")
    x = layers.Conv2D(4, (3, 3), kernel_regularizer="l2", kernel_constraint="max_norm")(image)
    x = layers.Flatten()(layers.BatchNormalization()(x))
    kind = layers.Softmax(name="kind")(layers.Dense(5)(x))
    size = layers.Dense(1, name="size", kernel_initializer=keras.initializers.HeNormal(seed=1))(x)
    return keras.Model([image], [size, kind])


def sequence_model() -> keras.Model:
    words = keras.Input((None, 4))
    x = layers.MultiHeadAttention(2, 3)(words, words)
    x = layers.Bidirectional(layers.LSTM(3, return_sequences=True))(x)
    x = layers.RNN(layers.StackedRNNCells([layers.LSTMCell(4), layers.GRUCell(2)]))(x)
    x = layers.TimeDistributed(layers.Dense(3))(layers.RepeatVector(3)(x))
    return keras.Model(words, keras.ops.relu(x * 2.0 + 1.0))


def compiled_model() -> keras.Model:
    model = keras.Sequential([keras.Input((4,)), layers.Dense(3, activation=layers.LeakyReLU())])
    model.compile(
        keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 10)),
        "mse",
        metrics=["mae"],
    )
    return model


def nested_model() -> keras.Model:
    inner = keras.Sequential(
        [keras.Input((6,)), layers.Dense(4, activation="gelu"), layers.Dropout(0.5)]
    )
    return keras.Sequential([inner, layers.Activation("tanh"), layers.GaussianNoise(0.1)])


def mixed_precision_model() -> keras.Model:
    return keras.Sequential(
        [keras.Input(()), layers.Reshape((1,)), layers.Dense(2, dtype="mixed_float16")]
    )


READABLE = [
    (KERAS_2_1, ((4,),), (3,)),
    (TF_KERAS_2_4, ((5, 5, 1), (2,)), (7,)),
    (saved(image_model()), ((8, 8, 3),), (1, 5)),
    (saved(sequence_model()), ((None, 4),), (None,)),
    (saved(compiled_model()), ((4,),), (3,)),
    (saved(nested_model()), ((6,),), (4,)),
    (saved(mixed_precision_model()), ((),), (2,)),
    (networks.several_inputs(networks.bert()), ((6,), (6,), (6,)), (3,)),
    (networks.vit(), ((8, 8, 3),), (3,)),
    (networks.OF_HUB["PositionEmbedding"], ((6, 4),), (3,)),
]


@pytest.mark.parametrize(("architecture", "inputs", "outputs"), READABLE)
def test_readable(
    architecture: Json, inputs: tuple[object, ...], outputs: tuple[object, ...]
) -> None:
    summary = check_architecture(architecture)
    assert summary.input_shapes == inputs
    assert summary.output_units == outputs


def model_by_names() -> keras.Model:
    one, two = keras.Input((1,), name="z"), keras.Input((2,), name="y")
    x = layers.Concatenate()([one, two])
    return keras.Model({"z": one, "y": two}, {"q": layers.Dense(3)(x), "p": layers.Dense(4)(x)})


def test_shapes_by_name_come_in_the_order_of_the_names() -> None:
    summary = check_architecture(saved(model_by_names()))
    assert (summary.input_shapes, summary.output_units) == (((2,), (1,)), (4, 3))


@pytest.mark.parametrize(
    "model", [image_model(), nested_model(), compiled_model(), model_by_names()]
)
def test_the_summary_is_what_keras_builds(model: keras.Model) -> None:
    summary = check_architecture(saved(model))
    built = keras.models.model_from_json(model.to_json())
    assert list(summary.input_shapes) == [tuple(tensor.shape[1:]) for tensor in built.inputs]
    assert list(summary.output_units) == [tensor.shape[-1] for tensor in built.outputs]
    last = [built.layers[-1].name] if isinstance(built, keras.Sequential) else built.output_names
    assert list(summary.output_names) == list(last)


def test_classes_and_hash() -> None:
    summary = check_architecture(KERAS_2_1)
    assert summary.class_names == {"Sequential", "Dense"}
    reordered = dict(reversed(KERAS_2_1.items()))
    assert check_architecture(reordered).sha256 == summary.sha256
    text = json.dumps(KERAS_2_1, sort_keys=True, separators=(",", ":"))
    assert summary.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert check_architecture(dense(units=11)).sha256 != check_architecture(dense(units=12)).sha256


def dense(class_name: str = "Dense", node: Json = None, **config: Json) -> Json:
    """A model of one layer, as text that Keras 2 could have written."""
    settings = {"name": "layer", "units": 2, "batch_input_shape": [None, 4], **config}
    layer = {"class_name": class_name, "config": settings, **(node or {})}
    return {"class_name": "Sequential", "config": {"name": "model", "layers": [layer]}}


def of_hub(class_name: str = "BertBackbone", node: Json = None, **config: Json) -> Json:
    """A model of one backbone."""
    return model([6], {**networks.bert(**config), "class_name": class_name,
                                "registered_name": f"keras_hub>{class_name}",
                                **(node or {})})  # fmt: skip


NESTED: Json = []
for _ in range(MAX_DEPTH):
    NESTED = [NESTED]

FUNCTION = {
    "module": "builtins",
    "class_name": "function",
    "config": "relu",
    "registered_name": "relu",
}
CUSTOM_FUNCTION = {**FUNCTION, "config": "system", "module": "os", "registered_name": "system"}
PYTHON_LAMBDA = {"class_name": "__lambda__", "config": {"value": "4wEAAAA="}}
GET_FILE = {"module": "keras.utils", "class_name": "get_file", "config": {"origin": "http://x"}}

REFUSED: list[tuple[Json, type[CerebroError], str]] = [
    (None, InvalidText, "Unable to read model architecture JSON."),
    ([], InvalidText, "Unable to read model architecture JSON."),
    ("x", InvalidText, "Unable to read model architecture JSON."),
    ({}, InvalidText, "Unable to read model architecture JSON."),
    ({"class_name": ["Sequential"]}, InvalidText, "Unable to read model architecture JSON."),
    ({"class_name": "Sequential"}, InvalidText, "Unable to read model architecture JSON."),
    ({"class_name": "Sequential", "config": {"layers": [1]}}, InvalidText, "Unable to read"),
    ({"class_name": "Functional", "config": {"layers": []}}, InvalidText, "Unable to read"),
    ({"class_name": "Sequential", "config": []}, InvalidParameter, "Unable to get input shape"),
    (dense(batch_input_shape=None), InvalidParameter,
     "Unable to get input shape from model architecture. Make sure that the first layer defines"),
    (dense(batch_input_shape=[None, "4"]), InvalidText, "Unable to read"),
    (dense(batch_input_shape=[None, -4]), InvalidText, "Unable to read"),
    ({"class_name": "MyModel", "config": {}}, FeatureNotSupported,
    "'MyModel' is not allowed as the model"),
    (dense("Lambda"), FeatureNotSupported, "class 'Lambda' is not allowed as layer"),
    (dense("TFSMLayer"), FeatureNotSupported, "class 'TFSMLayer' is not allowed"),
    (dense("StringLookup", vocabulary="/etc/passwd"), FeatureNotSupported,
    "'StringLookup' is not allowed"),
    (dense("Dense>Dense"), FeatureNotSupported, "is not allowed"),
    (dense(node={"class_name": {"a": 1}}), InvalidText, "Unable to read"),
    (dense(node={"module": "os"}), FeatureNotSupported, "its module 'os' is not part of Keras"),
    (dense(node={"module": "kerasx.layers"}), FeatureNotSupported, "is not part of Keras"),
    (dense(node={"module": ["keras"]}), FeatureNotSupported, "is not part of Keras"),
    (dense(node={"registered_name": "my>Dense"}), FeatureNotSupported, "registered as 'my>Dense'"),
    (dense(activation="system"), FeatureNotSupported, "activation 'system' is not allowed"),
    (dense(activation=CUSTOM_FUNCTION), FeatureNotSupported, "activation 'system' is not allowed"),
    (dense(activation={**FUNCTION, "config": ["relu"]}), FeatureNotSupported,
    "'function' is not allowed"),
    (dense(activation=PYTHON_LAMBDA), FeatureNotSupported,
    "'__lambda__' is not allowed as activation"),
    (dense(activation={"class_name": "Lambda", "config": {}}), FeatureNotSupported, "'Lambda'"),
    (dense(kernel_initializer="my_initializer"), FeatureNotSupported,
    "is not allowed as initializer"),
    (dense(kernel_initializer={"class_name": "Dense", "config": {}}), FeatureNotSupported,
    "as initializer"),
    (dense(kernel_regularizer={"class_name": "my>R", "config": {}}), FeatureNotSupported,
    "as regularizer"),
    (dense(bias_constraint=GET_FILE), FeatureNotSupported,
    "'get_file' is not allowed as constraint"),
    (dense(dtype={"class_name": "X", "config": {}}), FeatureNotSupported,
    "is not allowed as dtype"),
    (dense(anything={"deep": [{"class_name": "Dense", "config": {}}]}), FeatureNotSupported,
    "as value"),
    (dense(node={"inbound_nodes": [{"args": [GET_FILE], "kwargs": {}}]}), FeatureNotSupported,
    "as argument"),
    (dense("TimeDistributed", layer={"class_name": "Lambda", "config": {}}), FeatureNotSupported,
    "'Lambda'"),
    (dense("LSTM", stateful=True), FeatureNotSupported, "stateful=True is not supported"),
    *((dense(name, {"module": "keras.src.ops.numpy"}), FeatureNotSupported,
    f"class '{name}' is not allowed as layer")
      for name in ("__lambda__", "__bytes__", "__typespec__", "Operation", "vectorize", "Arange",
      "backend")),
    *((of_hub(name), FeatureNotSupported, f"class {name!r} of keras_hub is not allowed as layer")
      for name in ("BertTextClassifier", "BertTokenizer", "ImageConverter", "SegFormerBackbone",
      "MaskedLMHead")),
    (of_hub(preset="bert_base_en"), FeatureNotSupported,
    "with the preset 'bert_base_en' is not supported"),
    (of_hub(node={"module": "keras_hub.models.."}), FeatureNotSupported, "is not part of Keras"),
    (of_hub(node={"module": "keras_hubs.models"}), FeatureNotSupported, "is not part of Keras"),
    (of_hub(node={"module": "keras.layers"}), FeatureNotSupported,
    "registered as 'keras_hub>BertBackbone'"),
    (of_hub(node={"registered_name": "my>BertBackbone"}), FeatureNotSupported,
    "of keras_hub is not allowed"),
    (of_hub(image_encoder=networks.bert()), FeatureNotSupported,
    "of keras_hub is not allowed as value"),
    (of_hub(dtype=networks.bert()), FeatureNotSupported, "of keras_hub is not allowed as dtype"),
    (of_hub(initializer="my_initializer"), FeatureNotSupported, "is not allowed as initializer"),
    (of_hub(num_layers=1001), InvalidParameter, "BertBackbone has 1001 layers"),
    (of_hub(num_layers="2"), InvalidParameter,
    "num_layers of BertBackbone must be a positive whole number"),
    (of_hub(num_groups=100, num_inner_repetitions=100), InvalidParameter, "has 10000 layers"),
    (of_hub(vocabulary_size=2**29), InvalidParameter, "needs 4294967296 elements"),
    (of_hub(intermediate_dim=2**29), InvalidParameter, "needs 4294967296 elements"),
    (of_hub(image_shape=[2**16, 2**16, 3]), InvalidParameter, "needs 12884901888 elements"),
    (dense(anything=NESTED), InvalidParameter, "nested more than"),
    ({**dense(), "compile_config": NESTED}, InvalidParameter, "nested more than"),
    (dense(units=0), InvalidParameter,
    "units of Dense must be a positive whole number, received 0"),
    (dense(units="3"), InvalidParameter, "received '3'"),
    (dense(units=MAX_ELEMENTS // 4 + 1), InvalidParameter, "needs 2147483652 elements"),
    (dense(batch_input_shape=[None, 2**16, 2**16]), InvalidParameter, "needs 4294967296 elements"),
    (dense("Embedding", input_dim=2**20, output_dim=2**12), InvalidParameter,
    "needs 4294967296 elements"),
    (dense("LSTM", units=2**16, recurrent_initializer="zeros"), InvalidParameter,
    "needs 4294967296"),
    (dense("Conv2D", units=None, filters=2**10, kernel_size=[2**10, 2**10]), InvalidParameter,
    "elements"),
]  # fmt: skip


@pytest.mark.parametrize(("architecture", "error", "message"), REFUSED)
def test_refused(architecture: Json, error: type[CerebroError], message: str) -> None:
    with pytest.raises(error) as caught:
        check_architecture(architecture)
    assert message in caught.value.message


def test_kernels_are_followed_through_a_sequential() -> None:
    wide = {"class_name": "Dense", "config": {"name": "wide", "units": 10**5}}
    dropout = {"class_name": "Dropout", "config": {"name": "drop", "rate": 0.5}}
    model = dense()
    model["config"]["layers"] += [wide, dropout, wide]
    with pytest.raises(InvalidParameter, match=r"layer 'wide' .* needs 10000000000 elements"):
        check_architecture(model)
    model["config"]["layers"][2] = {"class_name": "Flatten", "config": {"name": "unknown width"}}
    assert check_architecture(model).output_units == (10**5,)


@pytest.mark.parametrize(
    "activation", ["relu", "softmax_v2", FUNCTION, {"class_name": "LeakyReLU", "config": {}}, None]
)
def test_activations_in_every_form(activation: Json) -> None:
    assert isinstance(check_architecture(dense(activation=activation)), Architecture)


def test_text_that_looks_like_a_path_is_data() -> None:
    assert check_architecture(dense(name="/etc/passwd")).output_units == (2,)


@pytest.mark.parametrize("text", ["", "{", "NaN", '{"a": Infinity}', "[" * 100_000])
def test_text_that_is_not_json(text: str) -> None:
    with pytest.raises(InvalidText, match="Unable to read model architecture JSON"):
        read_architecture(text)


def test_text_that_is_json() -> None:
    assert read_architecture(json.dumps(KERAS_2_1)) == KERAS_2_1


JSON_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 10),
        st.sampled_from(["Dense", "relu", "Lambda", "layers"]),
    ),
    lambda children: st.one_of(
        st.lists(children, max_size=3),
        st.dictionaries(
            st.sampled_from(["class_name", "config", "module", "layers", "x"]), children, max_size=3
        ),
    ),
    max_leaves=5,
)


def places(value: Json) -> list[tuple[Json, Json]]:
    """Every (container, key) in a JSON value."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [place for key, item in items for place in [(value, key), *places(item)]]


@given(st.sampled_from([item[0] for item in READABLE]), st.data())
def test_damaged_architectures_are_read_or_refused_as_such(
    architecture: Json, data: st.DataObject
) -> None:
    damaged = copy.deepcopy(architecture)
    container, key = data.draw(st.sampled_from(places(damaged)))
    container[key] = data.draw(JSON_VALUES)
    try:
        summary = check_architecture(damaged)
    except CerebroError as error:
        assert error.message
    else:
        assert "Lambda" not in summary.class_names


def functional(name: str, layers: list[Json], outputs: list[tuple[str, int]]) -> Json:
    """A functional model of one input, with outputs that are tensors of layers."""
    first = {
        "class_name": "InputLayer",
        "name": "x",
        "config": {"name": "x", "batch_input_shape": [None, 2]},
    }
    ends = [[layer, 0, tensor] for layer, tensor in outputs]
    config = {
        "name": name,
        "layers": [first, *layers],
        "input_layers": [["x", 0, 0]],
        "output_layers": ends,
    }
    return {
        "class_name": "Functional",
        "name": name,
        "config": config,
        "inbound_nodes": [[["x", 0, 0, {}]]],
    }


def dropouts(count: int) -> list[Json]:
    """A Dense layer of three units, and so many layers after it that keep its width."""
    dense: Json = {"class_name": "Dense", "name": "d0", "config": {"name": "d0", "units": 3}}
    dense["inbound_nodes"] = [[["x", 0, 0, {}]]]
    after = (
        {
            "class_name": "Dropout", "name": f"d{n}", "config": {"name": f"d{n}", "rate": 0.1},
            "inbound_nodes": [[[f"d{n - 1}", 0, 0, {}]]],
        }
        for n in range(1, count + 1)
    )  # fmt: skip
    return [dense, *after]


def test_widths_are_followed_once_however_often_they_are_referred_to() -> None:
    """Models within models whose two outputs are one tensor each: to follow each anew would double
    the work.
    """
    inner = functional("m0", dropouts(1), [("d1", 0), ("d1", 0)])
    for depth in range(1, 25):
        inner = functional(f"m{depth}", [inner], [(f"m{depth - 1}", 0), (f"m{depth - 1}", 1)])
    assert check_architecture(inner).output_units == (3, 3)
    outputs = limits.ENDS.maximum
    wide = functional("wide", dropouts(4000), [(f"d{4000 - n}", 0) for n in range(outputs)])
    assert check_architecture(wide).output_units == (3,) * outputs


@pytest.mark.parametrize("tensor", [-9, 9])
def test_a_tensor_that_a_model_within_does_not_give_has_no_width(tensor: int) -> None:
    outer = functional(
        "outer", [functional("inner", dropouts(0), [("d0", 0)])], [("inner", tensor)]
    )
    assert check_architecture(outer).output_units == (None,)


@pytest.mark.parametrize("before", [[["d2", 0, 0, {}]], [], None])
def test_layers_that_follow_nothing_or_each_other_have_no_width(before: object) -> None:
    found = dropouts(2)
    found[1]["inbound_nodes"] = before and [before]
    assert check_architecture(functional("m", found, [("d2", 0)])).output_units == (None,)


TOO_LARGE = {
    "layers": functional("m", dropouts(limits.NETWORK_LAYERS.maximum), [("d0", 0)]),
    "layers within a wrapper": functional(
        "m",
        [
            {
                "class_name": "TimeDistributed",
                "config": {"layer": {**KERAS_2_1, "config": [{}] * 10_001}},
            }
        ],
        [("x", 0)],
    ),
    "output_layers": functional("m", dropouts(0), [("d0", 0)] * (limits.ENDS.maximum + 1)),
    "values": [[]] * limits.ARCHITECTURE_VALUES.maximum,
    "characters": "x" * limits.ARCHITECTURE_CHARACTERS.maximum,
}


@pytest.mark.parametrize(("what", "architecture"), TOO_LARGE.items(), ids=TOO_LARGE)
def test_an_architecture_has_a_largest_size(what: str, architecture: Json) -> None:
    with pytest.raises(InvalidParameter, match=f"number of {what.split(' ')[0]}.* at most"):
        check_architecture(read_architecture(json.dumps(architecture)))
