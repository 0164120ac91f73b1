"""The encoder of a series: convolutions, a recurrent layer, or attention between steps.

A series is long and a network deep, so steps are halved after each block, or several are joined
first. The result is pooled in two ways: over all steps, and over each of a few parts, because the
position matters in some series.
"""

from __future__ import annotations

import math

from cerebro_plpy.configs.templates.layers import blocks
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor, uniform
from cerebro_plpy.configs.templates.template import Params

CONVOLUTION = "convolution"
RECURRENT = "recurrent"
ATTENTION = "attention"
BLOCKS = (CONVOLUTION, RECURRENT, ATTENTION)
WIDTH = 64
DEPTH = 3
"""Defaults of the parameters series_width and series_depth."""
KERNELS = (7, 5, 3)
"""Kernel sizes of the first layers, as in the fully convolutional networks of Wang, Yan and Oates,
"Time Series Classification from Scratch" (2017); further layers have the last size."""
FEW_STEPS = 8
"""A series with so many steps is not halved."""
MAX_STEPS = 64
"""Steps of a recurrent or attention layer; several steps of a longer series are joined."""
PARTS = 4
HEADS = 4
CONVOLUTION_COST = 2
"""Time of a product in a convolution, in that of a dense layer."""
WEIGHTS = WIDTH * WIDTH * (KERNELS[1] + KERNELS[2])
"""Approximate number of weights of the usual encoder."""


def estimate_work(shape: tuple[int, ...]) -> int:
    """Return the time of the usual convolutions for a row, in weights of dense layers."""
    steps, channels = shape
    products = 0
    for kernel in KERNELS:
        products += steps * kernel * channels * WIDTH
        channels = WIDTH
        if steps > FEW_STEPS:
            steps //= 2
    return CONVOLUTION_COST * products


def encode(graph: Graph, name: str, series: Tensor, params: Params) -> Tensor:
    """Return the encoding of a series of shape (steps, channels).

    Args:
        name: prefix of the names of all layers.
    """
    block = params.get("block", CONVOLUTION)
    if block == RECURRENT:
        return _encode_recurrent(graph, name, series, params)
    if block == ATTENTION:
        return _encode_attention(graph, name, series, params)
    return _encode_convolutions(graph, name, series, params)


def _width(params: Params) -> int:
    return int(params.get("series_width", WIDTH))


def _depth(params: Params) -> int:
    return int(params.get("series_depth", DEPTH))


def _encode_convolutions(graph: Graph, name: str, x: Tensor, params: Params) -> Tensor:
    width = _width(params)
    for number in range(_depth(params)):
        kernel = KERNELS[min(number, len(KERNELS) - 1)]
        y = blocks.add_convolution(graph, "Conv1D", f"{name}_{number}", x, width, kernel)
        if x.shape == y.shape:
            y = graph.add(x, y)  # a residual connection
        x = y
        steps = x.shape[0]
        if steps > FEW_STEPS:
            shape = (steps // 2, width)
            x = graph.layer("MaxPooling1D", f"{name}_{number}_half", x, shape, pool_size=2)
    return _pool(graph, name, x)


def _encode_recurrent(graph: Graph, name: str, x: Tensor, params: Params) -> Tensor:
    """Return the last states of bidirectional recurrent layers."""
    width = _width(params)
    depth = _depth(params)
    x = _join_steps(graph, name, x, width)
    for number in range(depth):
        is_last = number == depth - 1
        directions = [
            _add_recurrent(graph, f"{name}_{number}", x, width, is_last, backwards)
            for backwards in (False, True)
        ]
        shape = _states_shape(x, 2 * width, is_last)
        x = graph.operation("Concatenate", directions, shape=shape, dtype="float32", axis=-1)
    return x


def _add_recurrent(
    graph: Graph, name: str, x: Tensor, width: int, is_last: bool, backwards: bool
) -> Tensor:
    """Add a recurrent layer; all but the last one return a state for each step."""
    config = {
        "units": width,
        "return_sequences": not is_last,
        "go_backwards": backwards,
        "reset_after": True,
    }
    direction = "back" if backwards else "forth"
    shape = _states_shape(x, width, is_last)
    states = graph.layer("GRU", f"{name}_{direction}", x, shape, **config)
    if backwards and not is_last:
        return graph.operation("Flip", states, axis=1)
    return states


def _states_shape(x: Tensor, width: int, is_last: bool) -> tuple[int, ...]:
    if is_last:
        return (width,)
    return (x.shape[0], width)


def _encode_attention(graph: Graph, name: str, x: Tensor, params: Params) -> Tensor:
    width = _width(params)
    x = _join_steps(graph, name, x, width)
    x = graph.dense(f"{name}_wide", x, width)
    x = graph.add(x, _add_positions(graph, name, x))
    dropout = float(params.get("series_dropout", 0.0))
    for number in range(_depth(params)):
        x = _add_attention(graph, f"{name}_{number}", x, dropout)
    return _pool(graph, name, graph.layer("LayerNormalization", f"{name}_last", x))


def _add_attention(graph: Graph, name: str, x: Tensor, dropout: float) -> Tensor:
    width = x.shape[-1]
    y = graph.layer("LayerNormalization", f"{name}_before", x)
    x = graph.add(x, blocks.add_self_attention(graph, f"{name}_attention", y, HEADS, dropout))
    y = graph.layer("LayerNormalization", f"{name}_between", x)
    y = graph.dense(f"{name}_more", y, 2 * width, activation="gelu")
    y = blocks.add_dropout(graph, f"{name}_dropout", y, dropout)
    return graph.add(x, graph.dense(f"{name}_less", y, width))


def _add_positions(graph: Graph, name: str, x: Tensor) -> Tensor:
    """Return trainable weights of each step, which tell attention the position."""
    steps, width = x.shape
    first_step = graph.operation("GetItem", x, [slice(None), 0], shape=(width,))
    initializer = uniform(1 / math.sqrt(width))
    return blocks.add_weights(graph, f"{name}_places", first_step, (steps, width), initializer)


def _join_steps(graph: Graph, name: str, x: Tensor, width: int) -> Tensor:
    """Join several steps to one if there are more than MAX_STEPS."""
    steps, _ = x.shape
    stride = -(-steps // MAX_STEPS)
    if stride == 1:
        return x
    config = {"filters": width, "kernel_size": stride, "strides": stride, "padding": "same"}
    return graph.layer("Conv1D", f"{name}_together", x, (-(-steps // stride), width), **config)


def _pool(graph: Graph, name: str, x: Tensor) -> Tensor:
    """Return the maximum and the mean of each channel over all steps, and its means over parts."""
    steps, width = x.shape
    maxima = graph.layer("GlobalMaxPooling1D", f"{name}_largest", x, (width,))
    if steps <= PARTS:
        parts = graph.layer("Flatten", f"{name}_parts", x, (steps * width,))
        return blocks.concatenate(graph, [maxima, parts])
    means = graph.layer("GlobalAveragePooling1D", f"{name}_mean", x, (width,))
    size = -(-steps // PARTS)
    count = -(-steps // size)
    config = {"pool_size": size, "padding": "same"}
    part_means = graph.layer("AveragePooling1D", f"{name}_means", x, (count, width), **config)
    parts = graph.layer("Flatten", f"{name}_parts", part_means, (count * width,))
    return blocks.concatenate(graph, [maxima, means, parts])
