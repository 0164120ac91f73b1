"""How a series becomes numbers beside each other: convolutions, a recurrent layer, or steps that
attend to each other.

A series is long and a network deep, so its steps are halved on the way, or taken several at a time.
What remains is read in two ways: as what there is anywhere, and as what there is in which of a few
parts, for in some series that matters.
"""

from __future__ import annotations

import math

from cerebro_plpy.configs.templates.layers import blocks
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor, uniform
from cerebro_plpy.configs.templates.template import Params

CONVOLUTION, RECURRENT, ATTENTION = BLOCKS = ("convolution", "recurrent", "attention")
WIDTH, DEPTH = 64, 3
"""Where a template does not say them, as series_width and series_depth."""
KERNELS = 7, 5, 3
"""Of the first layers, as in the fully convolutional networks of Wang, Yan and Oates, "Time Series
Classification from Scratch" (2017); further ones have the last."""
FEW = 8
"""Steps that are not halved any more."""
MOST = {RECURRENT: 64, ATTENTION: 64}
"""Steps that such a block takes: of a longer series several are one."""
PARTS = 4
HEADS = 4
SLOWER = 2
"""So many times as long as a dense layer takes a convolution for a product."""
WEIGHTS = WIDTH * WIDTH * (KERNELS[1] + KERNELS[2])


def work(shape: tuple[int, ...]) -> int:
    """About how many weights of dense layers take as long for a row as the usual convolutions over
    such a series.
    """
    steps, channels = shape
    total, before = 0, channels
    for kernel in KERNELS:
        total += steps * kernel * before * WIDTH
        before, steps = WIDTH, steps // 2 if steps > FEW else steps
    return SLOWER * total


def encoded(graph: Graph, name: str, series: Tensor, params: Params) -> Tensor:
    """What a series of shape (steps, channels) comes to; every layer has a name that begins with
    this one.
    """
    block = params.get("block", CONVOLUTION)
    if block == RECURRENT:
        return _recurrent(graph, name, series, params)
    return (
        _attending(graph, name, series, params)
        if block == ATTENTION
        else _convolved(graph, name, series, params)
    )


