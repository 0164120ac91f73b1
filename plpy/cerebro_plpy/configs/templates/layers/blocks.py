"""What several templates are made of: inputs, dense layers whose parameters learn at rates of their
own, outputs.

**Inputs.** Numbers and indicators are one input, and the categories that come as numbers are one,
however many there are: each input is a column of the packed table, and every further one costs time
when buffers are packed, sent and taken apart. The numbers of all categories look up one table of
weights, in which each category begins at an offset that is a constant of the graph. What is no
level of its category counts as its level 0, which is missing and unseen. Columns of which a row has
many numbers, such as the words of a text, are an input each, behind these two.

**Rates.** A parameter p that is to learn f times as fast as others is kept as u = p/f, and the
graph has f·u. The steps of Adam do not depend on how large gradients are, so those of p are f times
as long.

**Costs.** What is to fall in training beside the loss, and depends on no target, is an activity
regularizer of the graph. It gives gradients in full, and the loss but a constant of 1/STEEPNESS, so
that losses of templates compare.
"""

from __future__ import annotations

import math
from itertools import accumulate

from cerebro_plpy.configs.templates.layers.keras_graph import (
    Constant,
    Graph,
    Json,
    Shape,
    Tensor,
    constant,
    dense_gradient,
    normal,
)
from cerebro_plpy.configs.templates.layers.model_io import (
    FARTHEST,
    Classes,
    Floats,
    Head,
    Table,
    Wide,
    wide_name,
)
from cerebro_plpy.records import dataclass

OUTPUT = "prediction"
BIAS_RATE = 0.1
MOMENTUM = 0.9
"""Of means over batches: with Keras' 0.99 they are far from what they should be after some epochs
of a small table.
"""
STEEPNESS = 2.0**15
"""What a regularizer watches is at least 0, and here 1; so much less of it is in the loss. As much
as float16 holds.
"""


@dataclass(frozen=True)
class Beginning:
    """The standard deviations of a dense layer's weights and biases before training."""

    kernel: float
    bias: float


def numbers_input(graph: Graph, table: Table) -> Tensor | None:
    """Numbers and then indicators, none of them infinite; None where a table has neither."""
    if not table.columns:
        return None
    given = graph.input("numbers", (table.columns,))
    return graph.operation("Clip", given, x_min=-FARTHEST, x_max=FARTHEST)


def codes_input(graph: Graph, table: Table) -> Tensor | None:
    """The number of each category's level, 0 for what is none; None where a table has no such
    categories.
    """
    if not table.cardinalities:
        return None
    given = graph.input("codes", (len(table.cardinalities),), "int32")
    return _known(graph, given, Constant(table.cardinalities, "int32"))


def wide_input(graph: Graph, place: int, wide: Wide) -> Tensor:
    """A column that is an input of its own; one of whole numbers has 0 where none of its levels
    is.
    """
    given = graph.input(wide_name(place), wide.shape, wide.dtype)
    return _known(graph, given, wide.levels) if wide.levels else given


def _known(graph: Graph, given: Tensor, levels: Constant | int) -> Tensor:
    least = graph.operation("Maximum", given, 0)
    known = graph.operation("Less", least, levels, dtype="bool")
    return graph.operation("Where", known, least, 0, shape=given.shape, dtype="int32")


def places(graph: Graph, table: Table, codes: Tensor) -> Tensor:
    """The rows of one table of weights that the levels have."""
    offsets = [0, *accumulate(table.cardinalities[:-1])]
    return graph.operation("Add", codes, Constant(tuple(offsets), "int32"))


def looked_up(
    graph: Graph, name: str, table: Table, places: Tensor, width: int, initializer: Json
) -> Tensor:
    """So many weights of each category's level."""
    return embedded(graph, name, places, (table.levels, width), initializer)


