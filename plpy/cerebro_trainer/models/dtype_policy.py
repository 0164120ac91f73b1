"""The floating-point types in which a model computes, which a run sets, not an architecture.

In Keras 3 each layer has a policy. `mixed_bfloat16` and `mixed_float16` compute in a type of 16
bits and keep the weights in float32, so that a state does not depend on the policy.
"""

from __future__ import annotations

from typing import Any

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.models import allowlist
from cerebro_trainer.models.architectures import LAYER_ARGUMENTS
from cerebro_trainer.models.layer_arguments import Node

POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")
MODELS = ("Sequential", "Model")
WITHOUT_AUTOCAST = allowlist.parse_names("""
    Flatten Identity Permute RepeatVector Reshape TokenAndPositionEmbedding
""")
"""Layers that only move numbers, or contain an Embedding.

They must not round tokens: bfloat16 would turn 257 into 256, and a word into another word.
"""


def apply_policy(node: Node, policy: str) -> Node:
    """Set the policy of all layers of a rewritten model, except for its output layers.

    Output layers stay in float32, as Keras' guide to mixed precision recommends, because losses and
    metrics need the range.

    Raises:
        ConfigError: the policy is unknown.
    """
    if policy not in POLICIES:
        raise ConfigError(
            f"dtype_policy {policy!r} is unknown; expected one of {', '.join(POLICIES)}"
        )
    return _apply_to_model(node, policy, output_policy="float32")


def needs_loss_scaling(node: Any) -> bool:
    """Return whether a part of a rewritten model computes in float16.

    Its gradients vanish unless the loss is scaled.
    """
    if isinstance(node, list):
        return any(map(needs_loss_scaling, node))
    if not isinstance(node, dict):
        return False
    return node.get("dtype") == "mixed_float16" or any(map(needs_loss_scaling, node.values()))


def _apply_to_model(node: Node, policy: str, output_policy: str) -> Node:
    config = node["config"]
    policies = dict.fromkeys(_find_output_layers(node), output_policy)
    layers = [
        _apply_to_layer(layer, policies.get(_get_name(layer), policy)) for layer in config["layers"]
    ]
    return {**node, "config": {**config, "layers": layers}}


def _find_output_layers(node: Node) -> set[str]:
    """Return the names of a model's output layers."""
    config = node["config"]
    if node["class_name"] == "Sequential":
        return {_get_name(layer) for layer in config["layers"][-1:]}
    references = config["output_layers"]
    if not isinstance(references[0], list):
        references = [references]
    return {layer for layer, *_ in references}


def _get_name(layer: Node) -> str:
    return str(layer.get("name", layer["config"].get("name")))


def _apply_to_layer(layer: Node, policy: str) -> Node:
    class_name = layer["class_name"]
    if class_name in MODELS:
        return _apply_to_model(layer, policy, output_policy=policy)
    has_policy = layer["module"] in ("keras.layers", *allowlist.HUB)
    if not has_policy or class_name == "InputLayer":
        return layer
    config = {
        name: _apply_to_argument(name, argument, policy)
        for name, argument in layer["config"].items()
    }
    if class_name in WITHOUT_AUTOCAST:
        config["autocast"] = False
    config["dtype"] = policy
    if _adds_loss(layer):
        config["dtype"] = "float32"
    return {**layer, "config": config}


def _adds_loss(layer: Node) -> bool:
    """Return whether a layer adds its outputs to the loss, which Keras adds up in one type."""
    if layer["class_name"] == "ActivityRegularization":
        return True
    return bool(layer["config"].get("activity_regularizer"))


def _apply_to_argument(name: str, value: Any, policy: str) -> Any:
    """Set the policy of an argument that is a layer itself, such as the cell of an RNN."""
    if isinstance(value, list) and name in LAYER_ARGUMENTS:
        return [_apply_to_layer(cell, policy) for cell in value]
    if isinstance(value, dict) and value.get("module") == "keras.layers":
        return _apply_to_layer(value, policy)
    return value
