"""The frozen prefix of a network, whose activations for a row are the same in every epoch.

The activations can be computed once, and the head behind the prefix can be trained on them. A
network can be cut at a layer if all paths lead through its single output, and if no layer before it
is trained, random, or different in training.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.models import keras_hub_support
from cerebro_trainer.models.keras_model import call_keras, unwrap_single
from cerebro_trainer.wire.frames import Array

Node = Any
"""A call of a layer, or of an operation, in a Keras graph."""
IRRELEVANT_SUFFIXES = ("initializer", "regularizer", "constraint")
"""Ends of the names of settings that do not change the outputs of a frozen layer."""


class Cut(NamedTuple):
    """A layer at which a network can be cut."""

    layer: str
    tensor: Any  # the output of the layer
    nodes: Sequence[Node]  # the calls that compute the output, in order

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the activations of a row."""
        return tuple(self.tensor.shape[1:])

    @property
    def flops(self) -> int:
        """The estimated number of operations that compute the activations of a row."""
        return sum(estimate_flops(node) for node in self.nodes)


def find_cuts(model: keras.Model) -> list[Cut]:
    """Return all layers at which a model can be cut, from the first to the last."""
    graph = get_graph(model)
    nodes = list_nodes(model)
    outputs = {id(tensor) for tensor in graph.outputs}
    frozen: set[int] = set()
    cuts = []
    for node in nodes:
        if not node.is_input and not _is_constant(node.operation):
            continue
        if any(id(predecessor) not in frozen for predecessor in find_predecessors(node)):
            continue
        frozen.add(id(node))
        if node.is_input or len(node.outputs) != 1 or not _is_called_once(node, nodes):
            continue
        tensor = node.outputs[0]
        if id(tensor) in outputs or not _is_storable(tensor):
            continue
        if is_bottleneck(graph, node):
            ancestors = find_ancestors(node)
            prefix = [ancestor for ancestor in nodes if id(ancestor) in ancestors]
            cuts.append(Cut(node.operation.name, tensor, prefix))
    return cuts


def get_cut(model: keras.Model, layer: str) -> Cut:
    """Return the cut at a layer; raise ConfigError if the model cannot be cut there."""
    for cut in find_cuts(model):
        if cut.layer == layer:
            return cut
    raise ConfigError(
        f"the network cannot be cut at {layer!r}",
        hint="All in front of a cut is frozen, and goes through its layer.",
    )


def build_prefix(model: keras.Model, cut: Cut) -> keras.Model:
    """Return the model before a cut, with the same layers."""
    return keras.Model(unwrap_single(model.inputs), cut.tensor)


def build_head(model: keras.Model, cut: Cut) -> keras.Model:
    """Return the model behind a cut, with the same layers."""
    return build_behind(cut.tensor, unwrap_single(model.outputs))


def build_behind(tensor: Any, outputs: Any) -> keras.Model:
    """Return the model that computes outputs from an inner tensor of another model."""
    model = keras.Model(tensor, outputs)
    # Keras has made a list of the input, and would warn of each tensor.
    model._inputs_struct = model.inputs[0]
    return model


def describe_prefix(model: keras.Model, cut: Cut) -> dict[str, object]:
    """Return the prefix as an architecture, and the ranges of its weights in the flat weights."""
    sizes = [math.prod(weight.shape) for weight in model.weights]
    offsets = itertools.accumulate(sizes, initial=0)
    offset_by_weight = dict(zip(map(id, model.weights), offsets, strict=False))
    prefix = call_keras(build_prefix, model, cut)
    ranges = [[offset_by_weight[id(weight)], math.prod(weight.shape)] for weight in prefix.weights]
    architecture = json.loads(prefix.to_json())
    return {"layer": cut.layer, "shape": cut.shape, "architecture": architecture, "weights": ranges}


def compute_digest(cut: Cut, read_value: Callable[[Any], Array]) -> str:
    """Return a digest that is equal for prefixes with the same layers and the same weights.

    Args:
        read_value: returns the value of a variable.
    """
    numbers = {id(node): number for number, node in enumerate(cut.nodes)}
    digest = hashlib.sha256()
    for node in cut.nodes:
        operation = node.operation
        description = [
            type(operation).__name__,
            _describe_config(operation),
            _describe_arguments(node, numbers),
            [tensor.dtype for tensor in node.outputs],
            *keras_hub_support.list_releases(operation),
        ]
        digest.update(json.dumps(description, sort_keys=True, default=str).encode())
        for variable in getattr(operation, "variables", ()):
            digest.update(np.ascontiguousarray(read_value(variable)).data)
    return digest.hexdigest()


