"""Several predictions of one network: members that share most weights, each of them trained by a
loss of its own.

The loss that is to fall is the mean of the members' losses, and not that of their mean: members
that are only told how good they are together stop being predictions. Yet what a network gives is
one prediction, which losses and metrics of any kind are computed of. Both are possible at once, for
a mean of losses is the loss of the mean, and how far members are from it, which no target has a say
in:

* of squares: mean (y - p_k)² = (y - p)² + mean (p_k - p)², with p the mean of all p_k;
* of cross entropies, in gradients: a member with probabilities p_k has p_k - y, which is (p - y) +
  (p_k - p), and the second is the gradient of the cross entropy of p_k to p, where p counts as
  given.

So the second is a cost of the graph. Weights of rows count for the first alone.
"""

from __future__ import annotations

from cerebro_plpy.configs.templates.layers import blocks
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor
from cerebro_plpy.configs.templates.layers.model_io import Classes, Head


def averaged(graph: Graph, raw: Tensor, head: Head) -> Tensor:
    """What `parts.prediction` takes, of what each member has for it; it is trained by the mean of
    members' losses.
    """
    return _probable(graph, raw) if isinstance(head, Classes) else _mean(graph, raw)


def _mean(graph: Graph, raw: Tensor) -> Tensor:
    _, units = raw.shape
    together = graph.operation("Mean", raw, shape=(units,), axis=1, keepdims=False)
    middle = graph.operation("ExpandDims", together, shape=(1, units), axis=1)
    squares = graph.operation("Square", graph.operation("Subtract", raw, middle))
    apart = graph.operation("Mean", squares, shape=(units,), axis=1, keepdims=False)
    return blocks.with_cost(
        graph, together, graph.operation("Mean", apart, shape=(1,), axis=-1, keepdims=True)
    )


def _probable(graph: Graph, raw: Tensor) -> Tensor:
    """The logarithms of mean probabilities; gradients go to the mean of logarithms, as the means of
    losses have it.
    """
    _, units = raw.shape
    logarithms = graph.operation("LogSoftmax", raw, axis=-1)
    summed = graph.operation("Logsumexp", logarithms, shape=(units,), axis=1, keepdims=False)
    known = graph.operation("StopGradient", summed)
    learned = graph.operation("Mean", logarithms, shape=(units,), axis=1, keepdims=False)
    probabilities = graph.operation("Softmax", known, axis=-1)
    products = graph.operation("Multiply", probabilities, graph.operation("Negative", learned))
    cost = graph.operation("Sum", products, shape=(1,), axis=-1, keepdims=True)
    change = graph.operation("Subtract", learned, graph.operation("StopGradient", learned))
    return blocks.with_cost(graph, graph.operation("Add", known, change), cost)