def embedded(
    graph: Graph, name: str, places: Tensor, weights: tuple[int, int], initializer: Json
) -> Tensor:
    """Rows of a table of weights, by their places; `weights` is how many rows it has, and how wide
    they are.
    """
    levels, width = weights
    return graph.layer(
        "Embedding",
        name,
        places,
        (*places.shape, width),
        input_dim=levels,
        output_dim=width,
        embeddings_initializer=initializer,
        embeddings_regularizer=dense_gradient(),
    )


def smooth_clip(graph: Graph, x: Tensor) -> Tensor:
    """z/√(1 + (z/3)²): nearly z where it is small, and never beyond 3."""
    squares = graph.operation("Multiply", graph.operation("Square", x), 1 / 9)
    return graph.operation(
        "Multiply", x, graph.operation("Rsqrt", graph.operation("Add", squares, 1.0))
    )


def times(graph: Graph, name: str, x: Tensor, scale: float) -> Tensor:
    """A tensor times a number, by a layer, which is known to keep the width of an output."""
    return graph.layer("Rescaling", name, x, x.shape, scale=scale, offset=0.0)


def weights(graph: Graph, name: str, beside: Tensor, shape: Shape, initializer: Json) -> Tensor:
    """Weights of this shape, as a tensor of one row that is combined with all rows; `beside` has
    two dimensions.

    A product with them takes a seventh of the time of an EinsumDense that has them: TensorFlow
    makes that a product of as many matrices of one number.
    """
    count = math.prod(shape)
    corner = graph.operation(
        "GetItem", beside, [slice(0, 1), slice(0, 1)], shape=(1,), dtype="float32"
    )
    one = graph.operation("OnesLike", corner)
    row = graph.layer(
        "Dense", name, one, (count,), units=count, use_bias=False, kernel_initializer=initializer
    )
    return (
        row
        if len(shape) == 1
        else graph.layer("Reshape", f"{name}_shape", row, shape, target_shape=list(shape))
    )


def lines(graph: Graph, name: str, x: Tensor, begin: tuple[Json, Json], width: int) -> Tensor:
    """Of each column so many numbers, each a line over it; `begin` is how slopes begin, and values
    at 0.
    """
    shape = (*x.shape, width)
    slopes, starts = (
        weights(graph, f"{name}_{k}", x, shape, each)
        for k, each in zip(("slopes", "starts"), begin)
    )
    own = graph.operation("ExpandDims", x, shape=(*x.shape, 1), axis=-1)
    return graph.operation("Add", graph.operation("Multiply", own, slopes, shape=shape), starts)


def scaled(graph: Graph, name: str, x: Tensor, rate: float) -> Tensor:
    """Every column times a weight of its own, which begins at 1."""
    own = weights(graph, name, x, x.shape, constant(1 / rate))
    return graph.operation("Multiply", x, graph.operation("Multiply", own, rate))


def dense(
    graph: Graph, name: str, x: Tensor, units: int, begin: Beginning, rate: float = 1.0
) -> Tensor:
    """W·x/√width + b, in the form of neural tangent kernels: W learns at `rate`, and b at a tenth
    of it.
    """
    (width,) = x.shape
    slow = BIAS_RATE * rate
    before = times(graph, f"{name}_in", x, rate / (slow * math.sqrt(width)))
    config = {
        "kernel_initializer": normal(begin.kernel / rate),
        "bias_initializer": normal(begin.bias / slow),
    }
    after = graph.layer("Dense", name, before, (units,), units=units, **config)
    return times(graph, f"{name}_out", after, slow)


def with_bias(graph: Graph, name: str, x: Tensor, initializer: Json, rate: float = 1.0) -> Tensor:
    """A bias added to a sum of layers that have none; `initializer` gives what the graph multiplies
    by `rate`.
    """
    return graph.operation(
        "Add", x, graph.operation("Multiply", weights(graph, name, x, x.shape, initializer), rate)
    )


def dropped(graph: Graph, name: str, x: Tensor, rate: float) -> Tensor:
    """In training so much of a tensor is left out; of a rate of 0 there is no layer."""
    return graph.layer("Dropout", name, x, x.shape, rate=rate) if rate else x


