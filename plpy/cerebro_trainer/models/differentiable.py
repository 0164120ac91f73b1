"""Models as smooth functions, whose gradients explain predictions.

Two kinds of operations have no useful gradient. Integers, such as category codes, have none. The
model is therefore cut where floats are first computed from them, as in an Embedding, and the
gradient ends there. Operations that block gradients on purpose, for training, are replaced: they do
not change a prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import keras

from cerebro_trainer.models import keras_model
from cerebro_trainer.models.layer_arguments import Node

GRADIENT_STOP = "StopGradient"


@dataclass(frozen=True)
class DifferentiableModel:
    """A copy of a model without weights, cut into two parts.

    `head` computes floats from the integer inputs. `tail` computes the output; its inputs are the
    float inputs of the model, the outputs of `head`, and the shared inputs.
    """

    model: keras.Model  # must be given the weights of the original model
    head: keras.Model | None  # None for a model without integer inputs
    tail: keras.Model
    integer_inputs: tuple[int, ...]  # positions in the inputs of the model
    shared_inputs: tuple[int, ...]  # positions of integer inputs that `tail` needs, too

    @property
    def float_inputs(self) -> tuple[int, ...]:
        """The positions of the other inputs."""
        positions = range(len(self.model.inputs))
        return tuple(position for position in positions if position not in self.integer_inputs)


def build_differentiable(node: Node) -> DifferentiableModel:
    """Build the differentiable model of a prepared architecture with one output."""
    model = keras_model.build(_remove_gradient_stops(node))
    inputs = model.inputs
    integer_inputs = [index for index, tensor in enumerate(inputs) if _is_integer(tensor)]
    output = _trace_output(model)
    border = _IntegerBorder()
    border.find(output)
    for tensor in border.float_tensors:
        # Keras marks a product with a constant as sparse, and rejects it as an input with PyTorch.
        tensor._sparse = False
    shared_inputs = [
        index
        for index in integer_inputs
        if any(inputs[index] is tensor for tensor in border.shared_inputs)
    ]
    head = None
    if border.float_tensors:
        head_inputs = [inputs[index] for index in integer_inputs]
        head = keras.Model(keras_model.unwrap_single(head_inputs), border.float_tensors)
    tail_inputs = [
        *(tensor for tensor in inputs if not _is_integer(tensor)),
        *border.float_tensors,
        *(inputs[index] for index in shared_inputs),
    ]
    tail = keras.Model(keras_model.unwrap_single(tail_inputs), output)
    return DifferentiableModel(model, head, tail, tuple(integer_inputs), tuple(shared_inputs))


def _trace_output(model: keras.Model) -> Any:
    """Return the output of a graph in which nested models are replaced by their layers."""
    parts = [layer for layer in model.layers if isinstance(layer, keras.Model)]
    if not parts or isinstance(model, keras.Sequential):
        (output,) = model.outputs
        return output
    for part in parts:
        for operation in getattr(part, "operations", ()):
            operation.name = f"{part.name}_{operation.name}"  # names are unique in a graph
    outputs = model._run_through_graph(
        model.inputs,
        operation_fn=lambda layer: layer.call if isinstance(layer, keras.Model) else layer,
    )
    (output,) = keras.tree.flatten(outputs)
    return output


class _IntegerBorder:
    """The border of a graph at which floats are computed from integers."""

    def __init__(self) -> None:
        self.float_tensors: list[Any] = []  # computed from integers only
        self.shared_inputs: list[Any] = []  # integer inputs that are used behind the border
        self._visited: set[int] = set()

    def find(self, tensor: Any) -> None:
        """Search the operations that compute a tensor, as far as the border."""
        if id(tensor) in self._visited:
            return
        self._visited.add(id(tensor))
        sources = _get_sources(tensor)
        if not sources:
            if _is_integer(tensor):
                self.shared_inputs.append(tensor)
            return
        is_border = not _is_integer(tensor) and any(map(_is_integer, sources))
        if is_border and not _depends_on_floats(tensor):
            self.float_tensors.append(tensor)
            return
        for source in sources:
            self.find(source)


def _get_sources(tensor: Any) -> Sequence[Any]:
    operation, node_index, _ = tensor._keras_history
    return list(operation._inbound_nodes[node_index].input_tensors)


def _depends_on_floats(tensor: Any) -> bool:
    """Return whether a tensor depends on a float input."""
    sources = _get_sources(tensor)
    return any(map(_depends_on_floats, sources)) if sources else not _is_integer(tensor)


def _is_integer(tensor: Any) -> bool:
    return not keras.backend.is_float_dtype(keras.backend.standardize_dtype(tensor.dtype))


def _remove_gradient_stops(node: Any) -> Any:
    """Return the architecture with identity layers instead of operations that block gradients."""
    if isinstance(node, list):
        return [_remove_gradient_stops(part) for part in node]
    if not isinstance(node, dict):
        return node
    if node.get("class_name") == GRADIENT_STOP and "inbound_nodes" in node:
        config = {"name": node["config"]["name"], "activation": "linear"}
        return {**node, "module": "keras.layers", "class_name": "Activation", "config": config}
    return {name: _remove_gradient_stops(part) for name, part in node.items()}
