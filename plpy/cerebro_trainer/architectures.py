"""Architecture JSON of any Keras, rewritten as data into plain Keras 3 JSON that holds nothing but listed layers.

The rewriting *is* the safety check: what it returns is built node by node from known class names, so there
is no way round it. It needs no framework; `models` hands the result to Keras.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from cerebro_trainer.errors import ConfigError

Json: TypeAlias = Any
Node: TypeAlias = dict[str, Any]

MAX_DEPTH = 24
"""Nested models, wrappers and lists; real networks stay below ten."""

LAYERS = frozenset("""
    Activation ActivityRegularization AdaptiveAveragePooling1D AdaptiveAveragePooling2D AdaptiveAveragePooling3D
    AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D Add AdditiveAttention AlphaDropout Attention
    Average AveragePooling1D AveragePooling2D AveragePooling3D BatchNormalization Bidirectional CategoryEncoding
    CenterCrop Concatenate Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose ConvLSTM1D
    ConvLSTM2D ConvLSTM3D Cropping1D Cropping2D Cropping3D Dense DepthwiseConv1D DepthwiseConv2D Discretization
    Dot Dropout ELU EinsumDense Embedding Flatten GRU GRUCell GaussianDropout GaussianNoise
    GlobalAveragePooling1D GlobalAveragePooling2D GlobalAveragePooling3D GlobalMaxPooling1D GlobalMaxPooling2D
    GlobalMaxPooling3D GroupNormalization GroupQueryAttention Identity InputLayer LSTM LSTMCell
    LayerNormalization LeakyReLU Masking MaxPooling1D MaxPooling2D MaxPooling3D Maximum Minimum
    MultiHeadAttention Multiply Normalization PReLU Permute RMSNormalization RNN RandomBrightness RandomContrast
    RandomCrop RandomFlip RandomRotation RandomTranslation RandomZoom ReLU RepeatVector Rescaling Reshape
    Resizing SeparableConv1D SeparableConv2D SimpleRNN SimpleRNNCell Softmax SpatialDropout1D SpatialDropout2D
    SpatialDropout3D SpectralNormalization StackedRNNCells Subtract TimeDistributed UnitNormalization
    UpSampling1D UpSampling2D UpSampling3D ZeroPadding1D ZeroPadding2D ZeroPadding3D""".split())
INITIALIZERS = frozenset("""
    Constant GlorotNormal GlorotUniform HeNormal HeUniform Identity LecunNormal LecunUniform Ones Orthogonal
    RandomNormal RandomUniform TruncatedNormal VarianceScaling Zeros""".split())
REGULARIZERS = frozenset("L1 L1L2 L2 OrthogonalRegularizer".split())
CONSTRAINTS = frozenset("MaxNorm MinMaxNorm NonNeg UnitNorm".split())
ACTIVATIONS = frozenset("""
    celu elu exponential gelu glu hard_shrink hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu linear
    log_sigmoid log_softmax mish relu relu6 selu sigmoid silu soft_shrink softmax softplus softsign sparse_plus
    sparse_sigmoid sparsemax squareplus swish tanh tanh_shrink threshold""".split())
OPERATION_MODULES = frozenset({"keras.src.ops.numpy", "keras.src.ops.nn", "keras.src.ops.math"})
DTYPES = frozenset("""
    float16 bfloat16 float32 float64 mixed_float16 mixed_bfloat16 bool int8 int16 int32 int64 uint8 uint16
    uint32""".split())
OLD_LAYERS = {"Convolution1D": "Conv1D", "Convolution2D": "Conv2D", "Convolution3D": "Conv3D",
              "BatchNormalizationV1": "BatchNormalization", "SyncBatchNormalization": "BatchNormalization"}
OLD_ACTIVATIONS = {"softmax_v2": "softmax", "relu_v2": "relu"}
REMOVED = frozenset("""
    adjustment batch_input_shape fused implementation input_dtype input_length time_major
    virtual_batch_size""".split())
"""Arguments that Keras 3 no longer has and that do not change what a layer computes."""
WRAPPED = frozenset("layer backward_layer forward_layer cell cells".split())


def rewrite(architecture: Json) -> Node:
    """The model as Keras 3 JSON; ConfigError names the first thing that is unknown or not allowed."""
    if not isinstance(architecture, dict) or "class_name" not in architecture:
        raise ConfigError('an architecture is a JSON object with "class_name" and "config", as '
                          f"model.to_json() writes it; received {_short(architecture)}")
    return _model(architecture, MAX_DEPTH)


def _model(node: Node, depth: int) -> Node:
    if depth <= 0:
        raise ConfigError(f"the architecture is nested more than {MAX_DEPTH} levels deep")
    if node.get("class_name") == "Sequential":
        return _sequential(node, depth)
    if node.get("class_name") in ("Functional", "Model"):
        return _functional(node, depth)
    raise ConfigError(f"expected a Sequential or Functional model, received class {_short(node.get('class_name'))}",
                      hint="Models of own classes cannot be rebuilt from JSON without running code.")


def _sequential(node: Node, depth: int) -> Node:
    config = node.get("config")
    if isinstance(config, list):  # Keras before 2.2.3
        config = {"layers": config}
    layers = [_layer(entry, depth) for entry in _list(config, "layers")]
    if layers and layers[0]["class_name"] not in ("InputLayer", "Sequential", "Model"):
        first = _list(config, "layers")[0].get("config", {})
        shape = first.get("batch_input_shape") or first.get("batch_shape") or config.get("build_input_shape")
        layers.insert(0, _input_layer(shape, first))
    name = config.get("name", "sequential")
    return _node("keras", "Sequential", {"name": _name(name), "layers": layers})


def _input_layer(shape: Json, first: Mapping[str, Any]) -> Node:
    if isinstance(shape, dict):  # tf.keras writes {"class_name": "TensorShape", "items": [...]}
        shape = shape.get("items")
    if not isinstance(shape, list) or not shape:
        raise ConfigError("the architecture does not say the shape of its input",
                          hint="Give the first layer an input_shape, or start with keras.Input(shape).")
    return _node("keras.layers", "InputLayer",
                 {"batch_shape": [None, *shape[1:]], "dtype": "float32", "name": f"{first.get('name', 'first')}_input"})


def _functional(node: Node, depth: int) -> Node:
    config = node.get("config")
    layers = []
    for entry in _list(config, "layers"):
        layer = _layer(entry, depth)
        nodes = [_call(call, depth) for call in _list(entry, "inbound_nodes")]
        layers.append({**layer, "name": _name(entry.get("name")), "inbound_nodes": nodes})
    return _node("keras", "Model", {
        "name": _name(config.get("name", "model")), "trainable": config.get("trainable", True), "layers": layers,
        "input_layers": _unwrapped(_endpoints(config.get("input_layers"))),
        "output_layers": _unwrapped(_endpoints(config.get("output_layers")))})


def _unwrapped(references: list[Json]) -> Json:
    """A single reference alone, so that one-output models give a tensor and not a list of one."""
    return references[0] if len(references) == 1 else references


def _endpoints(entry: Json) -> list[Json]:
    """References [layer, node, tensor], as one flat list; Keras flattens dicts in key order, so this does too."""
    if isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], str):
        return [entry]
    parts = [entry[key] for key in sorted(entry)] if isinstance(entry, dict) else entry
    if not isinstance(parts, list):
        raise ConfigError(f"expected references to layers, received {_short(entry)}")
    return [reference for part in parts for reference in _endpoints(part)]


def _call(call: Json, depth: int) -> Json:
    if isinstance(call, dict):
        return {"args": _argument(call.get("args", []), depth), "kwargs": _argument(call.get("kwargs", {}), depth)}
    return _argument(call, depth)


def _argument(value: Json, depth: int) -> Json:
    """A call's argument: plain values, and of Keras' special forms those that are data."""
    if depth <= 0:
        raise ConfigError(f"the architecture is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, list):
        return [_argument(item, depth - 1) for item in value]
    if not isinstance(value, dict):
        return value
    special = value.get("class_name")
    if special in (None, "__keras_tensor__", "__slice__", "__ellipsis__"):
        return {key: _argument(item, depth - 1) for key, item in value.items()}
    if special in ("__tensor__", "__numpy__") and value.get("config", {}).get("dtype") in DTYPES:
        return value
    raise ConfigError(f"a layer is called with an argument of class {_short(special)}, which is not allowed")


def _layer(entry: Json, depth: int) -> Node:
    if not isinstance(entry, dict) or not isinstance(entry.get("config"), (dict, list)):
        raise ConfigError(f'a layer is an object with "class_name" and "config"; received {_short(entry)}')
    if depth <= 0 or entry.get("class_name") in ("Sequential", "Functional", "Model"):
        return _model(entry, depth - 1)
    if entry.get("module") in OPERATION_MODULES:
        return _node(entry["module"], str(entry["class_name"]), _argument(entry["config"], depth))
    name = OLD_LAYERS.get(str(entry.get("class_name")), entry.get("class_name"))
    module = str(entry.get("module", "keras.layers"))
    if name not in LAYERS or not re.fullmatch(r"(tensorflow\.|tf_)?keras(\.\w+)*", module):
        raise ConfigError(f"layer class {_short(entry.get('class_name'))} of {module} is not allowed",
                          sqlstate="0A000", hint="Allowed are the layers of Keras that run no code of their own and "
                                                 "read no files: no Lambda, no TFSMLayer, no custom classes.")
    config = {key: _value(key, value, depth) for key, value in entry["config"].items() if key not in REMOVED}
    return _node("keras.layers", name, _adapted(name, config, entry["config"]))


def _adapted(name: str, config: Node, old: Node) -> Node:
    """Changes of single arguments between Keras 2 and 3."""
    if config.get("stateful"):
        raise ConfigError("stateful=True is not supported: rows of a table have no order between batches",
                          sqlstate="0A000")
    if name == "InputLayer":
        shape = old.get("batch_shape") or old.get("batch_input_shape")
        config["batch_shape"] = [None, *shape[1:]] if shape else None
        if not shape:
            return _input_layer(None, old)["config"]  # type: ignore[no-any-return]
    else:
        config.pop("batch_shape", None)
    if name == "BatchNormalization" and isinstance(config.get("axis"), list):
        config["axis"] = config["axis"][0]
    if not config.get("renorm"):
        for argument in ("renorm", "renorm_clipping", "renorm_momentum"):
            config.pop(argument, None)
    return config


def _value(key: str, value: Json, depth: int) -> Json:
    for suffix, module, names in KINDS:
        if key.endswith(suffix) and value is not None:
            return _object(module, names, value)
    if key.endswith("activation"):
        return _activation(value, depth)
    if key == "dtype":
        return _dtype(value)
    if key in WRAPPED and value is not None:
        return [_layer(cell, depth - 1) for cell in value] if isinstance(value, list) else _layer(value, depth - 1)
    return _argument(value, depth)


KINDS: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("_initializer", "keras.initializers", INITIALIZERS),
    ("_regularizer", "keras.regularizers", REGULARIZERS),
    ("_constraint", "keras.constraints", CONSTRAINTS))


def _object(module: str, names: frozenset[str], value: Json) -> Node:
    name, config = (value, {}) if isinstance(value, str) else (value.get("class_name"), value.get("config") or {})
    known = {candidate.lower(): candidate for candidate in names}
    found = known.get(str(name).replace("_", "").lower())
    if found is None or not isinstance(config, dict):
        raise ConfigError(f"{_short(name)} is not in {module}; allowed are {', '.join(sorted(names))}")
    return _node(module, found, {key: item for key, item in config.items() if key != "dtype" and _plain(item)})


def _activation(value: Json, depth: int) -> Json:
    if isinstance(value, dict) and value.get("class_name") != "function":
        return _layer(value, depth - 1)
    name = value.get("config") if isinstance(value, dict) else value
    name = OLD_ACTIVATIONS.get(str(name), name)
    if name is not None and name not in ACTIVATIONS:
        raise ConfigError(f"activation {_short(name)} is unknown; allowed are {', '.join(sorted(ACTIVATIONS))}")
    return name


def _dtype(value: Json) -> Json:
    name = value.get("config", {}).get("name") if isinstance(value, dict) else value
    if name is not None and name not in DTYPES:
        raise ConfigError(f"dtype {_short(name)} is not supported; supported are {', '.join(sorted(DTYPES))}")
    return name


def _plain(value: Json) -> bool:
    if isinstance(value, dict):
        raise ConfigError(f"expected a plain value, received {_short(value)}")
    return True


def _list(node: Json, key: str) -> list[Any]:
    value = node.get(key) if isinstance(node, dict) else None
    if not isinstance(value, list):
        raise ConfigError(f'the architecture lacks the list "{key}" in {_short(node)}')
    return value


def _name(value: Json) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"a layer's name must be text, received {_short(value)}")
    return value


def _node(module: str, class_name: str, config: Node) -> Node:
    return {"module": module, "class_name": class_name, "config": config, "registered_name": None}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
