"""Columns that are inputs of their own, as what the layers of a network take: an encoder for each kind of them.

What a column comes to stands beside what its network makes of numbers and codes. So a text is learned from by every
template; in one that is made for texts the vectors of words learn faster.

Words' vectors begin near 0: what was seen once or never has no say then. Over docstrings of packages, by which a model
was to tell the package, nothing else mattered as much: vectors that begin as normal numbers came to 0.62 of the answers
right, these to 0.71. That whole words are dropped in training, maxima beside sums, and pairs of words did not help.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cerebro_plpy.configs.templates import parts
from cerebro_plpy.configs.templates.functional import Graph, Tensor, normal
from cerebro_plpy.configs.templates.template import Params, Table, Wide

TEXT = "text"
WORD = 32
"""Numbers that a word comes to, where a template does not say it."""
BEGIN = 0.01
"""The standard deviation of words' vectors before training."""
WORD_RATE = 10.0
"""How fast the weights of words learn in a linear model, and in `text`: most steps say nothing of a word."""
Encoder = Callable[[Graph, int, Wide, Params], Tensor]


def encoded(graph: Graph, table: Table, params: Params) -> list[Tensor]:
    """What each of these columns comes to: so many numbers of a row. They are the last inputs that a graph is given."""
    return [ENCODERS[wide.kind](graph, place, wide, params) for place, wide in enumerate(table.wide, 1)]


def weighed(graph: Graph, table: Table, units: int) -> list[Tensor]:
    """The same for a linear model: a sum of weights, which begin at 0, for each unit of each column."""
    return [WEIGHED[wide.kind](graph, place, wide, units) for place, wide in enumerate(table.wide, 1)]


def weights(wide: Wide) -> int:
    """About how many weights a column's encoder has."""
    return wide.levels * WORD


def work(wide: Wide) -> int:
    """About how many weights of dense layers take as long for a row, as measured with 128 rows in a batch.

    Words are looked up, and all weights of words change in each step.
    """
    return 20 * wide.elements * WORD + weights(wide) // 7


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


ENCODERS: Mapping[str, Encoder] = {TEXT: _text}
WEIGHED: Mapping[str, Callable[[Graph, int, Wide, int], Tensor]] = {TEXT: _weighed_text}
