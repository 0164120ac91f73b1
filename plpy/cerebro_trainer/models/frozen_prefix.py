"""The front of a network: frozen layers, which give the same numbers for a row in every epoch.

What they give can be computed once, and what lies behind be trained on that. A network can be cut
at a layer through whose one output all goes, where nothing in front is trained, drawn at random, or
different while it trains.
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
import numpy.typing as npt

from cerebro_trainer.errors import ConfigError
from cerebro_trainer.models import keras_hub_support
from cerebro_trainer.models.keras_model import guarded

Node = Any
"""A call of a layer, or of an operation, in a Keras graph."""
NAMING = ("initializer", "regularizer", "constraint")
"""How the names of settings end that do not change what a frozen layer gives."""


class Cut(NamedTuple):
    """A layer at which a network can be cut, what it gives, and the calls that lead to that, in
    order.
    """

    layer: str
    tensor: Any
    nodes: Sequence[Node]

    @property
    def shape(self) -> tuple[int, ...]:
        """That of a row of what the layer gives."""
        return tuple(self.tensor.shape[1:])

    @property
    def flops(self) -> int:
        """About how many operations it takes to come there with a row."""
        return sum(flops(node) for node in self.nodes)


def cuts(model: keras.Model) -> list[Cut]:
    """All layers at which a model can be cut, from the first to the last."""
    graph, nodes = graph_of(model), nodes_of(model)
    outputs, frozen = {id(tensor) for tensor in graph.outputs}, set[int]()
    found = []
    for node in nodes:
        if not (node.is_input or _settled(node.operation)) or any(
            id(each) not in frozen for each in before(node)
        ):
            continue
        frozen.add(id(node))
        tensor = node.outputs[0]
        once = (
            len(node.outputs) == 1 and sum(each.operation is node.operation for each in nodes) == 1
        )
        if node.is_input or not once or id(tensor) in outputs or not _storable(tensor):
            continue
        if passes(graph, node):
            wanted = ancestors(node)
            found.append(
                Cut(node.operation.name, tensor, [each for each in nodes if id(each) in wanted])
            )
    return found


def cut_at(model: keras.Model, layer: str) -> Cut:
    """The cut at the layer of that name; ConfigError where the model cannot be cut there."""
    for cut in cuts(model):
        if cut.layer == layer:
            return cut
    raise ConfigError(
        f"the network cannot be cut at {layer!r}",
        hint="All in front of a cut is frozen, and goes through its layer.",
    )


def front(model: keras.Model, cut: Cut) -> keras.Model:
    """What leads to a cut, with the layers of the model."""
    return keras.Model(model.inputs[0] if len(model.inputs) == 1 else model.inputs, cut.tensor)


def rest(model: keras.Model, cut: Cut) -> keras.Model:
    """What lies behind a cut, with the layers of the model."""
    behind = keras.Model(
        cut.tensor, model.outputs[0] if len(model.outputs) == 1 else list(model.outputs)
    )
    behind._inputs_struct = behind.inputs[
        0
    ]  # else Keras, which has made a list of it, warns of each tensor
    return behind


def described(model: keras.Model, cut: Cut) -> dict[str, object]:
    """What leads to a cut, as a network of its own, and which runs of the model's flat weights are
    its weights.
    """
    sizes = [math.prod(weight.shape) for weight in model.weights]
    begins = dict(zip(map(id, model.weights), itertools.accumulate(sizes, initial=0), strict=False))
    leading = guarded(lambda: front(model, cut))
    places = [[begins[id(weight)], math.prod(weight.shape)] for weight in leading.weights]
    architecture = json.loads(leading.to_json())
    return {"layer": cut.layer, "shape": cut.shape, "architecture": architecture, "weights": places}


def digest(cut: Cut, value: Callable[[Any], npt.NDArray[Any]]) -> str:
    """Equal for cuts that give the same for the same rows: the same layers, with the same
    weights.
    """
    numbers = {id(node): number for number, node in enumerate(cut.nodes)}
    found = hashlib.sha256()
    for node in cut.nodes:
        dtypes = [tensor.dtype for tensor in node.outputs]
        described = [
            type(node.operation).__name__,
            _config(node.operation),
            _arguments(node, numbers),
            dtypes,
        ]
        described += keras_hub_support.releases(node.operation)
        found.update(json.dumps(described, sort_keys=True, default=str).encode())
        for variable in getattr(node.operation, "variables", ()):
            found.update(np.ascontiguousarray(value(variable)).data)
    return found.hexdigest()


def flops(node: Node) -> int:
    """About how many operations a call takes for a row: two for each weight of a kernel, wherever
    that is applied.
    """
    operation = node.operation
    if isinstance(operation, keras.Model):
        return sum(map(flops, nodes_of(operation)))
    shapes = [tensor.shape[1:] for tensor in node.outputs]
    own = sum(math.prod(size or 1 for size in shape) for shape in shapes)
    if isinstance(operation, keras.layers.Embedding):
        return own
    kernels = sum(
        math.prod(weight.shape)
        for weight in getattr(operation, "weights", ())
        if len(weight.shape) > 1
    )
    places = math.prod(
        size or 1 for size in (shapes[0][1:] if _channels_first(operation) else shapes[0][:-1])
    )
    steps = (
        (node.input_tensors[0].shape[1] or 1) if isinstance(operation, keras.layers.RNN) else places
    )
    return int(own + 2 * kernels * steps)


def _channels_first(operation: Any) -> bool:
    return getattr(operation, "data_format", None) == "channels_first"


def graph_of(model: keras.Model) -> Any:
    """The graph of a model's calls, also where it was made without one."""
    return model._functional if isinstance(model, keras.Sequential) else model


