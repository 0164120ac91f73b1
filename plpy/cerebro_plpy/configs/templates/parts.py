"""What several templates are made of: inputs, dense layers whose parameters learn at rates of their own, outputs.

**Inputs.** Numbers and indicators are one input, and the categories that come as numbers are one, however many there
are: each input is a column of the packed table, and every further one costs time when buffers are packed, sent and
taken apart. The numbers of all categories look up one table of weights, in which each category begins at an offset
that is a constant of the graph. What is no level of its category counts as its level 0, which is missing and unseen.

**Rates.** A parameter p that is to learn f times as fast as others is kept as u = p/f, and the graph has f·u. The
steps of Adam do not depend on how large gradients are, so those of p are f times as long.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate

from cerebro_plpy.configs.templates.functional import Constant, Graph, Json, Tensor, constant, dense_gradient, normal
from cerebro_plpy.configs.templates.template import FARTHEST, Classes, Floats, Head, Table

OUTPUT = "prediction"
BIAS_RATE = 0.1


@dataclass(frozen=True)
class Beginning:
    """The standard deviations of a dense layer's weights and biases before training."""

    kernel: float
    bias: float


def numbers_input(graph: Graph, table: Table) -> Tensor | None:
    """Numbers and then indicators, none of them infinite; None where a table has neither."""
    if not table.columns:
        return None
    given = graph.input("numbers", table.columns)
    return graph.operation("Clip", given, x_min=-FARTHEST, x_max=FARTHEST)


def codes_input(graph: Graph, table: Table) -> Tensor | None:
    """The number of each category's level, 0 for what is none; None where a table has no such categories."""
    if not table.cardinalities:
        return None
    count = len(table.cardinalities)
    given = graph.input("codes", count, "int32")
    least = graph.operation("Maximum", given, 0)
    known = graph.operation("Less", least, Constant(table.cardinalities, "int32"), dtype="bool")
    return graph.operation("Where", known, least, 0, shape=(count,), dtype="int32")


def places(graph: Graph, table: Table, codes: Tensor) -> Tensor:
    """The rows of one table of weights that the levels have."""
    offsets = [0, *accumulate(table.cardinalities[:-1])]
    return graph.operation("Add", codes, Constant(tuple(offsets), "int32"))


def looked_up(graph: Graph, name: str, table: Table, places: Tensor, width: int, initializer: Json) -> Tensor:
    """So many weights of each category's level."""
    shape = (len(table.cardinalities), width)
    return graph.layer(
        "Embedding",
        name,
        places,
        shape,
        input_dim=table.levels,
        output_dim=width,
        embeddings_initializer=initializer,
        embeddings_regularizer=dense_gradient(),
    )


def smooth_clip(graph: Graph, x: Tensor) -> Tensor:
    """z/√(1 + (z/3)²): nearly z where it is small, and never beyond 3."""
    squares = graph.operation("Multiply", graph.operation("Square", x), 1 / 9)
    return graph.operation("Multiply", x, graph.operation("Rsqrt", graph.operation("Add", squares, 1.0)))


def times(graph: Graph, name: str, x: Tensor, scale: float) -> Tensor:
    """A tensor times a number, by a layer, which is known to keep the width of an output."""
    return graph.layer("Rescaling", name, x, x.shape, scale=scale, offset=0.0)


def scaled(graph: Graph, name: str, x: Tensor, rate: float) -> Tensor:
    """Every column times a weight of its own, which begins at 1."""
    (width,) = x.shape
    config = {"equation": "bd,d->bd", "output_shape": [width], "kernel_initializer": constant(1 / rate)}
    return graph.operation("Multiply", graph.layer("EinsumDense", name, x, x.shape, **config), rate)


def dense(graph: Graph, name: str, x: Tensor, units: int, begin: Beginning, rate: float = 1.0) -> Tensor:
    """W·x/√width + b, in the form of neural tangent kernels: W learns at `rate`, and b at a tenth of it."""
    (width,) = x.shape
    slow = BIAS_RATE * rate
    before = times(graph, f"{name}_in", x, rate / (slow * math.sqrt(width)))
    config = {"kernel_initializer": normal(begin.kernel / rate), "bias_initializer": normal(begin.bias / slow)}
    after = graph.layer("Dense", name, before, (units,), units=units, **config)
    return times(graph, f"{name}_out", after, slow)


def with_bias(graph: Graph, name: str, x: Tensor, initializer: Json, rate: float = 1.0) -> Tensor:
    """A bias added to a sum of layers that have none; `initializer` gives what the graph multiplies by `rate`."""
    (width,) = x.shape
    ones = graph.operation("Multiply", graph.operation("OnesLike", x), rate)
    config = {"equation": "bd,d->bd", "output_shape": [width], "kernel_initializer": initializer}
    return graph.operation("Add", x, graph.layer("EinsumDense", name, ones, x.shape, **config))


def dropped(graph: Graph, name: str, x: Tensor, rate: float) -> Tensor:
    """In training so much of a tensor is left out; of a rate of 0 there is no layer."""
    return graph.layer("Dropout", name, x, x.shape, rate=rate) if rate else x


def joined(graph: Graph, parts: list[Tensor]) -> Tensor:
    """The columns of several tensors beside each other."""
    if len(parts) == 1:
        return parts[0]
    width = sum(part.shape[0] for part in parts)
    return graph.operation("Concatenate", parts, shape=(width,), dtype="float32", axis=-1)


def prediction(graph: Graph, raw: Tensor, head: Head) -> Tensor:
    """Probabilities of classes, or float targets in their own units."""
    if isinstance(head, Classes):
        logits = graph.layer("Reshape", "logits", raw, raw.shape, target_shape=[head.units])
        return graph.layer("Activation", OUTPUT, logits, raw.shape, activation="softmax")
    return graph.layer("Reshape", OUTPUT, _measured(graph, raw, head), raw.shape, target_shape=[head.units])


def _measured(graph: Graph, raw: Tensor, head: Floats) -> Tensor:
    """mean + deviation·raw within the bounds, through which raw learns as if it were compared with scaled targets.

    A mean squared error in the targets' own units would have gradients as large as the square of these, which Adam's
    epsilon or float32 may not be fit for, and none for what is out of bounds. So gradients pass by: those of
    raw - stop(raw), which is 0, times 1/deviation, are the scaled target's.
    """
    means, deviations, lows, highs = (
        Constant(tuple(getattr(target, key) for target in head.targets)) for key in ("mean", "deviation", "low", "high")
    )
    told = graph.operation("Add", graph.operation("Multiply", raw, deviations), means)
    clamped = graph.operation("Minimum", graph.operation("Maximum", told, lows), highs)
    change = graph.operation("Subtract", raw, graph.operation("StopGradient", raw))
    inverses = Constant(tuple(1 / target.deviation for target in head.targets))
    return graph.operation(
        "Add", graph.operation("StopGradient", clamped), graph.operation("Multiply", change, inverses)
    )
