"""The inputs and outputs of a model, read from its architecture JSON without building it.

The supported forms are those of Keras 3, of tf.keras 2, and the lists of Keras before 2.2.3. If the
JSON is not as expected, the result is None or InvalidText, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Optional

from cerebro_plpy.configs.architecture.allowlist import MODELS
from cerebro_plpy.configs.params.keras_names import KEEPS_WIDTH
from cerebro_plpy.errors import InvalidParameter, InvalidText
from cerebro_plpy.limits import ENDS, check

_WITHOUT_WEIGHTS = re.compile(
    r"\w*(Pooling|Dropout|Cropping|Padding|UpSampling)\w*|Random\w+|Gaussian\w+|(Leaky)?ReLU|ELU|"
    r"Add|Subtract|Multiply|Average|Maximum|Minimum|Concatenate|Dot|InputLayer|Flatten|Reshape|"
    r"Permute|RepeatVector|Masking|Identity|Activation|Softmax|ActivityRegularization|"
    r"Rescaling|Resizing|CenterCrop|CategoryEncoding|Normalization|UnitNormalization"
)
"""Classes of layers that have no weights to train."""
BEGINNINGS = ("initializer", "regularizer", "constraint")
"""Ends of the names of settings that do not change shapes."""
DROPOUT = ("rate", "dropout", "recurrent_dropout")
"""Names of dropout rates; a layer with rate 0 does not draw, so it has no random state."""
Shape = tuple[Optional[int], ...]
Node = Mapping[str, Any]
Reference = tuple[str, int, int]  # layer, number of its call, number of the call's output


def list_input_shapes(model: Node) -> tuple[Shape, ...]:
    """Return the shape of each input without the batch dimension; None for any length.

    Raises:
        InvalidParameter: the first layer does not define a shape.
    """
    if model["class_name"] != "Sequential":
        by_name = _layers_by_name(model)
        return tuple(
            _input_shape(by_name[name]) for name, _, _ in _endpoints(model, "input_layers")
        )
    first = next(iter(list_layers(model)), {})
    if first.get("class_name") in MODELS:
        return list_input_shapes(first)
    return (_input_shape(first, read_layer_config(model).get("build_input_shape")),)


def have_same_sizes(first: object, second: object) -> bool:
    """Return True if networks certainly have equal layers, with weights of equal shapes.

    They may differ in fractions, such as dropout rates, and in the initialization of weights.
    """
    return _sizes(first) == _sizes(second)


def _sizes(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _sizes(item) for key, item in value.items() if not key.endswith(BEGINNINGS)}
    if isinstance(value, list):
        return [_sizes(item) for item in value]
    if isinstance(value, float):
        return None
    return value


def have_same_predictions(first: object, second: object) -> bool:
    """Return True if networks with equal weights have equal predictions and variables.

    They differ in positive dropout rates only, which matter in training alone.
    """
    return _without_dropout(first) == _without_dropout(second)


def _without_dropout(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            key: bool(item) if key in DROPOUT else _without_dropout(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_without_dropout(item) for item in value]
    return value


def list_output_units(model: Node) -> tuple[int | None, ...]:
    """Return the width of each output; None if unknown.

    The width is the units of the last layer such as Dense, or of a Reshape to rows.
    """
    return _Widths().of_outputs(model)


def list_output_names(model: Node) -> tuple[str, ...]:
    """Return the names of the outputs, which are those of their layers."""
    if model["class_name"] == "Sequential":
        last = next(reversed(list_layers(model)), {})
        return (str(last.get("name", read_layer_config(last).get("name"))),)
    return tuple(name for name, _, _ in _endpoints(model, "output_layers"))


def ends_in_softmax(model: Node) -> bool:
    """Return True if the only output consists of class probabilities."""
    (name,) = list_output_names(model)
    last = _layers_by_name(model).get(name, {})
    if last.get("class_name") in MODELS:
        return ends_in_softmax(last)
    activation = read_layer_config(last).get("activation")
    if isinstance(activation, dict):
        activation = activation.get("config")
    return last.get("class_name") == "Softmax" or activation == "softmax"


def list_layers(model: Node) -> list[Node]:
    """Return the layers of a model in order.

    In Keras before 2.2.3, the configuration of a Sequential was the list of its layers.
    """
    layers = model.get("config")
    if isinstance(layers, dict):
        layers = layers.get("layers")
    if not isinstance(layers, list) or not all(isinstance(layer, dict) for layer in layers):
        raise unreadable(f"{model.get('class_name')} has no list of layers")
    return layers


def has_trainable_layers(model: Node) -> bool:
    """Return whether a layer of a model may have weights that training changes.

    >>> dense = {"class_name": "Dense", "config": {"trainable": False}}
    >>> flatten = {"class_name": "Flatten", "config": {}}
    >>> has_trainable_layers({"class_name": "Sequential", "config": {"layers": [dense, flatten]}})
    False
    """
    if read_layer_config(model).get("trainable") is False:
        return False
    if model.get("class_name") in MODELS:
        return any(map(has_trainable_layers, list_layers(model)))
    return not _WITHOUT_WEIGHTS.fullmatch(str(model.get("class_name")))


def read_given_shape(layer: Node) -> Shape | None:
    """Return the input shape of a layer's configuration, with the batch dimension, if any."""
    settings = read_layer_config(layer)
    return _shape(settings.get("batch_shape") or settings.get("batch_input_shape"))


