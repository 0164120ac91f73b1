"""Rewriting of an architecture, from the JSON of any Keras to that of Keras 3 with listed classes.

Rewriting is the safety check. The result is built node by node from known names, so that nothing
else can get into it. No framework is needed: `keras_model` passes the result to Keras, and so does
the client's export. Backend and client have this module by symbolic links, so its imports are
relative.
"""

from __future__ import annotations

import re
from typing import Any

from . import allowlist, layer_arguments
from .layer_arguments import ArchitectureError, Json, Node, abbreviate, make_node

LAYER_ARGUMENTS = frozenset({"layer", "backward_layer", "forward_layer", "cell", "cells"})
"""Arguments that are layers themselves."""
REMOVED = allowlist.parse_names("""
    adjustment batch_input_shape batch_shape fused implementation input_dtype input_length rng_type
    softmax_robust_masking time_major virtual_batch_size
""")
"""Arguments of Keras 2 that Keras 3 lacks or stores elsewhere; none of them changes a result."""
REMOVED_FROM = {
    **dict.fromkeys(
        (
            "Conv1DTranspose",
            "Conv2DTranspose",
            "Conv3DTranspose",
            "DepthwiseConv1D",
            "DepthwiseConv2D",
        ),
        allowlist.parse_names("groups"),
    ),
    **dict.fromkeys(
        ("SeparableConv1D", "SeparableConv2D"),
        allowlist.parse_names("groups kernel_initializer kernel_regularizer kernel_constraint"),
    ),
    **dict.fromkeys(
        ("SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D"),
        allowlist.parse_names("trainable noise_shape"),
    ),
    "Discretization": allowlist.parse_names("trainable"),
    "MultiHeadAttention": allowlist.parse_names("query_shape key_shape value_shape"),
}
"""Arguments that Keras 2 wrote for a layer without using them, by layer."""
_KERAS_MODULE = re.compile(r"(tensorflow\.|tf_)?keras(\.\w+)*")


def rewrite(architecture: Json) -> Node:
    """Return a model as Keras 3 JSON.

    Raises:
        ArchitectureError: a part of the model is unknown or not allowed.
    """
    if not isinstance(architecture, dict) or "class_name" not in architecture:
        raise ArchitectureError(
            'an architecture is a JSON object with "class_name" and "config", as '
            f"model.to_json() writes it; received {abbreviate(architecture)}"
        )
    return _rewrite_model(architecture, layer_arguments.MAX_DEPTH)


def _rewrite_model(node: Node, depth: int) -> Node:
    layer_arguments.check_depth(depth)
    if node.get("class_name") not in allowlist.MODELS:
        raise ArchitectureError(
            "expected a Sequential or Functional model, received "
            f"{abbreviate(node.get('class_name'))}",
            sqlstate="0A000",
            hint="Models of own classes cannot be rebuilt from JSON without running code.",
        )
    config = node.get("config")
    if isinstance(config, list):  # Keras before 2.2.3 wrote only the layers of a Sequential model
        config = {"layers": config}
    if not isinstance(config, dict):
        raise ArchitectureError(f"a model's config is an object, received {abbreviate(config)}")
    if node["class_name"] == "Sequential":
        return _rewrite_sequential(config, depth)
    return _rewrite_functional(config, depth)


def _rewrite_sequential(config: Node, depth: int) -> Node:
    entries = _get_list(config, "layers")
    layers = [_rewrite_layer(entry, depth) for entry in entries]
    if layers and layers[0]["class_name"] not in ("InputLayer", "Sequential", "Model"):
        layers.insert(0, _make_input_layer(entries[0]["config"], config))
    # Without a name, Keras would number the layer among all layers of the process.
    for number, layer in enumerate(layers):
        layer["config"].setdefault("name", f"unnamed_{number}")
    name = _check_name(config.get("name", "sequential"))
    return make_node("keras", "Sequential", {"name": name, "layers": layers})


def _make_input_layer(first_config: Node, model_config: Node) -> Node:
    shape = (
        first_config.get("batch_input_shape")
        or first_config.get("batch_shape")
        or model_config.get("build_input_shape")
    )
    name = f"{first_config.get('name', 'first')}_input"
    config = {"batch_shape": _rewrite_batch_shape(shape), "dtype": "float32", "name": name}
    return make_node("keras.layers", "InputLayer", config)


def _rewrite_functional(config: Node, depth: int) -> Node:
    layers = []
    for entry in _get_list(config, "layers"):
        layer = _rewrite_layer(entry, depth)
        calls = [_rewrite_call(call, depth) for call in _get_list(entry, "inbound_nodes")]
        layers.append({**layer, "name": _check_name(entry.get("name")), "inbound_nodes": calls})
    rewritten = {
        "name": _check_name(config.get("name", "model")),
        "trainable": bool(config.get("trainable", True)),
        "layers": layers,
        "input_layers": _unwrap_single(_flatten_references(config.get("input_layers"))),
        "output_layers": _unwrap_single(_flatten_references(config.get("output_layers"))),
    }
    return make_node("keras", "Model", rewritten)


def _flatten_references(entry: Json) -> list[Json]:
    """Return references [layer, node, tensor] as a flat list; like Keras, order dicts by key."""
    if isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], str):
        return [entry]
    parts = [entry[key] for key in sorted(entry)] if isinstance(entry, dict) else entry
    if not isinstance(parts, list):
        raise ArchitectureError(f"expected references to layers, received {abbreviate(entry)}")
    return [reference for part in parts for reference in _flatten_references(part)]


