"""Several predictions of one network: members that share most weights, each of them trained by a loss of its own.

The loss that is to fall is the mean of the members' losses, and not that of their mean: members that are only told how
good they are together stop being predictions. Yet what a network gives is one prediction, which losses and metrics of
any kind are computed of. Both are possible at once, for a mean of losses is the loss of the mean, and how far members
are from it, which no target has a say in:

* of squares: mean (y - p_k)² = (y - p)² + mean (p_k - p)², with p the mean of all p_k;
* of cross entropies, in gradients: a member with probabilities p_k has p_k - y, which is (p - y) + (p_k - p), and the
  second is the gradient of the cross entropy of p_k to p, where p counts as given.

So the second is an activity regularizer of the graph. It adds nothing to the loss but a constant of 1/STEEPNESS, and
gradients in full. Weights of rows count for the first alone.
"""

from __future__ import annotations

import math

from cerebro_plpy.configs.templates.functional import Graph, Json, Shape, Tensor
from cerebro_plpy.configs.templates.template import Classes, Head

STEEPNESS = 2.0**15
"""A regularizer's value is at least 0, and here 1; so much smaller it is in the loss. As much as float16 holds."""


def weights(graph: Graph, name: str, beside: Tensor, shape: Shape, initializer: Json) -> Tensor:
    """Weights of this shape as a tensor, of one row that is combined with all rows; `beside` has two dimensions.

    A product of them with each row is several times as fast as an EinsumDense that has them.
    """
    count = math.prod(shape)
    corner = graph.operation("GetItem", beside, [slice(0, 1), slice(0, 1)], shape=(1,), dtype="float32")
    one = graph.operation("OnesLike", corner)
    row = graph.layer("Dense", name, one, (count,), units=count, use_bias=False, kernel_initializer=initializer)
    return graph.layer("Reshape", f"{name}_shape", row, shape, target_shape=list(shape))


def averaged(graph: Graph, raw: Tensor, head: Head) -> Tensor:
    """What `parts.prediction` takes, of what each member has for it; it is trained by the mean of members' losses."""
    return _probable(graph, raw) if isinstance(head, Classes) else _mean(graph, raw)


def _mean(graph: Graph, raw: Tensor) -> Tensor:
    _, units = raw.shape
    together = graph.operation("Mean", raw, shape=(units,), axis=1, keepdims=False)
    middle = graph.operation("ExpandDims", together, shape=(1, units), axis=1)
    squares = graph.operation("Square", graph.operation("Subtract", raw, middle))
    apart = graph.operation("Mean", squares, shape=(units,), axis=1, keepdims=False)
    return _with_cost(graph, together, graph.operation("Mean", apart, shape=(1,), axis=-1, keepdims=True))


def _probable(graph: Graph, raw: Tensor) -> Tensor:
    """The logarithms of mean probabilities; gradients go to the mean of logarithms, as the means of losses have it."""
    _, units = raw.shape
    logarithms = graph.operation("LogSoftmax", raw, axis=-1)
    summed = graph.operation("Logsumexp", logarithms, shape=(units,), axis=1, keepdims=False)
    known = graph.operation("StopGradient", summed)
    learned = graph.operation("Mean", logarithms, shape=(units,), axis=1, keepdims=False)
    probabilities = graph.operation("Softmax", known, axis=-1)
    products = graph.operation("Multiply", probabilities, graph.operation("Negative", learned))
    cost = graph.operation("Sum", products, shape=(1,), axis=-1, keepdims=True)
    change = graph.operation("Subtract", learned, graph.operation("StopGradient", learned))
    return _with_cost(graph, graph.operation("Add", known, change), cost)


def _with_cost(graph: Graph, x: Tensor, cost: Tensor) -> Tensor:
    """The same numbers; in training the mean of the cost, which is at least 0, falls too."""
    change = graph.operation("Subtract", cost, graph.operation("StopGradient", cost))
    steep = graph.operation("Add", graph.operation("Multiply", change, STEEPNESS), 1.0)
    watched = graph.layer("ActivityRegularization", "cost", steep, (1,), l1=1 / STEEPNESS, l2=0.0)
    return graph.operation("Add", x, graph.operation("Multiply", watched, 0.0))
