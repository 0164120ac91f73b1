"""Heads on layers of a network that is frozen as a whole."""

from __future__ import annotations

import json
import math
from array import array

from hypothesis import given
from hypothesis import strategies as st
from models import TWO_BY_TWO, dense, layer, model

from cerebro_plpy.configs.architecture import probe_models
from cerebro_plpy.configs.architecture.architecture import check_architecture
from cerebro_plpy.configs.architecture.probe_models import Head

BASE = model(
    [8, 8, 1],
    layer("Conv2D", "seen", filters=4, kernel_size=[3, 3]),
    layer("Dropout", "drop", rate=0.5),
)
heads = st.builds(
    Head,
    st.lists(st.integers(1, 20), max_size=3).map(tuple),
    st.integers(1, 9),
    st.sampled_from(["softmax", "linear"]),
)


def layers_of(node: object) -> list[dict[str, object]]:
    """All layers in a network, also those within others."""
    if isinstance(node, list):
        return [found for each in node for found in layers_of(each)]
    if not isinstance(node, dict):
        return []
    inner = [found for value in node.values() for found in layers_of(value)]
    return [node["config"], *inner] if node.get("module") == "keras.layers" else inner


def test_all_layers_are_frozen_and_nothing_is_dropped() -> None:
    nested = model([8, 8, 1], BASE, layer("TimeDistributed", "each", layer=dense(2, "inner")))
    attention = layer("MultiHeadAttention", "seen", num_heads=2, key_dim=3, dropout=0.1)
    recurrent = layer(
        "Bidirectional",
        "both",
        layer=layer("LSTM", "read", units=3, recurrent_dropout=0.1, dropout=0),
    )
    backbone = {
        **layer("ViTBackbone", "hub", dropout_rate=0.1, attention_dropout=0.1),
        "module": "keras.layers",
    }
    others = model(
        [8, 3], attention, recurrent, backbone, layer("SpatialDropout1D", "channels", rate=0.5)
    )
    for network in (nested, TWO_BY_TWO, others):
        for config in layers_of(probe_models.freeze(network)):
            assert config.get("trainable") is False or "batch_shape" in config
            assert not any(
                value for key, value in config.items() if key == "rate" or "dropout" in key
            )
    convolution = layer(
        "Conv2D", "seen", filters=4, kernel_size=[3, 3], dilation_rate=[2, 2], use_dropout=True
    )
    assert probe_models.freeze(convolution)["config"] == {
        **convolution["config"],
        "trainable": False,
    }
    assert any(config.get("rate") == 0.5 for config in layers_of(nested)), (
        "what was given stays as it is"
    )


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), heads)
def test_a_head_is_one_that_may_be_loaded(shape: list[int], head: Head) -> None:
    made = probe_models.build_probe(probe_models.freeze(BASE), "until_seen", shape, head)
    summary = check_architecture(json.loads(probe_models.to_json(made)))
    assert summary.input_shapes == ((8, 8, 1),) and summary.output_units == (head.outputs,)
    pooled = [
        each["class_name"] for each in made["config"]["layers"] if "Pooling" in each["class_name"]
    ]
    assert len(pooled) == (len(shape) > 1)


@given(st.integers(1, 30), heads, st.integers(0, 9))
def test_weights_of_a_head_are_drawn_as_keras_does(width: int, head: Head, seed: int) -> None:
    flat = array("f", probe_models.draw_weights(width, head, seed))
    assert flat.tobytes() == probe_models.draw_weights(width, head, seed)
    for units in (*head.hidden, head.outputs):
        kernel, bias, flat = (
            flat[: width * units],
            flat[width * units : (width + 1) * units],
            flat[(width + 1) * units :],
        )
        assert max(map(abs, kernel)) <= math.sqrt(6 / (width + units)) * (1 + 1e-6) and not any(
            bias
        )
        width = units
    assert not flat
