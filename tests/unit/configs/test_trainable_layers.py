"""Layers that training can change, as the JSON of an architecture shows them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import dense, layer, sequential

from cerebro_plpy.configs.architecture.allowlist import LAYERS, parse_names
from cerebro_plpy.configs.architecture.model_shapes import has_trainable_layers

WEIGHTED = parse_names("""
    AdditiveAttention Attention BatchNormalization Bidirectional Conv1D Conv1DTranspose Conv2D
    Conv2DTranspose Conv3D Conv3DTranspose ConvLSTM1D ConvLSTM2D ConvLSTM3D Dense DepthwiseConv1D
    DepthwiseConv2D Discretization EinsumDense Embedding GRU GRUCell GroupNormalization
    GroupQueryAttention LSTM LSTMCell LayerNormalization MultiHeadAttention PReLU RMSNormalization
    RNN SeparableConv1D SeparableConv2D SimpleRNN SimpleRNNCell SpectralNormalization
    StackedRNNCells TimeDistributed
""")
"""Layers that may have weights to train."""


def named(class_name: str, **config: object) -> dict[str, Any]:
    return {"class_name": class_name, "config": config}


def model(*layers: dict[str, Any], **config: object) -> dict[str, Any]:
    return named("Sequential", layers=list(layers), **config)


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_a_layer_without_weights_cannot_be_trained(name: str) -> None:
    assert has_trainable_layers(model(named(name))) == (name in WEIGHTED)
    assert not has_trainable_layers(model(named(name, trainable=False)))


LAYER = st.builds(
    named,
    st.sampled_from(["Dense", "Flatten", "Dropout", "Conv1D"]),
    trainable=st.booleans(),
)


@given(st.lists(LAYER, max_size=5), st.booleans(), st.booleans())
def test_models_within_models_are_looked_into(
    layers: list[dict[str, Any]], inner: bool, outer: bool
) -> None:
    expected = any(
        each["class_name"] in WEIGHTED and each["config"]["trainable"] for each in layers
    )
    nested = model(named("InputLayer"), model(*layers, trainable=inner), trainable=outer)
    assert has_trainable_layers(nested) == (expected and inner and outer)


def test_networks_of_the_tests_can_be_trained() -> None:
    assert has_trainable_layers(json.loads(sequential([4], dense(3, "output", "softmax"))))
    assert not has_trainable_layers(json.loads(sequential([4], layer("Flatten", "flat"))))
