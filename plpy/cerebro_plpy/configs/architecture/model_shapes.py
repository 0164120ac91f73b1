"""What a model takes and gives, read from its architecture JSON without building it.

Understood are Keras 3, tf.keras 2 and the list form of Keras before 2.2.3. Where the JSON is not as
expected, the answer is None or InvalidText, never a guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Optional

from cerebro_plpy.configs.architecture.allowlist import MODELS
from cerebro_plpy.configs.params.keras_names import KEEPS_WIDTH
from cerebro_plpy.errors import InvalidParameter, InvalidText
from cerebro_plpy.limits import ENDS, check

BEGINNINGS = ("initializer", "regularizer", "constraint")
"""How the names of settings end that change no shape."""
DROPOUT = ("rate", "dropout", "recurrent_dropout")
"""The names of rates of dropout; layers that drop nothing draw no numbers, so that they have no
state of these.
"""
Shape = tuple[Optional[int], ...]
Node = Mapping[str, Any]
Reference = tuple[str, int, int]  # layer, number of its call, number of the tensor the call gave


def input_shapes(model: Node) -> tuple[Shape, ...]:
    """The shape of each input without the batch dimension; None stands for a dimension of any
    length.

    Raises InvalidParameter where the first layer does not tell.
    """
    if model["class_name"] != "Sequential":
        by_name = _layers_by_name(model)
        return tuple(
            _input_shape(by_name[name]) for name, _, _ in _endpoints(model, "input_layers")
        )
    first = layers(model)[0] if layers(model) else {}
    if first.get("class_name") in MODELS:
        return input_shapes(first)
    return (_input_shape(first, _settings(model).get("build_input_shape")),)


def same_sizes(one: object, other: object) -> bool:
    """Whether networks have the same layers with weights of the same shapes, as far as their JSON
    tells for certain.

    They may differ in fractions, such as rates of dropout, and in how weights begin, but in nothing
    else.
    """
    return _sizes(one) == _sizes(other)


def _sizes(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _sizes(held) for key, held in value.items() if not key.endswith(BEGINNINGS)}
    if isinstance(value, list):
        return [_sizes(held) for held in value]
    return None if isinstance(value, float) else value


def same_predictions(one: object, other: object) -> bool:
    """Whether networks with the same weights predict alike, and have the same variables beside
    these: they differ in nothing but rates of dropout, which train only."""
    return _undropped(one) == _undropped(other)


def _undropped(value: object) -> object:
    if isinstance(value, Mapping):
        return {
            key: bool(held) if key in DROPOUT else _undropped(held) for key, held in value.items()
        }
    return [_undropped(held) for held in value] if isinstance(value, list) else value


def output_units(model: Node) -> tuple[int | None, ...]:
    """The width of each output: the units of the last layer like Dense, or of a Reshape to rows;
    None if not told.
    """
    return _Widths().of_outputs(model)


def output_names(model: Node) -> tuple[str, ...]:
    """The names of the outputs, which are those of the layers that give them."""
    if model["class_name"] == "Sequential":
        last = layers(model)[-1] if layers(model) else {}
        return (str(last.get("name", _settings(last).get("name"))),)
    return tuple(name for name, _, _ in _endpoints(model, "output_layers"))


def ends_in_softmax(model: Node) -> bool:
    """Whether the layer that gives the only output gives probabilities of classes."""
    (name,) = output_names(model)
    last = _layers_by_name(model).get(name, {})
    if last.get("class_name") in MODELS:
        return ends_in_softmax(last)
    activation = _settings(last).get("activation")
    named = activation.get("config") if isinstance(activation, dict) else activation
    return last.get("class_name") == "Softmax" or named == "softmax"


def layers(model: Node) -> list[Node]:
    """The layers of a model in order; Keras before 2.2.3 wrote a Sequential's as its whole
    configuration.
    """
    config = model.get("config")
    listed = config.get("layers") if isinstance(config, dict) else config
    if not isinstance(listed, list) or not all(isinstance(layer, dict) for layer in listed):
        raise unreadable(f"{model.get('class_name')} has no list of layers")
    return listed


def given_shape(layer: Node) -> Shape | None:
    """The input shape that a layer's configuration gives, with the batch dimension; None without
    one.
    """
    settings = _settings(layer)
    return _shape(settings.get("batch_shape") or settings.get("batch_input_shape"))


def unreadable(detail: str) -> InvalidText:
    """MADlib's error for JSON that is no architecture."""
    return InvalidText(
        "Unable to read model architecture JSON.",
        hint="Load what model.to_json() of a Sequential or functional Keras model gives.",
        detail=detail,
    )


