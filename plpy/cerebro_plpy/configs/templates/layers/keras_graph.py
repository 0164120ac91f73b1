"""Keras 3 Functional JSON, written without Keras, because the backend has no framework.

Only what Keras needs to build a model is written; arguments with default values are left out.
Shapes are those of a row, without the batch dimension.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Union

from cerebro_plpy.configs.architecture.allowlist import OPERATIONS
from cerebro_plpy.records import dataclass

Shape = tuple[int, ...]
Json = dict[str, Any]


@dataclass(frozen=True)
class Tensor:
    """The output of a layer or an operation."""

    name: str
    shape: Shape
    dtype: str = "float32"


@dataclass(frozen=True)
class Constant:
    """Constants of the graph, one for each column of the tensor that they are combined with."""

    values: tuple[float, ...]
    dtype: str = "float32"


Argument = Union[Tensor, Constant, float, slice, Sequence["Argument"]]

_LAYERS_MODULE = "keras.layers"
_FUNCTIONAL = {
    "module": "keras.src.models.functional",
    "class_name": "Functional",
    "registered_name": "Functional",
}
_SEQUENTIAL_MODULE = "keras.src.models.sequential"
_SEQUENTIAL_CLASS = "Sequential"
_OPERATION_MODULES = {name: module for module, names in OPERATIONS.items() for name in names}


class Graph:
    """A model under construction; each method adds a node and returns its output."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: dict[str, Json] = {}
        self._inputs: list[str] = []

    def input(self, name: str, shape: Shape, dtype: str = "float32") -> Tensor:
        """Add an input; the model's inputs have the order of these calls."""
        config = {"batch_shape": [None, *shape], "dtype": dtype}
        self._add(name, _LAYERS_MODULE, "InputLayer", config, [])
        self._inputs.append(name)
        return Tensor(name, shape, dtype)

    def layer(
        self,
        class_name: str,
        name: str,
        inputs: Tensor | tuple[Tensor, ...],
        shape: Shape | None = None,
        **config: object,
    ) -> Tensor:
        """Add a layer of Keras.

        Args:
            shape: shape of its output; by default, that of its first input.
            config: arguments of the layer.
        """
        arguments = inputs if isinstance(inputs, tuple) else (inputs,)
        self._add(name, _LAYERS_MODULE, class_name, config, [_serialize_call(*arguments)])
        return Tensor(name, shape or arguments[0].shape)

    def dense(self, name: str, x: Tensor, units: int, **config: object) -> Tensor:
        """Add a dense layer over the last dimension."""
        return self.layer("Dense", name, x, (*x.shape[:-1], units), units=units, **config)

    def model(
        self, name: str, architecture: Mapping[str, Any], inputs: Sequence[Tensor], shape: Shape
    ) -> Tensor:
        """Add another model as a layer.

        Args:
            architecture: JSON of a Functional or Sequential model.
            inputs: tensors in the order of its inputs.
            shape: shape of its output.
        """
        config = {**architecture["config"], "name": name}
        call = _serialize_call(_unwrap_single(list(inputs)))
        module = _FUNCTIONAL["module"]
        class_name = _FUNCTIONAL["class_name"]
        if architecture["class_name"] == _SEQUENTIAL_CLASS:
            module = _SEQUENTIAL_MODULE
            class_name = _SEQUENTIAL_CLASS
        self._add(name, module, class_name, config, [call])
        return Tensor(name, shape)

    def operation(
        self,
        class_name: str,
        *arguments: Argument,
        shape: Shape | None = None,
        dtype: str | None = None,
        **config: object,
    ) -> Tensor:
        """Add an operation of keras.ops, by the name of its class.

        Args:
            shape: shape of its output; by default, that of the first tensor.
            dtype: type of its output; by default, that of the first tensor.
        """
        name = self._choose_name(class_name.lower())
        module = _OPERATION_MODULES[class_name]
        self._add(name, module, class_name, config, [_serialize_call(*arguments)])
        tensors = [argument for argument in arguments if isinstance(argument, Tensor)]
        return Tensor(name, shape or tensors[0].shape, dtype or tensors[0].dtype)

    def add(self, x: Tensor, y: Argument) -> Tensor:
        """Add a sum."""
        return self.operation("Add", x, y)

    def subtract(self, x: Tensor, y: Tensor | Constant) -> Tensor:
        """Add a difference."""
        return self.operation("Subtract", x, y)

    def multiply(self, x: Tensor, y: Argument, **options: Any) -> Tensor:
        """Add a product; see `operation`."""
        return self.operation("Multiply", x, y, **options)

    def reduce(self, class_name: str, x: Tensor) -> Tensor:
        """Add a reduction over the first dimension of a row, such as Mean or Sum."""
        return self.operation(class_name, x, shape=x.shape[1:], axis=1, keepdims=False)

    def reduce_columns(self, class_name: str, x: Tensor) -> Tensor:
        """Add a reduction of the columns of a row to one number."""
        return self.operation(class_name, x, shape=(1,), axis=-1, keepdims=True)

    def to_json(self, output: Tensor) -> str:
        """Return the JSON of the model with this output."""
        inputs = [[name, 0, 0] for name in self._inputs]
        config = {
            "name": self._name,
            "trainable": True,
            "layers": list(self._nodes.values()),
            "input_layers": _unwrap_single(inputs),
            "output_layers": [output.name, 0, 0],
        }
        return json.dumps({**_FUNCTIONAL, "config": config}, allow_nan=False)

    def _add(
        self,
        name: str,
        module: str,
        class_name: str,
        config: Mapping[str, object],
        calls: list[Json],
    ) -> None:
        if name in self._nodes:
            raise ValueError(f"the graph has two nodes named {name!r}")
        self._nodes[name] = {
            "module": module,
            "class_name": class_name,
            "config": {"name": name, **config},
            "registered_name": None,
            "name": name,
            "inbound_nodes": calls,
        }

    def _choose_name(self, base: str) -> str:
        """Return an unused name, numbered like Keras does: multiply, multiply_1."""
        name = base
        count = 0
        while name in self._nodes:
            count += 1
            name = f"{base}_{count}"
        return name


