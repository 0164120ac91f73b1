"""How an image becomes numbers beside each other: blocks of convolutions, between which it is halved."""

from __future__ import annotations

from cerebro_plpy.configs.templates.functional import Graph, Tensor
from cerebro_plpy.configs.templates.template import Params

WIDTH, DEPTH = 32, 2
"""Of what no template has a field for."""
LAYERS = 2
"""Of a block."""
MOST_WIDER = 4
"""Channels are twice as many in each block, up to so many times."""
SMALL = 4
"""Pixels of a side that is not halved any more, and what remains of an image is laid beside each other."""


def encoded(graph: Graph, name: str, image: Tensor, params: Params) -> Tensor:
    """What an image of shape (height, width, channels) comes to; every layer has a name that begins with this one."""
    first, x = int(params.get("width", WIDTH)), image
    for number in range(int(params.get("depth", DEPTH))):
        filters = first * min(2**number, MOST_WIDER)
        for layer in range(LAYERS):
            x = _convolution(graph, f"{name}_{number}_{layer}", x, filters)
        x = _halved(graph, f"{name}_{number}_half", x)
    return _read(graph, name, x)


def _convolution(graph: Graph, name: str, x: Tensor, filters: int) -> Tensor:
    config = {"filters": filters, "kernel_size": 3, "padding": "same", "use_bias": False}
    y = graph.layer("Conv2D", name, x, (*x.shape[:2], filters), **config)
    y = graph.layer("BatchNormalization", f"{name}_normal", y, y.shape)
    return graph.layer("Activation", f"{name}_relu", y, y.shape, activation="relu")


def _halved(graph: Graph, name: str, x: Tensor) -> Tensor:
    sizes = [2 if side > SMALL else 1 for side in x.shape[:2]]
    if max(sizes) == 1:
        return x
    height, width = (side // size for side, size in zip(x.shape, sizes))
    return graph.layer("MaxPooling2D", name, x, (height, width, x.shape[2]), pool_size=sizes)


def _read(graph: Graph, name: str, x: Tensor) -> Tensor:
    """All that remains of a small image, and the means of channels of a larger one."""
    height, width, channels = x.shape
    if max(height, width) <= SMALL:
        return graph.layer("Flatten", f"{name}_flat", x, (height * width * channels,))
    return graph.layer("GlobalAveragePooling2D", f"{name}_mean", x, (channels,))