def _settings(node: Node) -> Node:
    config = node.get("config")
    return config if isinstance(config, dict) else {}


def _shape(value: object) -> Shape | None:
    if isinstance(value, dict):  # tf.keras writes {"class_name": "TensorShape", "items": [...]}
        value = value.get("items")
    if not isinstance(value, list) or not value:
        return None
    if not all(size is None or (type(size) is int and size > 0) for size in value):
        raise unreadable(f"{value} is not a shape")
    return tuple(value)


def _input_shape(layer: Node, otherwise: object = None) -> Shape:
    shape = given_shape(layer) or _shape(otherwise)
    if shape is None:
        raise InvalidParameter(
            "Unable to get input shape from model architecture. Make sure that the first layer "
            "defines an input_shape.",
            hint="Start the model with keras.Input(shape=...), or give its first layer "
            "input_shape=....",
        )
    return shape[1:]


def _layers_by_name(model: Node) -> dict[str, Node]:
    return {str(layer.get("name", _settings(layer).get("name"))): layer for layer in layers(model)}


def _endpoints(model: Node, key: str) -> list[Reference]:
    names = _layers_by_name(model)
    found = list(_references(_settings(model).get(key)))
    if not found or any(name not in names for name, _, _ in found):
        raise unreadable(f"{key} does not name layers of the model")
    check(f"the number of {key}", len(found), ENDS)
    return found


def _references(value: object) -> Iterator[Reference]:
    """References to tensors in any form in which Keras writes them, dicts in the order of their
    keys.
    """
    if isinstance(value, dict):
        history = _settings(value).get("keras_history")
        for part in [history] if history else (value[key] for key in sorted(value)):
            yield from _references(part)
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
    """The widths that tensors of models within one another have, each computed once however often
    it is referred to.

    Models are told apart by their identity: they are parts of one architecture, which outlives
    this.
    """

    def __init__(self) -> None:
        self._graphs: dict[int, _Graph] = {}
        self._tensors: dict[tuple[int, Reference], int | None] = {}

    def of_outputs(self, model: Node) -> tuple[int | None, ...]:
        """Return the width of each output of a model; None if it is not told."""
        if model["class_name"] == "Sequential":
            return (self._of_output(model, 0),)
        return tuple(self._at(model, reference) for reference in self._graph(model).outputs)

    def _graph(self, model: Node) -> _Graph:
        if id(model) not in self._graphs:
            self._graphs[id(model)] = _Graph(
                _layers_by_name(model), _endpoints(model, "output_layers")
            )
        return self._graphs[id(model)]

    def _of_output(self, model: Node, tensor: int) -> int | None:
        if model["class_name"] == "Sequential":
            wide = (
                layer
                for layer in reversed(layers(model))
                if layer.get("class_name") not in KEEPS_WIDTH
            )
            last = next(wide, None)
            return None if last is None or tensor else self._own(last, 0)
        outputs = self._graph(model).outputs
        return self._at(model, outputs[tensor]) if 0 <= tensor < len(outputs) else None

    def _own(self, layer: Node, tensor: int) -> int | None:
        if layer.get("class_name") in MODELS:
            return self._of_output(layer, tensor)
        settings = _settings(layer)
        shape = settings.get("target_shape") if layer.get("class_name") == "Reshape" else None
        units = shape[0] if isinstance(shape, list) and len(shape) == 1 else settings.get("units")
        return units if type(units) is int and units > 0 else None

    def _at(self, model: Node, reference: Reference) -> int | None:
        """Follow a reference back through layers that keep the width; None if it leads nowhere, or
        in a circle.
        """
        by_name, current, followed = self._graph(model).layers, reference, list[Reference]()
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
                units = self._own(layer, tensor)
                break
            calls = layer.get("inbound_nodes")
            known = isinstance(calls, list) and 0 <= call < len(calls)
            before = next(_references(calls[call]), None) if known else None  # type: ignore[index]
            if before is None:
                break
            current = before
        self._tensors.update(((id(model), each), units) for each in followed)
        return units
