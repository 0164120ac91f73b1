"""A model as a smooth function, by whose gradients its predictions are explained.

Two things stand in the way of a gradient. Whole numbers, such as those of categories, have none: so
the model is cut where the first other numbers are made of them, as an Embedding does, and the
gradient ends there. And what passes gradients by on purpose, for training's sake, is taken out: it
changes no prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras

from cerebro_trainer.models import keras_model
from cerebro_trainer.models.layer_arguments import Node

PASSED_BY = "StopGradient"


@dataclass(frozen=True)
class Differentiable:
    """A model of its own, which has to be given the weights of the one that is explained, and its
    two parts.

    `head` makes numbers of whole ones, None where there are none. `tail` takes the inputs that are
    no whole numbers, what `head` gives, and then those whole numbers that cannot be kept out of it;
    `whole` and `beside` say which inputs of the model are these, by their places.
    """

    model: keras.Model
    head: keras.Model | None
    tail: keras.Model
    whole: tuple[int, ...]
    beside: tuple[int, ...]

    @property
    def other(self) -> tuple[int, ...]:
        """The places of inputs that are no whole numbers."""
        return tuple(place for place in range(len(self.model.inputs)) if place not in self.whole)


def differentiable(node: Node) -> Differentiable:
    """The model of a prepared architecture that has one output."""
    model = keras_model.build(_let_through(node))
    whole = [place for place, tensor in enumerate(model.inputs) if _is_whole(tensor)]
    edge = _Edge()
    output = _spread(model)
    edge.find(output)
    for tensor in edge.made:
        # Keras says so of a product with a constant, and takes no such input with PyTorch
        tensor._sparse = False
    beside = [
        place for place in whole if any(model.inputs[place] is tensor for tensor in edge.kept)
    ]
    others = [tensor for tensor in model.inputs if not _is_whole(tensor)]
    tail = [*others, *edge.made, *(model.inputs[place] for place in beside)]
    head = (
        keras.Model(_packed([model.inputs[place] for place in whole]), edge.made)
        if edge.made
        else None
    )
    return Differentiable(
        model, head, keras.Model(_packed(tail), output), tuple(whole), tuple(beside)
    )


def _spread(model: keras.Model) -> Any:
    """The one output, by a graph in which the parts of models that the model is made of stand side
    by side.
    """
    parts = [layer for layer in model.layers if isinstance(layer, keras.Model)]
    if not parts or isinstance(model, keras.Sequential):
        (output,) = model.outputs
        return output
    for part in parts:
        for operation in getattr(part, "operations", ()):
            operation.name = f"{part.name}_{operation.name}"  # names are unique in a graph
    whole = model._run_through_graph(
        model.inputs,
        operation_fn=lambda layer: layer.call if isinstance(layer, keras.Model) else layer,
    )
    (output,) = keras.tree.flatten(whole)
    return output


class _Edge:
    """Where numbers are made of whole ones: `made` are those, and `kept` the whole inputs that are
    used beyond.
    """

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.kept: list[Any] = []
        self._seen: set[int] = set()

    def find(self, tensor: Any) -> None:
        """Look at what a tensor is made of, down to the edge."""
        if id(tensor) in self._seen:
            return
        self._seen.add(id(tensor))
        sources = _sources(tensor)
        if not sources:
            self.kept += [tensor] if _is_whole(tensor) else []
        elif not _is_whole(tensor) and any(map(_is_whole, sources)) and not _has_others(tensor):
            self.made.append(tensor)
        else:
            for source in sources:
                self.find(source)


def _sources(tensor: Any) -> Sequence[Any]:
    operation, number, _ = tensor._keras_history
    return list(operation._inbound_nodes[number].input_tensors)


def _has_others(tensor: Any) -> bool:
    """Whether an input that is no whole number has a say in it."""
    sources = _sources(tensor)
    return any(map(_has_others, sources)) if sources else not _is_whole(tensor)


def _is_whole(tensor: Any) -> bool:
    return not keras.backend.is_float_dtype(keras.backend.standardize_dtype(tensor.dtype))


def _packed(tensors: Sequence[Any]) -> Any:
    return tensors[0] if len(tensors) == 1 else list(tensors)


def _let_through(node: Any) -> Any:
    """The architecture with a layer that does nothing in the place of what passes gradients by."""
    if isinstance(node, list):
        return [_let_through(part) for part in node]
    if not isinstance(node, dict):
        return node
    if node.get("class_name") == PASSED_BY and "inbound_nodes" in node:
        config = {"name": node["config"]["name"], "activation": "linear"}
        return {**node, "module": "keras.layers", "class_name": "Activation", "config": config}
    return {name: _let_through(part) for name, part in node.items()}
