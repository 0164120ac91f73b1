"""Building blocks of templates: inputs, layers whose parameters learn at own rates, and outputs.

**Inputs.** Numbers and indicators are one input, and all categories with codes are another, because
every input is a column of the packed table, which takes time to pack, send and decode. The codes of
all categories look up one table of weights, in which each category begins at a constant offset. A
code that its category does not have counts as 0, which means missing or unseen. Columns with many
numbers in a row, such as the words of a text, are inputs of their own, after these two.

**Rates.** A parameter p that shall learn f times as fast as others is stored as u = p/f, and the
graph uses f·u. The steps of Adam do not depend on the size of gradients, so steps of p are f times
as long.

**Costs.** A quantity that training shall minimize beside the loss, and that depends on no target,
is an activity regularizer of the graph. Its gradients are exact, but it adds only the constant
1/STEEPNESS to the loss, so that losses of templates can be compared.
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
    LOG,
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
"""Momentum of batch statistics; with Keras' 0.99 they lag behind for epochs of a small table."""
STEEPNESS = 2.0**15
"""Factor by which the regularized quantity, which is at least 0, is smaller in the loss.

It is as large as float16 allows.
"""


@dataclass(frozen=True)
class Initialization:
    """The standard deviations of a dense layer's parameters before training."""

    kernel: float
    bias: float


def add_numbers_input(graph: Graph, table: Table) -> Tensor | None:
    """Add the input of numbers and indicators, clipped; return None if the table has neither."""
    if not table.columns:
        return None
    raw = graph.input("numbers", (table.columns,))
    return graph.operation("Clip", raw, x_min=-FARTHEST, x_max=FARTHEST)


def add_codes_input(graph: Graph, table: Table) -> Tensor | None:
    """Add the input of categories' codes; return None if the table has no such categories."""
    if not table.cardinalities:
        return None
    raw = graph.input("codes", (len(table.cardinalities),), "int32")
    return _replace_unknown(graph, raw, Constant(table.cardinalities, "int32"))


def add_wide_input(graph: Graph, number: int, wide: Wide) -> Tensor:
    """Add the input of a wide column; unknown word numbers count as 0."""
    raw = graph.input(wide_name(number), wide.shape, wide.dtype)
    if not wide.levels:
        return raw
    return _replace_unknown(graph, raw, wide.levels)


def _replace_unknown(graph: Graph, codes: Tensor, levels: Constant | int) -> Tensor:
    """Replace codes that are not from 0 to levels - 1 by 0."""
    nonnegative = graph.operation("Maximum", codes, 0)
    is_known = graph.operation("Less", nonnegative, levels, dtype="bool")
    return graph.operation("Where", is_known, nonnegative, 0, shape=codes.shape, dtype="int32")


def embed_codes(
    graph: Graph, name: str, table: Table, rows: Tensor, width: int, initializer: Json
) -> Tensor:
    """Return `width` weights for the code of each category.

    Args:
        rows: rows of the table of weights; see `offset_codes`.
    """
    return embed(graph, name, rows, (table.levels, width), initializer)


def offset_codes(graph: Graph, table: Table, codes: Tensor) -> Tensor:
    """Return the rows of codes in the table of weights that all categories share."""
    offsets = [0, *accumulate(table.cardinalities[:-1])]
    return graph.add(codes, Constant(tuple(offsets), "int32"))


def embed(
    graph: Graph, name: str, rows: Tensor, size: tuple[int, int], initializer: Json
) -> Tensor:
    """Look up rows of a table of weights.

    Args:
        size: number of rows and width of the table of weights.
    """
    levels, width = size
    return graph.layer(
        "Embedding",
        name,
        rows,
        (*rows.shape, width),
        input_dim=levels,
        output_dim=width,
        embeddings_initializer=initializer,
        embeddings_regularizer=dense_gradient(),
    )


def multiply_by_weights(
    graph: Graph, name: str, x: Tensor, units: int, initializer: Json
) -> Tensor:
    """Add a dense layer without biases."""
    return graph.dense(name, x, units, use_bias=False, kernel_initializer=initializer)


def smooth_clip(graph: Graph, x: Tensor) -> Tensor:
    """Return z/√(1 + (z/3)²): close to z for small z, and never beyond 3."""
    squares = graph.multiply(graph.operation("Square", x), 1 / 9)
    inverse_root = graph.operation("Rsqrt", graph.add(squares, 1.0))
    return graph.multiply(x, inverse_root)


def rescale(graph: Graph, name: str, x: Tensor, scale: float) -> Tensor:
    """Multiply by a constant, with a layer that is known to keep the width of an output."""
    return graph.layer("Rescaling", name, x, scale=scale, offset=0.0)


