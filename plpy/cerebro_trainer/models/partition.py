"""Partition of a network into pieces, with which a network runs that does not fit into memory.

A network can be cut where one tensor passes, without a mask. It is cut only before layers with a
matrix, because other layers are too small. The cuts depend on the network alone, so that the
results do not depend on the available memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import keras

from cerebro_trainer.models.frozen_prefix import (
    build_behind,
    find_ancestors,
    find_predecessors,
    get_graph,
    is_bottleneck,
    list_nodes,
)
from cerebro_trainer.models.keras_model import call_keras, unwrap_single

Node = Any
"""A call of a layer, or of an operation, in a Keras graph."""
MATRIX_DIMENSIONS = 2


class Piece(NamedTuple):
    """A piece of a network: consecutive layers as a model of their own."""

    model: keras.Model

    @property
    def layer_names(self) -> list[str]:
        """The names of the layers, without input layers."""
        return [
            layer.name
            for layer in self.model.layers
            if not isinstance(layer, keras.layers.InputLayer)
        ]

    @property
    def trainable_variables(self) -> list[Any]:
        """The variables that an optimizer changes."""
        return list(self.model.trainable_variables)

    @property
    def variables(self) -> list[Any]:
        """All variables."""
        return list(self.model.variables)


def partition_model(model: keras.Model) -> list[Piece]:
    """Return the pieces of a model, from its inputs to its outputs, with the same layers.

    A model that cannot be cut has one piece.
    """
    borders = list(_find_borders(model))
    ranges = zip([None, *borders], [*borders, None], strict=True)
    return [Piece(call_keras(partial(_build_piece, model, begin, end))) for begin, end in ranges]


def _build_piece(model: keras.Model, begin: Any, end: Any) -> keras.Model:
    outputs = unwrap_single(model.outputs) if end is None else end
    if begin is None:
        return keras.Model(unwrap_single(model.inputs), outputs)
    return build_behind(begin, outputs)


def _find_borders(model: keras.Model) -> Iterator[Any]:
    """Yield the tensors at which a model is cut, in order."""
    graph = get_graph(model)
    nodes = list_nodes(model)
    outputs = {id(tensor) for tensor in graph.outputs}
    for node in nodes:
        if node.is_input or len(node.outputs) != 1 or id(node.outputs[0]) in outputs:
            continue
        successors = [other for other in nodes if node in find_predecessors(other)]
        if any(map(_has_matrix, successors)) and _can_cut(graph, nodes, node):
            yield node.outputs[0]


def _has_matrix(node: Node) -> bool:
    return any(len(variable.shape) >= MATRIX_DIMENSIONS for variable in _get_variables(node))


def _can_cut(graph: Any, nodes: Sequence[Node], node: Node) -> bool:
    """Return whether a graph can be cut behind a call.

    All paths lead through its output, which has floats without a mask, and no variable is used on
    both sides.
    """
    tensor = node.outputs[0]
    if not keras.backend.is_float_dtype(tensor.dtype):
        return False
    if getattr(tensor, "_keras_mask", None) is not None or not is_bottleneck(graph, node):
        return False
    ancestors = find_ancestors(node)
    variables_before: set[int] = set()
    variables_behind: set[int] = set()
    for other in nodes:
        variables = variables_before if id(other) in ancestors else variables_behind
        variables.update(map(id, _get_variables(other)))
    return not variables_before & variables_behind


def _get_variables(node: Node) -> Sequence[Any]:
    return getattr(node.operation, "variables", ())