def nodes_of(model: keras.Model) -> list[Node]:
    """The calls of a model, each behind those that it needs."""
    by_depth = graph_of(model)._nodes_by_depth
    return [node for depth in sorted(by_depth, reverse=True) for node in by_depth[depth]]


def before(node: Node) -> Iterator[Node]:
    """The calls that a call takes what it is given from."""
    for tensor in node.input_tensors:
        history = tensor._keras_history
        yield history.operation._inbound_nodes[history.node_index]


def ancestors(node: Node) -> set[int]:
    """The ids of a call and of all that it needs."""
    found, waiting = set[int](), [node]
    while waiting:
        each = waiting.pop()
        if id(each) not in found:
            found.add(id(each))
            waiting += before(each)
    return found


def passes(graph: Any, node: Node) -> bool:
    """Whether all that the outputs need of the inputs goes through a call."""
    histories = [tensor._keras_history for tensor in graph.outputs]
    waiting = [history.operation._inbound_nodes[history.node_index] for history in histories]
    seen = {id(node)}
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        if each.is_input:
            return False
        seen.add(id(each))
        waiting += before(each)
    return True


def _storable(tensor: Any) -> bool:
    """Whether float32 holds what a tensor has, of a size that is known."""
    return None not in tensor.shape[1:] and tensor.dtype in ("float16", "bfloat16", "float32")


def _settled(operation: Any) -> bool:
    """Whether what a layer gives for a row never changes; an operation has nothing that could."""
    if not isinstance(operation, keras.layers.Layer):
        return True
    return not operation.trainable_variables and all(
        map(_same_in_training, operation._flatten_layers())
    )


def _same_in_training(layer: Any) -> bool:
    """Whether a single layer does in training what it does else, adds nothing to the loss, and
    hides no rows' steps.
    """
    if layer._seed_generators or getattr(layer, "activity_regularizer", None) is not None:
        return False
    if isinstance(layer, keras.layers.Masking) or getattr(layer, "mask_zero", False):
        return False
    if isinstance(layer, keras.layers.BatchNormalization):
        return not layer.trainable
    # That one changes a weight, frozen or not. Others that know of training draw numbers for it, or
    # do nothing.
    return not isinstance(layer, keras.layers.SpectralNormalization)


def _config(operation: Any) -> Any:
    return (
        _plain(operation.get_config())
        if isinstance(operation, keras.layers.Layer)
        else type(operation).__module__
    )


def _plain(value: Any) -> Any:
    """A layer's settings without those that do not matter; within a nested model names say how
    layers are joined.
    """
    if isinstance(value, dict):
        nested = "layers" in value
        matter = (key for key in value if nested or not (key == "name" or key.endswith(NAMING)))
        # The name of a policy is all that it is.
        return {
            key: json.dumps(value[key]) if key == "dtype" else _plain(value[key]) for key in matter
        }
    return [_plain(held) for held in value] if isinstance(value, (list, tuple)) else value


def _arguments(node: Node, numbers: dict[int, int]) -> Any:
    """What a call is given: tensors by the numbers of the calls that they come from, all else as it
    is.
    """

    def shown(value: Any) -> Any:
        if not isinstance(value, keras.KerasTensor):
            return value
        history = value._keras_history
        return [
            numbers.get(id(history.operation._inbound_nodes[history.node_index])),
            history.tensor_index,
        ]

    return keras.tree.map_structure(shown, [list(node.arguments.args), dict(node.arguments.kwargs)])
