"""How an image becomes numbers beside each other: blocks of convolutions, between which it is
halved.
"""

from __future__ import annotations

from cerebro_plpy.configs.templates.layers import blocks
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor
from cerebro_plpy.configs.templates.template import Params

WIDTH, DEPTH = 32, 2
"""Where a template does not say them, as image_width and image_depth."""
LAYERS = 2
"""Of a block."""
MOST_WIDER = 4
"""Channels are twice as many in each block, up to so many times."""
SMALL = 4
"""Pixels of a side that is not halved any more, and what remains of an image is laid beside each
other.
"""

SLOWER = 2
"""So many times as long as a dense layer takes a convolution for a product."""
PIXELS = 9
"""Of a convolution."""
WEIGHTS = PIXELS * WIDTH * WIDTH * (1 + 2 + 4)


def work(shape: tuple[int, ...]) -> int:
    """About how many weights of dense layers take as long for a row as the usual convolutions over
    such an image.
    """
    height, width, before = shape
    total, filters = 0, WIDTH
    for _ in range(DEPTH):
        total += height * width * PIXELS * (before + filters) * filters
        before, filters = filters, 2 * filters
        height, width = (side // 2 if side > SMALL else side for side in (height, width))
    return SLOWER * total


def encoded(graph: Graph, name: str, image: Tensor, params: Params) -> Tensor:
    """What an image of shape (height, width, channels) comes to; every layer has a name that begins
    with this one.
    """
    first, x = int(params.get("image_width", WIDTH)), image
    for number in range(int(params.get("image_depth", DEPTH))):
        filters = first * min(2**number, MOST_WIDER)
        for layer in range(LAYERS):
            x = _convolution(graph, f"{name}_{number}_{layer}", x, filters)
        x = _halved(graph, f"{name}_{number}_half", x)
    return _read(graph, name, x)


def _convolution(graph: Graph, name: str, x: Tensor, filters: int) -> Tensor:
    config = {"filters": filters, "kernel_size": 3, "padding": "same", "use_bias": False}
    y = graph.layer("Conv2D", name, x, (*x.shape[:2], filters), **config)
    y = graph.layer("BatchNormalization", f"{name}_normal", y, y.shape, momentum=blocks.MOMENTUM)
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
