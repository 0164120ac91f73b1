"""The encoder of an image: blocks of convolutions, with the image halved after each block."""

from __future__ import annotations

from cerebro_plpy.configs.templates.layers import blocks
from cerebro_plpy.configs.templates.layers.keras_graph import Graph, Tensor
from cerebro_plpy.configs.templates.template import Params

WIDTH = 32
DEPTH = 2
"""Defaults of the parameters image_width and image_depth."""
BLOCK_LAYERS = 2
MAX_CHANNEL_FACTOR = 4
"""Each block doubles the channels, up to this multiple of the width."""
SMALL_SIDE = 4
"""A side of so many pixels is not halved. An image of such sides is flattened, not averaged."""
CONVOLUTION_COST = 2
"""Time of a product in a convolution, in that of a dense layer."""
KERNEL_SIDE = 3
KERNEL_PIXELS = KERNEL_SIDE**2
WEIGHTS = KERNEL_PIXELS * WIDTH * WIDTH * (1 + 2 + 4)
"""Approximate number of weights of the usual encoder."""


def estimate_work(shape: tuple[int, ...]) -> int:
    """Return the time of the usual encoder for a row, in weights of dense layers."""
    height, width, channels = shape
    products = 0
    filters = WIDTH
    for _ in range(DEPTH):
        products += height * width * KERNEL_PIXELS * (channels + filters) * filters
        channels = filters
        filters *= 2
        height = _halve_side(height)
        width = _halve_side(width)
    return CONVOLUTION_COST * products


def _halve_side(side: int) -> int:
    return side // _pool_size(side)


def _pool_size(side: int) -> int:
    """Return the pixels of a side that are pooled to one."""
    if side > SMALL_SIDE:
        return 2
    return 1


def encode(graph: Graph, name: str, image: Tensor, params: Params) -> Tensor:
    """Return the encoding of an image of shape (height, width, channels).

    Args:
        name: prefix of the names of all layers.
    """
    width = int(params.get("image_width", WIDTH))
    x = image
    for number in range(int(params.get("image_depth", DEPTH))):
        filters = width * min(2**number, MAX_CHANNEL_FACTOR)
        for layer in range(BLOCK_LAYERS):
            layer_name = f"{name}_{number}_{layer}"
            x = blocks.add_convolution(graph, "Conv2D", layer_name, x, filters, KERNEL_SIDE)
        x = _halve(graph, f"{name}_{number}_half", x)
    return _pool(graph, name, x)


def _halve(graph: Graph, name: str, x: Tensor) -> Tensor:
    height, width, channels = x.shape
    pool_size = [_pool_size(height), _pool_size(width)]
    if max(pool_size) == 1:
        return x
    shape = (_halve_side(height), _halve_side(width), channels)
    return graph.layer("MaxPooling2D", name, x, shape, pool_size=pool_size)


def _pool(graph: Graph, name: str, x: Tensor) -> Tensor:
    """Return all numbers of a small image, and the means of channels of a larger one."""
    height, width, channels = x.shape
    if max(height, width) <= SMALL_SIDE:
        return graph.layer("Flatten", f"{name}_flat", x, (height * width * channels,))
    return graph.layer("GlobalAveragePooling2D", f"{name}_mean", x, (channels,))
