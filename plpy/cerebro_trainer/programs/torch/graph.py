"""A step of training as a list of PyTorch's operations, without what Keras and autograd take around
each of them.

For a small network that is most of a step: Keras finds out for each layer how it is called, and
autograd records what was done. Both come to the same operations for every batch of one size, so
they are asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg

Tensors = list[Any]
Step: TypeAlias = Callable[[Tensors], Any]
"""Trains on a batch; the loss before it."""

aten = torch.ops.aten
SAME = (aten.detach.default, aten.alias.default, aten.lift_fresh_copy.default)
"""What gives its argument again, where nothing is recorded and nothing of it changed."""
FOLDED_BYTES = 64 << 10
"""A constant that is larger is made for each batch."""
WARM_UP = 3
"""Calls before one is captured: libraries set themselves up in the first ones."""
HIDDEN = ("numpy", "__array__", "tolist")
"""How a value leaves PyTorch unseen: what follows from it would be a constant."""


class Recorded(NamedTuple):
    """The kernels of a step, which read its constants, and the tensors where they find a batch and
    leave the loss.
    """

    step: Step
    graph: torch.cuda.CUDAGraph
    held: Tensors
    loss: torch.Tensor


def traced(step: Step, variables: Sequence[Any], columns: Tensors) -> Step:
    """The operations of a step over such a batch; it may read and change the variables, tensors
    that stay the same.

    An error where they follow from values, or where what is traced asks for one.
    """
    tensors = list(variables)
    graph = graph_of(lambda held, batch: step(batch), tensors, columns)
    return lambda batch: graph.forward(tensors, batch)


def graph_of(
    step: Callable[[Tensors, Tensors], Any], tensors: Tensors, columns: Tensors
) -> torch.fx.GraphModule:
    """The operations of a step that takes the tensors that it may read and change, and a batch."""
    with _seen():
        graph = make_fx(step)(tensors, columns)
    for node in list(graph.graph.nodes):
        if node.op == "call_function" and node.target in SAME:
            node.replace_all_uses_with(node.args[0])
            graph.graph.erase_node(node)
    _fold(graph)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph


def _fold(graph: torch.fx.GraphModule) -> None:
    """Calculate now what follows from no variable and no row, where it is small. It would be
    calculated for each batch, and on a GPU be brought there each time."""
    kept, values = changed(graph), dict[torch.fx.Node, Any]()
    for node in list(graph.graph.nodes):
        if node in kept:
            continue
        if node.op == "get_attr":
            values[node] = getattr(graph, node.target)
        elif (
            node.op == "call_function"
            and set(node.all_input_nodes) <= values.keys()
            and not _draws(node)
        ):
            value = node.target(*map_arg(node.args, values.get), **map_arg(node.kwargs, values.get))
            if isinstance(value, torch.Tensor) and value.nbytes <= FOLDED_BYTES:
                values[node] = value
    for number, (node, value) in enumerate(values.items()):
        if node.op == "call_function":
            graph.register_buffer(f"folded_{number}", value)
            with graph.graph.inserting_before(node):
                node.replace_all_uses_with(graph.graph.get_attr(f"folded_{number}"))


def changed(graph: torch.fx.GraphModule) -> set[torch.fx.Node]:
    """What an operation writes into, and what that follows from: it may be the same memory."""
    found: set[torch.fx.Node] = set()
    for node in reversed(graph.graph.nodes):
        if node in found:
            found.update(node.all_input_nodes)
        elif node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
            written = [at for at, each in enumerate(node.target._schema.arguments) if each.is_write]
            map_arg([node.args[at] for at in written if at < len(node.args)], found.add)
    return found


def _draws(node: torch.fx.Node) -> bool:
    """Whether an operation comes to something else each time."""
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def captured(step: Step, columns: Tensors) -> Step:
    """A step over such batches as one graph of a GPU's kernels, in place of a call for each; it
    takes some steps.

    An error where it asks for a value meanwhile, as what a Dropout draws by does. See "CUDA graphs"
    in PyTorch's notes.
    """
    held = [column.clone() for column in columns]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            step(held)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(held)
    return partial(_replay, Recorded(step, graph, held, loss))


def _replay(recorded: Recorded, batch: Tensors) -> Any:
    for place, values in zip(recorded.held, batch, strict=True):
        place.copy_(values)
    recorded.graph.replay()
    return recorded.loss.clone()


@contextmanager
def _seen() -> Iterator[None]:
    def refused(*arguments: Any, **named: Any) -> Any:
        raise NotImplementedError("a step asks for a value, so it is not the same for every batch")

    kept = {name: getattr(torch.Tensor, name) for name in HIDDEN}
    try:
        for name in HIDDEN:
            setattr(torch.Tensor, name, refused)
        yield
    finally:
        for name, usual in kept.items():
            setattr(torch.Tensor, name, usual)
