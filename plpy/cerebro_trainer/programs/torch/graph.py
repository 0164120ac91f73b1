"""A training step as a list of PyTorch's operations, without the overhead of Keras and autograd.

For a small network this overhead is most of a step: Keras finds out how each layer is called, and
autograd records the operations. Both result in the same operations for every batch of one size, so
the step is traced once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg

from cerebro_trainer.programs.torch.tensors import Tensors

Step: TypeAlias = Callable[[Tensors], Any]
"""Trains on a batch; returns the loss before it."""

aten = torch.ops.aten
IDENTITIES = (aten.detach.default, aten.alias.default, aten.lift_fresh_copy.default)
"""Operations that return their argument, if nothing is recorded and nothing changes it."""
MAX_FOLDED_BYTES = 64 << 10
"""A larger constant is computed for each batch."""
WARM_UP_STEPS = 3
"""Steps before one is captured: libraries set themselves up in the first ones."""
VALUE_READERS = ("numpy", "__array__", "tolist")
"""Methods by which a value leaves PyTorch unseen; its consequences would become constants."""


class CapturedStep(NamedTuple):
    """The kernels of a step in a CUDA graph."""

    step: Step  # holds the constants that the kernels read
    graph: torch.cuda.CUDAGraph
    batch: Tensors  # read by the kernels
    loss: torch.Tensor  # written by the kernels


def trace_step(step: Step, variables: Sequence[Any], columns: Tensors) -> Step:
    """Return a step as its operations over batches like this one.

    Args:
        variables: tensors that the step may read and change; they stay the same.

    Raises:
        NotImplementedError: the operations depend on values.
    """
    tensors = list(variables)
    graph = trace_graph(lambda tensors, batch: step(batch), tensors, columns)
    return lambda batch: graph.forward(tensors, batch)


def trace_graph(
    step: Callable[[Tensors, Tensors], Any], tensors: Tensors, columns: Tensors
) -> torch.fx.GraphModule:
    """Return the graph of a step that takes the tensors it may read and change, and a batch."""
    with _forbid_reading_values():
        module = make_fx(step)(tensors, columns)
    for node in list(module.graph.nodes):
        if node.op == "call_function" and node.target in IDENTITIES:
            node.replace_all_uses_with(node.args[0])
            module.graph.erase_node(node)
    _fold_constants(module)
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


def _fold_constants(module: torch.fx.GraphModule) -> None:
    """Compute small values now that depend on no variable and no row.

    They would be computed for each batch, and be copied to a GPU each time.
    """
    constants = _compute_constants(module)
    for number, (node, value) in enumerate(constants.items()):
        if node.op != "call_function":
            continue
        module.register_buffer(f"folded_{number}", value)
        with module.graph.inserting_before(node):
            node.replace_all_uses_with(module.graph.get_attr(f"folded_{number}"))


def _compute_constants(module: torch.fx.GraphModule) -> dict[torch.fx.Node, Any]:
    mutable = find_mutable_nodes(module)
    constants: dict[torch.fx.Node, Any] = {}
    for node in list(module.graph.nodes):
        if node in mutable:
            continue
        if node.op == "get_attr":
            constants[node] = getattr(module, node.target)
            continue
        if node.op != "call_function" or _is_random(node):
            continue
        if not set(node.all_input_nodes) <= constants.keys():
            continue
        args = map_arg(node.args, constants.get)
        value = node.target(*args, **map_arg(node.kwargs, constants.get))
        if isinstance(value, torch.Tensor) and value.nbytes <= MAX_FOLDED_BYTES:
            constants[node] = value
    return constants


def find_mutable_nodes(module: torch.fx.GraphModule) -> set[torch.fx.Node]:
    """Return the values that an operation writes to, and their inputs, which may share memory."""
    mutable: set[torch.fx.Node] = set()
    for node in reversed(module.graph.nodes):
        if node in mutable:
            mutable.update(node.all_input_nodes)
        elif node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            parameters = node.target._schema.arguments
            written_arguments = [
                argument
                for argument, parameter in zip(node.args, parameters, strict=False)
                if parameter.is_write
            ]
            map_arg(written_arguments, mutable.add)
    return mutable


def _is_random(node: torch.fx.Node) -> bool:
    """Return whether an operation has another result each time."""
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def capture_step(step: Step, columns: Tensors) -> Step:
    """Return a step over batches like this one as one CUDA graph; takes some steps for it.

    See "CUDA graphs" in PyTorch's notes.

    Raises:
        NotImplementedError: the step reads a value meanwhile, as the draws of a Dropout do.
    """
    batch = [column.clone() for column in columns]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP_STEPS):
            step(batch)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(batch)
    return partial(_replay, CapturedStep(step, graph, batch, loss))


def _replay(captured: CapturedStep, batch: Tensors) -> Any:
    for target, values in zip(captured.batch, batch, strict=True):
        target.copy_(values)
    captured.graph.replay()
    return captured.loss.clone()


@contextmanager
def _forbid_reading_values() -> Iterator[None]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("a step asks for a value, so it is not the same for every batch")

    original_methods = {name: getattr(torch.Tensor, name) for name in VALUE_READERS}
    try:
        for name in VALUE_READERS:
            setattr(torch.Tensor, name, refuse)
        yield
    finally:
        for name, method in original_methods.items():
            setattr(torch.Tensor, name, method)
