"""Keras 3 Functional JSON, written without Keras: the backend has no framework, and a template is
but its graph.

Only what Keras needs to build a model is written; arguments that have their defaults are left out.
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
    """What a layer or an operation gives, by its name."""

    name: str
    shape: Shape
    dtype: str = "float32"


@dataclass(frozen=True)
class Constant:
    """Numbers that stand in the graph, one for each column of what they are combined with."""

    values: tuple[float, ...]
    dtype: str = "float32"


Argument = Union[Tensor, Constant, float, slice, Sequence["Argument"]]

_MODEL = {
    "module": "keras.src.models.functional",
    "class_name": "Functional",
    "registered_name": "Functional",
}
_SEQUENCE = "keras.src.models.sequential", "Sequential"
_HOMES = {name: module for module, names in OPERATIONS.items() for name in names}


class Graph:
    """A model that grows by a layer or an operation at a time, each after those that it takes its
    inputs from.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: dict[str, Json] = {}
        self._inputs: list[str] = []

    def input(self, name: str, shape: Shape, dtype: str = "float32") -> Tensor:
        """An input of this shape; inputs are given in the order in which they are made."""
        config = {"batch_shape": [None, *shape], "dtype": dtype}
        self._add(name, "keras.layers", "InputLayer", config, [])
        self._inputs.append(name)
        return Tensor(name, shape, dtype)

    def layer(
        self,
        class_name: str,
        name: str,
        of: Tensor | tuple[Tensor, ...],
        shape: Shape,
        **config: object,
    ) -> Tensor:
        """A layer of Keras over a tensor, or over several; `shape` is that of what it gives."""
        inputs = of if isinstance(of, tuple) else (of,)
        self._add(name, "keras.layers", class_name, config, [_call(*inputs)])
        return Tensor(name, shape)

    def model(
        self, name: str, architecture: Mapping[str, Any], of: Sequence[Tensor], shape: Shape
    ) -> Tensor:
        """Another model as a layer over tensors in the order of its inputs; `shape` is that of what
        it gives.
        """
        config = {**architecture["config"], "name": name}
        call = _call(of[0]) if len(of) == 1 else _call(list(of))
        in_turn = architecture["class_name"] == _SEQUENCE[1]
        module, class_name = _SEQUENCE if in_turn else (_MODEL["module"], _MODEL["class_name"])
        self._add(name, module, class_name, config, [call])
        return Tensor(name, shape)

    def operation(
        self,
        class_name: str,
        *of: Argument,
        shape: Shape | None = None,
        dtype: str | None = None,
        **config: object,
    ) -> Tensor:
        """An operation of keras.ops, named after its class; its shape and type are the first
        tensor's if not told.
        """
        name = self._free(class_name.lower())
        self._add(name, _HOMES[class_name], class_name, config, [_call(*of)])
        tensors = [item for item in of if isinstance(item, Tensor)]
        return Tensor(name, shape or tensors[0].shape, dtype or tensors[0].dtype)

    def text(self, output: Tensor) -> str:
        """The JSON of the model that gives this tensor."""
        inputs = [[name, 0, 0] for name in self._inputs]
        config = {
            "name": self._name,
            "trainable": True,
            "layers": list(self._nodes.values()),
            # One alone is no list, so that Keras wants no list of one either.
            "input_layers": inputs if len(inputs) > 1 else inputs[0],
            "output_layers": [output.name, 0, 0],
        }
        return json.dumps({**_MODEL, "config": config}, allow_nan=False)

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

    def _free(self, name: str) -> str:
        """As Keras numbers what has no name of its own: multiply, multiply_1."""
        count = 0
        while (found := f"{name}_{count}" if count else name) in self._nodes:
            count += 1
        return found


def normal(deviation: float) -> Json:
    """Weights that begin as N(0, deviation²), which may be 0."""
    return (
        _initializer("Zeros")
        if deviation == 0
        else _initializer("RandomNormal", mean=0.0, stddev=deviation)
    )


def uniform(limit: float) -> Json:
    """Weights that begin evenly between -limit and limit."""
    return _initializer("RandomUniform", minval=-limit, maxval=limit)


def constant(value: float) -> Json:
    """Weights that all begin as this value."""
    return _initializer("Constant", value=value)


def dense_gradient() -> Json:
    """A regularizer that adds nothing to the loss, so that the gradient of an Embedding names each
    row once.

    TensorFlow's names a row for each time that it is looked up, and Keras' Adam then adds squares
    of the parts instead of squaring their sum: a level that k rows of a batch have would take steps
    that are up to √k times too long.
    """
    return {
        "module": "keras.regularizers",
        "class_name": "L2",
        "config": {"l2": 0.0},
        "registered_name": None,
    }


def _initializer(class_name: str, **config: float) -> Json:
    return {
        "module": "keras.initializers",
        "class_name": class_name,
        "config": config,
        "registered_name": None,
    }


def _call(*of: Argument) -> Json:
    return {"args": [_argument(item) for item in of], "kwargs": {}}


def _argument(item: Argument) -> object:
    if isinstance(item, Tensor):
        told = {
            "shape": [None, *item.shape],
            "dtype": item.dtype,
            "keras_history": [item.name, 0, 0],
        }
        return {"class_name": "__keras_tensor__", "config": told}
    if isinstance(item, Constant):
        return {
            "class_name": "__numpy__",
            "config": {"value": list(item.values), "dtype": item.dtype},
        }
    if isinstance(item, slice):
        bounds = {"start": item.start, "stop": item.stop, "step": item.step}
        return {"class_name": "__slice__", "config": bounds}
    return [_argument(part) for part in item] if isinstance(item, Sequence) else item