def added(graph: Graph, terms: list[Tensor]) -> Tensor:
    """The sum of several tensors of one shape."""
    total = terms[0]
    for term in terms[1:]:
        total = graph.operation("Add", total, term)
    return total


def joined(graph: Graph, parts: list[Tensor]) -> Tensor:
    """The columns of several tensors beside each other."""
    if len(parts) == 1:
        return parts[0]
    width = sum(part.shape[0] for part in parts)
    return graph.operation("Concatenate", parts, shape=(width,), dtype="float32", axis=-1)


def with_cost(graph: Graph, x: Tensor, cost: Tensor) -> Tensor:
    """The same numbers; in training the mean of the cost, a number of each row that is at least 0,
    falls too.
    """
    change = graph.operation("Subtract", cost, graph.operation("StopGradient", cost))
    steep = graph.operation("Add", graph.operation("Multiply", change, STEEPNESS), 1.0)
    watched = graph.layer("ActivityRegularization", "cost", steep, (1,), l1=1 / STEEPNESS, l2=0.0)
    return graph.operation("Add", x, graph.operation("Multiply", watched, 0.0))


def smoothed(graph: Graph, raw: Tensor, share: float) -> Tensor:
    """The same logits, trained as if so much of each target's 1 were spread over all classes.

    The gradient of that loss is (1 - share)·(p - y) + share·(p - 1/classes); the loss itself stays
    that of the target.
    """
    if not share:
        return raw
    known = graph.operation("StopGradient", raw)
    change = graph.operation("Multiply", graph.operation("Subtract", raw, known), 1 - share)
    whole = graph.operation("Logsumexp", raw, shape=(1,), axis=-1, keepdims=True)
    middle = graph.operation("Mean", raw, shape=(1,), axis=-1, keepdims=True)
    cost = graph.operation("Multiply", graph.operation("Subtract", whole, middle), share)
    return with_cost(graph, graph.operation("Add", known, change), cost)


def hidden_prediction(graph: Graph, x: Tensor, units: int, dropout: float, head: Head) -> Tensor:
    """The prediction of a hidden layer of so many units, before and behind which so much is
    dropped.
    """
    x = dropped(graph, "dropout_0", x, dropout)
    y = graph.layer("Dense", "hidden", x, (units,), units=units, activation="relu")
    y = dropped(graph, "dropout_1", y, dropout)
    return prediction(graph, graph.layer("Dense", "out", y, (head.units,), units=head.units), head)


def prediction(graph: Graph, raw: Tensor, head: Head) -> Tensor:
    """Probabilities of classes, or float targets in their own units."""
    if isinstance(head, Classes):
        logits = graph.layer("Reshape", "logits", raw, raw.shape, target_shape=[head.units])
        return graph.layer("Activation", OUTPUT, logits, raw.shape, activation="softmax")
    return graph.layer(
        "Reshape", OUTPUT, _measured(graph, raw, head), raw.shape, target_shape=[head.units]
    )


def _measured(graph: Graph, raw: Tensor, head: Floats) -> Tensor:
    """mean + deviation·raw within the bounds, through which raw learns as if it were compared with
    scaled targets.

    A mean squared error in the targets' own units would have gradients as large as the square of
    these, which Adam's epsilon or float32 may not be fit for, and none for what is out of bounds.
    So gradients pass by: those of raw - stop(raw), which is 0, times 1/deviation, are the scaled
    target's.
    """
    means, deviations, lows, highs = (
        Constant(tuple(getattr(target, key) for target in head.targets))
        for key in ("mean", "deviation", "low", "high")
    )
    told = graph.operation("Add", graph.operation("Multiply", raw, deviations), means)
    clamped = graph.operation("Minimum", graph.operation("Maximum", told, lows), highs)
    change = graph.operation("Subtract", raw, graph.operation("StopGradient", raw))
    inverses = Constant(tuple(1 / target.deviation for target in head.targets))
    return graph.operation(
        "Add",
        graph.operation("StopGradient", clamped),
        graph.operation("Multiply", change, inverses),
    )