def _unwrap_single(references: list[Json]) -> Json:
    """Return a single reference without its list, so that the model returns a tensor."""
    return references[0] if len(references) == 1 else references


def _rewrite_call(call: Json, depth: int) -> Json:
    if not isinstance(call, dict):
        return layer_arguments.rewrite_value(call, depth)
    return {
        "args": layer_arguments.rewrite_value(call.get("args", []), depth),
        "kwargs": layer_arguments.rewrite_value(call.get("kwargs", {}), depth),
    }


def _rewrite_layer(entry: Json, depth: int) -> Node:
    layer_arguments.check_depth(depth)
    if not isinstance(entry, dict) or not isinstance(entry.get("config"), (dict, list)):
        raise ArchitectureError(
            f'a layer is an object with "class_name" and "config"; received {abbreviate(entry)}'
        )
    class_name = entry.get("class_name")
    module = str(entry.get("module", "keras.layers"))
    config = entry["config"]
    if class_name in allowlist.MODELS:
        return _rewrite_model(entry, depth - 1)
    if class_name in allowlist.OPERATIONS.get(module, ()):
        return make_node(module, str(class_name), layer_arguments.rewrite_value(config, depth))
    if allowlist.is_of_hub(entry):
        return _rewrite_hub_layer(entry, depth)
    name = allowlist.OLD_LAYERS.get(str(class_name), str(class_name))
    is_of_keras = _KERAS_MODULE.fullmatch(module) is not None
    is_registered = entry.get("registered_name") in (None, class_name)
    is_listed = name in allowlist.LAYERS and is_of_keras and is_registered
    if not is_listed or not isinstance(config, dict):
        raise ArchitectureError(
            f"layer class {abbreviate(class_name)} of module {abbreviate(module)} is not allowed",
            sqlstate="0A000",
            hint="Allowed are Keras' own layers and operations that run no code from the "
            "architecture and read no files: no Lambda, no TFSMLayer, no classes of your own.",
        )
    return make_node("keras.layers", name, _rewrite_arguments(name, config, depth))


def _rewrite_hub_layer(entry: Node, depth: int) -> Node:
    name = entry.get("class_name")
    module = allowlist.hub_module(entry)
    config = entry["config"]
    if module is None or not isinstance(config, dict):
        raise ArchitectureError(
            f"class {abbreviate(name)} of keras_hub is not allowed",
            sqlstate="0A000",
            hint=allowlist.hub_hint(),
        )
    return make_node(module, str(name), _rewrite_arguments(str(name), config, depth))


def _rewrite_arguments(layer: str, arguments: Node, depth: int) -> Node:
    """Rewrite a layer's arguments to those of Keras 3."""
    removed = REMOVED | REMOVED_FROM.get(layer, frozenset())
    config = {
        name: _rewrite_argument(name, argument, depth)
        for name, argument in arguments.items()
        if name not in removed
    }
    if config.get("stateful"):
        raise ArchitectureError(
            "stateful=True is not supported: a table's rows have no order between batches",
            sqlstate="0A000",
        )
    if layer == "InputLayer":
        shape = arguments.get("batch_shape") or arguments.get("batch_input_shape")
        config["batch_shape"] = _rewrite_batch_shape(shape)
    if layer in ("GRU", "GRUCell"):
        config.setdefault("reset_after", False)  # the value before Keras wrote it
    if layer == "BatchNormalization":
        if isinstance(config.get("axis"), list):
            config["axis"] = config["axis"][0]
        if not config.get("renorm"):
            config = {name: arg for name, arg in config.items() if not name.startswith("renorm")}
    return config


def _rewrite_batch_shape(shape: Json) -> list[Json]:
    """Return the shape of an input with an open batch size."""
    if isinstance(shape, dict):  # tf.keras writes {"class_name": "TensorShape", "items": [...]}
        shape = shape.get("items")
    is_shape = isinstance(shape, list) and all(size is None or type(size) is int for size in shape)
    if not is_shape or not shape:
        raise ArchitectureError(
            "the architecture does not say the shape of its input",
            hint="Give the first layer an input_shape, or start with keras.Input(shape).",
        )
    return [None, *shape[1:]]


def _rewrite_argument(name: str, argument: Json, depth: int) -> Json:
    """Rewrite an argument, which may be a layer itself."""
    is_object = isinstance(argument, dict)
    if is_object and name.endswith("activation") and argument.get("class_name") != "function":
        return _rewrite_layer(argument, depth - 1)
    if name in LAYER_ARGUMENTS and argument is not None:
        if isinstance(argument, list):
            return [_rewrite_layer(cell, depth - 1) for cell in argument]
        return _rewrite_layer(argument, depth - 1)
    return layer_arguments.rewrite_argument(name, argument, depth)


def _get_list(node: Node, key: str) -> list[Any]:
    value = node.get(key)
    if not isinstance(value, list):
        raise ArchitectureError(f'the architecture lacks the list "{key}" in {abbreviate(node)}')
    return value


def _check_name(value: Json) -> str:
    if not isinstance(value, str):
        raise ArchitectureError(f"a layer's name must be text, received {abbreviate(value)}")
    return value