def _unwrap_single(items: list[Any]) -> Any:
    """Return a list, but a single item alone, for which Keras does not expect a list."""
    if len(items) == 1:
        return items[0]
    return items


def normal(deviation: float) -> Json:
    """Return an initializer of the distribution N(0, deviation²); the deviation may be 0."""
    if deviation == 0:
        return _initializer("Zeros")
    return _initializer("RandomNormal", mean=0.0, stddev=deviation)


def uniform(limit: float) -> Json:
    """Return an initializer of the uniform distribution from -limit to limit."""
    return _initializer("RandomUniform", minval=-limit, maxval=limit)


def constant(value: float) -> Json:
    """Return an initializer of a constant value."""
    return _initializer("Constant", value=value)


def dense_gradient() -> Json:
    """Return a regularizer of 0, which makes the gradient of an Embedding list each row once.

    TensorFlow's gradient lists a row for each lookup, and Keras' Adam then adds the squares of
    these parts instead of squaring their sum. A level that k rows of a batch have would take steps
    that are up to √k times too long.
    """
    return _serialize_object("keras.regularizers", "L2", {"l2": 0.0})


def _initializer(class_name: str, **config: float) -> Json:
    return _serialize_object("keras.initializers", class_name, config)


def _serialize_object(module: str, class_name: str, config: Mapping[str, float]) -> Json:
    return {
        "module": module,
        "class_name": class_name,
        "config": config,
        "registered_name": None,
    }


def _serialize_call(*arguments: Argument) -> Json:
    return {"args": [_serialize_argument(argument) for argument in arguments], "kwargs": {}}


def _serialize_argument(argument: Argument) -> object:
    config: Json
    if isinstance(argument, Tensor):
        config = {
            "shape": [None, *argument.shape],
            "dtype": argument.dtype,
            "keras_history": [argument.name, 0, 0],
        }
        return {"class_name": "__keras_tensor__", "config": config}
    if isinstance(argument, Constant):
        config = {"value": list(argument.values), "dtype": argument.dtype}
        return {"class_name": "__numpy__", "config": config}
    if isinstance(argument, slice):
        config = {"start": argument.start, "stop": argument.stop, "step": argument.step}
        return {"class_name": "__slice__", "config": config}
    if isinstance(argument, Sequence):
        return [_serialize_argument(item) for item in argument]
    return argument
