"""A step of training as a list of PyTorch's operations, without what Keras and autograd take around each of them.

For a small network that is most of a step: Keras finds out for each layer how it is called, and autograd records what
was done. Both come to the same operations for every batch of one size, so they are asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

Tensors = list[Any]

aten = torch.ops.aten
SAME = (aten.detach.default, aten.alias.default, aten.lift_fresh_copy.default)
"""What gives its argument again, where nothing is recorded and nothing of it changed."""
HIDDEN = ("numpy", "__array__", "tolist")
"""How a value leaves PyTorch unseen: what follows from it would be a constant."""


def traced(step: Callable[[Tensors], Any], variables: Sequence[Any], columns: Tensors) -> Callable[[Tensors], Any]:
    """The operations of a step over such a batch; it may read and change the variables, tensors that stay the same.

    An error where they follow from values, or where what is traced asks for one.
    """
    tensors = list(variables)

    def asked(held: Tensors, batch: Tensors) -> Any:
        return step(batch)

    with _seen():
        graph = make_fx(asked)(tensors, columns)
    for node in list(graph.graph.nodes):
        if node.op == "call_function" and node.target in SAME:
            node.replace_all_uses_with(node.args[0])
            graph.graph.erase_node(node)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return lambda batch: graph.forward(tensors, batch)


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
