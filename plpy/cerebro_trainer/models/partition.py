"""Pieces of a network: consecutive layers, by which a network can be run that does not fit into
memory.

A network can be cut where one tensor passes, and no mask beside it; and it is cut only in front of
layers that have a matrix, because others are too small to be worth it. Where it is cut depends on
nothing but the network, so that what is computed by pieces does not depend on how much memory there
is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import keras

from cerebro_trainer.models.frozen_prefix import ancestors, before, graph_of, nodes_of, passes
from cerebro_trainer.models.keras_model import guarded

Node = Any
"""A call of a layer, or of an operation, in a Keras graph."""
MATRIX = 2
"""The least number of dimensions of a variable that a cut is worth."""


class Piece(NamedTuple):
    """A part of a network as a model of its own, with the network's layers."""

    model: keras.Model

    @property
    def layers(self) -> list[str]:
        """The names of its layers."""
        return [
            layer.name
            for layer in self.model.layers
            if not isinstance(layer, keras.layers.InputLayer)
        ]

    @property
    def trained(self) -> list[Any]:
        """The variables that an optimizer changes."""
        return list(self.model.trainable_variables)

    @property
    def variables(self) -> list[Any]:
        """All of them."""
        return list(self.model.variables)


def pieces(model: keras.Model) -> list[Piece]:
    """All of a model, from its inputs to its outputs; one piece where it cannot be cut."""
    borders = list(_borders(model))
    ends = zip([None, *borders], [*borders, None], strict=True)
    return [Piece(guarded(partial(_part, model, begin, end))) for begin, end in ends]


def _part(model: keras.Model, begin: Any, end: Any) -> keras.Model:
    inputs = _single(model.inputs) if begin is None else begin
    part = keras.Model(inputs, _single(model.outputs) if end is None else end)
    if begin is not None:
        part._inputs_struct = part.inputs[
            0
        ]  # else Keras, which has made a list of it, warns of each tensor
    return part


def _single(tensors: Sequence[Any]) -> Any:
    return tensors[0] if len(tensors) == 1 else list(tensors)


def _borders(model: keras.Model) -> Iterator[Any]:
    """The tensors at which a model is cut, in order."""
    graph, nodes = graph_of(model), nodes_of(model)
    outputs = {id(tensor) for tensor in graph.outputs}
    for node in nodes:
        if node.is_input or len(node.outputs) != 1 or id(node.outputs[0]) in outputs:
            continue
        users = [each for each in nodes if node in before(each)]
        if any(map(_has_matrix, users)) and _separates(graph, nodes, node):
            yield node.outputs[0]


def _has_matrix(node: Node) -> bool:
    return any(len(variable.shape) >= MATRIX for variable in _variables(node))


def _separates(graph: Any, nodes: Sequence[Node], node: Node) -> bool:
    """Whether all goes through what a call gives, floats without a mask, and no variable is on both
    sides.
    """
    tensor = node.outputs[0]
    floats = keras.backend.is_float_dtype(tensor.dtype)
    if not floats or getattr(tensor, "_keras_mask", None) is not None or not passes(graph, node):
        return False
    front = ancestors(node)
    sides: tuple[set[int], set[int]] = (set(), set())
    for each in nodes:
        sides[id(each) in front].update(map(id, _variables(each)))
    return not sides[0] & sides[1]


def _variables(node: Node) -> Sequence[Any]:
    return getattr(node.operation, "variables", ())