def _convolved(graph: Graph, name: str, x: Tensor, params: Params) -> Tensor:
    width = int(params.get("series_width", WIDTH))
    for number in range(int(params.get("series_depth", DEPTH))):
        x = _convolution(
            graph, f"{name}_{number}", x, (width, KERNELS[min(number, len(KERNELS) - 1)])
        )
        if x.shape[0] > FEW:
            x = graph.layer(
                "MaxPooling1D", f"{name}_{number}_half", x, (x.shape[0] // 2, width), pool_size=2
            )
    return _read(graph, name, x)


def _convolution(graph: Graph, name: str, x: Tensor, size: tuple[int, int]) -> Tensor:
    """A convolution, normalized and bent; it adds to what there is where that has as many
    channels.
    """
    width, kernel = size
    config = {"filters": width, "kernel_size": kernel, "padding": "same", "use_bias": False}
    y = graph.layer("Conv1D", name, x, (x.shape[0], width), **config)
    y = graph.layer("BatchNormalization", f"{name}_normal", y, y.shape, momentum=blocks.MOMENTUM)
    y = graph.layer("Activation", f"{name}_relu", y, y.shape, activation="relu")
    return graph.operation("Add", x, y) if x.shape == y.shape else y


def _recurrent(graph: Graph, name: str, x: Tensor, params: Params) -> Tensor:
    """What two layers remember that read the series from either end."""
    width, depth = int(params.get("series_width", WIDTH)), int(params.get("series_depth", DEPTH))
    x = _together(graph, name, x, width, RECURRENT)
    for number in range(depth):
        whole = number < depth - 1
        ways = [
            _read_by(graph, f"{name}_{number}", x, (width, whole, back)) for back in (False, True)
        ]
        shape = (x.shape[0], 2 * width) if whole else (2 * width,)
        x = graph.operation("Concatenate", ways, shape=shape, dtype="float32", axis=-1)
    return x


def _read_by(graph: Graph, name: str, x: Tensor, how: tuple[int, bool, bool]) -> Tensor:
    width, whole, backwards = how
    shape = (x.shape[0], width) if whole else (width,)
    config = {
        "units": width,
        "return_sequences": whole,
        "go_backwards": backwards,
        "reset_after": True,
    }
    read = graph.layer("GRU", f"{name}_{'back' if backwards else 'forth'}", x, shape, **config)
    return graph.operation("Flip", read, axis=1) if whole and backwards else read


def _attending(graph: Graph, name: str, x: Tensor, params: Params) -> Tensor:
    width = int(params.get("series_width", WIDTH))
    x = _together(graph, name, x, width, ATTENTION)
    x = graph.layer("Dense", f"{name}_wide", x, (x.shape[0], width), units=width)
    x = graph.operation("Add", x, _places(graph, name, x))
    for number in range(int(params.get("series_depth", DEPTH))):
        x = _attention(graph, f"{name}_{number}", x, float(params.get("series_dropout", 0.0)))
    return _read(graph, name, graph.layer("LayerNormalization", f"{name}_last", x, x.shape))


def _attention(graph: Graph, name: str, x: Tensor, dropout: float) -> Tensor:
    steps, width = x.shape
    config = {"num_heads": HEADS, "key_dim": -(-width // HEADS), "dropout": dropout}
    y = graph.layer("LayerNormalization", f"{name}_before", x, x.shape)
    x = graph.operation(
        "Add", x, graph.layer("MultiHeadAttention", f"{name}_attention", (y, y), x.shape, **config)
    )
    y = graph.layer("LayerNormalization", f"{name}_between", x, x.shape)
    y = graph.layer(
        "Dense", f"{name}_more", y, (steps, 2 * width), units=2 * width, activation="gelu"
    )
    y = graph.layer(
        "Dense",
        f"{name}_less",
        blocks.dropped(graph, f"{name}_dropout", y, dropout),
        x.shape,
        units=width,
    )
    return graph.operation("Add", x, y)


def _places(graph: Graph, name: str, x: Tensor) -> Tensor:
    """Weights of each step, by which attention knows where it is."""
    steps, width = x.shape
    beside = graph.operation("GetItem", x, [slice(None), 0], shape=(width,))
    return blocks.weights(
        graph, f"{name}_places", beside, (steps, width), uniform(1 / math.sqrt(width))
    )


def _together(graph: Graph, name: str, x: Tensor, width: int, block: str) -> Tensor:
    """Several steps as one, where there are more than a block takes."""
    steps, _ = x.shape
    stride = -(-steps // MOST[block])
    if stride == 1:
        return x
    config = {"filters": width, "kernel_size": stride, "strides": stride, "padding": "same"}
    return graph.layer("Conv1D", f"{name}_together", x, (-(-steps // stride), width), **config)


def _read(graph: Graph, name: str, x: Tensor) -> Tensor:
    """The largest and the mean of each channel over all steps, and the means of its parts."""
    steps, width = x.shape
    largest = graph.layer("GlobalMaxPooling1D", f"{name}_largest", x, (width,))
    if steps <= PARTS:
        found = graph.layer("Flatten", f"{name}_parts", x, (steps * width,))
        return blocks.joined(graph, [largest, found])
    mean = graph.layer("GlobalAveragePooling1D", f"{name}_mean", x, (width,))
    size = -(-steps // PARTS)
    count = -(-steps // size)
    config = {"pool_size": size, "padding": "same"}
    means = graph.layer("AveragePooling1D", f"{name}_means", x, (count, width), **config)
    return blocks.joined(
        graph, [largest, mean, graph.layer("Flatten", f"{name}_parts", means, (count * width,))]
    )