def add_weights(graph: Graph, name: str, x: Tensor, shape: Shape, initializer: Json) -> Tensor:
    """Return trainable weights of this shape, as a tensor of one row that broadcasts to all rows.

    A product with them takes a seventh of the time of an EinsumDense layer: TensorFlow makes that
    a product of many matrices of one number.

    Args:
        x: any tensor with two dimensions.
    """
    count = math.prod(shape)
    first_row = [slice(0, 1), slice(0, 1)]
    corner = graph.operation("GetItem", x, first_row, shape=(1,), dtype="float32")
    one = graph.operation("OnesLike", corner)
    row = multiply_by_weights(graph, name, one, count, initializer)
    if len(shape) == 1:
        return row
    return graph.layer("Reshape", f"{name}_shape", row, shape, target_shape=list(shape))


def add_lines(
    graph: Graph, name: str, x: Tensor, initializers: tuple[Json, Json], width: int
) -> Tensor:
    """Return `width` linear functions of each column.

    Args:
        initializers: of the slopes, and of the values at 0.
    """
    shape = (*x.shape, width)
    slope_initializer, start_initializer = initializers
    slopes = add_weights(graph, f"{name}_slopes", x, shape, slope_initializer)
    starts = add_weights(graph, f"{name}_starts", x, shape, start_initializer)
    expanded = graph.operation("ExpandDims", x, shape=(*x.shape, 1), axis=-1)
    products = graph.multiply(expanded, slopes, shape=shape)
    return graph.add(products, starts)


def scale_columns(graph: Graph, name: str, x: Tensor, rate: float) -> Tensor:
    """Multiply every column by a weight of its own, initially 1."""
    column_weights = add_weights(graph, name, x, x.shape, constant(1 / rate))
    return graph.multiply(x, graph.multiply(column_weights, rate))


def add_dense(
    graph: Graph,
    name: str,
    x: Tensor,
    units: int,
    initialization: Initialization,
    rate: float = 1.0,
) -> Tensor:
    """Return W·x/√width + b, the neural tangent parametrization of a dense layer.

    Args:
        rate: learning rate of W; that of b is a tenth of it.
    """
    (width,) = x.shape
    bias_rate = BIAS_RATE * rate
    inputs = rescale(graph, f"{name}_in", x, rate / (bias_rate * math.sqrt(width)))
    initializers = {
        "kernel_initializer": normal(initialization.kernel / rate),
        "bias_initializer": normal(initialization.bias / bias_rate),
    }
    outputs = graph.dense(name, inputs, units, **initializers)
    return rescale(graph, f"{name}_out", outputs, bias_rate)


def add_bias(graph: Graph, name: str, x: Tensor, initializer: Json, rate: float = 1.0) -> Tensor:
    """Add a bias to a sum of layers without biases.

    Args:
        initializer: of the stored bias, which the graph multiplies by `rate`.
    """
    bias = add_weights(graph, name, x, x.shape, initializer)
    return graph.add(x, graph.multiply(bias, rate))


def add_convolution(
    graph: Graph, class_name: str, name: str, x: Tensor, filters: int, kernel: int
) -> Tensor:
    """Add a convolution with batch normalization and a ReLU.

    Args:
        class_name: Keras' layer, such as "Conv1D".
    """
    shape = (*x.shape[:-1], filters)
    config = {"filters": filters, "kernel_size": kernel, "padding": "same", "use_bias": False}
    y = graph.layer(class_name, name, x, shape, **config)
    y = graph.layer("BatchNormalization", f"{name}_normal", y, shape, momentum=MOMENTUM)
    return graph.layer("Activation", f"{name}_relu", y, shape, activation="relu")


