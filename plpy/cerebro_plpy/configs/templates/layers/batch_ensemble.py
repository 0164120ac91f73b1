"""Several predictions of one network, by members that share most weights and have own losses.

Training shall minimize the mean of the members' losses, not the loss of their mean: trained by the
latter, members are no longer predictions by themselves. Yet a network has one prediction, from
which losses and metrics of any kind are computed. Both is possible, because the mean of losses is
the loss of the mean, plus the distance of members from it, which depends on no target:

* squares: mean (y - p_k)² = (y - p)² + mean (p_k - p)², with p the mean of all p_k;
* cross entropies, in gradients: a member with probabilities p_k has p_k - y, which is (p - y) +
  (p_k - p). The second term is the gradient of the cross entropy of p_k to a constant p.

So the second term is a cost of the graph. Weights of rows apply to the first term only.
"""

from __future__ import annotations

from cerebro_plpy.configs.templates.layers import blocks
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor
from cerebro_plpy.configs.templates.layers.model_io import Classes, Head


def average_members(graph: Graph, raw: Tensor, head: Head) -> Tensor:
    """Return the mean of members for `blocks.add_prediction`, trained by the mean of losses.

    Args:
        raw: outputs of the members, shape (members, units).
    """
    if isinstance(head, Classes):
        return _average_logits(graph, raw)
    return _average(graph, raw)


def _average(graph: Graph, raw: Tensor) -> Tensor:
    _, units = raw.shape
    mean = graph.reduce("Mean", raw)
    center = graph.operation("ExpandDims", mean, shape=(1, units), axis=1)
    squares = graph.operation("Square", graph.subtract(raw, center))
    variances = graph.reduce("Mean", squares)
    cost = graph.reduce_columns("Mean", variances)
    return blocks.add_cost(graph, mean, cost)


def _average_logits(graph: Graph, raw: Tensor) -> Tensor:
    """Return logarithms of mean probabilities; gradients are those of the means of losses."""
    logarithms = graph.operation("LogSoftmax", raw, axis=-1)
    log_sums = graph.reduce("Logsumexp", logarithms)
    fixed = graph.operation("StopGradient", log_sums)
    means = graph.reduce("Mean", logarithms)
    probabilities = graph.operation("Softmax", fixed, axis=-1)
    products = graph.multiply(probabilities, graph.operation("Negative", means))
    cost = graph.reduce_columns("Sum", products)
    change = graph.subtract(means, graph.operation("StopGradient", means))
    return blocks.add_cost(graph, graph.add(fixed, change), cost)