def unreadable(detail: str) -> InvalidText:
    """Return MADlib's error for JSON that is not an architecture."""
    return InvalidText(
        "Unable to read model architecture JSON.",
        hint="Load what model.to_json() of a Sequential or functional Keras model gives.",
        detail=detail,
    )


def read_layer_config(node: Node) -> Node:
    """Return the configuration of a layer or model; an empty one if it has no dict."""
    config = node.get("config")
    if isinstance(config, dict):
        return config
    return {}


def _shape(value: object) -> Shape | None:
    if isinstance(value, dict):  # tf.keras writes {"class_name": "TensorShape", "items": [...]}
        value = value.get("items")
    if not isinstance(value, list) or not value:
        return None
    if not all(size is None or (type(size) is int and size > 0) for size in value):
        raise unreadable(f"{value} is not a shape")
    return tuple(value)


def _input_shape(layer: Node, default: object = None) -> Shape:
    shape = read_given_shape(layer) or _shape(default)
    if shape is None:
        raise InvalidParameter(
            "Unable to get input shape from model architecture. Make sure that the first layer "
            "defines an input_shape.",
            hint="Start the model with keras.Input(shape=...), or give its first layer "
            "input_shape=....",
        )
    return shape[1:]


def _layers_by_name(model: Node) -> dict[str, Node]:
    return {
        str(layer.get("name", read_layer_config(layer).get("name"))): layer
        for layer in list_layers(model)
    }


def _endpoints(model: Node, key: str) -> list[Reference]:
    names = _layers_by_name(model)
    references = list(_references(read_layer_config(model).get(key)))
    if not references or any(name not in names for name, _, _ in references):
        raise unreadable(f"{key} does not name layers of the model")
    check(f"the number of {key}", len(references), ENDS)
    return references


def _references(value: object) -> Iterator[Reference]:
    """Yield references to tensors in any form of Keras; dicts in the order of their keys."""
    if isinstance(value, dict):
        history = read_layer_config(value).get("keras_history")
        if history:
            yield from _references(history)
            return
        for key in sorted(value):
            yield from _references(value[key])
    elif isinstance(value, list):
        if (
            len(value) >= 3
            and isinstance(value[0], str)
            and type(value[1]) is type(value[2]) is int
        ):
            yield value[0], value[1], value[2]
        else:
            for part in value:
                yield from _references(part)


class _Graph(NamedTuple):
    """The layers of a functional model by name, and its outputs."""

    layers: Mapping[str, Node]
    outputs: list[Reference]


class _Widths:
    """The widths of tensors of nested models, each computed once.

    Models are identified by `id`: they are parts of one architecture, which lives longer.
    """

    def __init__(self) -> None:
        self._graphs: dict[int, _Graph] = {}
        self._tensors: dict[tuple[int, Reference], int | None] = {}

    def of_outputs(self, model: Node) -> tuple[int | None, ...]:
        """Return the width of each output of a model; None if unknown."""
        if model["class_name"] == "Sequential":
            return (self._output_width(model, 0),)
        return tuple(
            self._tensor_width(model, reference) for reference in self._graph(model).outputs
        )

    def _graph(self, model: Node) -> _Graph:
        if id(model) not in self._graphs:
            self._graphs[id(model)] = _Graph(
                _layers_by_name(model), _endpoints(model, "output_layers")
            )
        return self._graphs[id(model)]

    def _output_width(self, model: Node, tensor: int) -> int | None:
        if model["class_name"] == "Sequential":
            wide = (
                layer
                for layer in reversed(list_layers(model))
                if layer.get("class_name") not in KEEPS_WIDTH
            )
            last = next(wide, None)
            if last is None or tensor:
                return None
            return self._layer_width(last, 0)
        outputs = self._graph(model).outputs
        if not 0 <= tensor < len(outputs):
            return None
        return self._tensor_width(model, outputs[tensor])

    def _layer_width(self, layer: Node, tensor: int) -> int | None:
        if layer.get("class_name") in MODELS:
            return self._output_width(layer, tensor)
        settings = read_layer_config(layer)
        units = settings.get("units")
        if layer.get("class_name") == "Reshape":
            shape = settings.get("target_shape")
            if isinstance(shape, list) and len(shape) == 1:
                units = shape[0]
        if type(units) is int and units > 0:
            return units
        return None

    def _tensor_width(self, model: Node, reference: Reference) -> int | None:
        """Return the width of a tensor, from the layer that determines it.

        Layers that keep the width are followed back. The result is None if that leads nowhere, or
        in a circle.
        """
        by_name = self._graph(model).layers
        current = reference
        followed = list[Reference]()
        units: int | None = None
        for _ in by_name:
            key = (id(model), current)
            if key in self._tensors:
                units = self._tensors[key]
                break
            followed.append(current)
            name, call, tensor = current
            layer = by_name.get(name, {})
            if layer.get("class_name") not in KEEPS_WIDTH:
                units = self._layer_width(layer, tensor)
                break
            calls = layer.get("inbound_nodes")
            if not isinstance(calls, list) or not 0 <= call < len(calls):
                break
            previous = next(_references(calls[call]), None)
            if previous is None:
                break
            current = previous
        self._tensors.update(((id(model), passed), units) for passed in followed)
        return units