def add_self_attention(graph: Graph, name: str, x: Tensor, heads: int, dropout: float) -> Tensor:
    """Add multi-head attention of a sequence to itself."""
    key_dim = -(-x.shape[-1] // heads)
    return graph.layer(
        "MultiHeadAttention", name, (x, x), num_heads=heads, key_dim=key_dim, dropout=dropout
    )


def add_dropout(graph: Graph, name: str, x: Tensor, rate: float) -> Tensor:
    """Add a Dropout layer; a rate of 0 adds none."""
    if not rate:
        return x
    return graph.layer("Dropout", name, x, rate=rate)


def add_up(graph: Graph, terms: list[Tensor]) -> Tensor:
    """Return the sum of tensors of the same shape."""
    total = terms[0]
    for term in terms[1:]:
        total = graph.add(total, term)
    return total


def concatenate(graph: Graph, parts: list[Tensor]) -> Tensor:
    """Concatenate the columns of tensors."""
    if len(parts) == 1:
        return parts[0]
    width = sum(part.shape[0] for part in parts)
    return graph.operation("Concatenate", parts, shape=(width,), dtype="float32", axis=-1)


def add_cost(graph: Graph, x: Tensor, cost: Tensor) -> Tensor:
    """Return x unchanged, and let training minimize the mean of the cost, too.

    Args:
        cost: a number of each row, at least 0.
    """
    change = graph.subtract(cost, graph.operation("StopGradient", cost))
    steep = graph.add(graph.multiply(change, STEEPNESS), 1.0)
    watched = graph.layer("ActivityRegularization", "cost", steep, (1,), l1=1 / STEEPNESS, l2=0.0)
    return graph.add(x, graph.multiply(watched, 0.0))


def smooth_labels(graph: Graph, logits: Tensor, share: float) -> Tensor:
    """Return the same logits, trained with label smoothing.

    The gradient of the smoothed loss is (1 - share)·(p - y) + share·(p - 1/classes). The loss
    itself remains that of the target.

    Args:
        share: part of each target's 1 that is spread over all classes.
    """
    if not share:
        return logits
    fixed = graph.operation("StopGradient", logits)
    change = graph.multiply(graph.subtract(logits, fixed), 1 - share)
    log_sum = graph.reduce_columns("Logsumexp", logits)
    mean = graph.reduce_columns("Mean", logits)
    cost = graph.multiply(graph.subtract(log_sum, mean), share)
    return add_cost(graph, graph.add(fixed, change), cost)


def add_hidden_prediction(
    graph: Graph, x: Tensor, units: int, dropout: float, head: Head
) -> Tensor:
    """Add a hidden layer between two dropouts, and the prediction."""
    x = add_dropout(graph, "dropout_0", x, dropout)
    y = graph.dense("hidden", x, units, activation="relu")
    y = add_dropout(graph, "dropout_1", y, dropout)
    raw = graph.dense("out", y, head.units)
    return add_prediction(graph, raw, head)


def add_prediction(graph: Graph, raw: Tensor, head: Head) -> Tensor:
    """Add probabilities of classes, or float targets in their own units."""
    shape = [head.units]
    if isinstance(head, Classes):
        logits = graph.layer("Reshape", "logits", raw, raw.shape, target_shape=shape)
        return graph.layer("Activation", OUTPUT, logits, raw.shape, activation="softmax")
    floats = _scale_to_targets(graph, raw, head)
    return graph.layer("Reshape", OUTPUT, floats, raw.shape, target_shape=shape)


def _scale_to_targets(graph: Graph, raw: Tensor, head: Floats) -> Tensor:
    """Return mean + deviation·raw within the bounds, trained as if targets were standardized.

    With the link LOG, the prediction is that of `_exponentiate`.

    Targets that are standardized before they are packed need the bounds only. The gradient of a
    prediction outside the bounds is that of a prediction within them.

    A mean squared error in the targets' own units would have gradients as large as the square of
    these units, which may not suit Adam's epsilon or float32, and none outside the bounds. So
    gradients take another way: those of raw - stop(raw), which is 0, times 1/deviation, are the
    gradients for standardized targets.
    """
    means, deviations, lows, highs = (
        Constant(tuple(getattr(target, key) for target in head.targets))
        for key in ("mean", "deviation", "low", "high")
    )
    values = raw
    change = graph.subtract(raw, graph.operation("StopGradient", raw))
    if head.link == LOG:
        values = _exponentiate(graph, raw, head)
    elif not head.is_standardized:
        values = graph.add(graph.multiply(raw, deviations), means)
    if not head.is_standardized:
        inverses = Constant(tuple(1 / target.deviation for target in head.targets))
        change = graph.multiply(change, inverses)
    clamped = graph.operation("Minimum", graph.operation("Maximum", values, lows), highs)
    return graph.add(graph.operation("StopGradient", clamped), change)


def _exponentiate(graph: Graph, raw: Tensor, head: Floats) -> Tensor:
    """Return low + (mean - low)·exp(raw), which is the mean if raw is 0.

    The gradient of half a squared error is prediction - target if that of the prediction with
    respect to raw is taken for 1, as `_scale_to_targets` does. It is then the gradient of Poisson's
    deviance, whose minimum is the mean of the targets. So predictions need no correction.

    Raw numbers are limited where the highest target is reached, so that no exponential is infinite.
    """
    spans = [target.mean - target.low for target in head.targets]
    ceilings = [
        math.log((target.high - target.low) / span) for target, span in zip(head.targets, spans)
    ]
    bounded = graph.operation("Minimum", raw, Constant(tuple(ceilings)))
    ratios = graph.operation("Exp", bounded)
    return graph.add(
        graph.multiply(ratios, Constant(tuple(spans))),
        Constant(tuple(target.low for target in head.targets)),
    )