def estimate_flops(node: Node) -> int:
    """Estimate the operations of a call for one row.

    They are one for each output, and two for each weight of a kernel at each position where it is
    applied.
    """
    operation = node.operation
    if isinstance(operation, keras.Model):
        return sum(map(estimate_flops, list_nodes(operation)))
    shapes = [tensor.shape[1:] for tensor in node.outputs]
    outputs = sum(math.prod(size or 1 for size in shape) for shape in shapes)
    if isinstance(operation, keras.layers.Embedding):
        return outputs
    kernel_weights = sum(
        math.prod(weight.shape)
        for weight in getattr(operation, "weights", ())
        if len(weight.shape) > 1
    )
    if isinstance(operation, keras.layers.RNN):
        positions = node.input_tensors[0].shape[1] or 1
    else:
        is_channels_first = getattr(operation, "data_format", None) == "channels_first"
        sizes = shapes[0][1:] if is_channels_first else shapes[0][:-1]
        positions = math.prod(size or 1 for size in sizes)
    return int(outputs + 2 * kernel_weights * positions)


def get_graph(model: keras.Model) -> Any:
    """Return the graph of a model's calls, which a Sequential model has inside."""
    return model._functional if isinstance(model, keras.Sequential) else model


def list_nodes(model: keras.Model) -> list[Node]:
    """Return the calls of a model in topological order."""
    by_depth = get_graph(model)._nodes_by_depth
    return [node for depth in sorted(by_depth, reverse=True) for node in by_depth[depth]]


def find_predecessors(node: Node) -> Iterator[Node]:
    """Yield the calls that compute the inputs of a call."""
    for tensor in node.input_tensors:
        yield _find_node(tensor)


def find_ancestors(node: Node) -> set[int]:
    """Return the ids of a call and of all calls that it depends on."""
    ancestors: set[int] = set()
    pending = [node]
    while pending:
        current = pending.pop()
        if id(current) not in ancestors:
            ancestors.add(id(current))
            pending += find_predecessors(current)
    return ancestors


def is_bottleneck(graph: Any, node: Node) -> bool:
    """Return whether all paths from the inputs of a graph to its outputs lead through a call."""
    pending = [_find_node(tensor) for tensor in graph.outputs]
    visited = {id(node)}
    while pending:
        current = pending.pop()
        if id(current) in visited:
            continue
        if current.is_input:
            return False
        visited.add(id(current))
        pending += find_predecessors(current)
    return True


def _find_node(tensor: Any) -> Node:
    """Return the call that computes a tensor."""
    history = tensor._keras_history
    return history.operation._inbound_nodes[history.node_index]


def _is_called_once(node: Node, nodes: Sequence[Node]) -> bool:
    return sum(other.operation is node.operation for other in nodes) == 1


def _is_storable(tensor: Any) -> bool:
    """Return whether the shape is known and float32 represents all values."""
    return None not in tensor.shape[1:] and tensor.dtype in ("float16", "bfloat16", "float32")


def _is_constant(operation: Any) -> bool:
    """Return whether the outputs for a row never change."""
    if not isinstance(operation, keras.layers.Layer):
        return True
    if operation.trainable_variables:
        return False
    return all(map(_is_same_in_training, operation._flatten_layers()))


def _is_same_in_training(layer: Any) -> bool:
    """Return whether a layer works in training as in inference, adds no loss and masks no steps."""
    if layer._seed_generators or getattr(layer, "activity_regularizer", None) is not None:
        return False
    if isinstance(layer, keras.layers.Masking) or getattr(layer, "mask_zero", False):
        return False
    if isinstance(layer, keras.layers.BatchNormalization):
        return not layer.trainable
    # SpectralNormalization changes a weight even if it is frozen. Other layers that distinguish
    # training have a seed generator, or do nothing in training.
    return not isinstance(layer, keras.layers.SpectralNormalization)


def _describe_config(operation: Any) -> Any:
    if isinstance(operation, keras.layers.Layer):
        return _select_settings(operation.get_config())
    return type(operation).__module__


def _select_settings(value: Any) -> Any:
    """Return the settings of a layer that decide its outputs.

    Names matter in a nested model, because they connect its layers.
    """
    if isinstance(value, (list, tuple)):
        return [_select_settings(item) for item in value]
    if not isinstance(value, dict):
        return value
    is_model = "layers" in value
    settings = {}
    for name, setting in value.items():
        if is_model or not (name == "name" or name.endswith(IRRELEVANT_SUFFIXES)):
            # A dtype policy is written with its name, which _select_settings would remove.
            settings[name] = json.dumps(setting) if name == "dtype" else _select_settings(setting)
    return settings


def _describe_arguments(node: Node, numbers: dict[int, int]) -> Any:
    """Return the arguments of a call, with the number of its call instead of each tensor."""

    def describe(value: Any) -> Any:
        if not isinstance(value, keras.KerasTensor):
            return value
        return [numbers.get(id(_find_node(value))), value._keras_history.tensor_index]

    arguments = [list(node.arguments.args), dict(node.arguments.kwargs)]
    return keras.tree.map_structure(describe, arguments)
