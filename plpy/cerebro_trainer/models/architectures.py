"""Architecture JSON of any Keras, rewritten as data into Keras 3 JSON that holds nothing but listed
classes.

The rewriting *is* the safety check: what it returns is built node by node from known names, so
there is no way round it. It needs no framework; `keras_model` hands the result to Keras, and so
does the client's export, which has this module by a link (`cerebro_db/export/architecture`): its
imports are relative.
"""

from __future__ import annotations

import re
from typing import Any

from . import allowlist, layer_arguments
from .layer_arguments import ArchitectureError, Json, Node

WRAPPED = frozenset({"layer", "backward_layer", "forward_layer", "cell", "cells"})
"""Arguments that are layers themselves."""
REMOVED = allowlist.names("""
    adjustment batch_input_shape batch_shape fused implementation input_dtype input_length rng_type
    softmax_robust_masking time_major virtual_batch_size""")
"""Arguments of Keras 2 that Keras 3 lacks or says elsewhere, and that do not change what is
computed.
"""
REMOVED_FROM = {
    **dict.fromkeys(
        (
            "Conv1DTranspose",
            "Conv2DTranspose",
            "Conv3DTranspose",
            "DepthwiseConv1D",
            "DepthwiseConv2D",
        ),
        allowlist.names("groups"),
    ),
    **dict.fromkeys(
        ("SeparableConv1D", "SeparableConv2D"),
        allowlist.names("groups kernel_initializer kernel_regularizer kernel_constraint"),
    ),
    **dict.fromkeys(
        ("SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D"),
        allowlist.names("trainable noise_shape"),
    ),
    "Discretization": allowlist.names("trainable"),
    "MultiHeadAttention": allowlist.names("query_shape key_shape value_shape"),
}
"""Arguments that Keras 2 wrote for single layers without using them."""


def rewrite(architecture: Json) -> Node:
    """The model as Keras 3 JSON; ArchitectureError names the first thing that is unknown or not
    allowed.
    """
    if not isinstance(architecture, dict) or "class_name" not in architecture:
        raise ArchitectureError(
            'an architecture is a JSON object with "class_name" and "config", as '
            f"model.to_json() writes it; received {layer_arguments.short(architecture)}"
        )
    return _model(architecture, layer_arguments.MAX_DEPTH)


def _model(node: Node, depth: int) -> Node:
    layer_arguments.check_depth(depth)
    if node.get("class_name") not in allowlist.MODELS:
        raise ArchitectureError(
            "expected a Sequential or Functional model, received "
            f"{layer_arguments.short(node.get('class_name'))}",
            sqlstate="0A000",
            hint="Models of own classes cannot be rebuilt from JSON without running code.",
        )
    config = node.get("config")
    if isinstance(config, list):  # Keras before 2.2.3 wrote a Sequential's layers alone
        config = {"layers": config}
    if not isinstance(config, dict):
        raise ArchitectureError(
            f"a model's config is an object, received {layer_arguments.short(config)}"
        )
    return (_sequential if node["class_name"] == "Sequential" else _functional)(config, depth)


def _sequential(config: Node, depth: int) -> Node:
    old = _list(config, "layers")
    layers = [_layer(entry, depth) for entry in old]
    if layers and layers[0]["class_name"] not in ("InputLayer", "Sequential", "Model"):
        first = old[0]["config"]
        shape = (
            first.get("batch_input_shape")
            or first.get("batch_shape")
            or config.get("build_input_shape")
        )
        name = f"{first.get('name', 'first')}_input"
        layers.insert(
            0,
            layer_arguments.node(
                "keras.layers",
                "InputLayer",
                {"batch_shape": _batch_shape(shape), "dtype": "float32", "name": name},
            ),
        )
    for number, layer in enumerate(
        layers
    ):  # else Keras would count them, and all others of the process
        layer["config"].setdefault("name", f"unnamed_{number}")
    return layer_arguments.node(
        "keras", "Sequential", {"name": _name(config.get("name", "sequential")), "layers": layers}
    )


def _functional(config: Node, depth: int) -> Node:
    layers = []
    for entry in _list(config, "layers"):
        layer = _layer(entry, depth)
        calls = [_call(call, depth) for call in _list(entry, "inbound_nodes")]
        layers.append({**layer, "name": _name(entry.get("name")), "inbound_nodes": calls})
    return layer_arguments.node(
        "keras",
        "Model",
        {
            "name": _name(config.get("name", "model")),
            "trainable": bool(config.get("trainable", True)),
            "layers": layers,
            "input_layers": _unwrapped(_references(config.get("input_layers"))),
            "output_layers": _unwrapped(_references(config.get("output_layers"))),
        },
    )


def _references(entry: Json) -> list[Json]:
    """References [layer, node, tensor] as one flat list, dicts in key order, as Keras flattens
    them.
    """
    if isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], str):
        return [entry]
    parts = [entry[key] for key in sorted(entry)] if isinstance(entry, dict) else entry
    if not isinstance(parts, list):
        raise ArchitectureError(
            f"expected references to layers, received {layer_arguments.short(entry)}"
        )
    return [reference for part in parts for reference in _references(part)]


