"""Columns that are inputs of their own, as what the layers of a network take: an encoder for each kind of them.

What a column comes to stands beside what its network makes of numbers and codes. So a text, a series or an image is
learned from by every template; one that is made for them does more with them. In that for texts the vectors of words
learn faster.

Words' vectors begin near 0: what was seen once or never has no say then. Over docstrings of packages, by which a model
was to tell the package, nothing else mattered as much: vectors that begin as normal numbers came to 0.62 of the answers
right, these to 0.71. That whole words are dropped in training, maxima beside sums, and pairs of words did not help.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cerebro_plpy.configs.templates import images, parts, sequences
from cerebro_plpy.configs.templates.functional import Graph, Tensor, normal
from cerebro_plpy.configs.templates.template import FARTHEST, Params, Table, Wide, wide_name

TEXT, LONG_VECTOR, SERIES, IMAGE = "text", "long vector", "series", "image"
WORD = 32
"""Numbers that a word comes to, where a template does not say it."""
BEGIN = 0.01
"""The standard deviation of words' vectors before training."""
WORD_RATE = 10.0
"""How fast the weights of words learn in a linear model, and in `text`: most steps say nothing of a word."""
DENSE = 256
"""Units of a usual layer behind the elements of a long vector."""
Encoder = Callable[[Graph, int, Wide, Params], Tensor]


def encoded(graph: Graph, table: Table, params: Params) -> list[Tensor]:
    """What each of these columns comes to: so many numbers of a row. They are the last inputs that a graph is given."""
    return [ENCODERS[wide.kind](graph, place, wide, params) for place, wide in enumerate(table.wide, 1)]


def weighed(graph: Graph, table: Table, units: int) -> list[Tensor]:
    """The same for a linear model: a sum of weights, which begin at 0, for each unit of each column."""
    return [WEIGHED[wide.kind](graph, place, wide, units) for place, wide in enumerate(table.wide, 1)]


def weights(wide: Wide) -> int:
    """About how many weights a column's encoder has."""
    if wide.levels:
        return wide.levels * WORD
    return {SERIES: sequences.WEIGHTS, IMAGE: images.WEIGHTS}.get(wide.kind, 0)


def work(wide: Wide) -> int:
    """About how many weights of dense layers take as long for a row, as measured with 128 rows in a batch.

    Words are looked up, and all weights of words change in each step.
    """
    if wide.levels:
        return 20 * wide.elements * WORD + weights(wide) // 7
    if wide.kind == SERIES:
        return sequences.work(wide.shape)
    return images.work(wide.shape) if wide.kind == IMAGE else wide.elements * DENSE


def _elements(graph: Graph, place: int, wide: Wide) -> Tensor:
    """The elements of an array beside each other."""
    given = graph.input(wide_name(place), (wide.elements,), wide.dtype)
    return parts.smooth_clip(graph, graph.operation("Clip", given, x_min=-FARTHEST, x_max=FARTHEST))


def _array(graph: Graph, place: int, wide: Wide, params: Params) -> Tensor:
    return _elements(graph, place, wide)


def _series(graph: Graph, place: int, wide: Wide, params: Params) -> Tensor:
    return sequences.encoded(graph, f"series_{place}", _shaped(graph, place, wide), params)


def _image(graph: Graph, place: int, wide: Wide, params: Params) -> Tensor:
    return images.encoded(graph, f"image_{place}", _shaped(graph, place, wide), params)


def _shaped(graph: Graph, place: int, wide: Wide) -> Tensor:
    shape = wide.shape
    return graph.layer("Reshape", f"array_{place}", _elements(graph, place, wide), shape, target_shape=list(shape))


def _weighed_array(graph: Graph, place: int, wide: Wide, units: int) -> Tensor:
    """The arrays of whatever kind as a line sees them: their elements, each with a weight of its own."""
    x = _elements(graph, place, wide)
    config = {"units": units, "use_bias": False, "kernel_initializer": normal(0.0)}
    return graph.layer("Dense", f"elements_{place}", x, (units,), **config)


def _text(graph: Graph, place: int, wide: Wide, params: Params) -> Tensor:
    return _words(graph, place, wide, (int(params.get("word", WORD)), BEGIN, float(params.get("word_rate", 1.0))))


def _weighed_text(graph: Graph, place: int, wide: Wide, units: int) -> Tensor:
    return _words(graph, place, wide, (units, 0.0, WORD_RATE))


def _words(graph: Graph, place: int, wide: Wide, vectors: tuple[int, float, float]) -> Tensor:
    """The sum of what all words of a text come to, divided by the root of how many they are: as far from 0 as each.

    Of the vectors of words it is told how wide they are, how they begin, and how fast they learn.
    """
    width, begin, rate = vectors
    words = parts.wide_input(graph, place, wide)
    given = graph.operation("Sign", words)
    found = parts.embedded(graph, f"words_{place}", words, (wide.levels, width), normal(begin / rate))
    own = graph.operation("ExpandDims", given, shape=(*wide.shape, 1), axis=-1)
    total = graph.operation("Sum", graph.operation("Multiply", found, own), shape=(width,), axis=1, keepdims=False)
    count = graph.operation("Maximum", graph.operation("Sum", given, shape=(1,), axis=1, keepdims=True), 1)
    root = graph.operation("Rsqrt", graph.operation("Multiply", count, 1.0, dtype="float32"))
    return graph.operation("Multiply", total, graph.operation("Multiply", root, rate))


ENCODERS: Mapping[str, Encoder] = {TEXT: _text, LONG_VECTOR: _array, SERIES: _series, IMAGE: _image}
WEIGHED: Mapping[str, Callable[[Graph, int, Wide, int], Tensor]] = {
    TEXT: _weighed_text,
    **dict.fromkeys((LONG_VECTOR, SERIES, IMAGE), _weighed_array),
}
