"""Partition of a network into pieces, with which a network runs that does not fit into memory.

A network can be cut where one tensor passes, without a mask. It is cut only before layers with a
matrix, because other layers are too small. The cuts depend on the network alone, so that the
results do not depend on the available memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

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


def partition_model(model: keras.Model) -> list[keras.Model]:
    """Return the pieces of a model, from its inputs to its outputs.

    A piece is a model of consecutive layers, which are those of the model itself. A model that
    cannot be cut has one piece.
    """
    borders = list(_find_borders(model))
    first_end, *ends = [*borders, unwrap_single(model.outputs)]
    first = call_keras(keras.Model, unwrap_single(model.inputs), first_end)
    ranges = zip(borders, ends, strict=True)
    return [first, *(call_keras(build_behind, begin, end) for begin, end in ranges)]


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