def _unwrapped(references: list[Json]) -> Json:
    """A single reference alone, so that one-output models give a tensor and not a list of one."""
    return references[0] if len(references) == 1 else references


def _call(call: Json, depth: int) -> Json:
    if isinstance(call, dict):
        return {
            "args": layer_arguments.plain(call.get("args", []), depth),
            "kwargs": layer_arguments.plain(call.get("kwargs", {}), depth),
        }
    return layer_arguments.plain(call, depth)


def _layer(entry: Json, depth: int) -> Node:
    layer_arguments.check_depth(depth)
    if not isinstance(entry, dict) or not isinstance(entry.get("config"), (dict, list)):
        raise ArchitectureError(
            'a layer is an object with "class_name" and "config"; received '
            f"{layer_arguments.short(entry)}"
        )
    old, module = entry.get("class_name"), str(entry.get("module", "keras.layers"))
    if old in allowlist.MODELS:
        return _model(entry, depth - 1)
    if old in allowlist.OPERATIONS.get(module, ()):
        return layer_arguments.node(module, str(old), layer_arguments.plain(entry["config"], depth))
    if allowlist.is_of_hub(entry):
        return _hub_layer(entry, depth)
    name = allowlist.OLD_LAYERS.get(str(old), str(old))
    genuine = re.fullmatch(r"(tensorflow\.|tf_)?keras(\.\w+)*", module) and entry.get(
        "registered_name"
    ) in (
        None,
        old,
    )
    if name not in allowlist.LAYERS or not genuine or not isinstance(entry["config"], dict):
        raise ArchitectureError(
            f"layer class {layer_arguments.short(old)} of module {layer_arguments.short(module)} "
            "is not allowed",
            sqlstate="0A000",
            hint="Allowed are Keras' own layers and operations that run no code from the "
            "architecture and read no files: no Lambda, no TFSMLayer, no classes of your own.",
        )
    return layer_arguments.node("keras.layers", name, _arguments(name, entry["config"], depth))


def _hub_layer(entry: Node, depth: int) -> Node:
    name, module = entry.get("class_name"), allowlist.hub_module(entry)
    if module is None or not isinstance(entry["config"], dict):
        raise ArchitectureError(
            f"class {layer_arguments.short(name)} of keras_hub is not allowed",
            sqlstate="0A000",
            hint=allowlist.hub_hint(),
        )
    return layer_arguments.node(module, str(name), _arguments(str(name), entry["config"], depth))


def _arguments(name: str, old: Node, depth: int) -> Node:
    """A layer's arguments, as Keras 3 has them."""
    removed = REMOVED | REMOVED_FROM.get(name, frozenset())
    config = {key: _value(key, value, depth) for key, value in old.items() if key not in removed}
    if config.get("stateful"):
        raise ArchitectureError(
            "stateful=True is not supported: a table's rows have no order between batches",
            sqlstate="0A000",
        )
    if name == "InputLayer":
        config["batch_shape"] = _batch_shape(old.get("batch_shape") or old.get("batch_input_shape"))
    if name in ("GRU", "GRUCell"):
        config.setdefault("reset_after", False)  # what it was when Keras did not write it
    if name == "BatchNormalization":
        if isinstance(config.get("axis"), list):
            config["axis"] = config["axis"][0]
        if not config.get("renorm"):
            config = {key: value for key, value in config.items() if not key.startswith("renorm")}
    return config


def _batch_shape(shape: Json) -> list[Json]:
    """An input's shape with the batch size left open, whatever it was."""
    if isinstance(shape, dict):  # tf.keras writes {"class_name": "TensorShape", "items": [...]}
        shape = shape.get("items")
    if (
        not isinstance(shape, list)
        or not all(size is None or type(size) is int for size in shape)
        or not shape
    ):
        raise ArchitectureError(
            "the architecture does not say the shape of its input",
            hint="Give the first layer an input_shape, or start with keras.Input(shape).",
        )
    return [None, *shape[1:]]


def _value(key: str, old: Json, depth: int) -> Json:
    if isinstance(old, dict) and key.endswith("activation") and old.get("class_name") != "function":
        return _layer(old, depth - 1)
    if key in WRAPPED and old is not None:
        return (
            [_layer(cell, depth - 1) for cell in old]
            if isinstance(old, list)
            else _layer(old, depth - 1)
        )
    return layer_arguments.value(key, old, depth)


def _list(node: Node, key: str) -> list[Any]:
    value = node.get(key)
    if not isinstance(value, list):
        raise ArchitectureError(
            f'the architecture lacks the list "{key}" in {layer_arguments.short(node)}'
        )
    return value


def _name(value: Json) -> str:
    if not isinstance(value, str):
        raise ArchitectureError(
            f"a layer's name must be text, received {layer_arguments.short(value)}"
        )
    return value
