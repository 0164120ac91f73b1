"""The floating-point types in which a model computes, chosen for a run and not in its architecture.

Keras 3 keeps a policy per layer: `mixed_bfloat16` and `mixed_float16` compute in the short type and
keep weights in float32, so a state is the same whatever the policy.
"""

from __future__ import annotations

from typing import Any

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.models import allowlist
from cerebro_trainer.models.architectures import WRAPPED
from cerebro_trainer.models.layer_arguments import Node

POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")
MODELS = ("Sequential", "Model")
KEEP_TYPE = frozenset(
    {"Flatten", "Identity", "Permute", "RepeatVector", "Reshape", "TokenAndPositionEmbedding"}
)
"""Layers that only move numbers, or have an Embedding of their own. They must not shorten tokens on
their way, where bfloat16 would make 257 out of 256 and an odd word out of a word."""


def with_policy(node: Node, policy: str) -> Node:
    """A rewritten model whose layers have this policy, but for those that give its outputs.

    These stay in float32, as Keras' guide to mixed precision recommends: losses and metrics need
    the range. ConfigError for another name.
    """
    if policy not in POLICIES:
        raise ConfigError(
            f"dtype_policy {policy!r} is unknown; expected one of {', '.join(POLICIES)}"
        )
    return _model(node, policy, last="float32")


def scales_loss(node: Any) -> bool:
    """Whether part of a rewritten model computes in float16, whose gradients vanish unless the loss
    is scaled.
    """
    if isinstance(node, list):
        return any(map(scales_loss, node))
    if not isinstance(node, dict):
        return False
    return node.get("dtype") == "mixed_float16" or any(map(scales_loss, node.values()))


def _model(node: Node, policy: str, last: str) -> Node:
    config = node["config"]
    layers, final = config["layers"], _outputs(node)
    changed = [_layer(layer, last if _name(layer) in final else policy) for layer in layers]
    return {**node, "config": {**config, "layers": changed}}


def _outputs(node: Node) -> set[str]:
    """The names of the layers that give a model's outputs."""
    config = node["config"]
    if node["class_name"] == "Sequential":
        return {_name(config["layers"][-1])} if config["layers"] else set()
    references = config["output_layers"]
    return {
        reference[0]
        for reference in (references if isinstance(references[0], list) else [references])
    }


def _name(layer: Node) -> str:
    return str(layer.get("name", layer["config"].get("name")))


def _layer(layer: Node, policy: str) -> Node:
    if layer["class_name"] in MODELS:
        return _model(layer, policy, last=policy)
    if (
        layer["module"] not in ("keras.layers", *allowlist.HUB)
        or layer["class_name"] == "InputLayer"
    ):
        return layer
    config = {key: _inner(key, value, policy) for key, value in layer["config"].items()}
    if layer["class_name"] in KEEP_TYPE:
        config["autocast"] = False
    return {**layer, "config": {**config, "dtype": "float32" if _adds_loss(layer) else policy}}


def _adds_loss(layer: Node) -> bool:
    """Whether what a layer gives is part of the loss, which Keras adds up in one type."""
    return layer["class_name"] == "ActivityRegularization" or bool(
        layer["config"].get("activity_regularizer")
    )


def _inner(key: str, value: Any, policy: str) -> Any:
    """An argument of a layer; those that are layers themselves, such as the cell of an RNN, have
    the same policy.
    """
    if isinstance(value, list) and key in WRAPPED:
        return [_layer(cell, policy) for cell in value]
    is_layer = isinstance(value, dict) and value.get("module") == "keras.layers"
    return _layer(value, policy) if is_layer else value
